"""Find lines that contain a decision, a limit or an error.

The regular expressions have many alternatives, so they are slow at every character. Every match of an
expression contains one of a few words. These words are searched first, in many lines at once; the expression
then checks only the lines that contain one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from compactd.core.extract.line_roles import ASSISTANT, RESULT, SHELL, USER
from compactd.core.text.atoms import CONSTRAINT, CUE, ERROR

LINES_PER_SEARCH: Final = 500
"""How many lines, or pieces of long lines (at most 300 characters each), are searched at once."""

_ODD: Final = "ıſİ"
"""Letters that a case-insensitive pattern treats as `i` or `s` although `str.lower` does not turn them into
these."""

_CUES = (
    "decid|instead of|because|root cause|issue |problem |bug |fix |reason |turns out|should |must|never"
    "|always|rather than|won't|will use|switch|workaround|the key|important"
)
_CONSTRAINTS = (
    "must|never|always|prefer|avoid|don't|dont|do not|should|only|without|make sure|ensure|keep|no longer"
    "|requir|at most|at least|important|not allowed|instead of|rather than|stick to"
    "|必须|不要|绝不|总是|务必|禁止"
)
_ERRORS = "rror|ERROR|FAIL|failed|xception|Traceback|panic:|undefined|not found|annot|denied|No such"


class Mark(Struct, frozen=True):
    """A pattern that marks lines. The pattern is slow, so a search for a few words (`needles`) first finds
    the lines in which it can match."""

    pattern: re.Pattern[str]
    needles: tuple[str, ...]
    """Words to search for first. Every match of the pattern contains one of them (in lower case if the
    pattern ignores case)."""
    ignores_case: bool = True

    def places(self, lines: Sequence[str]) -> set[int]:
        """Return the indices of the lines in which the pattern matches. O(length)."""
        found: set[int] = set()
        for start in range(0, len(lines), LINES_PER_SEARCH):
            some = lines[start : start + LINES_PER_SEARCH]
            found.update(start + at for at in self._candidates(some) if self.pattern.search(some[at]))
        return found

    def _candidates(self, lines: Sequence[str]) -> Iterable[int]:
        """Return the indices of the lines that contain one of the needles."""
        whole = "\n".join(lines)
        if self.ignores_case:
            if not whole.isascii() and any(letter in whole for letter in _ODD):
                return range(len(lines))
            whole = whole.lower()
        begins: list[int] = []
        found: set[int] = set()
        for needle in self.needles:
            at = whole.find(needle)
            while at >= 0:
                begins = begins or [0, *accumulate(len(line) + 1 for line in lines)]
                nth = bisect_right(begins, at) - 1
                found.add(nth)
                at = whole.find(needle, begins[nth + 1])
        return found


_DECISION: Final = Mark(CUE, tuple(_CUES.split("|")))
_LIMIT: Final = Mark(CONSTRAINT, tuple(_CONSTRAINTS.split("|")))
_FAILURE: Final = Mark(ERROR, tuple(_ERRORS.split("|")), ignores_case=False)

MARKS: Final = {USER: _LIMIT, ASSISTANT: _DECISION, RESULT: _FAILURE, SHELL: _FAILURE}
"""The pattern that marks lines, by role of the line. Lines of other roles are not marked."""
