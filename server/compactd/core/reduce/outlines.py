"""Outlines of long files: after the beginning, only headings or the first lines of definitions."""

from __future__ import annotations

import re
from typing import Final

from compactd.core.reduce.limits import Limits
from compactd.core.reduce.numbering import plain_lines
from compactd.core.reduce.page import Page
from compactd.core.text.lazy_patterns import LazyPattern

RULE: Final = "outline"
MIN_LINES: Final = 6
"""A shorter part is shown whole."""
BODY_LINES: Final = 2
"""So many lines after the first of a definition are shown."""
_LONG: Final = 2.5
"""Only files so many times as long as the beginning are shown as an outline."""

_DOCUMENT: Final = LazyPattern(r"\.(?:md|mdx|rst|txt|adoc|org|jsonl|log|csv|tsv)\Z", re.IGNORECASE)
"""Matches the name of a file with text or data."""
_HEADING: Final = LazyPattern(r"#{1,6} |={3,}\s*\Z|-{3,}\s*\Z|\S[^.]{0,80}:\s*\Z")
_DEFINITION: Final = LazyPattern(
    r"[^\s)}\]#*/\"'][^\n]*"
    r"|(?:  |    |\t)(?:(?:async|public|private|protected|static|export|override|abstract|final|pub) )*"
    r"(?:def|defp|func|fn|fun|function|class|interface|struct|enum|type|test|describe|it)\b"
)
"""Matches the first line of a definition, or of one inside a class."""


def show_outline(page: Page, file: str, limits: Limits) -> None:
    """Leave out what is between the headings of a long document, or the bodies of a long program.
    O(characters)."""
    is_document = _DOCUMENT.search(file) is not None
    room = limits.documents if is_document else limits.sources
    lines = plain_lines(page.lines)
    if room is None or sum(map(len, lines)) < _LONG * room:
        return
    at = 0
    while at < len(lines) and room > 0:
        room -= len(lines[at]) + 1
        at += 1
    first = at
    while at < len(lines):
        if (_HEADING if is_document else _DEFINITION).match(lines[at]) is not None:
            at += 1 if is_document else 1 + BODY_LINES
            continue
        first = at
        while at < len(lines) and (_HEADING if is_document else _DEFINITION).match(lines[at]) is None:
            at += 1
        if at - first >= MIN_LINES:
            page.omit_free(first, at, RULE)
