"""What a tool says after it changed a file: lines that the call contains are left out."""

from __future__ import annotations

from typing import Final

from compactd.core.history.entries import EntryId
from compactd.core.reduce.calls import written_texts
from compactd.core.reduce.numbering import line_number, plain_lines
from compactd.core.reduce.output import ToolOutput
from compactd.core.reduce.page import Omission, Page
from compactd.core.reduce.shown import ShownLines

RULE: Final = "in_the_call"
MIN_LINES: Final = 2
MIN_CHARS: Final = 80
MIN_SNIPPET_LINES: Final = 4


def fold_written(page: Page, output: ToolOutput) -> None:
    """Leave out the lines that the call wrote: it stands in the view before its result. O(characters)."""
    written = ShownLines()
    for number, text in enumerate(written_texts(output.arguments)):
        written.add(EntryId(str(number)), ToolOutput("", {}, text))
    lines = plain_lines(page.lines)
    for run in written.runs(lines, min_lines=MIN_LINES, min_chars=MIN_CHARS):
        for first, end in page.free_runs(run.start, run.stop):
            page.omit(Omission(first, end, RULE, "lines as in the call left out"))


def fold_snippet(page: Page) -> None:
    """Leave out the lines of the changed file. O(lines)."""
    at, lines = 0, page.lines
    while at < len(lines):
        end = at
        while end < len(lines) and line_number(lines[end]) is not None:
            end += 1
        if end - at >= MIN_SNIPPET_LINES:
            page.omit_free(at, end, RULE, "lines of the changed file left out")
        at = max(end, at + 1)
