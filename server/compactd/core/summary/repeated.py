"""Whether a line of a model's summary repeats a sentence that a tool, a file or a program wrote.

Words are compared by their stems, so that another ending, other capitals or a digit for a letter make no
other word. A repetition is a run of telling words that one foreign sentence holds.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from heapq import nsmallest
from itertools import chain
from typing import Final
from unicodedata import category, normalize

from msgspec import Struct

from compactd.core.text.atoms import COMMON_WORDS, sentences

SHARE: Final = 0.8
"""Of the words of a run, those that the foreign sentence must hold; and of the line or of the foreign
sentence, those that the run must be."""
FEWEST_WORDS: Final = 3
"""In a run."""
WINDOW_WORDS: Final = 40
"""A foreign sentence of more words (a minified file, a list on one line) is looked at in pieces."""

MOST_SENTENCES: Final = 50
"""Foreign sentences that a line is compared with word by word: those that hold the most of its words."""
RUN_WORDS: Final = 80

_TOKEN: Final = re.compile(r"[^\W_](?:[\w./:\\-]*[^\W_])?")
_PROSE: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ENDING: Final = re.compile(r"(?<=[^\W\d_]{4})(?:ing|ed|es|s|e)\Z")
_SPACED: Final = re.compile(r"(?<!\w)\w(?:[ .·-]\w){3,}(?!\w)")
"""`D e p l o y`."""
_SPACELESS: Final = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_PAIRS: Final = "\0"
_LEET: Final = str.maketrans("013457@$", "oieastas")
_LOOK_ALIKE: Final = str.maketrans("аеорсухіѕјһԁɡոкмтнвα", "aeopcyxisjhdgnkmthba")


class Run(Struct, frozen=True):
    """A part of a line that a foreign sentence holds."""

    start: int
    """Characters from the line's beginning, inclusive, in the line as `folded` gives it."""
    end: int
    """The same, exclusive."""


class Repetitions:
    """Looks for the lines of one text in what others wrote."""

    def __init__(self, text: str, said: Iterable[tuple[str, bool]]) -> None:
        """`text`: whose lines will be asked about. `said`: what was said, oldest first, and of each text
        whether it is foreign; the others are the model's. O(characters of both)."""
        self._stems: dict[str, str] = {}
        known = {stem for line in text.split("\n") for stem, _, _ in self._words(folded(line))}
        self._sets: dict[str, frozenset[int]] = {}
        self._windows: list[tuple[int, bool]] = []
        """How many words each has, and whether it is foreign; in the order in which they were said."""
        self._where: defaultdict[str, list[int]] = defaultdict(list)
        seen: set[tuple[frozenset[str], int]] = set()
        for sentence, is_foreign in self._sentences(said, known):
            stems = self._stems_of(sentence)
            for at in range(0, max(1, len(stems) - WINDOW_WORDS // 2), WINDOW_WORDS // 2):
                window = frozenset(stems[at : at + WINDOW_WORDS])
                held = window & known
                if len(held) < FEWEST_WORDS or (held, len(window)) in seen:
                    continue
                seen.add((held, len(window)))
                for stem in held:
                    self._where[stem].append(len(self._windows))
                self._windows.append((len(window), is_foreign))

    def find(self, line: str) -> Run | None:
        """The longest run of words of `line` that a foreign sentence holds and that the model had not said
        before; `line` as `folded` gives it. O(sentences that hold a word of it)."""
        words = list(self._words(line))
        distinct = {stem for stem, _, _ in words}
        counts = Counter(chain.from_iterable(self._where.get(stem, ()) for stem in distinct))
        likely = [
            (-count, window)
            for window, count in counts.items()
            if count >= max(FEWEST_WORDS, SHARE * min(len(distinct), self._windows[window][0]))
        ]
        best, most = None, 0
        for _, window in nsmallest(MOST_SENTENCES, likely):
            size, is_foreign = self._windows[window]
            held = [window in self._holding(stem) for stem, _, _ in words]
            start, end = _longest_run(held)
            count = len({words[at][0] for at in range(start, end) if held[at]})
            if count > most and count >= max(FEWEST_WORDS, SHARE * min(len(distinct), size)):
                best, most = Run(words[start][1], words[end - 1][2]) if is_foreign else None, count
        return best

    def _holding(self, stem: str) -> frozenset[int]:
        known = self._sets.get(stem)
        if known is None:
            known = self._sets[stem] = frozenset(self._where.get(stem, ()))
        return known

    def _sentences(
        self, said: Iterable[tuple[str, bool]], known: Collection[str]
    ) -> Iterator[tuple[str, bool]]:
        """The sentences of the lines that hold enough of the `known` words, each line once."""
        seen: set[str] = set()
        for text, is_foreign in said:
            for line in text.splitlines():
                if line in seen:
                    continue
                seen.add(line)
                plain = line.lower() if line.isascii() else folded(line)
                if sum([stem in known for stem in self._stems_of(plain)]) >= FEWEST_WORDS:
                    for sentence in sentences(plain):
                        yield sentence, is_foreign

    def _stems_of(self, line: str) -> list[str]:
        """The same as `_words` without places."""
        if not line.isascii():
            return [stem for stem, _, _ in self._words(line)]
        stems, found = self._stems, _TOKEN.findall(line)
        return [
            stem
            for word in found
            if (stem := stems.get(word) if word in stems else stems.setdefault(word, _stem(word)))
        ]

    def _words(self, line: str) -> Iterator[tuple[str, int, int]]:
        """The telling words of a line as `folded` gives it: (stem, where it begins, where it ends)."""
        stems = self._stems
        for found in _TOKEN.finditer(line):
            word = found[0]
            stem = stems.get(word)
            if stem is None:
                stem = stems[word] = _stem(word)
            if stem and stem != _PAIRS:
                yield stem, found.start(), found.end()
            elif stem:
                start = found.start()
                for at in range(max(1, len(word) - 1)):
                    yield word[at : at + 2], start + at, min(found.end(), start + at + 2)


def folded(line: str) -> str:
    """`line` with signs that look alike made the same, without accents, in lower case. O(characters)."""
    if line.isascii():
        text = line.lower()
    else:
        text = normalize("NFKD", line).lower().translate(_LOOK_ALIKE)
        text = normalize("NFC", "".join(sign for sign in text if category(sign) not in ("Mn", "Cf")))
    return _SPACED.sub(lambda found: re.sub(r"[ .·-]", "", found[0]), text)


def _stem(word: str) -> str:
    if not word.isascii() and _SPACELESS.search(word) is not None:
        return _PAIRS
    if (len(word) < 3 and word.isascii()) or word in COMMON_WORDS:
        return ""
    stem = _ENDING.sub("", word)
    return stem if stem.isalpha() or stem.isdigit() else stem.translate(_LEET)


def _longest_run(held: list[bool]) -> tuple[int, int]:
    """The longest stretch that begins and ends with a held word and in which `SHARE` of the words are."""
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
