"""Word lists, written as text: a list of two hundred quoted words is not readable."""

from __future__ import annotations


def listed(words: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(words.split())


def listed_pairs(pairs: str) -> frozenset[tuple[str, str]]:
    """The pairs of a text: two words each, commas between."""
    found = set()
    for pair in pairs.split(","):
        first, second = pair.split()
        found.add((first, second))
    return frozenset(found)
