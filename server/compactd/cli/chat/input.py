"""Parse what the user types in the chat: a prompt for the model, or one of the chat's own commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from os.path import commonprefix

from msgspec import Struct

from compactd.cli.framework import sizes
from compactd.protocol.messages import CompactionResult


class CommandHelp(Struct, frozen=True):
    """A command of the chat, as `/help` and completion show it."""

    name: str
    takes: str
    told: str


COMMANDS = (
    CommandHelp("/compact", "[focus] [--keep N]", "compact now; focus: what the summary should focus on"),
    CommandHelp("/undo", "", "undo the last compaction"),
    CommandHelp("/redo", "", "redo the compaction that was undone last"),
    CommandHelp("/branch", "[ENTRY]", "continue from an earlier point; nothing is deleted"),
    CommandHelp("/context", "", "show what fills the window"),
    CommandHelp("/model", "[PROVIDER/ID]", "show the model, or switch to another one"),
    CommandHelp("/search", "WORDS", "find messages, also compacted ones"),
    CommandHelp("/sessions", "[ID] [--all]", "switch to another session; --all: also empty ones"),
    CommandHelp("/help", "", "show commands and keys"),
    CommandHelp("/quit", "", "quit; the session is stored"),
)

KEYS = (
    ("Enter", "send the prompt"),
    ("Ctrl-J", "start a new line"),
    ("↑ ↓", "go through earlier prompts"),
    ("Tab", "complete a command; otherwise go to the entries that can be opened"),
    ("Ctrl-↑ Ctrl-↓", "go to the previous or next message (also Ctrl-P, Ctrl-N)"),
    ("Enter, Space", "on an entry: open or close it"),
    ("Ctrl-O", "open all entries, or close them"),
    ("PgUp PgDn", "scroll the conversation"),
    ("Ctrl-T", "show or hide the context"),
    ("Esc", "stop the running answer or compaction; go back to the prompt"),
    ("Ctrl-C", "stop like Esc, and empty the prompt; twice: quit"),
    ("Ctrl-D", "quit, if the prompt is empty"),
    ("?", "in an empty prompt: show this list"),
)
"""The keys of the full-screen app."""

LINE_KEYS = (
    ("Ctrl-C", "stop the running answer or compaction; twice: quit"),
    ("Ctrl-D", "quit"),
)
"""The keys of the chat that reads one prompt per line."""

ALIASES = {"/state": "/context", "/exit": "/quit"}
"""Other name of a command -> its name."""

NAME_COLUMNS = 29
MIN_TOLD_COLUMNS = 24

SMALLEST_PLAN: dict[str, object] = {"strategy": "extract", "keep_messages": 1, "plan_only": True}
"""The params of `session/compact` that ask what `FORCED` would do. Nothing is changed."""

FORCED = "/compact --keep 1"
"""The command that compacts a conversation which is short enough to be kept as it is."""

_COMMAND = re.compile(r"/[A-Za-z]*")
_KEEP = re.compile(r"(?:^|\s)--keep(?:[=\s]+(\S+))?")


class OwnCommand(Struct, frozen=True):
    """A typed command of the chat: its name, and the text after the name."""

    name: str
    rest: str


def parse_own_command(line: str) -> OwnCommand | None:
    """Parse `line` as one of the chat's own commands. Return None if it is a prompt, also one that begins
    with a path such as `/tmp/a`. Raise `ValueError` for an unknown command.
    """
    first, _, rest = line.strip().partition(" ")
    if _COMMAND.fullmatch(first) is None:
        return None
    names = [about.name for about in COMMANDS]
    name = ALIASES.get(first.lower(), first.lower())
    if name in names:
        return OwnCommand(name, rest.strip())
    near = get_close_matches(first.lower(), names, n=1)
    hint = f"did you mean {near[0]}?" if near else "/help lists the commands."
    raise ValueError(f"there is no command {first}; {hint}")


def compact_params(rest: str) -> dict[str, object]:
    """Parse the text after `/compact`. Return the params of `session/compact`, without the session. Raise
    `ValueError` if `--keep` has no valid number.
    """
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


def matching_commands(line: str) -> Sequence[CommandHelp]:
    """Return the commands that start with `line`; none if the name is complete and followed by text."""
    if not line.startswith("/") or any(space in line for space in " \n"):
        return ()
    return [about for about in COMMANDS if about.name.startswith(line.lower())]


def common_beginning(names: Sequence[str]) -> str:
    """Return what all of `names` begin with."""
    return commonprefix(names)  # noqa: RUF071 - these are not paths


def complete_line(line: str) -> str:
    """Return `line`, completed up to where the matching commands differ."""
    names = [about.name for about in matching_commands(line)]
    if not names:
        return line
    if len(names) == 1:
        return f"{names[0]} "
    return common_beginning(names)


def help_text(columns: int = 100, keys: Sequence[tuple[str, str]] = KEYS) -> str:
    """Return the list of commands and of `keys`, laid out for `columns` columns. What does not fit next to a
    name is below it.
    """
    commands = [(f"{one.name} {one.takes}".rstrip(), one.told) for one in COMMANDS]
    rows = [*_help_rows(commands, columns), "", *_help_rows(keys, columns)]
    return "\n".join(rows)


def _help_rows(rows: Sequence[tuple[str, str]], columns: int) -> Sequence[str]:
    from textwrap import wrap

    lines: list[str] = []
    room = columns - NAME_COLUMNS - 1
    for name, told in rows:
        if room >= MIN_TOLD_COLUMNS:
            first, *more = wrap(told, room)
            lines.append(f"{name:<{NAME_COLUMNS}} {first}")
            lines += [" " * (NAME_COLUMNS + 1) + one for one in more]
        else:
            lines.append(name)
            lines += [f"  {one}" for one in wrap(told, max(MIN_TOLD_COLUMNS, columns - 2))]
    return lines


def split_sessions(rest: str) -> tuple[str, bool]:
    """Parse the text after `/sessions`. Return (the id of a session, or an empty text; whether empty sessions
    are shown).
    """
    words = rest.split()
    return " ".join(word for word in words if word != "--all"), "--all" in words


def no_compaction_text(reason: str, smallest: CompactionResult | None) -> str:
    """Return why `/compact` compacted nothing, and whether `FORCED` would. `smallest`: the plan of `FORCED`;
    None if the user has already given a number of messages.
    """
    text = f"No compaction needed: {_bare(reason)}"
    if smallest is None or not smallest.messages_before:
        return text
    if smallest.compacted:
        return f"{text}. To compact anyway: {FORCED}"
    if smallest.messages_before <= 2:
        return f"{text}. There is nothing before the newest prompt to summarise."
    if _bare(smallest.reason) == _bare(reason):
        return text
    return f"{text}. {FORCED} would not compact either: {_bare(smallest.reason)}"


def _bare(reason: str) -> str:
    return reason.removeprefix("nothing to compact: ")
