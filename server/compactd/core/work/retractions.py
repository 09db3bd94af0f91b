"""Recognise edits that take back what an earlier edit of the same file added.

Such edits leave no error, but they tell what was tried and did not stay. A line that was only moved, extended
or rewritten was not taken back.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from compactd.core.history.entries import EntryId
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.calls import shorten
from compactd.core.work.edits import MAX_LINE_CHARS, FileEdit
from compactd.core.work.gists import (
    DULL,
    MAX_SHOWN_CHARS,
    OTHER,
    PROSE,
    defined_name,
    most_telling,
    rank_of,
)

MAX_RETRACTIONS: Final = 6
"""The newest are kept."""
MAX_LINES: Final = 3_000
"""How many added lines are remembered."""
MAX_REMOVED: Final = 200
"""How many lines that an edit removed are remembered."""
MAX_COPIES: Final = 8
"""How many times the same line of a file is remembered."""
SHOWN: Final = 2
"""How many lines of a retraction are shown."""
REWRITTEN: Final = 0.6
"""A line of which the new lines have this share of the names was rewritten."""
WHOLE: Final = 0.6
"""An edit of which at least this share of the lines was removed at once, and of which none is left, was
reverted."""

_NAME: Final = LazyPattern(r"[A-Za-z_]\w{2,}")
_WORDS: Final = """
for func function def defp end let var const val new return raise throw throws self this true false
nil null none elif else elsif case switch match when while with try except catch finally import from
export default public private protected static final async await yield err error string int bool not
and assert class struct type interface
"""
_KEYWORDS: Final = frozenset(_WORDS.split())
"""Words that say nothing of what a line does."""
_CALL: Final = LazyPattern(r"\w\(")
_DEBUG: Final = LazyPattern(
    r"(?:t\.(?:Fatal|Error|Log)f?|fmt\.Print\w*|log\.Print\w*|print|puts|pp|dbg!|e?println!|console\.\w+|IO\.(?:inspect|puts)"
    r"|System\.(?:out|err)\.\w+)\s?\("
)
"""Matches a line that prints something, as one does to look for a fault, or that only ends a test."""
_NO_CODE: Final = (*PROSE, ".json", ".lock")
"""The endings of files whose lines are no code. Their lines are rewritten all the time."""


class Retraction(Struct, frozen=True):
    """An edit that took back what an earlier one added."""

    text: str
    """What was taken back, in a sentence."""
    instead: str
    """What replaced it, in a sentence; empty if nothing did."""
    entry_id: EntryId
    """The message with the result of the edit."""
    at: int
    """The number of this message."""
    path: str
    since: EntryId
    """The message of the edit that was taken back."""
    is_whole: bool
    """Whether all of that edit was taken back, and nothing came instead."""


class _Edit(Struct):
    """An edit of which lines are remembered."""

    entry_id: EntryId
    removed: frozenset[str]
    size: int = 0
    """How many lines were added."""
    left: int = 0
    """How many of them are still there."""


class _Gone(Struct):
    retraction: Retraction
    keys: set[str]
    """The lines that were taken back, without those that were added again later."""


class Retractions:
    """The edits of a conversation that took back what earlier ones added."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, list[_Edit]]] = {}
        """For each line that was added: the files in which it is, and for each of them the edits that added
        it."""
        self._found: deque[_Gone] = deque(maxlen=MAX_RETRACTIONS)

    def result(self) -> list[Retraction]:
        """Return the newest retractions, oldest first."""
        return [one.retraction for one in self._found]

    def read(self, edit: FileEdit, entry_id: EntryId, at: int) -> EntryId | None:
        """Take in a successful edit. `at` is the number of the message with its result. Return the message of
        the earlier edit that it took back as a whole; None if there is none. O(length)."""
        if not edit.path or edit.path.lower().endswith(_NO_CODE):
            return None
        added = [_key(line) for line in edit.added if _is_telling(line)]
        removed = [(_key(line), line) for line in self._removed_by(edit) if _is_telling(line)]
        again = frozenset(added)
        gone = [
            (earlier, key, line)
            for key, line in removed
            if (earlier := self._forget(key, edit.path)) is not None and key not in again
        ]
        for one in [one for one in self._found if not one.keys.isdisjoint(again)]:
            one.keys.difference_update(again)
            if not one.keys:
                self._found.remove(one)  # It was only moved.
        self._remember(_Edit(entry_id, frozenset(key for key, _ in removed[:MAX_REMOVED])), added, edit.path)
        names = {name for line in edit.added for name in _names(line)}
        here = [one for one in gone if one[1] not in self._lines]
        if len(here) < len(gone) - len(here):
            return None  # Most of it was moved to other files.
        gone = [one for one in here if not _is_rewritten(one[2], names)]
        return self._note(gone, again, edit, entry_id, at) if gone else None

    def _note(
        self,
        gone: Sequence[tuple[_Edit, str, str]],
        added: frozenset[str],
        edit: FileEdit,
        entry_id: EntryId,
        at: int,
    ) -> EntryId | None:
        """Note what was taken back of the edit from which most was. Return its message if that is all."""
        most = Counter(id(earlier) for earlier, _, _ in gone).most_common(1)[0][0]
        earlier = next(one for one, _, _ in gone if id(one) == most)
        lines = [(key, line) for one, key, line in gone if one is earlier]
        shown = most_telling([line for _, line in lines if _says_why(line)], SHOWN)
        if not shown:
            return None
        is_whole = earlier.left == 0 and len(lines) >= WHOLE * earlier.size and added <= earlier.removed
        done = "reverted" if is_whole else "took back what"
        had = "" if is_whole else " had added"
        text = f"An edit of {edit.path} {done} an earlier one ({earlier.entry_id}){had}: {_quoted(shown)}"
        new = () if is_whole else most_telling(edit.added, 1)
        said = f"It added {_quoted(new)} instead" if any(rank_of(line) < DULL for line in new) else ""
        found = Retraction(text, said, entry_id, at, edit.path, earlier.entry_id, is_whole)
        self._found.append(_Gone(found, {key for key, _ in lines}))
        return earlier.entry_id if is_whole else None

    def _removed_by(self, edit: FileEdit) -> Iterable[str]:
        if not edit.is_whole:
            return edit.removed
        kept = {_key(line) for line in edit.added}
        left_out = [
            [line] * len(places[edit.path])
            for line, places in self._lines.items()
            if edit.path in places and line not in kept
        ]
        return [line for lines in left_out for line in lines]

    def _forget(self, key: str, path: str) -> _Edit | None:
        """Forget that a line is in a file, once. Return the edit that added it; None if none did."""
        places = self._lines.get(key, {})
        edits = places.get(path)
        if not edits:
            return None
        edit = edits.pop(0)
        edit.left -= 1
        if not edits:
            del places[path]
        if not places:
            del self._lines[key]
        return edit

    def _remember(self, edit: _Edit, added: Iterable[str], path: str) -> None:
        for key in added:
            edits = self._lines.setdefault(key, {}).setdefault(path, [])
            if len(edits) < MAX_COPIES:
                edits.append(edit)
                edit.size += 1
                edit.left += 1
        while len(self._lines) > MAX_LINES:
            del self._lines[next(iter(self._lines))]


def _key(line: str) -> str:
    """Return by what a line is recognised: the name that it defines, otherwise the line."""
    return defined_name(line) or line


def _is_telling(line: str) -> bool:
    return len(line) <= MAX_LINE_CHARS and rank_of(line) < DULL and bool(_names(line))


def _says_why(line: str) -> bool:
    """Return whether it tells something that a line is gone: it has a branch with names, a call or a new
    name, and does not only print."""
    if _DEBUG.match(line) is not None:
        return False
    is_whole = defined_name(line) or _CALL.search(line) is not None
    return bool(is_whole) or (rank_of(line) < OTHER and len(_names(line)) > 1)


def _quoted(lines: Iterable[str]) -> str:
    return " and ".join(f"`{shorten(line, MAX_SHOWN_CHARS)}`" for line in lines)


def _names(line: str) -> frozenset[str]:
    """Return the names in a line, without keywords."""
    return frozenset(_NAME.findall(line[:MAX_LINE_CHARS])) - _KEYWORDS


def _is_rewritten(line: str, names: set[str]) -> bool:
    """Return whether most names of a line are among those of the new lines."""
    own = _names(line)
    return len(own & names) >= REWRITTEN * len(own)
