"""What a line shows, as numbers: its atoms, its words, its runs of four, and itself.

Features are numbered in the order they are first met; a feature's kind is its number modulo `KINDS`.
Chunks and lines repeat: each distinct one is analysed once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from typing import Final

from msgspec import Struct

from compactd.core.atoms import COMMON_WORDS, Atom, atoms_of_chunk, signs_of_chunk, words_of_chunk
from compactd.core.pieces import clear

ATOM: Final = 0
WORD: Final = 1
RUN: Final = 2
LINE: Final = 3
KINDS: Final = 4
"""A feature's kind is its number modulo this."""

_TOKEN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d{1,3}|[^\w\s]+|_+")

Features = tuple[int, ...]


class Chunk(Struct, frozen=True, array_like=True, gc=False):
    """A text without white space: its words in order, its features, its estimated tokens."""

    words: tuple[int, ...]
    features: Features
    tokens: float
    telling: int
    """How many of its words say something."""


class Line(Struct, frozen=True, array_like=True, gc=False):
    """What a line shows, wherever it stands."""

    features: Features
    tokens: float
    telling: int


def _estimate(chunk: str) -> float:
    # Fitted on o200k over the chunks of recorded sessions: 0.26 tokens off in the mean, of 2.25.
    pieces = _TOKEN.findall(chunk)
    tokens = 0.1 + 0.91 * len(pieces) + 0.41 * sum(len(p) > 10 for p in pieces)
    return tokens if chunk.isascii() else tokens + 0.6 * sum(c > "\u02ff" for c in chunk)


class _Chunks(dict[str, Chunk]):
    """Chunks by their text, each analysed at its first use."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon

    def __missing__(self, text: str) -> Chunk:
        found = self.lexicon.analyse(text)
        self[text] = found
        return found


class Lexicon:
    """Numbers for features, given in the order they are first met."""

    def __init__(self) -> None:
        self.atoms: defaultdict[Atom, int] = defaultdict(count(ATOM, KINDS).__next__)
        self.words: defaultdict[str, int] = defaultdict(count(WORD, KINDS).__next__)
        self.runs: defaultdict[int, int] = defaultdict(count(RUN, KINDS).__next__)
        self.lines: defaultdict[str, int] = defaultdict(count(LINE, KINDS).__next__)
        self.signs: defaultdict[str, int] = defaultdict(count().__next__)
        self._chunks = _Chunks(self)
        self._known: dict[str, Line] = {}

    def release(self) -> None:
        """Lets go of everything, piece by piece."""
        clear(self._known)
        clear(self._chunks)
        clear(self.atoms)
        clear(self.runs)
        for table in (self.words, self.lines, self.signs):
            clear(table)

    @property
    def size(self) -> int:
        """No feature's number reaches this."""
        return KINDS * max(len(self.atoms), len(self.words), len(self.runs), len(self.lines), 1)

    def analyse(self, text: str) -> Chunk:
        words = words_of_chunk(text)
        long = [w for w in words if len(w) >= 4]
        features = [self.atoms[a] for a in atoms_of_chunk(text)]
        features.extend(self.words[w] for w in long)
        return Chunk(
            tuple(self.signs[w] for w in signs_of_chunk(text)),
            tuple(features),
            _estimate(text),
            sum(w not in COMMON_WORDS for w in long),
        )

    def line(self, text: str) -> Line:
        """What `text`, one line, shows. O(length) at the first time, then O(1)."""
        bare = text.strip()
        known = self._known.get(bare)
        if known is not None:
            return known
        chunks = list(map(self._chunks.__getitem__, bare.split()))
        found = [f for c in chunks for f in c.features]
        words = [w for c in chunks for w in c.words]
        if len(words) >= 4:
            runs: Iterable[tuple[int, ...]] = zip(words, words[1:], words[2:], words[3:], strict=False)
            found.extend(map(self.runs.__getitem__, map(hash, runs)))
        elif len(words) >= 2:
            found.append(self.runs[hash(tuple(words))])
        if 24 <= len(bare) <= 200:
            found.append(self.lines[bare])
        line = Line(
            tuple(dict.fromkeys(found)), sum(c.tokens for c in chunks), sum(c.telling for c in chunks)
        )
        self._known[bare] = line
        return line
