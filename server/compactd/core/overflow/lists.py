"""Read word lists that are written as text, because hundreds of quoted words are hard to read."""

from __future__ import annotations


def listed(words: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(words.split())


def listed_pairs(pairs: str) -> frozenset[tuple[str, str]]:
    """Return the pairs of words in a text as a set. Each pair is two words; commas separate the pairs."""
    found = set()
    for pair in pairs.split(","):
        first, second = pair.split()
        found.add((first, second))
    return frozenset(found)
