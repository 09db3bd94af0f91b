"""Shorten lines that nobody reads: encoded data and minified code. The mark is inside the line."""

from __future__ import annotations

from typing import Final

from compactd.core.reduce.marks import left_out
from compactd.core.reduce.page import Page
from compactd.core.text.lazy_patterns import LazyPattern

MAX_LINE_CHARS: Final = 3_000
"""A longer line without the spaces of prose is minified."""
HEAD_CHARS: Final = 400
TAIL_CHARS: Final = 200
MIN_ENCODED_CHARS: Final = 400
MIN_SPACES: Final = 0.08
"""The smallest share of spaces in prose."""

_ENCODED: Final = LazyPattern(rf"[A-Za-z0-9+/_-]{{{MIN_ENCODED_CHARS},}}={{0,2}}")
"""Matches base64, hexadecimal digits, and anything else without spaces and signs."""
ENCODED_RULE: Final = "encoded"
MINIFIED_RULE: Final = "minified"


def shorten_long_lines(page: Page) -> None:
    """Leave out the middle of encoded data and of minified lines. O(characters)."""
    for at, line in enumerate(page.lines):
        if len(line) < MIN_ENCODED_CHARS:
            continue
        page.replace(at, _without_encoded(line, page), ENCODED_RULE)
        line = page.lines[at]
        if len(line) > MAX_LINE_CHARS and line.count(" ") < MIN_SPACES * len(line):
            mark = left_out(len(line) - HEAD_CHARS - TAIL_CHARS, "characters left out", page.entry_id)
            page.replace(at, f"{line[:HEAD_CHARS]} {mark} {line[-TAIL_CHARS:]}", MINIFIED_RULE)


def _without_encoded(line: str, page: Page) -> str:
    return _ENCODED.sub(
        lambda found: (
            found[0][:40] + left_out(len(found[0]) - 40, "characters of encoded data left out", page.entry_id)
        ),
        line,
    )
