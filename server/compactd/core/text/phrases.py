"""Searches one text for many phrases at once.

Looking for each phrase by itself costs phrases × text. Here a text of n characters costs about n, whatever
the number of phrases.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

HEAD: Final = 4
"""Characters that tell whether a phrase may begin at a place. Shorter phrases are looked for one by one."""

FEW: Final = 16
"""Up to so many phrases, it is faster to look for each by itself."""


class Phrases:
    """Phrases to look for, each once, in a fixed order."""

    def __init__(self, phrases: Iterable[str]) -> None:
        """O(characters of the phrases × log of their number)."""
        self._place = {phrase: at for at, phrase in enumerate(dict.fromkeys(filter(None, phrases)))}
        is_few = len(self._place) <= FEW
        self._alone = [phrase for phrase in self._place if is_few or len(phrase) < HEAD]
        self._sorted = [] if is_few else sorted(phrase for phrase in self._place if len(phrase) >= HEAD)
        self._heads = frozenset(phrase[:HEAD] for phrase in self._sorted)
        self._longest = max(map(len, self._sorted), default=0)
        self._shorter = _prefixes(self._sorted)

    def __len__(self) -> int:
        return len(self._place)

    def found_in(self, text: str) -> list[str]:
        """The phrases that occur in `text`, anywhere, in the order in which they were given. O(text)."""
        found = {phrase for phrase in self._alone if phrase in text}
        if self._sorted:
            seen: set[int] = set()
            heads = self._heads
            for at in range(len(text) - HEAD + 1):
                if text[at : at + HEAD] in heads:
                    self._begin_at(text, at, seen)
            found.update(self._sorted[nth] for nth in seen)
        return sorted(found, key=self._place.__getitem__)

    def _begin_at(self, text: str, at: int, seen: set[int]) -> None:
        """Adds to `seen` the phrases that begin at `at`."""
        # A phrase that begins here is the last one not after what follows, or a beginning of that one.
        nth = bisect_right(self._sorted, text[at : at + self._longest]) - 1
        while nth >= 0 and nth not in seen:
            if text.startswith(self._sorted[nth], at):
                seen.add(nth)
            nth = self._shorter[nth]


def _prefixes(phrases: list[str]) -> list[int]:
    """For each of the sorted `phrases` the place of the longest other one that it begins with, or -1."""
    shorter: list[int] = []
    for nth, phrase in enumerate(phrases):
        before = nth - 1
        while before >= 0 and not phrase.startswith(phrases[before]):
            before = shorter[before]
        shorter.append(before)
    return shorter
