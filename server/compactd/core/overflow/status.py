"""The status of HTTP that the words of a report tell: found by its number, then by the words before it."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice

STATUS = (
    r"(?i)(?:status(?:[ _]?code)?|error(?: code)?|http(?:/[\d.]+)?|code|rejected|api error|capierror|failed"
    r"|response)[\"']?[\s:=(\[]{0,3}\b([45]\d\d)\b|^\W{0,3}([45]\d\d)\b|(?<!tokens )(?<!length )"
    r"[(<\[](4[0-4]\d|451|50\d|51[01]|52\d|530)[)>\]]"
    r"|:\s([45]\d\d)(?=\s?[\"'{])"
)
NUMBER = r"(?<!\d)[45]\d\d(?!\d)"
NUMBERS = 12
"""Numbers of three digits that are looked at."""
BEFORE = 40
"""Characters in which the words of a status stand before its number."""


def numbered(text: str, start: int) -> re.Match[str] | None:
    """The first status that `text` tells from `start` on: found by its number, then by the words before."""
    for number in islice(re.finditer(NUMBER, text[start:]), NUMBERS):
        at = start + number.start()
        found = _statuses().search(text, max(start, at - BEFORE), at + 5)
        if found is not None:
            return found
    return None


@cache
def _statuses() -> re.Pattern[str]:
    return re.compile(STATUS)


def unnumbered(prose: str) -> str:
    """`prose` without its first two statuses."""
    at = 0
    for _ in range(2):
        found = numbered(prose, at)
        if found is None:
            break
        at = found.start() + 1
        prose = f"{prose[: found.start()]} {prose[found.end() :]}"
    return prose
