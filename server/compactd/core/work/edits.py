"""Tell what an edit did, by the lines that it added and removed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from compactd.core.work.file_operations import PATCH_ARGUMENTS, Json

MAX_EDIT_CHARS: Final = 20_000
"""Only this many characters of an edit are read."""
MAX_SHOWN_CHARS: Final = 120
"""A longer line does not tell at a glance what changed."""
ADDED: Final = 2
"""How many added lines are shown."""

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
_NESTED: Final = ("edits", "changes", "replacements")
_DEFINES: Final = re.compile(
    r"\s*(?:export |pub(?:\([^)]*\))? |async |static |public |private |protected |default |final |abstract )*"
    r"(?:def|defp|func|fn|function|class|interface|type|struct|enum|trait|impl|module|const|let|var|val|fun)\b"
)
"""Matches a line that defines a name."""
_TELLING: Final = re.compile(r"[A-Za-z]\w{2,}.*[A-Za-z]\w{2,}")
"""Matches a line with at least two words."""
_COMMENT: Final = re.compile(r"\s*(?://|#(?!\w)|/?\*|--|<!--|\"\"\")")
_IMPORT: Final = re.compile(r"\s*(?:import\b|from \S+ import\b|use \w|#include|require\b|\"[\w./-]+\"$)")


class EditGist(Struct, frozen=True):
    """What an edit did to a file, at a glance."""

    added: tuple[str, ...] = ()
    """The lines that tell most of what was added, in order."""
    removed: str = ""
    """The line that tells most of what was removed, if nothing was added."""

    @property
    def text(self) -> str:
        """The lines, each in backticks."""
        if self.added:
            return " … ".join(f"`{line}`" for line in self.added)
        return f"removed `{self.removed}`" if self.removed else ""


def gist_of(arguments: Mapping[str, Json]) -> EditGist:
    """Return what an edit did, by the arguments of its call. O(length)."""
    added: list[str] = []
    removed: list[str] = []
    for old, new in _pairs(arguments):
        before = [line.strip() for line in old[:MAX_EDIT_CHARS].split("\n")]
        after = [line.strip() for line in new[:MAX_EDIT_CHARS].split("\n")]
        known, kept = frozenset(before), frozenset(after)
        added += [line for line in after if line not in known]
        removed += [line for line in before if line not in kept]
    shown = _most_telling(added, ADDED)
    return EditGist(shown, "" if shown else next(iter(_most_telling(removed, 1)), ""))


def _pairs(arguments: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield the old and the new text of each change."""
    for name in PATCH_ARGUMENTS:
        patch = arguments.get(name)
        if isinstance(patch, str) and "*** " in patch[:200]:
            lines = patch[:MAX_EDIT_CHARS].split("\n")
            yield (
                "\n".join(line[1:] for line in lines if line.startswith("-")),
                "\n".join(line[1:] for line in lines if line.startswith("+")),
            )
            return
    old = next((arguments[name] for name in _OLD if name in arguments), "")
    new = next((arguments[name] for name in _NEW if name in arguments), None)
    if isinstance(old, str) and isinstance(new, str):
        yield old, new
    for name in _NESTED:
        nested = arguments.get(name)
        for one in nested if isinstance(nested, list) else ():
            if isinstance(one, dict):
                yield from _pairs(one)


def _most_telling(lines: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the lines that tell most, in their order."""
    telling = [n for n, line in enumerate(lines) if len(line) <= MAX_SHOWN_CHARS and _TELLING.search(line)]
    best = sorted(telling, key=lambda n: (_rank(lines[n]), -min(len(lines[n]), 60), n))[:most]
    return tuple(lines[n] for n in sorted(best))


def _rank(line: str) -> int:
    """Return 0 for a line that defines a name, 1 for other code, 2 for comments and imports."""
    if _COMMENT.match(line) or _IMPORT.match(line):
        return 2
    return 0 if _DEFINES.match(line) else 1
