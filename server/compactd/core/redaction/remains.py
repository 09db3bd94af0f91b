"""Which words of a redacted message could tell a secret, and whether a text holds one of them still."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compactd.core.redaction.scrub import WORD_CHARS, short_words_in, words_of

DIGITS_CHARS = 4
"""A word with a digit tells something from so many code points: most line numbers are shorter."""

_DIGIT = re.compile(r"\d")


def tell_tale(texts: Iterable[str]) -> frozenset[str]:
    """Words with a digit in them: keys, pins, numbers. A secret of letters alone cannot be told from a word
    that everybody uses. O(texts)."""
    return frozenset(
        word
        for text in texts
        for word in (*words_of(text), *short_words_in(text))
        if len(word) >= DIGITS_CHARS and _DIGIT.search(word)
    )


def words_left(wanted: frozenset[str], texts: Iterable[str]) -> bool:
    """Whether one of the texts holds one of the words: a long one anywhere, a short one by itself. O(texts),
    and a search for each word where they are few."""
    for text in texts:
        if not wanted.isdisjoint((*words_of(text), *short_words_in(text))):
            return True
        if len(wanted) <= _FEW and any(len(word) >= WORD_CHARS and word in text for word in wanted):
            return True
    return False


_FEW = 100
