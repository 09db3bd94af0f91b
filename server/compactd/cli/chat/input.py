"""Parse what the user types in the chat: a prompt for the model, or one of the chat's own commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from os.path import commonprefix

from msgspec import Struct

from compactd.cli.framework import sizes


class CommandHelp(Struct, frozen=True):
    """A command of the chat, as `/help` and completion show it."""

    name: str
    takes: str
    told: str


COMMANDS = (
    CommandHelp("/compact", "[focus] [--keep N]", "compact now; focus: what the summary should focus on"),
    CommandHelp("/undo", "", "undo the last compaction"),
    CommandHelp("/redo", "", "redo the compaction that was undone last"),
    CommandHelp("/branch", "", "continue from an earlier point; nothing is deleted"),
    CommandHelp("/context", "", "show what fills the window"),
    CommandHelp("/model", "PROVIDER/ID", "switch to another model"),
    CommandHelp("/search", "WORDS", "find messages, also compacted ones"),
    CommandHelp("/sessions", "", "switch to another session"),
    CommandHelp("/help", "", "show commands and keys"),
    CommandHelp("/quit", "", "quit; the session is stored"),
)

KEYS = (
    ("Enter", "send the prompt"),
    ("Ctrl-J", "start a new line"),
    ("Tab", "complete a command; otherwise go to the entries that can be opened"),
    ("Esc", "stop the running answer or compaction"),
    ("Ctrl-C", "stop like Esc; twice: quit"),
    ("PgUp PgDn", "scroll the conversation"),
    ("Ctrl-T", "show or hide the context"),
    ("↑ ↓", "go through earlier prompts"),
)

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
    if first.lower() in names:
        return OwnCommand(first.lower(), rest.strip())
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


def help_text() -> str:
    """Return the list of commands and keys, as Markdown."""
    commands = "\n".join(f"    {f'{one.name} {one.takes}':<29} {one.told}" for one in COMMANDS)
    keys = "\n".join(f"    {key:<29} {told}" for key, told in KEYS)
    return f"{commands}\n\n{keys}"
