"""Which files a conversation read and which it changed, told from its tool calls.

By code and on any tool, whatever it is called: a path among the arguments is a read; with new content, a
patch or edits next to it, a modification. A patch that names its files itself modifies those. What the client
reports itself is added. A call that failed did neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from compactd.core.history.entries import Item, is_summary
from compactd.protocol.messages import ToolCall, ToolResult

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]

_PATHS = "path file_path filePath filename file_name notebook_path filepath file"
PATH_ARGUMENTS = tuple(_PATHS.split())
"""Names under which tools take a file (seen in Claude Code, pi, OpenCode, Codex, SWE-agent, OpenHands)."""

MAX_PATH_CHARS = 1024
"""A longer argument names no file."""

_CHANGES = """
content contents new_content file_text text new_string newString new_str newText new_text new_source
replacement replacement_text insert_text patch diff edits old_string oldString old_str oldText old_text
changes code_edit
"""
CHANGE_ARGUMENTS = frozenset(_CHANGES.split())
"""Names of arguments that only a tool that changes a file takes beside its path."""

PATCH_ARGUMENTS = ("patch", "input", "patchText")
"""Names under which `apply_patch` takes its patch (klaude, Codex, OpenCode)."""

PATCH_BEGIN = "*** Begin Patch"

_PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): *(\S.*?) *\r?$", re.MULTILINE)
"""Lines of a patch (OpenAI's V4A format) that name a file."""

SEARCHES = ("grep", "glob", "search", "find", "list", "ls")
"""A folder given to one of these is a place to look in, not a file that was read."""


def arguments_of(call: ToolCall) -> dict[str, Json]:
    """A call's arguments as a table; `{"raw": text}` where they are no JSON object. O(size)."""
    text = ""
    try:
        value: Json = msgspec.json.decode(call.arguments)
        if isinstance(value, str):
            text = value
            value = msgspec.json.decode(text) if text.strip() else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if text.lstrip().startswith(PATCH_BEGIN):
            # Codex' custom tools take a text alone.
            return {"input": text}
        return {"raw": bytes(call.arguments).decode("utf-8", "replace")}
    return value if isinstance(value, dict) else {"value": value}


class FileUse(Struct, frozen=True):
    """The files of one message's calls, or those its client reported."""

    read: tuple[tuple[str | None, str], ...] = ()
    """(id of the call, or none where the client reported it; path as it was given)."""
    modified: tuple[tuple[str | None, str], ...] = ()
    failed: tuple[str, ...] = ()
    """Ids of the calls whose results in this message are errors."""


def paths_in(arguments: Mapping[str, Json]) -> tuple[str, ...]:
    """The files that a call's arguments name."""
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
    """True where a path stands beside new content, a patch or edits, and for a patch that names its files."""
    return not CHANGE_ARGUMENTS.isdisjoint(arguments) or bool(patched_paths(arguments))


def patched_paths(arguments: Mapping[str, Json]) -> tuple[str, ...]:
    """The files that a patch among a call's arguments adds, updates, deletes or moves to, each once.

    Only a patch that begins as one counts: other text may quote such lines. O(patch).
    """
    for name in PATCH_ARGUMENTS:
        patch = arguments.get(name)
        if isinstance(patch, str) and patch.lstrip().startswith(PATCH_BEGIN):
            paths = (found[1] for found in _PATCHED.finditer(patch))
            return tuple(dict.fromkeys(path for path in paths if len(path) <= MAX_PATH_CHARS))
    return ()


def is_search(name: str) -> bool:
    """True for a tool that looks for files or in them, by its name."""
    lower = name.lower()
    return lower.startswith(SEARCHES) or lower.endswith(("grep", "glob", "_search", "_find", "_list"))


def _names_file(path: str) -> bool:
    return "." in path.rsplit("/", 1)[-1].strip(".") and "*" not in path


def use_of(item: Item) -> FileUse:
    """What one message says of files. O(size of the message)."""
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
    return FileUse(tuple(read), tuple(modified), tuple(failed))


def reported_use(item: Item) -> FileUse:
    """What the client itself reported with a message."""
    return FileUse(tuple((None, p) for p in item.read), tuple((None, p) for p in item.modified))


class FileLedger:
    """Files by first appearance, filled message by message. O(what a message names) each."""

    def __init__(self) -> None:
        self._touched: dict[str, int] = {}
        self._read: dict[str, int] = {}
        self._modified: dict[str, int] = {}

    def add(self, use: FileUse, later_failures: frozenset[str] = frozenset()) -> None:
        """Take in one message. Calls in `later_failures` did nothing."""
        for call, path in use.read:
            if call is None or call not in later_failures:
                self._read.setdefault(path, len(self._touched))
                self._touch(path)
        for call, path in use.modified:
            if call is None or call not in later_failures:
                self._modified.setdefault(path, len(self._touched))
                self._touch(path)

    def _touch(self, path: str) -> None:
        self._touched.pop(path, None)
        self._touched[path] = 0

    @property
    def read(self) -> tuple[str, ...]:
        """Files that were read and never changed, by first appearance."""
        return tuple(p for p in self._read if p not in self._modified)

    @property
    def modified(self) -> tuple[str, ...]:
        """Files that were changed, by first change."""
        return tuple(self._modified)

    @property
    def newest_first(self) -> tuple[str, ...]:
        """All files, the one touched last first."""
        return tuple(reversed(self._touched))


def ledger_of(uses: Iterable[FileUse]) -> FileLedger:
    """The files of a conversation, given what each of its messages says, oldest first."""
    known = list(uses)
    ledger = FileLedger()
    # A call id may come again as a new call: a failure belongs to the nearest call before it.
    failures: list[frozenset[str]] = []
    pending: set[str] = set()
    for use in reversed(known):
        pending.update(use.failed)
        failures.append(frozenset(pending) if pending else frozenset())
        pending.difference_update(call for call, _ in use.read + use.modified if call is not None)
    for use, failed in zip(known, reversed(failures), strict=True):
        ledger.add(use, failed)
    return ledger


def files_of(items: Iterable[Item]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(files read, files modified) of these messages, oldest first, each by first appearance, each once.

    A file that was read and modified is modified only. The lists that an earlier summary's `meta` holds
    count like any other. O(size of the messages).
    """
    ledger = ledger_of(use_of(item) for item in items)
    return ledger.read, ledger.modified
