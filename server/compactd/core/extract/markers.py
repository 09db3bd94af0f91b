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

from compactd.core.extract.line_roles import ASSISTANT, COMMAND, RESULT, SHELL, USER
from compactd.core.text.atoms import CONSTRAINT, CUE, ERROR
from compactd.core.text.lazy_patterns import LazyPattern

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

    pattern: LazyPattern
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

_TALK: Final = LazyPattern(
    r"(?:(?:good|great|perfect|excellent|ok(?:ay)?|now|done|alright|right"
    r"|all (?:tests|checks) pass[\w ]{0,40})\b[^.!?:\n]{0,30}[.!,:—-]+\s*)?"
    r"(?:(?:now,? )?(?:let me|let's|i'll|i will|i need to|i'm (?:now )?going to)\b|now i\b|next,? i\b"
    r"|ready (?:for|to)\b|want me to\b|would you like\b|shall i\b|should i\b|let me know\b)"
    r"(?!.*\b(?:because|since|doesn't|don't|can't|cannot|isn't|aren't|not|revert\w*|instead|wrong|broke\w*"
    r"|fails?)\b)",
    re.IGNORECASE,
)
"""Matches the beginning of a line that only says what the agent does next, or asks whether it should."""
_SUCCESS: Final = LazyPattern(
    r"(?:The file \S{1,300} has been (?:updated|created|written)"
    r"|(?:File|Files?) \S{0,300} ?(?:created|updated|written)"
    r"|Successfully (?:replaced|wrote|created|updated|edited|modified)|Todos have been modified"
    r"|Updated task #|Task #\w+ created|Applied \d+ edits?|Success\. Updated the following files)"
)
"""Matches a tool's report that a file was written."""
_TRAILER: Final = LazyPattern(r"[A-Z][\w-]{2,40}-[Bb]y: |\W{0,4}Generated with |[Cc]o-authored-by")
"""Matches a line at the end of a commit's message that names its authors."""
EMPTY_TALK: Final = {ASSISTANT: _TALK, RESULT: _SUCCESS, COMMAND: _TRAILER}
"""Matches the lines of a role that tell a reader next to nothing."""
