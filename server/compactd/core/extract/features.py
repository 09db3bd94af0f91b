"""Compute the features of a chunk (text without white space): its atoms, its words, and its signs.

A *sign* is a sequence of letters and digits. A *run* is a sequence of four signs of a line, or all signs of a
line with two or three; runs are features of a line. Features are numbers. A feature's number is a hash of its
text, so no table is needed, and the number is the same in every session and process. The number also contains
the feature's kind (number modulo `KINDS`) and, in the next two bits, its shape: the sort of an atom, or a
class of length for words and lines. (Runs have no shape.) Two features with the same number count as one.
With 30 bits, that happens to about 18 pairs of the 200,000 runs in a million tokens.

For speed, the features of a chunk are combined from those of its signs, which are fewer and repeat. The
definitions of atoms and words are those of `core/text/atoms.py`. A chunk that cannot be combined from its
signs (other scripts, URLs, paths) is analysed by the functions of that module.

A `Lexicon` computes the features of whole lines. Lines repeat, so the analysis of each is cached for a while.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Container, Sequence
from itertools import chain
from typing import Final
from zlib import compress, crc32, decompress

from msgspec import Struct

from compactd.core.text.atoms import (
    COMMON_WORDS,
    Atom,
    atoms_of_chunk,
    dashed_atoms,
    dotted_atoms,
    is_digest,
    is_identifier,
    signs_of_chunk,
    words_of_chunk,
)
from compactd.core.text.lazy_patterns import LazyPattern

ATOM: Final = 0
WORD: Final = 1
RUN: Final = 2
LINE: Final = 3
KINDS: Final = 4
"""The number of kinds of features. A feature's kind is its number modulo this."""
SHAPES: Final = 4
"""How many shapes there are: sorts of atoms, or classes of the length of a word or line. A feature's shape is
(number ÷ `KINDS`) modulo this."""

ATOM_SHAPES: Final = {"id": 0, "path": 1, "lit": 2}
"""The shape of an atom, by its kind: identifier, path, literal."""
WORD_SHAPES: Final = (5, 8, 13)
"""The shape of a word is a class of length. These are the most characters of each class except the last."""

WORD_CHARS: Final = 4
"""Words with fewer characters than this are no features."""

REMEMBERED: Final = 2_000
"""A cache of chunks or of lines is renewed when it has more entries than this: entries that were not used
since the last renewal are dropped. The caches of signs and words may have twice as many."""

TELLING_BITS: Final = 24
"""A *cost* is one integer that combines two counts: the number of significant words (all except common ones
such as "the") in this many low bits, and the estimated tokens in hundredths above them. One sum of costs
gives both counts for a line."""

_BITS_SHAPED: Final = (1 << 28) - 1
_TOKEN = LazyPattern(r"[A-Z]?[a-z]+|[A-Z]+|\d{1,3}|[^\w\s]+|_+")

_TELLING: Final = (1 << TELLING_BITS) - 1
_BASE: Final = 10 << TELLING_BITS
"""The cost of any chunk before its pieces are counted."""
_PIECE: Final = 91 << TELLING_BITS
"""The cost of each piece into which a tokenizer is likely to split a chunk."""
_LONG_CHARS: Final = 10
"""A piece with more characters than this costs extra."""

Features = tuple[int, ...]

ChunkFeatures = tuple[tuple[int, ...], Features, int]
"""The analysis of a chunk: (hashes of its signs in order, its features, its cost)."""

_Sign = tuple[tuple[int, ...], Features, int, Features, Features, Features]
"""The analysis of a sign. The first three fields are the `ChunkFeatures` of a chunk that consists of this
sign only.
The other three are the features that the sign has as an identifier, as a digest (hash) and as a word."""


def feature_number(text: str, kind: int, shape: int) -> int:
    """Return the number of a feature that is no run: a hash of `text`, combined with the feature's kind and
    its shape (the sort of an atom, or a class of length)."""
    return ((_hash(text) & _BITS_SHAPED) * SHAPES + shape) * KINDS + kind


class Atoms(dict[Atom, int]):
    """The numbers of atoms, by atom. A missing one is computed on access."""

    def __missing__(self, atom: Atom) -> int:
        number = self[atom] = feature_number(f"{atom[0]} {atom[1]}", ATOM, ATOM_SHAPES[atom[0]])
        return number


class Chunks(dict[str, ChunkFeatures]):
    """The analysis of chunks, by their text. A chunk that is not in this cache is taken from `older`, the
    previous cache, or analysed."""

    def __init__(self, atoms: Atoms, older: dict[str, ChunkFeatures] | None = None) -> None:
        self._atoms = atoms
        self._older = older or {}
        self._signs = _Signs(atoms)
        self._words: dict[str, int] = {}

    def __missing__(self, text: str) -> ChunkFeatures:
        found = self._older.get(text)
        if found is None:
            found = self._analyse(text)
        self[text] = found
        return found

    def turn(self) -> Chunks:
        """Return a new cache that replaces this one when it is large. The new cache takes over an entry of
        this one when the entry is used again. Entries that are not used before the next `turn` are
        dropped."""
        # Pass a plain copy, so that the new cache does not keep the older entries of this one.
        new = Chunks(self._atoms, dict(self))
        if len(self._signs) <= 2 * REMEMBERED:
            new._signs = self._signs
        if len(self._words) <= 2 * REMEMBERED:
            new._words = self._words
        return new

    def _analyse(self, text: str) -> ChunkFeatures:
        """Analyse a chunk, from the analysis of its signs if possible."""
        signs = signs_of_chunk(text)
        if not signs or not text.isascii() or "$" in text or "://" in text:
            return self._in_general(text, signs)
        around = text.startswith(signs[0]) + text.endswith(signs[-1])
        if len(signs) == 1:
            hashes, features, cost, _, digest, _ = known = self._signs[signs[0]]
            if around > 1:
                return known[:3]
            if (
                "/" in text
                or ("-" in text and ("." in text or "--" in text or digest))
                or len(text) - len(signs[0]) > _LONG_CHARS
            ):
                return self._in_general(text, signs)
            return hashes, features, cost + (2 - around) * _PIECE
        each = [self._signs[sign] for sign in signs]
        hashes = tuple([one[0][0] for one in each])
        cost = sum([one[2] for one in each])
        if len(text) - sum(map(len, signs)) > _LONG_CHARS:
            cost = _cost(text) + (cost & _TELLING)
        else:
            # Count one piece between two signs, and one at each end that is not a sign.
            cost += (len(signs) + 1 - around) * _PIECE - (len(signs) - 1) * _BASE
        if not ("." in text or "-" in text or "/" in text):
            named = [f for one in each for f in one[3]] + [f for one in each for f in one[4]]
            return hashes, (*named, *[f for one in each for f in one[5]]), cost
        number = self._atoms
        found = [number[atom] for atom in dotted_atoms(text)] + [f for one in each for f in one[3]]
        if "-" in text:
            found += [number[atom] for atom in dashed_atoms(text)]
        else:
            found += [f for one in each for f in one[4]]
        words, telling = self._words_of(text)
        return hashes, (*found, *words), cost - (cost & _TELLING) + telling

    def _in_general(self, text: str, signs: Sequence[str]) -> ChunkFeatures:
        """Analyse a chunk of any form, without the analysis of its signs."""
        number = self._atoms
        words, telling = self._words_of(text)
        return (
            tuple([_hash(sign) for sign in signs]),
            (*[number[atom] for atom in atoms_of_chunk(text)], *words),
            _cost(text) + telling,
        )

    def _words_of(self, text: str) -> tuple[list[int], int]:
        """Return (the numbers of a chunk's words, the number of significant words among them)."""
        known = self._words
        numbers: list[int] = []
        telling = 0
        for word in words_of_chunk(text):
            if len(word) >= WORD_CHARS:
                number = known.get(word)
                if number is None:
                    number = known[word] = _word(word)
                numbers.append(number)
                telling += word not in COMMON_WORDS
        return numbers, telling


class AtomsByText(dict[str, Features]):
    """The atoms of chunks, as numbers, by the chunk's text. Missing ones are computed on access."""

    def __init__(self, atoms: Atoms) -> None:
        self._atoms = atoms

    def __missing__(self, chunk: str) -> Features:
        number = self._atoms
        found = self[chunk] = tuple([number[atom] for atom in atoms_of_chunk(chunk)])
        return found


class _Signs(dict[str, _Sign]):
    """The analysis of signs (sequences of ASCII letters, digits and underscores), by their text. A missing
    one is computed on access."""

    def __init__(self, atoms: Atoms) -> None:
        self._atoms = atoms

    def __missing__(self, sign: str) -> _Sign:
        lower = sign.lower()
        name: Features = ()
        digest: Features = ()
        word: Features = ()
        if is_identifier(sign):
            name = (self._atoms["id", sign],)
        elif is_digest(sign):
            digest = (self._atoms["lit", sign],)
        cost = _cost(sign)
        if len(lower) >= WORD_CHARS:
            word = (_word(lower),)
            cost += lower not in COMMON_WORDS
        found = self[sign] = ((_hash(sign),), (*name, *digest, *word), cost, name, digest, word)
        return found


def _cost(chunk: str) -> int:
    """Return the cost of a chunk from its estimated tokens; its number of significant words is left at 0."""
    # The numbers are fitted to the tokenizer o200k on chunks of recorded sessions. The mean error is 0.26
    # tokens, and a chunk has 2.25 tokens on average.
    pieces = _TOKEN.findall(chunk)
    tokens = 10 + 91 * len(pieces)
    if len(chunk) > _LONG_CHARS:
        tokens += 41 * sum([len(p) > _LONG_CHARS for p in pieces])
    if not chunk.isascii():
        tokens += 60 * sum([c > "\u02ff" for c in chunk])
    return tokens << TELLING_BITS


def _word(word: str) -> int:
    """Return the number of a word as a feature."""
    return feature_number(word, WORD, bisect_left(WORD_SHAPES, len(word)))


def _hash(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))


MAX_NAMES: Final = 16_000
"""If the cache of chunks' atoms has more chunks than this, it is emptied before the next text is read. The
chunks of a single text can exceed this number."""

MAX_ATOMS: Final = 4_000
"""The most atoms that stay unpacked while messages are read. They take half a megabyte."""

MIN_PIECE_ATOMS: Final = 1_000
"""Fewer atoms than this do not get a packed piece of their own; they are added to the last piece."""

LINE_SHAPES: Final = (36, 56, 90)
"""The shape of a line is a class of length. These are the most characters of each class except the last."""

_BITS: Final = (1 << 30) - 1


class LineFeatures(Struct, frozen=True, array_like=True, gc=False):
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


def feature_shape(feature: int) -> int:
    """Return the shape of a feature: the sort of an atom, or the class of length of a word or a line; 0 for a
    run."""
    return 0 if feature % KINDS == RUN else feature // KINDS % SHAPES


def _unpack(names: bytes) -> list[str]:
    """Return the names of atoms in one packed piece."""
    return decompress(names).decode("utf-8", "surrogatepass").split("\n")


class Lexicon:
    """Computes and caches the features of lines, and stores the names of all atoms that it found, so that a
    number can be turned back into its name."""

    def __init__(self) -> None:
        self._atoms = Atoms()
        self._packed: list[bytes] = []
        """The names of atoms that were packed, as pieces of one name per line, deflated."""
        self._known: dict[str, LineFeatures] = {}
        self._older: dict[str, LineFeatures] = {}
        self._chunks = Chunks(self._atoms)
        self._names = AtomsByText(self._atoms)

    @property
    def atoms(self) -> Atoms:
        """The numbers of all atoms that were found. O(atoms) for the first access after `pack` or
        `pack_if_many`, which compress them; otherwise O(1)."""
        packed, self._packed = self._packed, []
        for names in packed:
            for name in _unpack(names):
                kind, _, value = name.partition(" ")
                _ = self._atoms[kind, value]
        return self._atoms

    @property
    def names(self) -> AtomsByText:
        """The atoms of chunks, by the chunk's text, in a bounded cache. Read this property again for each
        text, because a full cache is replaced by an empty one."""
        if len(self._names) > MAX_NAMES:
            self._names = AtomsByText(self._atoms)
        return self._names

    def number(self, atom: Atom) -> int:
        """Return the number of an atom that was found; -1 if it was not. O(atoms) for the first call after
        `pack` or `pack_if_many`, which compress the atoms; otherwise O(1)."""
        return self.atoms.get(atom, -1)

    def atoms_of(self, numbers: Container[int]) -> dict[int, Atom]:
        """Return the atoms with these numbers, by number. O(all atoms). Packed atoms stay packed."""
        found = {number: atom for atom, number in self._atoms.items() if number in numbers}
        for names in self._packed:
            for name in _unpack(names):
                kind, _, value = name.partition(" ")
                number = feature_number(name, ATOM, ATOM_SHAPES[kind])
                if number in numbers:
                    found[number] = (kind, value)
        return found

    def release(self) -> None:
        """Free everything."""
        self.settle()
        self._packed = []
        self._atoms.clear()

    def pack(self) -> None:
        """Compress the names of all atoms, and drop the caches. The numbers are not stored, because they
        follow from the names."""
        if self._atoms:
            self._pack_names()
            self._atoms = Atoms()
            self.settle()

    def pack_if_many(self) -> None:
        """Compress the names of atoms if more than `MAX_ATOMS` are unpacked. O(`MAX_ATOMS`)."""
        if len(self._atoms) > MAX_ATOMS:
            self._pack_names()

    def _pack_names(self) -> None:
        """Compress the names of all unpacked atoms into a piece of `_packed`."""
        names = [f"{kind} {value}" for kind, value in self._atoms]
        if self._packed and len(names) < MIN_PIECE_ATOMS:
            # Merge small pieces, so that their number stays low.
            names = list(dict.fromkeys([*_unpack(self._packed.pop()), *names]))
        self._packed.append(compress("\n".join(names).encode("utf-8", "surrogatepass"), 1))
        self._atoms.clear()

    def settle(self) -> None:
        """Drop the caches of chunks and lines. Call it when no line will be analysed for a while.
        O(`REMEMBERED`)."""
        # Use new dicts, because a cleared dict keeps its memory.
        self._known, self._older = {}, {}
        self._chunks, self._names = Chunks(self._atoms), AtomsByText(self._atoms)

    def line(self, text: str) -> LineFeatures:
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
            known = self._analyse(bare)
        self._known[bare] = known
        return known

    def _analyse(self, bare: str) -> LineFeatures:
        chunks = bare.split()
        if not chunks:
            return LineFeatures(b"", 0, 0)
        hashes, features, costs = zip(*map(self._chunks.__getitem__, chunks), strict=True)
        found = list(chain.from_iterable(features))
        signs = tuple(chain.from_iterable(hashes))
        if len(signs) > 3:
            runs = map(hash, zip(signs, signs[1:], signs[2:], signs[3:], strict=False))
            found += [(run & _BITS) * KINDS + RUN for run in runs]
        elif len(signs) > 1:
            found.append((hash(signs) & _BITS) * KINDS + RUN)
        if 24 <= len(bare) <= 200:
            found.append(feature_number(bare, LINE, bisect_left(LINE_SHAPES, len(bare))))
        cost = sum(costs)
        return LineFeatures(
            array("I", list(dict.fromkeys(found))).tobytes(), cost >> TELLING_BITS, cost & _TELLING
        )
