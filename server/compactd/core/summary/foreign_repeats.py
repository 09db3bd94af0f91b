"""Detect whether a line of a model's summary repeats a sentence that a tool, a file or a program wrote.

Such a sentence is called foreign. Words are compared by stem, so different endings, capitals or digits for
letters do not hide a repetition. A repetition is a sequence of words of the line that one foreign sentence
contains. Common words such as "the" do not count.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from heapq import nsmallest
from itertools import chain
from typing import Final
from unicodedata import category, normalize

from msgspec import Struct

from compactd.core.text.atoms import COMMON_WORDS, sentences
from compactd.core.text.lazy_patterns import LazyPattern

SHARE: Final = 0.8
"""A line repeats a foreign sentence if the sentence contains this share of the words of a sequence in the
line. The words found must also be this share of all words of the line or of the sentence, whichever has
fewer."""
MIN_WORDS: Final = 3
"""A sequence of fewer words is no repetition."""
WINDOW_WORDS: Final = 40
"""A foreign sentence with more words than this (a minified file, a list on one line) is examined in
overlapping pieces of this size."""

MAX_SENTENCES: Final = 50
"""A line is compared word by word with at most this many foreign sentences (or pieces of them): those that
have the most words in common with it."""
RUN_WORDS: Final = 80
"""The most words of a sequence. Of a longer repetition, only a part is found."""

_TOKEN: Final = LazyPattern(r"[^\W_](?:[\w./:\\-]*[^\W_])?")
_ENDING: Final = LazyPattern(r"(?<=[^\W\d_]{4})(?:ing|ed|es|s|e)\Z")
_SPACED: Final = LazyPattern(r"(?<!\w)\w(?:[ .·-]\w){3,}(?!\w)")
"""Matches letters with spaces between them, such as `D e p l o y`."""
_SPACELESS: Final = LazyPattern(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_PAIRS: Final = "\0"
"""The stem of a word in a script without spaces. Such a word is compared by its pairs of characters."""
_LEET: Final = str.maketrans("013457@$", "oieastas")
_LOOK_ALIKE: Final = str.maketrans("аеорсухіѕјһԁɡոкмтнвα", "aeopcyxisjhdgnkmthba")


class RepeatedRun(Struct, frozen=True):
    """Where a repetition begins and ends in a line."""

    start: int
    """The first character of the repetition, as an index into the line as `fold_line` returns it."""
    end: int
    """The index after the last character of the repetition."""


class Repetitions:
    """An index of the sentences of a conversation, with which lines of a summary are compared."""

    def __init__(self, text: str, said: Iterable[tuple[str, bool]]) -> None:
        """Build the index. `text` contains all lines that will be compared; sentences that have nothing in
        common with it are left out. `said` has the texts of the conversation, oldest first, each with whether
        it is foreign; the other texts are the model's. O(characters of both)."""
        self._stem = cache(_stem)
        known = {stem for line in text.split("\n") for stem, _, _ in self._words(fold_line(line))}
        self._windows: list[tuple[int, bool]] = []
        """For each sentence, or piece of a long one: its number of words, and whether it is foreign. In the
        order of the conversation."""
        self._where: defaultdict[str, set[int]] = defaultdict(set)
        """The sentences, or pieces of sentences, that contain a stem, as indices into `_windows`."""
        seen: set[tuple[frozenset[str], int]] = set()
        for sentence, is_foreign in self._sentences(said, known):
            stems = self._stems_of(sentence)
            for at in range(0, max(1, len(stems) - WINDOW_WORDS // 2), WINDOW_WORDS // 2):
                window = frozenset(stems[at : at + WINDOW_WORDS])
                held = window & known
                if len(held) < MIN_WORDS or (held, len(window)) in seen:
                    continue
                seen.add((held, len(window)))
                for stem in held:
                    self._where[stem].add(len(self._windows))
                self._windows.append((len(window), is_foreign))

    def find(self, line: str) -> RepeatedRun | None:
        """Return the longest sequence of words of `line` (as `fold_line` returns it) that a foreign sentence
        contains. Return None if there is none, or if the model wrote the same words before that sentence.
        O(sentences that have a word in common with `line`)."""
        words = list(self._words(line))
        distinct = {stem for stem, _, _ in words}
        counts = Counter(chain.from_iterable(self._where.get(stem, ()) for stem in distinct))
        likely = [
            (-count, window)
            for window, count in counts.items()
            if count >= max(MIN_WORDS, SHARE * min(len(distinct), self._windows[window][0]))
        ]
        best, most = None, 0
        for _, window in nsmallest(MAX_SENTENCES, likely):
            size, is_foreign = self._windows[window]
            held = [window in self._where.get(stem, ()) for stem, _, _ in words]
            start, end = _longest_run(held)
            count = len({words[at][0] for at in range(start, end) if held[at]})
            if count > most and count >= max(MIN_WORDS, SHARE * min(len(distinct), size)):
                best, most = RepeatedRun(words[start][1], words[end - 1][2]) if is_foreign else None, count
        return best

    def _sentences(
        self, said: Iterable[tuple[str, bool]], known: Collection[str]
    ) -> Iterator[tuple[str, bool]]:
        """Yield the sentences of `said`, each with whether it is foreign. Lines that contain too few of the
        `known` stems, or that occurred before, are left out."""
        seen: set[str] = set()
        for text, is_foreign in said:
            for line in text.splitlines():
                if line in seen:
                    continue
                seen.add(line)
                plain = line.lower() if line.isascii() else fold_line(line)
                if sum([stem in known for stem in self._stems_of(plain)]) >= MIN_WORDS:
                    for sentence in sentences(plain):
                        yield sentence, is_foreign

    def _stems_of(self, line: str) -> list[str]:
        """Return the stems of a line, as `_words` yields them."""
        if not line.isascii():
            return [stem for stem, _, _ in self._words(line)]
        return [stem for word in _TOKEN.findall(line) if (stem := self._stem(word))]

    def _words(self, line: str) -> Iterator[tuple[str, int, int]]:
        """Yield (stem, start, end) for each word of a line (as `fold_line` returns it). Common words are left
        out."""
        for found in _TOKEN.finditer(line):
            word = found[0]
            stem = self._stem(word)
            if stem and stem != _PAIRS:
                yield stem, found.start(), found.end()
            elif stem:
                start = found.start()
                for at in range(max(1, len(word) - 1)):
                    yield word[at : at + 2], start + at, min(found.end(), start + at + 2)


def fold_line(line: str) -> str:
    """Return `line` in lower case, without accents, without spaces between single letters, and with ordinary
    letters in place of letters that only look like them. O(characters)."""
    if line.isascii():
        text = line.lower()
    else:
        text = normalize("NFKD", line).lower().translate(_LOOK_ALIKE)
        text = normalize("NFC", "".join(sign for sign in text if category(sign) not in ("Mn", "Cf")))
    return _SPACED.sub(lambda found: re.sub(r"[ .·-]", "", found[0]), text)


def _stem(word: str) -> str:
    """Return the stem of a word; empty for a common word."""
    if not word.isascii() and _SPACELESS.search(word) is not None:
        return _PAIRS
    if (len(word) < 3 and word.isascii()) or word in COMMON_WORDS:
        return ""
    stem = _ENDING.sub("", word)
    return stem if stem.isalpha() or stem.isdigit() else stem.translate(_LEET)


def _longest_run(held: list[bool]) -> tuple[int, int]:
    """Return (start, end) of the longest stretch that begins and ends with a true element and in which at
    least `SHARE` of the elements are true. `held` says of each word of a line whether the foreign sentence
    contains it."""
    best = (0, 0)
    for start, is_held in enumerate(held):
        if not is_held:
            continue
        count = 0
        for at in range(start, min(len(held), start + RUN_WORDS)):
            count += held[at]
            if held[at] and count >= SHARE * (at + 1 - start) and at + 1 - start > best[1] - best[0]:
                best = (start, at + 1)
    return best
