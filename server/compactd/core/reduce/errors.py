"""The lines that say what went wrong. They stay at every level."""

from __future__ import annotations

from collections import Counter
from typing import Final

from compactd.core.reduce.output import ToolOutput
from compactd.core.reduce.shapes import shape_of
from compactd.core.text.atoms import ERROR
from compactd.core.text.lazy_patterns import LazyPattern

MAX_ERROR_CHARS: Final = 400
"""A longer line is no message."""
MAX_ERRORS: Final = 300
"""If more lines report errors, only the first `MAX_ALIKE` of each shape count."""
MAX_ALIKE: Final = 5

MAX_TRIED: Final = 5_000
"""Of the lines with one word that reports errors, so many are read."""

_LITERALS: Final = (
    *("rror", "ERROR", "FAIL", "failed", "xception", "Traceback", "panic:"),
    *("undefined", "not found", "annot", "denied", "No such"),
)
"""A line that `atoms.ERROR` matches contains one of these. `str.find` is a hundred times faster than the
pattern."""
_NAME: Final = LazyPattern(
    r"(?:[-dlbcps][rwxsStT-]{9}[.+@]?\s.*|[\w.@+~-]*[-/][\w./@+~-]*:?|[\w:.@+~-]+\.[a-z0-9]{1,5}"
    r"|[Ee]rrors?|[Ee]xceptions?)"
)
"""Matches a line with only a file's name, or a line of `ls -l`. `mark-failed.1.gz` reports no error."""
_FAILED: Final = LazyPattern(
    r"\s*(?:<tool_use_error>|<error>|Error\b|ERROR\b|Exit code [1-9]|error: |Failed to |\[tool error\])"
)
"""Matches the beginning of what agents say if a call failed (recorded sessions, 2026-11)."""


def has_failed(output: ToolOutput) -> bool:
    """Return whether a call failed: the agent marked its result as an error, or the result begins so."""
    return output.is_error or _FAILED.match(output.text) is not None


def find_errors(text: str, start: int = 0, stop: int | None = None) -> list[tuple[int, int]]:
    """Return where the lines that report an error begin and end, between two positions, in order. Of equal
    lines, the first counts. O(characters), about 5 ms per megabyte if there are few."""
    stop = len(text) if stop is None else stop
    begins: set[int] = set()
    for literal in _LITERALS:
        at, left = text.find(literal, start, stop), MAX_TRIED
        while at >= 0 and left:
            left -= 1
            begin = text.rfind("\n", start, at)
            begins.add(start if begin < 0 else begin + 1)
            end = text.find("\n", at, stop)
            at = -1 if end < 0 else text.find(literal, end, stop)
    found: list[tuple[int, int]] = []
    seen: set[str] = set()
    for begin in sorted(begins):
        end = text.find("\n", begin, stop)
        end = stop if end < 0 else end
        if end - begin > MAX_ERROR_CHARS:
            continue
        line = text[begin:end].strip()
        if line not in seen and ERROR.search(line) is not None and _NAME.fullmatch(line) is None:
            seen.add(line)
            found.append((begin, end))
    return found if len(found) <= MAX_ERRORS else _first_alike(text, found)


def _first_alike(text: str, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the first lines of each shape."""
    counts: Counter[str] = Counter()
    first: list[tuple[int, int]] = []
    for begin, end in found:
        shape = shape_of(text[begin:end])
        counts[shape] += 1
        if counts[shape] <= MAX_ALIKE:
            first.append((begin, end))
    return first


def error_lines(lines: list[str]) -> list[int]:
    """Return the indexes of the lines that report an error, the first of equal ones. O(characters)."""
    text = "\n".join(lines)
    indexes: list[int] = []
    at = index = 0
    for begin, _ in find_errors(text):
        index += text.count("\n", at, begin)
        at = begin
        indexes.append(index)
    return indexes
