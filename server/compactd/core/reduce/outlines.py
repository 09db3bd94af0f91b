"""Long files: of documents only the headings after the beginning, of sources not the bodies that are
unlikely to be needed."""

from __future__ import annotations

import re
from typing import Final

from compactd.core.history.entries import number_of
from compactd.core.reduce.asked_words import AskedWords
from compactd.core.reduce.bodies import find_bodies
from compactd.core.reduce.body_model import body_inputs, chances
from compactd.core.reduce.kinds import Origin
from compactd.core.reduce.limits import Limits
from compactd.core.reduce.numbering import plain_lines
from compactd.core.reduce.output import ToolOutput
from compactd.core.reduce.page import Page
from compactd.core.text.lazy_patterns import LazyPattern

RULE: Final = "outline"
MIN_LINES: Final = 6
"""A shorter part of a document is shown whole."""
MIN_SOURCE_CHARS: Final = 6_000
"""A shorter source is shown whole."""
_LONG: Final = 2.5
"""Only documents so many times as long as the beginning are shown as an outline."""
_PARTS: Final = ("offset", "limit", "view_range", "start_line", "end_line", "range", "lines", "ranges")
"""The arguments of calls that ask for a part of a file (agents of `core/work/tool_kinds.py`, 2026-11)."""
_CUTTERS: Final = ("sed", "head", "tail", "awk")
"""Programs that print a part of a file."""

_DOCUMENT: Final = LazyPattern(r"\.(?:md|mdx|rst|txt|adoc|org|jsonl|log|csv|tsv)\Z", re.IGNORECASE)
"""Matches the name of a file with text or data."""
_HEADING: Final = LazyPattern(r"#{1,6} |={3,}\s*\Z|-{3,}\s*\Z|\S[^.]{0,80}:\s*\Z")


def is_document(file: str) -> bool:
    """Return whether a file has text or data, by its name."""
    return _DOCUMENT.search(file) is not None


def is_part(output: ToolOutput, origin: Origin) -> bool:
    """Return whether a call asked for a part of a file."""
    asks = any(output.arguments.get(name) is not None for name in _PARTS)
    return asks or any(one.program in _CUTTERS for one in origin.programs)


def show_outline(page: Page, output: ToolOutput, origin: Origin, asked: AskedWords, limits: Limits) -> None:
    """Leave out what is between the headings of a long document, or those bodies of a long source that are
    unlikely to be needed. A part that the agent asked for stays. O(characters)."""
    if is_document(origin.file):
        if limits.documents is not None:
            _show_headings(page, limits.documents)
    elif limits.bodies is not None and len(asked) >= limits.min_calls and not is_part(output, origin):
        _leave_out_bodies(page, output, origin.file, asked, limits.bodies)


def _show_headings(page: Page, room: int) -> None:
    lines = plain_lines(page.lines)
    if sum(map(len, lines)) < _LONG * room:
        return
    at = 0
    while at < len(lines) and room > 0:
        room -= len(lines[at]) + 1
        at += 1
    while at < len(lines):
        first = at
        while at < len(lines) and _HEADING.match(lines[at]) is None:
            at += 1
        if at - first >= MIN_LINES:
            page.omit_free(first, at, RULE)
        at += 1


def _leave_out_bodies(page: Page, output: ToolOutput, file: str, asked: AskedWords, limit: float) -> None:
    lines = plain_lines(page.lines)
    free = [page.is_free(at) for at in range(len(lines))]
    if sum(len(line) + 1 for line, is_free in zip(lines, free, strict=True) if is_free) < MIN_SOURCE_CHARS:
        return
    bodies = find_bodies(lines, free)
    inputs = body_inputs(bodies, lines, free, output, file, asked, number_of(page.entry_id) or 0)
    for body, chance in zip(bodies, chances(inputs), strict=True):
        thousands = sum(map(len, lines[body.start : body.stop])) / 1_000
        if chance < limit * thousands:
            page.omit_free(body.start, body.stop, RULE)
