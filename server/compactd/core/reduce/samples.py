"""Long lists, tables and logs: some lines stand for the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from compactd.core.reduce.page import Page
from compactd.core.reduce.shapes import message_shape
from compactd.core.reduce.unusual import unusual
from compactd.core.text.lazy_patterns import LazyPattern

LISTING_RULE: Final = "listing"
TABLE_RULE: Final = "table"
LOG_RULE: Final = "log"

MIN_LISTED: Final = 24
"""A folder with fewer files in a row is listed whole."""
LISTED_HEAD: Final = 12
LISTED_TAIL: Final = 3

MIN_ROWS: Final = 40
"""A table with fewer rows is shown whole."""
ROWS_HEAD: Final = 10
ROWS_TAIL: Final = 3
MAX_COLUMNS: Final = 8
"""Of so many columns, the rows with the smallest and the largest number stay."""
MIN_UNIFORM: Final = 0.97
"""A text is a table if at least this share of its lines has as many columns as the first."""

MIN_ALIKE: Final = 8
"""So many lines of one shape make a log."""
ALIKE_HEAD: Final = 3
MIN_RUN: Final = 4
"""Fewer lines of a log in a row are not left out."""

_PATH: Final = LazyPattern(
    r"[ \t]*(?:[MADRCU?!]{1,2} +|(?:new file|modified|deleted): +)?(?P<folder>[^\s:]*/)[^\s/:]+/?\s*\Z"
)
"""Matches a line with a path and nothing else, as `find`, `git status` and search tools print it."""
_LONG_LISTING: Final = LazyPattern(r"[-dlbcps][rwxsStT-]{9}[.+@]?\s")
"""Matches a line of `ls -l`."""
_LONG_LISTING_TYPES: Final = frozenset("-dlbcps")


def fold_listing(page: Page) -> None:
    """Leave out most files of a folder with many. O(characters)."""
    lines = page.lines
    at = 0
    while at < len(lines):
        folder = _folder(lines[at]) if lines[at] and page.is_free(at) else None
        end = at + 1
        while folder is not None and end < len(lines) and _folder(lines[end]) == folder:
            end += 1
        if end - at >= MIN_LISTED:
            page.omit_free(
                at + LISTED_HEAD, end - LISTED_TAIL, LISTING_RULE, "lines of the same folder left out"
            )
        at = end


def _folder(line: str) -> str | None:
    """Return the folder of the file that a line lists; None if it lists none."""
    if line[:1] in _LONG_LISTING_TYPES and _LONG_LISTING.match(line) is not None:
        return ""
    if "/" not in line:
        return None
    found = _PATH.match(line)
    return None if found is None else found["folder"]


def fold_table(page: Page) -> None:
    """Leave out most rows of a table. The header, the first and the last rows stay, and those with the
    smallest and the largest number of a column. O(characters)."""
    rows = [at for at, line in enumerate(page.lines) if line and not line.isspace()]
    if len(rows) < MIN_ROWS:
        return
    sign = max(",\t;|", key=page.lines[rows[0]].count)
    columns = page.lines[rows[0]].count(sign)
    uniform = sum(page.lines[at].count(sign) == columns for at in rows)
    if not columns or uniform < MIN_UNIFORM * len(rows):
        return
    kept = {*rows[:ROWS_HEAD], *rows[-ROWS_TAIL:], *_extremes(page.lines, rows[1:], sign, columns)}
    _omit_runs(page, (at for at in rows if at not in kept), TABLE_RULE, "rows left out")


def _extremes(lines: Sequence[str], rows: Sequence[int], sign: str, columns: int) -> Iterable[int]:
    """Yield the rows with the smallest and the largest number of each column that has only numbers."""
    cells = [lines[at].split(sign) for at in rows]
    for column in range(min(columns + 1, MAX_COLUMNS)):
        numbers = [_number(row[column]) if column < len(row) else None for row in cells]
        known = [(number, at) for number, at in zip(numbers, rows, strict=True) if number is not None]
        if len(known) >= MIN_UNIFORM * len(rows):
            yield min(known)[1]
            yield max(known, key=lambda one: (one[0], -one[1]))[1]


def _number(cell: str) -> float | None:
    try:
        number = float(cell.strip().strip('"'))
    except ValueError:
        return None
    return number if number == number else None  # not a number equals nothing


def fold_alike(page: Page) -> None:
    """Leave out lines that have the shape of many others: messages of a log, findings of a linter. The first
    ones and the last one of each shape stay, and those with an unusual number. O(characters)."""
    shapes = [message_shape(line) if line and page.is_free(at) else "" for at, line in enumerate(page.lines)]
    counts = Counter(shapes)
    last = {shape: at for at, shape in enumerate(shapes)}
    common: dict[str, list[int]] = {}
    for at, shape in enumerate(shapes):
        if len(shape) > 8 and counts[shape] >= MIN_ALIKE:
            common.setdefault(shape, []).append(at)
    kept: set[int] = set()
    for shape, indexes in common.items():
        kept.update((*indexes[:ALIKE_HEAD], last[shape]))
        kept.update(indexes[one] for one in unusual([page.lines[at] for at in indexes]))
    alike = sorted(at for indexes in common.values() for at in indexes if at not in kept)
    _omit_runs(page, alike, LOG_RULE, "lines with other numbers or names left out", MIN_RUN)


def _omit_runs(page: Page, indexes: Iterable[int], rule: str, what: str, min_lines: int = 1) -> None:
    """Leave out lines, at least `min_lines` in a row, adjacent ones with one mark."""
    runs: list[tuple[int, int]] = []
    for at in indexes:
        if runs and runs[-1][1] == at:
            runs[-1] = runs[-1][0], at + 1
        else:
            runs.append((at, at + 1))
    for start, stop in runs:
        if stop - start >= min_lines:
            page.omit_free(start, stop, rule, what)
