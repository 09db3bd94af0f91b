"""Outputs of a megabyte: only the beginning, the end and some lines between them are read at all: the first
errors, or the lines of a diff that name its files.
"""

from __future__ import annotations

from typing import Final

from compactd.core.reduce.diffs import find_files, is_diff
from compactd.core.reduce.errors import find_errors

RULE: Final = "huge"
MAX_CHARS: Final = 300_000
"""A longer text is cut, in characters: about 75,000 tokens."""
MAX_LINES: Final = 20_000
"""A text with more lines is cut too."""
HEAD_CHARS: Final = 160_000
TAIL_CHARS: Final = 80_000
MAX_ERRORS: Final = 60
"""Of the lines in the middle that report errors, so many stay."""
MAX_FILES: Final = 300
"""Of the lines in the middle that name a file of a diff, so many stay."""


def cut_middle(text: str) -> tuple[list[str], dict[int, int]]:
    """Return the lines of a text that stay, with a blank line for each gap. Also return, for the index of
    each such line, how many lines are left out there. O(characters), about 20 ms per megabyte."""
    count = text.count("\n") + 1
    if len(text) <= MAX_CHARS and count <= MAX_LINES:
        return text.split("\n"), {}
    # If the lines are short, the number of lines is the limit.
    share = min(MAX_CHARS / len(text), MAX_LINES / count) / MAX_CHARS
    head, tail = int(HEAD_CHARS * share * len(text)), int(TAIL_CHARS * share * len(text))
    start = text.find("\n", head)
    # Whole lines stay, unless one is longer than all the rest.
    stop = text.rfind("\n", 0, len(text) - tail)
    if start < 0 or start >= stop:
        return text.split("\n"), {}
    lines = text[:start].split("\n")
    gaps: dict[int, int] = {}
    at = start + 1
    if is_diff(text):
        spans = find_files(text, start + 1, stop)[:MAX_FILES]
    else:
        spans = find_errors(text, start + 1, stop)[:MAX_ERRORS]
    for begin, end in spans:
        _add_gap(lines, gaps, text.count("\n", at, begin))
        lines.append(text[begin:end])
        at = end + 1
    _add_gap(lines, gaps, text.count("\n", at, stop) + 1 if at <= stop else 0)
    lines.extend(text[stop + 1 :].split("\n"))
    return lines, gaps


def _add_gap(lines: list[str], gaps: dict[int, int], count: int) -> None:
    if count:
        gaps[len(lines)] = count
        lines.append("")
