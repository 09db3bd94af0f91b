"""Fold lines that an earlier entry of the view shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from compactd.core.reduce.diffs import without_signs
from compactd.core.reduce.kinds import Origin
from compactd.core.reduce.limits import Limits
from compactd.core.reduce.numbering import plain_lines, without_places
from compactd.core.reduce.page import Omission, Page
from compactd.core.reduce.shown import ShownLines

RULE: Final = "shown_before"
WHOLE: Final = 0.8
"""An output is folded whole if one run has at least this share of its lines."""
SIGNED_BORDER_LINES: Final = 1
"""The border for diffs and searches: no edit copies its old text from lines with signs or places."""


def fold_shown(page: Page, shown: ShownLines, origin: Origin, limits: Limits, *, diff: bool) -> None:
    """Leave out runs of lines that an earlier entry shows. O(characters)."""
    if diff:
        _fold(page, without_signs(page.lines), shown, limits, signed=True)
        return
    # A part of a file that equals one of another file stays: an edit needs it here.
    file = origin.file.rsplit("/", 1)[-1] if origin.kind == "file" else ""
    lines = plain_lines(page.lines)
    _fold(page, lines, shown, limits, file=file)
    if origin.kind == "search" and (found := without_places(page.lines)) != lines:
        _fold(page, found, shown, limits, signed=True)


def _fold(
    page: Page,
    lines: Sequence[str],
    shown: ShownLines,
    limits: Limits,
    *,
    file: str = "",
    signed: bool = False,
) -> None:
    border = SIGNED_BORDER_LINES if signed else limits.border_lines
    runs = shown.runs(
        lines,
        min_lines=limits.min_run_lines,
        min_chars=limits.min_run_chars,
        overlap=border,
        file=file,
        calls=signed and limits.folds_calls,
    )
    is_whole = len(runs) == 1 and runs[0].stop - runs[0].start >= WHOLE * len(lines)
    if not is_whole and sum(map(len, lines)) < limits.min_part_chars:
        return
    for number, run in enumerate(runs):
        start, stop = run.start, run.stop
        if start > 0:
            before = runs[number - 1].stop if number else 0
            start = before if number and before - start >= border else max(start, before) + border
        if stop < len(lines):
            after = runs[number + 1].start if number + 1 < len(runs) else len(lines)
            stop = stop if stop - after >= border else stop - border
        for first, end in page.free_runs(start, max(start, stop)):
            if end - first >= limits.min_run_lines:
                page.omit(Omission(first, end, RULE, "lines", run.entry_id, run.label))
