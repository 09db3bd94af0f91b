"""Leave out the middle of a long output of programs. Its errors and what is next to them stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from compactd.core.reduce.limits import Clip
from compactd.core.reduce.page import Page

RULE: Final = "long_output"
BEFORE_ERROR: Final = 2
AFTER_ERROR: Final = 6
"""So many lines before and after an error stay: where it happened, and what it says in full."""
MAX_CONTEXTS: Final = 40
"""Only so many errors keep their neighbours."""
MIN_LINES: Final = 4
"""A shorter run is not worth a mark."""


def clip_long_output(page: Page, clip: Clip | None, errors: Sequence[int]) -> None:
    """Leave out what is between the head and the tail of an output, in whole lines. What is next to the
    lines of `errors` stays. O(characters)."""
    lines = page.lines
    if clip is None or sum(map(len, lines)) <= clip.head + clip.tail:
        return
    start, room = 0, clip.head
    while start < len(lines) and room >= len(lines[start]):
        if not page.is_taken(start):
            room -= len(lines[start]) + 1
        start += 1
    stop, room = len(lines), clip.tail
    while stop > start and room >= len(lines[stop - 1]):
        stop -= 1
        if not page.is_taken(stop):
            room -= len(lines[stop]) + 1
    for at in errors[:MAX_CONTEXTS]:
        page.protect(range(max(0, at - BEFORE_ERROR), min(len(lines), at + AFTER_ERROR + 1)))
    for first, end in page.free_runs(start, stop):
        if end - first >= MIN_LINES:
            page.omit_free(first, end, RULE)
