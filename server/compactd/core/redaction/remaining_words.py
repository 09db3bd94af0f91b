"""Find words of a redacted message that could reveal a secret, and check whether a text still contains
one."""

from __future__ import annotations

from collections.abc import Iterable

from compactd.core.redaction.scrub import WORD_CHARS, distinct_words, short_words_in
from compactd.core.text.lazy_patterns import LazyPattern

DIGITS_CHARS = 4
"""A word with a digit can be a secret if it has at least this many code points. Most line numbers are
shorter."""

_DIGIT = LazyPattern(r"\d")


def possible_secrets(texts: Iterable[str]) -> frozenset[str]:
    """Return the words of `texts` that may be secrets: those with a digit and at least `DIGITS_CHARS` code
    points, such as keys, PINs and numbers. A secret of letters only cannot be distinguished from an ordinary
    word. O(texts)."""
    return frozenset(
        word
        for text in texts
        for word in (*distinct_words(text), *short_words_in(text))
        if len(word) >= DIGITS_CHARS and _DIGIT.search(word)
    )


def has_words(wanted: frozenset[str], texts: Iterable[str]) -> bool:
    """Return whether one of `texts` contains one of the words `wanted`: a long word anywhere, a short one as
    a separate word. O(texts); with at most 100 words, O(texts × words)."""
    for text in texts:
        if not wanted.isdisjoint((*distinct_words(text), *short_words_in(text))):
            return True
        if len(wanted) <= _MAX_SEARCHED_WORDS and any(
            len(word) >= WORD_CHARS and word in text for word in wanted
        ):
            return True
    return False


_MAX_SEARCHED_WORDS = 100
