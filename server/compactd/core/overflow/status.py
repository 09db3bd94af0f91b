"""Find the HTTP status in the words of an error. It looks for a three-digit number first, then for the
words of a status before it."""

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
"""Matches a status together with the words or brackets that identify it."""
NUMBER = r"(?<!\d)[45]\d\d(?!\d)"
"""Matches a number in the range of HTTP error statuses."""
NUMBERS = 12
"""The maximum number of such numbers that are examined."""
BEFORE = 40
"""How many characters before its number the words of a status may begin."""


def numbered(text: str, start: int) -> re.Match[str] | None:
    """Return the match of the first status in `text` from index `start` on; None if there is none."""
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
    """Return `prose` without the first two statuses in it."""
    at = 0
    for _ in range(2):
        found = numbered(prose, at)
        if found is None:
            break
        at = found.start() + 1
        prose = f"{prose[: found.start()]} {prose[found.end() :]}"
    return prose
