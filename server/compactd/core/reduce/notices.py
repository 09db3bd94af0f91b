"""Notices that an agent adds after an output: one that an earlier output shows is left out."""

from __future__ import annotations

from typing import Final

from compactd.core.reduce.page import Omission, Page
from compactd.core.reduce.shown import ShownLines

RULE: Final = "notice"
BEGIN: Final = "<system-reminder>"
END: Final = "</system-reminder>"
"""How Claude Code writes a notice after the text of a file (2.1, recorded sessions, 2026-11)."""
MAX_LINES: Final = 12
MIN_LINES: Final = 3
MIN_CHARS: Final = 150


def fold_notice(page: Page, shown: ShownLines) -> None:
    """Leave out the notice at the end of an output if an earlier entry shows the same. O(lines)."""
    lines = page.lines
    ends = range(len(lines), max(0, len(lines) - MAX_LINES), -1)
    stop = next((at for at in ends if lines[at - 1].strip() == END), 0)
    if not stop or any(lines[at].strip() for at in range(stop, len(lines))):
        return
    start = next(
        (at for at in range(stop - 1, max(-1, stop - 1 - MAX_LINES), -1) if lines[at].strip() == BEGIN), None
    )
    if start is None:
        return
    notice = [line.rstrip() for line in lines[start:stop]]
    for run in shown.runs(notice, min_lines=max(MIN_LINES, len(notice)), min_chars=MIN_CHARS):
        page.omit(Omission(start, stop, RULE, "lines of a notice", run.entry_id, run.label))
