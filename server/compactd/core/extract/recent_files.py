"""Find the files of the last turns, each with its full text as the session last saw it.

The text is known after a full read, after a write, and after edits of a known text. It is None if the session
saw only a part of the file. The session's working folder is found from the paths that its tools were given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from compactd.core.extract.facts import Facts, without_reminders
from compactd.core.extract.features import Lexicon
from compactd.core.extract.line_roles import READ, result_role
from compactd.core.history.entries import Item, is_summary
from compactd.core.history.message_kinds import is_request
from compactd.core.history.tool_pairs import match
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.tool_results import text_of_result
from compactd.core.work.file_operations import (
    Json,
    arguments_of,
    is_change,
    is_search,
    ledger_of,
    paths_in,
    use_of,
)
from compactd.protocol.messages import ToolCall, ToolResult

TURNS: Final = 3
"""Only the newest turns of the user, this many, are examined."""
MESSAGES: Final = 300
"""At most this many of the newest messages are examined, because a turn can be a whole day's work."""
FILES: Final = 20
"""The most files that `last_files` returns."""
MAX_COMPARED_CHARS: Final = 1_000_000
"""A file's text with more characters than this counts as unknown."""
CUT_LINE_CHARS: Final = 1_990
"""Agents cut lines of about 2,000 characters and more (Claude Code, OpenCode; seen 2026-11). A line of this
length may therefore have been cut."""

_PARTIAL_ARGUMENTS = """
offset limit start end start_line end_line startLine endLine line lines line_start line_end range view_range
head tail page pages max_lines from to around
"""
_PARTIAL = frozenset(_PARTIAL_ARGUMENTS.split())
"""Names of arguments with which a tool is asked for a part of a file."""

_WHOLE = ("content", "contents", "file_text", "new_content")
"""Names of arguments that contain the whole new text of a file."""
_EDITS = tuple(
    tuple(pair.split("/"))
    for pair in ("old_string/new_string", "old_str/new_str", "oldString/newString", "oldText/newText")
)
"""Names of arguments, in pairs: the text that an edit replaces, and its replacement."""
_NUMBERED = LazyPattern(r"\s*(\d{1,9})(?:→|\t|\| ?)(.*)\Z", re.DOTALL)
_CUT = LazyPattern(r"truncated|\bmore lines\b|\bnot shown\b|\[\.\.\.|…\s*\Z", re.IGNORECASE)


class SeenFile(Struct, frozen=True):
    """A file that the session used, with its text as the session last saw it."""

    path: str
    """The path as the conversation names it."""
    text: str | None
    """The whole text; None if the session did not see all of it."""


def last_files(items: Sequence[Item]) -> tuple[SeenFile, ...]:
    """Return the files that the last `TURNS` turns used, the most recently used first, at most `FILES`.
    `items` are originals, oldest first. O(text of those turns)."""
    first, turns = max(0, len(items) - MESSAGES), 0
    for index in range(len(items) - 1, first - 1, -1):
        turns += is_request(items[index].message)
        if turns == TURNS:
            first = index
            break
    recent = [item for item in items[first:] if not is_summary(item.message)]
    names = ledger_of(use_of(item) for item in recent).newest_first[:FILES]
    known = _texts(recent, frozenset(names))
    return tuple(SeenFile(path, known.get(path)) for path in names)


def matches_disk(seen: str, disk: str) -> bool | None:
    """Return whether the text on disk is the text that the session saw. Return None if that cannot be
    decided, because the session saw only a part or a text with cut lines."""
    mine, other = _plain(seen), _plain(disk)
    if mine == other:
        return True
    if other.startswith(mine) or any(len(line) >= CUT_LINE_CHARS for line in mine.split("\n")):
        return None
    return None if _CUT.search(mine[-400:]) is not None and _CUT.search(other[-400:]) is None else False


def _texts(items: Sequence[Item], names: frozenset[str]) -> dict[str, str | None]:
    """Return the text of each of these files after the last message, as far as the session knows it; None for
    an unknown text."""
    known: dict[str, str | None] = {}
    result_of = match(items).result_of
    for index, item in enumerate(items):
        for path in (*item.modified,):
            known[path] = None
        for at, block in enumerate(item.message.content):
            if not isinstance(block, ToolCall):
                continue
            place = result_of.get((index, at))
            result = items[place[0]].message.content[place[1]] if place is not None else None
            if not isinstance(result, ToolResult) or result.is_error:
                continue
            arguments = arguments_of(block)
            paths = [path for path in paths_in(arguments) if path in names]
            if is_change(arguments):
                for path in paths:
                    known[path] = _apply_change(known.get(path), arguments) if len(paths) == 1 else None
            elif len(paths) == 1 and not is_search(block.name):
                text = _read(block.name, arguments, text_of_result(result))
                if text is not None or paths[0] not in known:
                    known[paths[0]] = text
    return known


def _apply_change(text: str | None, arguments: Mapping[str, Json]) -> str | None:
    """Return the text of a file after the change that these arguments make. `text` is the text before the
    change. None stands for an unknown text, as argument and as result."""
    if (edits := arguments.get("edits")) is not None:
        for edit in edits if isinstance(edits, list) else ():
            text = _apply_change(text, edit) if isinstance(edit, dict) else None
        return text if isinstance(edits, list) else None
    for old_name, new_name in _EDITS:
        old, new = arguments.get(old_name), arguments.get(new_name)
        if isinstance(old, str) and isinstance(new, str):
            if text is None or not old or old not in text:
                return None
            everywhere = arguments.get("replace_all") is True or arguments.get("replaceAll") is True
            return text.replace(old, new, -1 if everywhere else 1)
    for name in _WHOLE:
        whole = arguments.get(name)
        if isinstance(whole, str) and not any(key in arguments for key in ("insert_line", "mode", "append")):
            return whole if len(whole) <= MAX_COMPARED_CHARS else None
    return None


def _read(name: str, arguments: Mapping[str, Json], result: str) -> str | None:
    """Return the file's text, without line numbers, from the result of a tool that read it; None if the
    result does not show the whole file."""
    if result_role(name, arguments) != READ or len(result) > MAX_COMPARED_CHARS:
        return None
    if any(key in _PARTIAL and value is not None for key, value in arguments.items()):
        return None
    lines = without_reminders(result).rstrip("\n").split("\n")
    found = [_NUMBERED.match(line) for line in lines]
    numbers = [int(match[1]) for match in found if match is not None]
    if len(numbers) == len(lines) and numbers == list(range(1, len(lines) + 1)):
        return "\n".join(match[2] for match in found if match is not None)
    return "\n".join(lines)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip("\n")


MIN_WITNESSES = 2
"""A folder can be the working folder only if at least this many files vote for it (see
`working_directory`)."""
MAX_PATHS = 400
"""Only the newest files, this many, vote for the working folder (see `working_directory`)."""


def working_directory(facts: Iterable[Facts], lexicon: Lexicon) -> str:
    """Return the folder to which the relative paths in the conversation refer; empty if it cannot be
    determined.

    The common parent of most files is not enough, because it may be a folder below the working folder. Paths
    cut at that folder would be names that nobody used. Instead, a folder gets one vote for each file that a
    tool was given by absolute path, if the file's path relative to the folder (at least two steps long) also
    occurs in the conversation. The folder with the most votes wins; of folders with equal votes, the longer
    path wins. O(atoms + files).
    """
    if isinstance(facts, Sequence) and not any(_absolute(known) for known in facts):
        return ""
    files: dict[str, None] = {}
    written: set[int] = set()
    for known in facts:
        files.update(dict.fromkeys(_absolute(known)))
        written.update(known.atoms)
    votes: dict[str, int] = {}
    for path in list(files)[-MAX_PATHS:]:
        steps = path.split("/")
        for k in range(3, len(steps) - 1):
            if lexicon.number(("path", "/".join(steps[k:]))) in written:
                folder = "/".join(steps[:k])
                votes[folder] = votes.get(folder, 0) + 1
    best = max(votes, key=lambda folder: (votes[folder], len(folder)), default="")
    return best if votes.get(best, 0) >= MIN_WITNESSES else ""


def _absolute(known: Facts) -> list[str]:
    """Return the files to which the calls of a message refer by absolute path."""
    return [path for call in known.calls for path in call.files if path.startswith("/")]
