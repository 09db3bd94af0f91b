"""Find which files a conversation read and modified, from its tool calls.

It works for any tool, whatever its name. A path among the arguments of a call means that the file was read.
If the call has new content, a patch or edits too, the file was modified. A patch modifies the files that it
names. Files that the client reports are added. A call that failed counts as neither read nor modified.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from compactd.core.history.entries import Item, is_summary
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.protocol.messages import ToolCall, ToolResult

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]

_PATHS = "path file_path filePath filename file_name notebook_path filepath file"
PATH_ARGUMENTS = tuple(_PATHS.split())
"""Names of arguments in which tools take a file (seen in Claude Code, pi, OpenCode, Codex, SWE-agent,
OpenHands)."""

MAX_PATH_CHARS = 1024
"""An argument with more characters is not a file name."""

_CHANGES = """
content contents new_content file_text text new_string newString new_str newText new_text new_source
replacement replacement_text insert_text patch diff edits old_string oldString old_str oldText old_text
changes code_edit
"""
CHANGE_ARGUMENTS = frozenset(_CHANGES.split())
"""Names of arguments that only tools which modify files take."""

PATCH_ARGUMENTS = ("patch", "input", "patchText")
"""Names of the argument that contains the patch of a tool such as `apply_patch` (klaude, Codex, OpenCode)."""

PATCH_BEGIN = "*** Begin Patch"

_PATCHED = LazyPattern(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): *(\S.*?) *\r?$", re.MULTILINE)
"""Matches a line that names a file in a patch (OpenAI's V4A format)."""

SEARCHES = ("grep", "glob", "search", "find", "list", "ls")
"""The beginnings of names of tools that search. A folder given to such a tool does not count as a file that
was read."""


def arguments_of(call: ToolCall) -> dict[str, Json]:
    """Return the arguments of a call as a dict. Arguments that are not valid JSON give `{"raw": text}`, a
    plain-text patch gives `{"input": text}`, and a JSON value that is no object gives `{"value": value}`.
    O(size)."""
    text = ""
    try:
        value: Json = msgspec.json.decode(call.arguments)
        if isinstance(value, str):
            text = value
            value = msgspec.json.decode(text) if text.strip() else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if text.lstrip().startswith(PATCH_BEGIN):
            # Custom tools of Codex take plain text instead of JSON.
            return {"input": text}
        return {"raw": bytes(call.arguments).decode("utf-8", "replace")}
    return value if isinstance(value, dict) else {"value": value}


class FileUse(Struct, frozen=True):
    """The files that the calls of one message use, or that the client reported with the message."""

    read: tuple[tuple[str | None, str], ...] = ()
    """Files that were read, as pairs (call id, path as the call spells it). The call id is None if the client
    reported the file."""
    modified: tuple[tuple[str | None, str], ...] = ()
    """Files that were modified, as pairs like those of `read`."""
    failed: tuple[str, ...] = ()
    """Ids of calls that failed: their results in this message are errors."""


NO_FILES: Final = FileUse()


def paths_in(arguments: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the paths of the files that the arguments of a call name, each once."""
    found: dict[str, None] = {}
    for name in PATH_ARGUMENTS:
        value = arguments.get(name)
        if isinstance(value, str) and 0 < len(value.strip()) <= MAX_PATH_CHARS and "\n" not in value:
            found[value.strip()] = None
            break
    found.update(dict.fromkeys(patched_paths(arguments)))
    several = arguments.get("files", arguments.get("paths"))
    if isinstance(several, list):
        for entry in several:
            path = entry.get("path") if isinstance(entry, dict) else entry
            if isinstance(path, str) and 0 < len(path) <= MAX_PATH_CHARS and "\n" not in path:
                found[path] = None
    return tuple(found)


def is_change(arguments: Mapping[str, Json]) -> bool:
    """Return whether a call with these arguments modifies a file: they contain new content, a patch or
    edits."""
    return not CHANGE_ARGUMENTS.isdisjoint(arguments) or bool(patched_paths(arguments))


def patched_paths(arguments: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the files that a patch in the arguments adds, updates, deletes or moves to, each once.

    Only a text that begins as a patch counts, because other texts may quote such lines. O(patch).
    """
    for name in PATCH_ARGUMENTS:
        patch = arguments.get(name)
        if isinstance(patch, str) and patch.lstrip().startswith(PATCH_BEGIN):
            paths = (found[1] for found in _PATCHED.finditer(patch))
            return tuple(dict.fromkeys(path for path in paths if len(path) <= MAX_PATH_CHARS))
    return ()


def is_search(name: str) -> bool:
    """Return whether a tool searches in folders or files. Only its name decides."""
    lower = name.lower()
    return lower.startswith(SEARCHES) or lower.endswith(("grep", "glob", "_search", "_find", "_list"))


def _names_file(path: str) -> bool:
    """Return whether a path looks like a file: its last step has a dot, and there is no wildcard in it."""
    return "." in path.rsplit("/", 1)[-1].strip(".") and "*" not in path


def use_of(item: Item) -> FileUse:
    """Return the files that one message reads and modifies. O(size of the message)."""
    read: list[tuple[str | None, str]] = []
    modified: list[tuple[str | None, str]] = []
    failed: list[str] = []
    meta = item.message.meta
    if is_summary(item.message) and meta is not None:
        read.extend((None, p) for p in meta.read_files)
        modified.extend((None, p) for p in meta.modified_files)
    for block in item.message.content:
        match block:
            case ToolCall():
                arguments = arguments_of(block)
                paths = paths_in(arguments)
                if is_change(arguments):
                    modified.extend((block.call_id, p) for p in paths)
                else:
                    looked_in = is_search(block.name)
                    read.extend((block.call_id, p) for p in paths if not looked_in or _names_file(p))
            case ToolResult(is_error=True):
                failed.append(block.call_id)
            case _:
                pass
    reported = reported_use(item)
    read.extend(reported.read)
    modified.extend(reported.modified)
    if not (read or modified or failed):
        return NO_FILES
    return FileUse(tuple(read), tuple(modified), tuple(failed))


def reported_use(item: Item) -> FileUse:
    """Return the files that the client reported with a message."""
    if not (item.read or item.modified):
        return NO_FILES
    return FileUse(tuple((None, p) for p in item.read), tuple((None, p) for p in item.modified))


class FileLedger:
    """The files that a conversation read and modified, in order of first use. Messages are added one by one;
    each takes time in proportion to the files that it names."""

    def __init__(self) -> None:
        self._touched: dict[str, None] = {}
        self._read: dict[str, None] = {}
        self._modified: dict[str, None] = {}

    def add(self, use: FileUse, later_failures: frozenset[str] = frozenset()) -> None:
        """Add the files of one message. Leave out the calls in `later_failures`, whose results are errors."""
        for uses, files in ((use.read, self._read), (use.modified, self._modified)):
            for call, path in uses:
                if call is None or call not in later_failures:
                    files.setdefault(path)
                    # Put it at the end, as the file that was used last.
                    self._touched.pop(path, None)
                    self._touched[path] = None

    @property
    def read(self) -> tuple[str, ...]:
        """Files that were read but never modified, in order of first use."""
        return tuple(p for p in self._read if p not in self._modified)

    @property
    def modified(self) -> tuple[str, ...]:
        """Files that were modified, in order of their first modification."""
        return tuple(self._modified)

    @property
    def newest_first(self) -> tuple[str, ...]:
        """All files, the most recently used first."""
        return tuple(reversed(self._touched))


def ledger_of(uses: Iterable[FileUse]) -> FileLedger:
    """Build the ledger of a conversation from the file use of each message, oldest first."""
    known = [use for use in uses if use != NO_FILES]
    ledger = FileLedger()
    # Ids of calls may repeat. A failed result belongs to the last call before it that has its id.
    failures: list[frozenset[str]] = []
    pending: set[str] = set()
    for use in reversed(known):
        pending.update(use.failed)
        failures.append(frozenset(pending) if pending else frozenset())
        pending.difference_update(call for call, _ in use.read + use.modified if call is not None)
    for use, failed in zip(known, reversed(failures), strict=True):
        ledger.add(use, failed)
    return ledger
