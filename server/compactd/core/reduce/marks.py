"""Marks: the text that says in place what a reduction left out, and how to get it.

There are two shapes, and nothing else in a reduced text has them:

    [… 1,240 lines left out, expand e41]
    [… 212 lines as in e17, Read app.py …]

The first names the entry that keeps the original. The second says that an earlier entry of the view shows
the same lines. Whatever looks like a mark in a tool's output is changed by `defuse`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from compactd.core.history.entries import EntryId
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.quoting import SIGN
from compactd.core.text.sanitize import CODES

MAX_MARK_CHARS: Final = 240
"""No mark is longer, in characters."""

_WHAT: Final = r"(?P<count>\d{1,3}(?:,\d{3})*) (?P<what>[^\[\]\n…]{1,120}?)"
_ID: Final = r"[^\s\[\],…]{1,64}"
_UNSEEN: Final = "".join(f"\\U{code:08x}" for code in CODES if code not in (0x0A, 0x0D))
"""The inside of a character class: what a reader does not see."""
_BETWEEN: Final = rf"[ \t\u00a0\ufffd\u200c\u200d\ufe0e\ufe0f{_UNSEEN}]"
"""Matches what may come between the signs of a mark without a reader noticing."""
_MARK: Final = LazyPattern(
    rf"\[… {_WHAT}(?:, expand (?P<original>{_ID})\]| as in (?P<other>{_ID})(?:, [^\[\]\n…]{{1,80}})? …\])"
)
_LOOKALIKE: Final = LazyPattern(
    rf"(?P<before>[\[［【]{_BETWEEN}{{0,8}})(?:[…⋯‥]|\.(?=\.))"
    rf"(?=(?:{_BETWEEN}|[….⋯‥]){{0,8}}\d[\d,.']{{0,20}}{_BETWEEN}{{1,8}}[^\W\d_])"
)
"""Matches the beginning of what a reader may take for a mark, up to the first dot."""
_LABEL: Final = LazyPattern(r"[^\w .+@/-]+")
"""Matches what a label must not contain."""
MAX_LABEL_CHARS: Final = 60


class Mark(Struct, frozen=True):
    """A mark in a reduced text."""

    start: int
    """Where it begins, in characters."""
    stop: int
    """Where it ends, exclusive."""
    count: int
    """How much was left out."""
    what: str
    """What was counted: `lines left out`, `characters of base64 left out`, `lines`."""
    entry_id: EntryId
    """The entry that has the text."""
    is_elsewhere: bool
    """Whether the entry is an earlier one that the view shows. Otherwise it is the original."""


def left_out(count: int, what: str, entry_id: EntryId) -> str:
    """Return the mark for text that only the original has."""
    return f"[… {count:,} {what}, expand {entry_id}]"


def shown_in(count: int, what: str, entry_id: EntryId, label: str = "") -> str:
    """Return the mark for text that the entry `entry_id` shows. `label` says what that entry is."""
    label = _LABEL.sub(" ", label).strip()[:MAX_LABEL_CHARS].strip()
    return f"[… {count:,} {what} as in {entry_id}{f', {label}' if label else ''} …]"


def find_marks(text: str) -> tuple[Mark, ...]:
    """Return the marks in a reduced text, in order. O(characters)."""
    if "[… " not in text:
        return ()
    return tuple(
        Mark(
            start=found.start(),
            stop=found.end(),
            count=int(found["count"].replace(",", "")),
            what=found["what"],
            entry_id=EntryId(found["original"] or found["other"]),
            is_elsewhere=found["other"] is not None,
        )
        for found in _MARK.finditer(text)
    )


def defuse(text: str) -> str:
    """Return `text` so that nothing in it can pass for a mark: the first dot of what looks like one becomes
    the quoting `SIGN`. The length stays the same. Idempotent. O(characters).
    """
    if "[" not in text and "［" not in text and "【" not in text:
        return text
    if "…" not in text and "." not in text and "⋯" not in text:
        return text
    return _LOOKALIKE.sub(lambda found: found["before"] + SIGN, text)
