"""Line numbers that tools write before the lines of a file: read the lines without them, and show fewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from compactd.core.reduce.page import Page
from compactd.core.text.lazy_patterns import LazyPattern

RULE: Final = "numbers"

_NUMBER: Final = LazyPattern(r"[ \t]{0,10}(?P<number>\d{1,7})(?:→|\t|\|)")
"""Matches a line number as Claude Code (`12→`), `cat -n` (`12` and a tab) and OpenCode (`12|`) write it
(recorded sessions, 2026-11)."""
_FOUND: Final = LazyPattern(r"(?:[^\s:]{1,200}?[:-])?\d{1,7}[:-]")
"""Matches the file and the number before a line that a search found (`grep -n`)."""
MIN_NUMBERED: Final = 0.6
"""A text is numbered if at least this share of the numbers that were found count the lines."""
_TRIED_LINES: Final = 120


def line_number(line: str) -> int | None:
    """Return the number before a line; None if there is none."""
    found = _NUMBER.match(line)
    return None if found is None else int(found["number"])


def is_numbered(lines: Sequence[str]) -> bool:
    """Return whether a text has line numbers, on all of its lines or on some. O(1): a part of it is read."""
    counts = misses = 0
    offset: int | None = None
    for at, line in enumerate(lines[:_TRIED_LINES]):
        number = line_number(line)
        if number is None:
            # After a mark, the numbers go on somewhere else.
            offset = None if line.startswith("[… ") else offset
            continue
        if offset is None or number - at == offset:
            counts += 1
        else:
            misses += 1
        offset = number - at
    return counts > 0 and counts >= MIN_NUMBERED * (counts + misses)


def plain_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines without their numbers, if they have some, and without white space at the end.
    O(characters)."""
    if not is_numbered(lines):
        return [line.rstrip() for line in lines]
    plain: list[str] = []
    for line in lines:
        found = _NUMBER.match(line)
        plain.append((line if found is None else line[found.end() :]).rstrip())
    return plain


def without_places(lines: Sequence[str]) -> list[str]:
    """Return the lines of a search without the file and the line number before each. O(characters)."""
    plain: list[str] = []
    for line in lines:
        found = _FOUND.match(line)
        plain.append((line if found is None else line[found.end() :]).rstrip())
    return plain


def thin_numbers(page: Page, shown_every: int) -> None:
    """Leave out line numbers that follow from the one before, except for the multiples of `shown_every`. The
    spaces before a number are left out too. O(characters)."""
    if not is_numbered(page.lines):
        return
    expected: int | None = None
    for at, line in enumerate(page.lines):
        if page.is_taken(at):
            expected = None
            continue
        found = _NUMBER.match(line)
        if found is None:
            expected = None
            continue
        number, rest = int(found["number"]), line[found.end() :]
        if number == expected and number % shown_every and _NUMBER.match(rest) is None:
            page.replace(at, rest, RULE)
        else:
            page.replace(at, line.lstrip(" \t"), RULE)
        expected = number + 1
