"""Determine the role of a line in a conversation: who wrote it or, for a tool's line, which kind of argument
or result it is part of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from compactd.core.work.file_operations import Json, is_change

USER: Final = 0
HEADER: Final = 1
COMMAND: Final = 2
ASSISTANT: Final = 3
ARGUMENT: Final = 4
OLD: Final = 5
NEW: Final = 6
TODO: Final = 7
READ: Final = 8
SHELL: Final = 9
SEARCH: Final = 10
RESULT: Final = 11
SUMMARY: Final = 12
NOTE: Final = 13

RESULT_ROLES: Final = frozenset((READ, SHELL, SEARCH, RESULT))
"""Roles of lines that a tool returned."""
AGENT_ROLES: Final = frozenset((HEADER, COMMAND, ASSISTANT, ARGUMENT, OLD, NEW, TODO))
"""Roles of lines that the agent wrote, calls and their arguments included."""

HEADER_CHARS: Final = 220
"""A one-line argument with at most this many characters is part of its call's header."""

_HIDDEN_ARGUMENTS = frozenset(("description", "content", "prompt", "patch", "diff", "edits"))
_OLD = "old_string oldString old_str oldText old_text"
_OLD_ARGUMENTS = frozenset(_OLD.split())
_NEW = """
new_string newString new_str newText new_text content contents file_text new_content patch diff replacement
replacement_text insert_text new_source code_edit input
"""
_NEW_ARGUMENTS = frozenset(_NEW.split())
_COMMAND_ARGUMENTS = frozenset(("command", "cmd", "commands", "script", "code"))


def is_in_header(name: str, value: Json) -> bool:
    """Return whether an argument belongs to its call's header, the line with the tool's name and its short
    arguments."""
    return (
        isinstance(value, str)
        and name not in _HIDDEN_ARGUMENTS
        and name not in _OLD_ARGUMENTS
        and name not in _NEW_ARGUMENTS
        and 0 < len(value) <= HEADER_CHARS
        and "\n" not in value.strip()
    )


def argument_texts(name: str, value: Json) -> Iterable[tuple[int, str]]:
    """Yield (role, text) for each text in an argument of a tool call, nested ones included. The roles say
    what a text is: old text, new text, a command, an item of a to-do list, or another argument."""
    if isinstance(value, str):
        if name in _OLD_ARGUMENTS:
            yield OLD, value
        elif name in _NEW_ARGUMENTS:
            yield NEW, value
        elif name in _COMMAND_ARGUMENTS:
            yield COMMAND, value
        else:
            yield ARGUMENT, value
    elif isinstance(value, list):
        for entry in value:
            if isinstance(entry, str):
                yield from argument_texts(name, entry)
            elif isinstance(entry, dict):
                todo = _todo(entry)
                if todo is not None:
                    yield TODO, todo
                else:
                    for key, inner in entry.items():
                        yield from argument_texts(key, inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from argument_texts(key, inner)


def _todo(entry: dict[str, Json]) -> str | None:
    """Return an entry of a todo list as `status: text`; None if `entry` is no such entry."""
    status, text = entry.get("status"), entry.get("content", entry.get("step", entry.get("title")))
    if isinstance(status, str) and isinstance(text, str) and text.strip():
        return f"{status}: {text.strip()}"
    return None


def result_role(name: str, arguments: Mapping[str, Json]) -> int:
    """Return the role of the lines in a tool's result. The tool's name and its arguments decide."""
    lower = name.lower()
    if any(w in lower for w in ("grep", "glob", "search", "find")) or lower in ("ls", "list", "list_files"):
        return SEARCH
    if any(w in lower for w in ("bash", "shell", "exec", "terminal", "command")):
        return SHELL
    if not is_change(arguments) and (
        any(w in lower for w in ("read", "view", "cat", "open")) or (lower == "str_replace_editor")
    ):
        return READ
    return RESULT
