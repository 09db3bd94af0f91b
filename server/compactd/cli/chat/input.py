"""What a line asks for: a prompt for the model, or one of the chat's own commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from msgspec import Struct

from compactd.cli.framework import sizes


class About(Struct, frozen=True):
    """A command, for `/help` and completion."""

    name: str
    takes: str
    told: str


COMMANDS = (
    About("/compact", "[focus] [--keep N]", "compacts now; focus: what to look at most"),
    About("/undo", "", "takes the last compaction back"),
    About("/redo", "", "puts it in force again"),
    About("/branch", "", "goes on from an earlier point; deletes nothing"),
    About("/context", "", "what fills the window"),
    About("/model", "PROVIDER/ID", "goes on with another model"),
    About("/search", "WORDS", "messages that hold them, compacted or not"),
    About("/sessions", "", "goes on with another session"),
    About("/help", "", "commands and keys"),
    About("/quit", "", "ends; the session is kept"),
)

KEYS = (
    ("Enter", "sends"),
    ("Ctrl-J", "a new line"),
    ("Tab", "completes a command; else goes to what opens"),
    ("Esc", "stops the answer or the compaction that runs"),
    ("Ctrl-C", "the same; twice quits"),
    ("PgUp PgDn", "through the conversation"),
    ("Ctrl-T", "the context"),
    ("↑ ↓", "earlier prompts"),
)

_COMMAND = re.compile(r"/[A-Za-z]*")
_KEEP = re.compile(r"(?:^|\s)--keep(?:[=\s]+(\S+))?")


class Own(Struct, frozen=True):
    """One of the chat's own commands, with what stands behind its name."""

    name: str
    rest: str


def own_command(line: str) -> Own | None:
    """None where the line is a prompt: a path is one. Raises `ValueError` for a command that is none."""
    first, _, rest = line.strip().partition(" ")
    if _COMMAND.fullmatch(first) is None:
        return None
    names = [about.name for about in COMMANDS]
    if first.lower() in names:
        return Own(first.lower(), rest.strip())
    near = get_close_matches(first.lower(), names, n=1)
    hint = f"did you mean {near[0]}?" if near else "/help lists what there is."
    raise ValueError(f"there is no command {first}; {hint}")


def compact_params(rest: str) -> dict[str, object]:
    """Params of `session/compact` but the session. Raises `ValueError`."""
    params: dict[str, object] = {}
    found = _KEEP.search(rest)
    if found is not None:
        if found[1] is None:
            raise ValueError("--keep needs a number of messages: /compact --keep 10")
        params["keep_messages"] = sizes.messages(found[1])
        rest = rest[: found.start()] + rest[found.end() :]
    if rest.strip():
        params["instructions"] = rest.strip()
    return params


def matches(line: str) -> Sequence[About]:
    """The commands that a line may become; none once its name is whole and something stands behind it."""
    if not line.startswith("/") or any(space in line for space in " \n"):
        return ()
    return [about for about in COMMANDS if about.name.startswith(line.lower())]


def completed(line: str) -> str:
    """`line` with as much behind it as all commands that it may become have in common."""
    names = [about.name for about in matches(line)]
    if not names:
        return line
    if len(names) == 1:
        return f"{names[0]} "
    shortest = min(names, key=len)
    size = next((n for n, c in enumerate(shortest) if any(name[n] != c for name in names)), len(shortest))
    return names[0][:size]


def help_text() -> str:
    """Commands and keys, in markdown."""
    commands = "\n".join(f"    {f'{one.name} {one.takes}':<29} {one.told}" for one in COMMANDS)
    keys = "\n".join(f"    {key:<29} {told}" for key, told in KEYS)
    return f"{commands}\n\n{keys}"
