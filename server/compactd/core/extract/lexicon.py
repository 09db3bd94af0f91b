"""Compute the features of a line as numbers: its atoms, its words, its runs of four signs, and the line
itself.

`features.py` explains these terms. Lines repeat, so the analysis of each line is cached for a while.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Container
from itertools import chain
from typing import Final
from zlib import compress, decompress

from msgspec import Struct

from compactd.core.extract.features import ATOM as ATOM
from compactd.core.extract.features import (
    ATOM_SHAPES,
    REMEMBERED,
    TELLING_BITS,
    Atoms,
    Chunks,
    Names,
    number_of,
)
from compactd.core.extract.features import KINDS as KINDS
from compactd.core.extract.features import LINE as LINE
from compactd.core.extract.features import RUN as RUN
from compactd.core.extract.features import SHAPES as SHAPES
from compactd.core.extract.features import WORD as WORD
from compactd.core.text.atoms import Atom
from compactd.core.text.slices import clear

MOST_NAMES: Final = 16_000
"""The cache of chunks' atoms is renewed before the next text when it has more chunks than this. A single text
can make it larger."""

MOST_ATOMS: Final = 4_000
"""The most atoms that stay unpacked while messages are read. They take half a megabyte."""

FEW_ATOMS: Final = 1_000
"""Fewer atoms than this do not get a packed piece of their own; they are added to the last piece."""

LINE_SHAPES: Final = (36, 56, 90)
"""The shape of a line is a class of length. These are the most characters of each class except the last."""

_BITS: Final = (1 << 30) - 1
_TELLING: Final = (1 << TELLING_BITS) - 1


class Line(Struct, frozen=True, array_like=True, gc=False):
    """The features and the estimated tokens of a line, which depend on the line only."""

    shown: bytes
    """The distinct features of the line, as bytes of array code `I`."""
    tokens: int
    """The estimated tokens, in hundredths."""
    telling: int
    """The number of significant words: all words except common ones such as "the"."""

    @property
    def features(self) -> tuple[int, ...]:
        """The distinct features of the line."""
        return tuple(array("I", self.shown))


def shape_of(feature: int) -> int:
    """Return the shape of a feature: the sort of an atom, or the class of length of a word or a line; 0 for a
    run."""
    return 0 if feature % KINDS == RUN else feature // KINDS % SHAPES


def _unpacked(names: bytes) -> list[str]:
    """Return the names of atoms in one packed piece."""
    return decompress(names).decode("utf-8", "surrogatepass").split("\n")


class Lexicon:
    """Computes and caches the features of lines, and stores the names of all atoms that it found, so that a
    number can be turned back into its name."""

    def __init__(self) -> None:
        self._atoms = Atoms()
        self._packed: list[bytes] = []
        """The names of atoms that were packed, as pieces of one name per line, deflated."""
        self._known: dict[str, Line] = {}
        self._older: dict[str, Line] = {}
        self._chunks = Chunks(self._atoms)
        self._names = Names(self._atoms)

    @property
    def atoms(self) -> Atoms:
        """The numbers of all atoms that were found. O(atoms) for the first access after `pack` or `lighten`,
        which compress them; otherwise O(1)."""
        packed, self._packed = self._packed, []
        for names in packed:
            for name in _unpacked(names):
                kind, _, value = name.partition(" ")
                _ = self._atoms[kind, value]
        return self._atoms

    @property
    def names(self) -> Names:
        """The atoms of chunks, by the chunk's text, in a bounded cache. Get it again for each text."""
        if len(self._names) > MOST_NAMES:
            self._names = Names(self._atoms)
        return self._names

    def number(self, atom: Atom) -> int:
        """Return the number of an atom that was found; -1 if it was not. O(atoms) for the first call after
        `pack` or `lighten`, which compress the atoms; otherwise O(1)."""
        return self.atoms.get(atom, -1)

    def named(self, numbers: Container[int]) -> dict[int, Atom]:
        """Return the atoms with these numbers, by number. O(all atoms). Packed atoms stay packed."""
        found = {number: atom for atom, number in self._atoms.items() if number in numbers}
        for names in self._packed:
            for name in _unpacked(names):
                kind, _, value = name.partition(" ")
                number = number_of(name, ATOM, ATOM_SHAPES[kind])
                if number in numbers:
                    found[number] = (kind, value)
        return found

    def release(self) -> None:
        """Free everything, piece by piece. Other threads can run in between."""
        self.settle()
        self._packed = []
        clear(self._atoms)

    def pack(self) -> None:
        """Compress the names of all atoms, and drop the caches. The numbers are not stored, because they
        follow from the names."""
        if self._atoms:
            self._put_by()
            self._atoms = Atoms()
            self.settle()

    def lighten(self) -> None:
        """Compress the names of atoms if more than `MOST_ATOMS` are unpacked. O(`MOST_ATOMS`)."""
        if len(self._atoms) > MOST_ATOMS:
            self._put_by()

    def _put_by(self) -> None:
        """Compress the names of all unpacked atoms into a piece of `_packed`."""
        names = [f"{kind} {value}" for kind, value in self._atoms]
        if self._packed and len(names) < FEW_ATOMS:
            # Merge small pieces, so that their number stays low.
            names = list(dict.fromkeys([*_unpacked(self._packed.pop()), *names]))
        self._packed.append(compress("\n".join(names).encode("utf-8", "surrogatepass"), 1))
        clear(self._atoms)

    def settle(self) -> None:
        """Drop the caches of chunks and lines. Call it when no line will be analysed for a while.
        O(`REMEMBERED`)."""
        # Use new dicts, because a cleared dict keeps its memory.
        self._known, self._older = {}, {}
        self._chunks, self._names = Chunks(self._atoms), Names(self._atoms)

    def line(self, text: str) -> Line:
        """Return the features of one line. O(length) the first time, then O(1) while the line is cached."""
        bare = text.strip()
        known = self._known.get(bare)
        if known is not None:
            return known
        known = self._older.get(bare)
        if known is None:
            # When a cache is full, entries that were not used since it was last full are dropped.
            if len(self._chunks) > REMEMBERED:
                self._chunks = self._chunks.turn()
            if len(self._known) > REMEMBERED:
                self._older, self._known = self._known, {}
            known = self._analysed(bare)
        self._known[bare] = known
        return known

    def _analysed(self, bare: str) -> Line:
        chunks = bare.split()
        if not chunks:
            return Line(b"", 0, 0)
        hashes, features, costs = zip(*map(self._chunks.__getitem__, chunks), strict=True)
        found = list(chain.from_iterable(features))
        signs = tuple(chain.from_iterable(hashes))
        if len(signs) > 3:
            runs = map(hash, zip(signs, signs[1:], signs[2:], signs[3:], strict=False))
            found += [(run & _BITS) * KINDS + RUN for run in runs]
        elif len(signs) > 1:
            found.append((hash(signs) & _BITS) * KINDS + RUN)
        if 24 <= len(bare) <= 200:
            found.append(number_of(bare, LINE, bisect_left(LINE_SHAPES, len(bare))))
        cost = sum(costs)
        return Line(array("I", list(dict.fromkeys(found))).tobytes(), cost >> TELLING_BITS, cost & _TELLING)
