"""Which parts of a user's message the person typed, and which they pasted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from compactd.core.authors.authors import REMINDER, USER, Span

OWN_WORDS_CHARS: Final = 6_000
"""In a user's text with more code points than this, only the beginning and the end count as typed. The middle
counts as pasted."""


def typed_parts(text: str, spans: Iterable[Span]) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, end, whether the person typed it) for the `spans` of a user's text, in order. Reminders
    are left out. In a text longer than `OWN_WORDS_CHARS`, only the first and the last quarter of that number
    of characters count as typed, and a span across such a limit is split. O(characters)."""
    head = tail = len(text)
    if len(text) > OWN_WORDS_CHARS:
        quarter = OWN_WORDS_CHARS // 4
        head = text.rfind("\n", 0, quarter) + 1 or text.rfind(" ", 0, quarter) + 1
        tail = (
            text.find("\n", len(text) - quarter) + 1 or text.find(" ", len(text) - quarter) + 1 or len(text)
        )
    for span in spans:
        if span.author != USER:
            if span.author != REMINDER:
                yield span.start, span.end, False
            continue
        for start, end, is_own in ((0, head, True), (head, tail, False), (tail, len(text), True)):
            low, high = max(start, span.start), min(end, span.end)
            if low < high:
                yield low, high, is_own
