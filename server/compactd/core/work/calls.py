"""What is known of a tool call when its result arrives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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

_FILTERS_NAMES: Final = """
head tail tee cat less more grep egrep fgrep rg sed awk sort uniq wc cut tr jq
column
"""
_FILTERS: Final = frozenset(_FILTERS_NAMES.split())
"""Programs that, after a pipe, only show what another one printed."""
_PREPARES: Final = "cd pushd popd pwd echo printf true : set export source . sleep date wait exit"
_SIDE: Final = frozenset(_PREPARES.split())
"""Programs that only prepare or report what a call is for."""
_GIT_ACTS_NAMES: Final = "commit push pull fetch merge rebase cherry-pick stash am"
_GIT_ACTS: Final = frozenset(_GIT_ACTS_NAMES.split())
"""Commands of git that are the same act whatever their words: two messages, two attempts at one commit."""
_GIT_OPTIONS: Final = frozenset(("-C", "-c", "--git-dir", "--work-tree"))
"""Options of git before its command whose value is the next word."""


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
    return shell_call(command_line(arguments), arguments, entry_id, name=call.name)


def shell_call(text: str, arguments: Mapping[str, Json], entry_id: EntryId, *, name: str) -> Call:
    """Return what is known of a call that runs the command line `text`. `name` is the tool's. O(length)."""
    commands = commands_in(text)
    line = shorten(" ".join(text.split()), MAX_LINE_CHARS) or name
    return Call(
        entry_id=entry_id,
        kind="shell",
        arguments=arguments,
        line=line,
        key=" && ".join(parts_of(commands)) or line,
        commands=commands,
        check=next((found for command in commands if (found := check_kind(command)) is not None), None),
    )


def parts_of(commands: Sequence[Command]) -> tuple[str, ...]:
    """Return the keys of the commands that a call is for: without those that only prepare or report it, and
    without filters after a pipe."""
    main = [one for one in commands if one.program not in _SIDE and not is_filter(one)]
    acts = [one for one in main if not _prepares(one)]
    return tuple(key_of(one) for one in acts or main)


def key_of(command: Command) -> str:
    """Return what runs of the same command have in common: the program and its words without options."""
    if command.program == "git":
        name = git_command(command)
        if name in _GIT_ACTS:
            return f"git {name}"
    plain = [word for word in command.words if not word.startswith("-")]
    return " ".join((command.program, *plain[:6]))


def is_filter(command: Command) -> bool:
    """Return whether a command only shows what the one before it printed."""
    return command.after in ("|", "|&") and command.program in _FILTERS


def git_command(command: Command) -> str:
    """Return which command of git this runs, such as `commit`; empty if it is none."""
    return next(_git_words(command), "") if command.program == "git" else ""


def _git_words(command: Command) -> Iterator[str]:
    """Yield the words after the options of git itself."""
    takes_value = False
    for word in command.words:
        if not takes_value and not word.startswith("-"):
            yield word
        takes_value = not takes_value and word in _GIT_OPTIONS


def _prepares(command: Command) -> bool:
    """Return whether a command only prepares another one, such as `git add` before `git commit`."""
    return command.program == "mkdir" or git_command(command) == "add"


def shorten(text: str, most: int) -> str:
    """Return `text` if it has at most `most` characters, otherwise its beginning with `…`. It is cut at white
    space or at a sign between words, so that no part of a name passes for a name. O(most)."""
    if len(text) <= most:
        return text
    head = text[:most]
    at = max(map(head.rfind, _BETWEEN_WORDS))
    return f"{head[: max(at, 0)].rstrip(_BETWEEN_WORDS)}…"
