"""Which lines of a text say something of weight: a decision, a limit, an error.

The patterns begin with many different letters, so a search with one of them takes its time at each character.
Most lines hold none of the words that a match needs: those are looked for first, in many lines at once.
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

AT_ONCE: Final = 500
"""Lines that are looked through in one search: a unit has 300 characters at most."""

_ODD: Final = "ıſİ"
"""Letters that a pattern takes for an `i` or an `s` whatever the case, and `str.lower` does not."""

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
    """What the lines of some role are marked for."""

    pattern: re.Pattern[str]
    needles: tuple[str, ...]
    """Every match holds one of them, in lower case where the pattern ignores case."""
    ignores_case: bool = True

    def places(self, lines: Sequence[str]) -> set[int]:
        """The indices of the lines with a match. O(length)."""
        found: set[int] = set()
        for start in range(0, len(lines), AT_ONCE):
            some = lines[start : start + AT_ONCE]
            found.update(start + at for at in self._candidates(some) if self.pattern.search(some[at]))
        return found

    def _candidates(self, lines: Sequence[str]) -> Iterable[int]:
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
"""By role. The lines of other roles are not marked."""
