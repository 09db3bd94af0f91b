"""Find the bodies of definitions in a program's source: the parts that may be left out of a long file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from compactd.core.text.lazy_patterns import LazyPattern

MIN_LINES: Final = 6
"""A shorter part is shown whole."""
LONG_LINES: Final = 30
"""A longer body is parted at its next blank line, or after twice as many lines."""
BODY_LINES: Final = 2
"""So many lines after the first of a definition are shown."""

_OUTER: Final = LazyPattern(r"[^\s)}\]#*/\"'<]")
_INNER: Final = LazyPattern(
    r"(?:  |    |\t)(?:(?:async|public|private|protected|static|export|override|abstract|final|pub) )*"
    r"(?:def|defp|func|fn|fun|function|class|interface|struct|enum|type|test|describe|it)\b"
    r"|(?:  |    |\t)(?!(?:if|for|while|switch|catch|else|return|with)\b)"
    r"(?:(?:async|public|private|protected|static|export|override|abstract|final|readonly|get|set) )*"
    r"[\w$]{1,80}(?:<[^<>\n]{0,80}>)?\([^\n]{0,300}\{\s*\Z"
)
"""Matches the first line of a definition inside a class or module."""


class Body(Struct, frozen=True):
    """Lines of a source that belong together, from `start` to `stop` (exclusive)."""

    start: int
    stop: int


def find_bodies(lines: Sequence[str], free: Sequence[int]) -> list[Body]:
    """Return the bodies in the lines of a source, in order. `free` says for each line whether it may be left
    out. The first lines of definitions are in no body. O(characters)."""
    found: list[Body] = []
    at, count = 0, len(lines)
    while at < count:
        if not free[at]:
            at += 1
            continue
        if _begins(lines[at]):
            at += 1 + BODY_LINES
            continue
        start = at
        while at < count and free[at] and not _begins(lines[at]):
            at += 1
            length = at - start
            if length >= 2 * LONG_LINES or (length >= LONG_LINES and at < count and not lines[at].strip()):
                break
        if at - start >= MIN_LINES:
            found.append(Body(start, at))
    return found


def _begins(line: str) -> bool:
    """Return whether a line begins a definition."""
    return _OUTER.match(line) is not None or _INNER.match(line) is not None
