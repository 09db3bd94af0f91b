"""What is known of a tool call when its result arrives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from compactd.core.history.entries import EntryId
from compactd.core.work.file_operations import Json, arguments_of, paths_in
from compactd.core.work.shell import CheckKind, Command, check_kind, commands_in
from compactd.core.work.tool_kinds import ToolKind, command_line, tool_kind
from compactd.protocol.messages import ToolCall

MAX_LINE_CHARS: Final = 160
"""The most characters of a call that is shown on one line."""

_BETWEEN_WORDS: Final = " |,;()[]\"'"
"""Signs at which a line may be cut."""


class Call(Struct, frozen=True, kw_only=True):
    """A tool call, with what it is for."""

    entry_id: EntryId
    kind: ToolKind
    arguments: Mapping[str, Json]
    line: str
    """The call on one line: the command, or the tool with the file it names."""
    key: str
    """Two calls with the same key are attempts at the same thing."""
    commands: tuple[Command, ...] = ()
    check: CheckKind | None = None
    """What the call checks; None if it is no check."""


def read_call(call: ToolCall, entry_id: EntryId) -> Call:
    """Return what is known of a call. O(its arguments)."""
    arguments = arguments_of(call)
    kind = tool_kind(call.name, arguments)
    if kind != "shell":
        paths = paths_in(arguments)
        line = f"{call.name} {paths[0]}" if paths else call.name
        return Call(entry_id=entry_id, kind=kind, arguments=arguments, line=line, key=line)
    text = command_line(arguments)
    commands = commands_in(text)
    line = shorten(" ".join(text.split()), MAX_LINE_CHARS) or call.name
    keys = [key_of(command) for command in commands if command.program not in ("cd", "echo")]
    return Call(
        entry_id=entry_id,
        kind=kind,
        arguments=arguments,
        line=line,
        key=" && ".join(keys) or line,
        commands=commands,
        check=next((found for command in commands if (found := check_kind(command)) is not None), None),
    )


def key_of(command: Command) -> str:
    """Return what runs of the same command have in common: the program and its words without options."""
    plain = [word for word in command.words if not word.startswith("-")]
    return " ".join((command.program, *plain[:6]))


def shorten(text: str, most: int) -> str:
    """Return `text` if it has at most `most` characters, otherwise its beginning with `…`. It is cut at white
    space or at a sign between words, so that no part of a name passes for a name. O(most)."""
    if len(text) <= most:
        return text
    head = text[:most]
    at = max(map(head.rfind, _BETWEEN_WORDS))
    return f"{head[: max(at, 0)].rstrip(_BETWEEN_WORDS)}…"
