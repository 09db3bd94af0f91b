"""What a line shows, as numbers: its atoms, its words, its runs of four, and itself.

Lines repeat as chunks do: each is analysed once while it is remembered.
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
"""Chunks whose atoms are remembered, and those of one text more."""

MOST_ATOMS: Final = 4_000
"""Atoms that are remembered while messages are read one after the other: half a megabyte."""

FEW_ATOMS: Final = 1_000
"""Fewer are packed with those that were packed last."""

LINE_SHAPES: Final = (36, 56, 90)
"""Characters: the longest line of each shape but the last."""

_BITS: Final = (1 << 30) - 1
_TELLING: Final = (1 << TELLING_BITS) - 1


class Line(Struct, frozen=True, array_like=True, gc=False):
    """What a line shows, wherever it stands."""

    shown: bytes
    """Its features, each once, one behind the other as `I`."""
    tokens: int
    """Estimated, in hundredths."""
    telling: int
    """How many of its words say something."""

    @property
    def features(self) -> tuple[int, ...]:
        """What it shows, each once."""
        return tuple(array("I", self.shown))


def shape_of(feature: int) -> int:
    """0 for a run of four."""
    return 0 if feature % KINDS == RUN else feature // KINDS % SHAPES


def _unpacked(names: bytes) -> list[str]:
    return decompress(names).decode("utf-8", "surrogatepass").split("\n")


class Lexicon:
    """Numbers for what lines show, and the names of the atoms among them."""

    def __init__(self) -> None:
        self._atoms = Atoms()
        self._packed: list[bytes] = []
        """The atoms' names, one a line, deflated, where nobody asked for them since the last `pack`."""
        self._known: dict[str, Line] = {}
        self._older: dict[str, Line] = {}
        self._chunks = Chunks(self._atoms)
        self._names = Names(self._atoms)

    @property
    def atoms(self) -> Atoms:
        """Every atom that was met. O(1), but for the first time behind a `pack`."""
        packed, self._packed = self._packed, []
        for names in packed:
            for name in _unpacked(names):
                kind, _, value = name.partition(" ")
                _ = self._atoms[kind, value]
        return self._atoms

    @property
    def names(self) -> Names:
        """The atoms of chunks, for one text after the other: what is remembered of them is bounded."""
        if len(self._names) > MOST_NAMES:
            self._names = Names(self._atoms)
        return self._names

    def number(self, atom: Atom) -> int:
        """Of an atom that was met; else -1. O(1), but for the first time behind a `pack`."""
        return self.atoms.get(atom, -1)

    def named(self, numbers: Container[int]) -> dict[int, Atom]:
        """The atoms of these numbers, by number. O(atoms), of which only these are unpacked."""
        found = {number: atom for atom, number in self._atoms.items() if number in numbers}
        for names in self._packed:
            for name in _unpacked(names):
                kind, _, value = name.partition(" ")
                number = number_of(name, ATOM, ATOM_SHAPES[kind])
                if number in numbers:
                    found[number] = (kind, value)
        return found

    def release(self) -> None:
        """Lets go of everything, piece by piece."""
        self.settle()
        self._packed = []
        clear(self._atoms)

    def pack(self) -> None:
        """Packs the atoms: their numbers follow from their names, which hold no white space."""
        if self._atoms:
            self._put_by()
            self._atoms = Atoms()
            self.settle()

    def lighten(self) -> None:
        """Packs the atoms once there are many that were not packed yet. O(`MOST_ATOMS`)."""
        if len(self._atoms) > MOST_ATOMS:
            self._put_by()

    def _put_by(self) -> None:
        names = [f"{kind} {value}" for kind, value in self._atoms]
        if self._packed and len(names) < FEW_ATOMS:
            # One piece more for each handful would be many pieces in the end.
            names = list(dict.fromkeys([*_unpacked(self._packed.pop()), *names]))
        self._packed.append(compress("\n".join(names).encode("utf-8", "surrogatepass"), 1))
        clear(self._atoms)

    def settle(self) -> None:
        """Forgets chunks and lines: nothing is read for a while. O(`REMEMBERED`)."""
        # A dict that was emptied keeps its size.
        self._known, self._older = {}, {}
        self._chunks, self._names = Chunks(self._atoms), Names(self._atoms)

    def line(self, text: str) -> Line:
        """What `text`, one line, shows. O(length) at the first time, then O(1)."""
        bare = text.strip()
        known = self._known.get(bare)
        if known is not None:
            return known
        known = self._older.get(bare)
        if known is None:
            # What was not used since the last time is forgotten once there is much of it.
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
