"""A long session of a coding agent, made of this repository's own files. Equal files give equal sessions.

Its parts are as large as in recorded sessions (tool results 45–85 % of the tokens, arguments of calls
11–44 %, the agent's text 1–12 %, the user's 0–8 %).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

ROOT = Path(__file__).parent.parent

LINES_A_READ = 90
CHARS_A_LINE = 400
"""Longer lines are cut, as the tools of agents do."""

Json = dict[str, object]

_WISHES = (
    "Please look at {path} and tell me why {name} is so slow; never change its public names.",
    "I'd rather keep {name} in {path} as it is. Could you find who calls it?",
    "The tests of {path} fail since yesterday. Fix {name}, but don't touch the journal's format.",
    "Always run the tests after a change. Next: {path}, {name} should say which session it means.",
)
_THOUGHTS = (
    "Let me read {path} to see how {name} works before I change anything.",
    "The problem is in {name}: it walks the whole list. I decided to keep an index, because {path} is long.",
    "{name} is used in two places, so I will look at {path} next.",
    "That is the root cause: {path} hands {name} the old value. I'll fix that rather than the caller.",
)


def sources() -> list[tuple[str, list[str]]]:
    """(path, lines) of the repository's own texts, sorted by path."""
    found = []
    for pattern in ("server/**/*.py", "tests/**/*.py", "tools/*.py", "examples/*.py", "*.md"):
        for path in ROOT.glob(pattern):
            lines = [line[:CHARS_A_LINE] for line in path.read_text("utf-8").splitlines()]
            if len(lines) > 5:
                found.append((path.relative_to(ROOT).as_posix(), lines))
    return sorted(found)


def turns() -> Iterator[list[Json]]:
    """Turns without end, oldest first, each a few messages with its calls answered."""
    files = sources()
    for number, (path, start, lines) in enumerate(_readings(files)):
        name = _name_in(lines)
        words = {"path": path, "name": name}
        messages: list[Json] = []
        if number % 9 == 0:
            messages.append({"role": "user", "content": _WISHES[number % len(_WISHES)].format(**words)})
        thought = _THOUGHTS[number % len(_THOUGHTS)].format(**words)
        messages += _call(
            f"read{number}",
            thought,
            "read",
            {"path": path, "offset": start, "limit": LINES_A_READ},
            "\n".join(f"{start + i:>5}\t{line}" for i, line in enumerate(lines)),
        )
        if number % 2 == 0:
            messages += _edit(number, path, name, lines)
        if number % 4 == 3:
            messages += _test_run(number, path, name, lines)
        yield messages


def messages_of(size_chars: int) -> list[Json]:
    """The first turns, until they hold that many characters of text."""
    taken: list[Json] = []
    held = 0
    for turn in turns():
        taken += turn
        held += len(repr(turn))
        if held >= size_chars:
            return taken
    return taken


def kilobytes() -> Iterator[str]:
    """Texts of 1,024 characters without end, each another."""
    text = "\n".join(line for _, lines in sources() for line in lines if line.strip() and line.isascii())
    for number in count():
        start = (number * 1_531) % (len(text) - 1024)
        head = f"{number} "
        yield head + text[start : start + 1024 - len(head)]


def _readings(files: Sequence[tuple[str, list[str]]]) -> Iterator[tuple[str, int, list[str]]]:
    """(path, first line, lines) of the pieces an agent reads; later rounds begin elsewhere in each file."""
    for turn in count():
        for path, lines in files:
            shift = (turn * 37) % LINES_A_READ
            for start in range(shift, len(lines), LINES_A_READ):
                yield path, start + 1, lines[start : start + LINES_A_READ]


def _name_in(lines: Sequence[str]) -> str:
    for line in lines:
        for word in ("def ", "class "):
            _, found, rest = line.partition(word)
            if found:
                return rest.partition("(")[0].partition(":")[0].strip() or "it"
    return "it"


def _call(
    call_id: str, text: str, name: str, arguments: Json, result: str, failed: bool = False
) -> list[Json]:
    call = {"type": "tool_call", "call_id": call_id, "name": name, "arguments": arguments}
    answer: Json = {"type": "tool_result", "call_id": call_id, "content": result}
    if failed:
        answer["is_error"] = True
    return [
        {"role": "assistant", "content": [{"type": "text", "text": text}, call]},
        {"role": "tool", "content": [answer]},
    ]


def _edit(number: int, path: str, name: str, lines: Sequence[str]) -> list[Json]:
    old = lines[: 8 + number % 24]
    new = [*old[:-1], f"    # {name}: step {number} of the change", *old[-1:]]
    return _call(
        f"edit{number}",
        f"Now {name} in {path} takes the index instead of the list.",
        "edit",
        {"path": path, "old_string": "\n".join(old), "new_string": "\n".join(new)},
        f"1 replacement in {path}",
    )


def _test_run(number: int, path: str, name: str, lines: Sequence[str]) -> list[Json]:
    failed = number % 8 == 7
    shown = "\n".join(f">   {line}" for line in lines[:12])
    result = f"{path}::{name} PASSED\n{number % 90 + 10} passed in 0.{number % 90 + 10} s"
    if failed:
        result = (
            f"{shown}\nE   KeyError: '{name}_{number}'\n{path}:{number % 300}: KeyError\n1 failed in 0.8 s"
        )
    return _call(
        f"test{number}",
        f"I run the tests of {path}.",
        "bash",
        {"command": f"python -m pytest {path} -q -k {name}", "timeout": 60 + number},
        result,
        failed,
    )
