"""Find which lines a tool call adds to files and removes from them, by its arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.file_operations import PATCH_ARGUMENTS, Json, patched_paths, paths_in

MAX_EDIT_CHARS: Final = 40_000
"""Only this many characters of an old or a new text are read."""
MAX_LINE_CHARS: Final = 400
"""Only this many characters of a line are looked at."""
_OLD: Final = ("old_string", "oldString", "old_str", "oldText", "old_text", "search")
_NEW: Final = (
    "new_string",
    "newString",
    "new_str",
    "newText",
    "new_text",
    "replace",
    "replacement",
    "insert_text",
)
_WHOLE: Final = ("content", "contents", "file_text")
"""Names of the argument with the whole new text of a file."""
_NESTED: Final = ("edits", "changes", "replacements")
_PATCHED: Final = LazyPattern(
    r"\*\*\* (?:(?P<verb>Add File|Update File|Delete File|Move to): *(?P<path>\S.*)|End (?:Patch|of File))"
)


class TextChange(Struct, frozen=True):
    """A text of a file that a call replaced."""

    path: str
    old: str | None
    """None if the new text is the whole file."""
    new: str


class FileEdit(Struct, frozen=True):
    """What one call did to one file, line by line. Lines are without the white space around them."""

    path: str
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    is_whole: bool = False
    """Whether the added lines are the whole file: a tool wrote it."""


def edits_in(arguments: Mapping[str, Json]) -> tuple[FileEdit, ...]:
    """Return what a call does to files, by its arguments: one value for each file, in order. O(length)."""
    by_path: dict[str, list[TextChange]] = {}
    for change in texts_in(arguments):
        by_path.setdefault(change.path, []).append(change)
    return tuple(_edit_of(path, changes) for path, changes in by_path.items())


def texts_in(arguments: Mapping[str, Json]) -> Iterator[TextChange]:
    """Yield the old and the new texts in the arguments of a call. O(length)."""
    if patched_paths(arguments):
        yield from _texts_of_patch(next(p for n in PATCH_ARGUMENTS if isinstance(p := arguments.get(n), str)))
        return
    path = next(iter(paths_in(arguments)), "")
    pairs = list(_pairs(arguments))
    for old, new in pairs:
        yield TextChange(path, old, new)
    whole = next((text for name in _WHOLE if isinstance(text := arguments.get(name), str)), None)
    if whole is not None and not pairs:
        yield TextChange(path, None, whole)


def _edit_of(path: str, changes: Sequence[TextChange]) -> FileEdit:
    removed, added = _difference(
        [line for one in changes for line in _lines(one.old or "")],
        [line for one in changes for line in _lines(one.new)],
    )
    if any(len(one.old or "") > MAX_EDIT_CHARS or len(one.new) > MAX_EDIT_CHARS for one in changes):
        # What seems to be removed may be in the part of the new text that was not read.
        return FileEdit(path, (), tuple(added))
    return FileEdit(path, tuple(removed), tuple(added), is_whole=changes[-1].old is None)


def _lines(text: str) -> list[str]:
    if len(text) > MAX_EDIT_CHARS:
        text = text[:MAX_EDIT_CHARS].rpartition("\n")[0]
    return [line.strip() for line in text.split("\n")]


def _difference(before: Sequence[str], after: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the lines that are only before, and those that are only after. The order of lines does not
    count, so a line that was moved is in neither."""
    return _without(before, Counter(after)), _without(after, Counter(before))


def _without(lines: Sequence[str], others: Counter[str]) -> list[str]:
    left: list[str] = []
    for line in lines:
        if others[line] > 0:
            others[line] -= 1
        elif line:
            left.append(line)
    return left


def _texts_of_patch(patch: str) -> Iterator[TextChange]:
    """Yield the changes of a patch: one for each of its parts."""
    path, is_new, old, new = "", False, list[str](), list[str]()
    for line in (*patch[:MAX_EDIT_CHARS].split("\n"), "@@"):
        found = _PATCHED.match(line[:MAX_LINE_CHARS])
        if found is None and not line.startswith("@@"):
            if not line.startswith("+"):
                old.append(line[1:])
            if not line.startswith("-"):
                new.append(line[1:])
            continue
        if path and (old or new):
            yield TextChange(path, None if is_new else "\n".join(old), "\n".join(new))
        old, new = [], []
        if found is not None:
            path, is_new = (found["path"] or path).rstrip(), found["verb"] == "Add File"


def _pairs(arguments: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield the old and the new text of each change."""
    old = next((arguments[name] for name in _OLD if name in arguments), "")
    new = next((arguments[name] for name in _NEW if name in arguments), None)
    if isinstance(old, str) and isinstance(new, str):
        yield old, new
    for name in _NESTED:
        nested = arguments.get(name)
        for one in nested if isinstance(nested, list) else ():
            if isinstance(one, dict):
                yield from _pairs(one)
