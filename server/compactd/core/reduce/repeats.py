"""Leave out lines that are equal to the one before."""

from __future__ import annotations

from typing import Final

from compactd.core.reduce.page import Omission, Page

RULE: Final = "repeats"
MIN_LINES: Final = 3
"""So many equal lines stay; of more, the first and the last stay."""


def fold_repeats(page: Page) -> None:
    """Leave out all but the first and the last of equal lines that follow each other. O(characters)."""
    at, lines = 0, page.lines
    while at < len(lines):
        end = at + 1
        while end < len(lines) and lines[end] == lines[at]:
            end += 1
        if end - at > MIN_LINES:
            page.omit(Omission(at + 1, end - 1, RULE, "lines like the one before left out"))
        at = end
