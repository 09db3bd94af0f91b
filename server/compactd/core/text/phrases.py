"""Search one text for many phrases at once.

Searching for each phrase separately costs phrases × text. This search costs about the length of the text,
whatever the number of phrases.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

PREFIX_CHARS: Final = 4
"""How many characters decide whether a phrase may begin at a position. Phrases that are shorter than this
are searched for one by one."""

MAX_SEPARATE_PHRASES: Final = 16
"""Up to this many phrases, it is faster to search for each separately."""


class Phrases:
    """A set of phrases to search for. Those that are found are returned in the order in which the set was
    made."""

    def __init__(self, phrases: Iterable[str]) -> None:
        """Prepare the search. Empty and repeated phrases are dropped. O(characters of the phrases × log of
        their number)."""
        self._place = {phrase: at for at, phrase in enumerate(dict.fromkeys(filter(None, phrases)))}
        is_few = len(self._place) <= MAX_SEPARATE_PHRASES
        self._alone = [phrase for phrase in self._place if is_few or len(phrase) < PREFIX_CHARS]
        self._sorted = (
            [] if is_few else sorted(phrase for phrase in self._place if len(phrase) >= PREFIX_CHARS)
        )
        self._heads = frozenset(phrase[:PREFIX_CHARS] for phrase in self._sorted)
        self._longest = max(map(len, self._sorted), default=0)
        self._shorter = _prefixes(self._sorted)

    def __len__(self) -> int:
        return len(self._place)

    def found_in(self, text: str) -> list[str]:
        """Return the phrases that occur anywhere in `text`, in the order in which they were given.
        O(text)."""
        found = {phrase for phrase in self._alone if phrase in text}
        if self._sorted:
            seen: set[int] = set()
            heads = self._heads
            for at in range(len(text) - PREFIX_CHARS + 1):
                if text[at : at + PREFIX_CHARS] in heads:
                    self._begin_at(text, at, seen)
            found.update(self._sorted[nth] for nth in seen)
        return sorted(found, key=self._place.__getitem__)

    def _begin_at(self, text: str, at: int, seen: set[int]) -> None:
        """Add to `seen` the indices of the phrases that begin at position `at` of `text`."""
        # A phrase that begins here is either the last one in sorted order that is not after the text, or a
        # prefix of it.
        nth = bisect_right(self._sorted, text[at : at + self._longest]) - 1
        while nth >= 0 and nth not in seen:
            if text.startswith(self._sorted[nth], at):
                seen.add(nth)
            nth = self._shorter[nth]


def _prefixes(phrases: list[str]) -> list[int]:
    """Return, for each of the sorted `phrases`, the index of the longest other phrase that is a prefix of
    it; -1 if there is none."""
    shorter: list[int] = []
    for nth, phrase in enumerate(phrases):
        before = nth - 1
        while before >= 0 and not phrase.startswith(phrases[before]):
            before = shorter[before]
        shorter.append(before)
    return shorter
