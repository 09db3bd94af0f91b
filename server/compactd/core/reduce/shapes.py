"""The shape of a line: what it has in common with lines that differ only in numbers and names."""

from __future__ import annotations

from typing import Final

from compactd.core.text.lazy_patterns import LazyPattern

MAX_CHARS: Final = 300
"""Only so many characters of a line make its shape."""

_VARIES: Final = LazyPattern(r"0x[0-9a-fA-F]+|\d+")
"""Matches what differs between lines of one shape."""
_PLACE: Final = LazyPattern(r"\s*(?:[\w.@~+/-]+(?::\d+|\(\d+)(?:[:,]\d+)?\)?:?|\d+:\d+)\s+")
"""Matches the place before a message of a compiler or linter."""
_NAMES: Final = LazyPattern(r"'[^'\n]{0,80}'|\"[^\"\n]{0,80}\"|`[^`\n]{0,80}`")


def shape_of(line: str) -> str:
    """Return a line without its numbers."""
    return _VARIES.sub("#", line[:MAX_CHARS].strip())


def message_shape(line: str) -> str:
    """Return a message without its place, its numbers and the names in it."""
    line = line[:MAX_CHARS]
    found = _PLACE.match(line)
    return shape_of(_NAMES.sub("''", line if found is None else line[found.end() :]))
