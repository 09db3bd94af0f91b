"""Compute and cache the *facts* of a message: the units (lines) that a summary can quote, the features that
each unit shows, and the message's calls and files.

Facts depend on their message only. They are computed once and kept in a `FactCache`. How much a feature is
worth depends on the whole conversation; see `reuse_model.py`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import compress
from sys import byteorder
from threading import Lock
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.msgpack import Decoder

from compactd.core.authors.typed_parts import OWN_WORDS_CHARS as OWN_WORDS_CHARS
from compactd.core.extract.compressed_store import CompressedStore, PackedDict
from compactd.core.extract.features import ATOM, KINDS, Lexicon, LineFeatures
from compactd.core.extract.line_roles import COMMAND, HEADER, USER
from compactd.core.extract.lines import CallInfo, SourceText, Unit, sources, split
from compactd.core.extract.lines import without_reminders as without_reminders
from compactd.core.extract.markers import EMPTY_TALK, MARKS
from compactd.core.history.entries import Item
from compactd.core.text.atoms import atoms
from compactd.core.text.whole_names import written_texts
from compactd.core.work.file_operations import FileUse, use_of
from compactd.protocol.messages import Message

if TYPE_CHECKING:
    from compactd.core.constraints.constraints import MessageLimits

UNIT_TOKENS: Final = 400
"""A unit with at least this many estimated tokens is too large to be quoted, unless it is a call's header."""
SMALL_CHARS: Final = 200
"""A unit with fewer characters than this is below `UNIT_TOKENS`, whatever its text, because no character is
estimated at more than 1.7 tokens."""
MARKED: Final = 1
"""Flag of a unit: it contains a decision (of the agent), a limit (of the user) or an error (of a tool)."""
LOW: Final = 2
"""Flag of a unit: it is a piece of a very long line, or markup. It is rarely worth its tokens."""
EMPTY: Final = 4
"""Flag of a unit: it tells a reader next to nothing (`EMPTY_TALK`). It is never quoted."""
MARKUP: Final = (
    "<div",
    "<span",
    "<p ",
    "<p>",
    "<a ",
    "<td",
    "<tr",
    "<li",
    "<pre",
    "<img",
    "<svg",
    "<path",
    "</",
)
"""How lines of markup begin that say nothing alone."""
TELLING_SHIFT: Final = 3
"""The bits of the flags from this one on contain the number of significant words in the unit."""
MAX_TELLING: Final = 31
"""At most this many significant words (all except common ones such as "the") are counted."""

MAX_UNIT_TOKENS: Final = 0xFFFF
"""The largest estimate of a unit's tokens, in hundredths, that can be stored. A larger estimate is stored as
this number."""

KINDS_OF_ITEM: Final = ("message", "summary", "stub")
"""The kinds of items. One entry can have facts for an item of each kind."""

_LOWEST_BYTE: Final = 0 if byteorder == "little" else array("I").itemsize - 1
_IS_ATOM: Final = bytes(byte % KINDS == ATOM for byte in range(256))
"""1 for the lowest bytes of features that are atoms, otherwise 0."""

_WITH_TEXT = frozenset((USER, HEADER, COMMAND))
"""Roles of parts that keep the texts of their units."""


class FactPart(Struct, frozen=True, array_like=True, gc=False):
    """One text of a message, split into units (lines that a summary can quote), with their features packed
    into bytes. All units have the same role."""

    role: int
    call_id: str | None
    """The tool call that this part belongs to, as call, argument or result; None if it belongs to none."""
    count: int
    """The number of units."""
    packed: bytes
    """The features of all units, in order, as bytes of array code `I`. Then the number of features of each
    unit (`H`), the estimated tokens of each unit in hundredths (`H`), and the flags of each unit (`B`)."""
    units: tuple[Unit, ...] = ()
    """The texts of the units, kept only for the user's words, headers and commands. The texts of other parts
    are split again when they are quoted."""
    left_out: tuple[int, ...] = ()
    """The positions of the units that are too large to be quoted, counted among all units of the text.
    `count` and `packed` leave these units out."""

    @property
    def unit_features(self) -> bytes:
        """The features of all units in order, as bytes of array code `I`."""
        return self.packed[: len(self.packed) - 5 * self.count]

    @property
    def features(self) -> tuple[int, ...]:
        """The distinct features of all units. O(features)."""
        return tuple(dict.fromkeys(array("I", self.unit_features)))

    @property
    def atoms(self) -> tuple[int, ...]:
        """The distinct features of all units that are atoms. O(features)."""
        shown = self.unit_features
        lowest = shown[_LOWEST_BYTE :: array("I").itemsize]  # it tells the kind of a feature
        return tuple(dict.fromkeys(compress(array("I", shown), lowest.translate(_IS_ATOM))))


class Facts(Struct, frozen=True, array_like=True, gc=False):
    """Everything that the extract knows about one message."""

    parts: tuple[FactPart, ...]
    calls: tuple[CallInfo, ...]
    files: FileUse
    """The files that the message reads and modifies."""
    failed: frozenset[str]
    """Ids of calls that failed: their results in this message are errors."""
    size: int
    """The number of code points in the message's texts. The cache is bounded by the sum of these."""
    stripped: str
    """The working folder that was cut from the front of paths, with a slash at the end; empty if nothing was
    cut."""
    whole: bytes | None = None
    """The atoms of the message's texts before the working folder was cut from paths, as bytes of array code
    `I`; None if the message does not contain the folder."""

    @property
    def mentions(self) -> bool:
        """Whether the message contains the working folder."""
        return self.whole is not None

    @property
    def atoms(self) -> frozenset[int]:
        """The atoms of the message's texts before the working folder was cut from paths. O(features)."""
        if self.whole is not None:
            return frozenset(array("I", self.whole))
        return frozenset().union(*(part.atoms for part in self.parts))


class FactReader:
    """Computes the facts of messages, with one lexicon and one working folder."""

    def __init__(self, lexicon: Lexicon, working_dir: str) -> None:
        self.lexicon = lexicon
        self.directory = working_dir.rstrip("/") + "/" if working_dir.strip("/") else ""

    def part(self, source: SourceText) -> FactPart:
        """Split a text into units and return them with their features. O(length)."""
        role, directory, look = source.role, self.directory, self.lexicon.line
        units: list[Unit] = []
        lines: list[LineFeatures] = []
        left_out: list[int] = []
        for at, unit in enumerate(split(source)):
            text = unit.text
            line = look(text.replace(directory, "") if directory and directory in text else text)
            if line.tokens >= 100 * UNIT_TOKENS and role != HEADER:
                left_out.append(at)
                continue
            units.append(unit)
            lines.append(line)
        mark = MARKS.get(role)
        marked = mark.places([unit.text for unit in units]) if mark is not None and units else ()
        flags = [min(line.telling, MAX_TELLING) << TELLING_SHIFT for line in lines]
        empty = EMPTY_TALK.get(role)
        for at, unit in enumerate(units):
            text = unit.text.lstrip()
            if unit.low or text.startswith(MARKUP):
                flags[at] |= LOW
            if empty is not None and empty.match(text) is not None:
                flags[at] |= EMPTY
        for at in marked:
            flags[at] |= MARKED
        packed = b"".join(
            (
                *[line.shown for line in lines],
                array("H", [len(line.shown) // 4 for line in lines]),
                array("H", [min(line.tokens, MAX_UNIT_TOKENS) for line in lines]),
                bytes(flags),
            )
        )
        with_text = tuple(units) if role in _WITH_TEXT else ()
        return FactPart(role, source.call_id, len(units), packed, with_text, tuple(left_out))

    def _is_too_large(self, text: str) -> bool:
        """Return whether a unit (a line, or a piece of one) has too many estimated tokens for a summary to
        quote it."""
        return self.lexicon.line(text).tokens >= 100 * UNIT_TOKENS

    def read(self, item: Item) -> Facts:
        """Compute the facts of one message. O(length)."""
        calls: list[CallInfo] = []
        texts: list[str] = []
        parts = tuple(map(self.part, sources(item, calls, texts)))
        use = use_of(item)
        whole = None
        if self.directory and any(self.directory in text for text in texts):
            number = self.lexicon.atoms
            found = dict.fromkeys(number[atom] for text in texts for atom in atoms(text))
            whole = array("I", found).tobytes()
        return Facts(
            parts=parts,
            calls=tuple(calls),
            files=use,
            failed=frozenset(use.failed),
            size=sum(map(len, texts)),
            stripped=self.directory,
            whole=whole,
        )


def units_of(item: Item, facts: Facts) -> Iterator[Iterator[Unit]]:
    """For each part of a message, yield an iterator of the units (lines) that a summary can quote. These are
    the units that `FactPart.packed` describes: units that are too large to be quoted are left out. A text is
    split as far as its iterator is read. O(length)."""
    for source, part in zip(sources(item, [], []), facts.parts, strict=True):
        yield iter(part.units) if part.units else _quotable_units(source, frozenset(part.left_out))


def _quotable_units(source: SourceText, left_out: frozenset[int]) -> Iterator[Unit]:
    for at, unit in enumerate(split(source)):
        if at not in left_out:
            yield unit


_unpack = Decoder(list[tuple[str, Facts]]).decode


class FactCache:
    """The facts of each message of one session, by entry id, computed on demand. Only one thread may use it
    at a time: the one that holds `lock`.

    The cache is bounded: when the cached messages have more than `limit` code points in total, `trim` empties
    it, and facts are computed again on demand. Between two uses, the facts are in a compressed store: 0.5
    bytes for each byte of the message, instead of 1.4 as objects (2026-11).
    """

    def __init__(self, working_dir: str | None = None, limit: int = 48_000_000) -> None:
        self.lexicon = Lexicon()
        self._reader = FactReader(self.lexicon, working_dir or "")
        self._shelf = CompressedStore(_unpack)
        self._facts: dict[str, Facts] = {}
        """The unpacked facts. Some of them are also in the compressed store."""
        self._stubs: dict[str, tuple[Message, Facts]] = {}
        """The facts of shortened messages, with the message that they are of: later compactions may shorten
        the same message in another way. Kept only between two calls of `pack`."""
        self._limit = limit
        self.limits: PackedDict[MessageLimits] = PackedDict()
        """The limits found in the user's messages, by entry id. Safe to use from any thread."""
        self.size = 0
        """The number of code points of the messages whose facts are cached."""
        self.lock = Lock()

    def learn(self, item: Item) -> Facts:
        """Return the facts of `item` from the cache, or compute and cache them. O(length) the first time."""
        if item.kind == "stub":
            return self._learn_stub(item)
        key = _key(item.entry_id, item.kind)
        known = self._get(key)
        if known is not None:
            if self._is_current(known, item):
                return known
            self.size -= known.size
            self._shelf.drop(key)
        known = self._reader.read(item)
        self._facts[key] = known
        self.size += known.size
        return known

    def _learn_stub(self, item: Item) -> Facts:
        """Return the facts of a shortened message. O(length)."""
        message, known = self._stubs.get(item.entry_id, (None, None))
        if known is None or message != item.message or not self._is_current(known, item):
            known = self._reader.read(item)
            self._stubs[item.entry_id] = item.message, known
        return known

    def _is_current(self, known: Facts, item: Item) -> bool:
        """Return whether these facts of `item` are still right. They are if they were computed with the
        current working folder, or if the message contains neither that folder nor the earlier one."""
        directory = self._reader.directory
        return known.stripped == directory or not (known.mentions or _mentions(item, directory))

    def _get(self, key: str) -> Facts | None:
        """Return the cached facts for this key, unpacked; None if there are none."""
        known = self._facts.get(key)
        if known is None:
            # Unpack the whole page: the neighbours are usually needed next.
            for other, facts in self._shelf.page_of(key):
                self._facts.setdefault(other, facts)
            known = self._facts.get(key)
        return known

    def add_learned(self, entry_id: str, kind: str, facts: Facts) -> None:
        """Store the facts of a message that another process computed with the same working folder."""
        self._facts[_key(entry_id, kind)] = facts
        self.size += facts.size

    def settle(self) -> None:
        """Pack the facts, the atoms and the limits, and drop the caches that only help while many messages
        are read. O(messages)."""
        self.lexicon.settle()
        self.lexicon.pack()
        self.pack()
        self._shelf.tidy()
        self.limits.pack()

    def pack(self) -> None:
        """Move the unpacked facts to the compressed store. O(unpacked facts)."""
        self.lexicon.pack_if_many()
        self._stubs.clear()
        facts, self._facts = self._facts, {}
        for key, known in facts.items():
            if key not in self._shelf and not self._shelf.put(key, known):
                self._facts[key] = known

    def files(self, item: Item) -> FileUse:
        """Return the files that `item` reads and modifies. O(1) if its facts are known, otherwise
        O(length)."""
        known = self._get(_key(item.entry_id, item.kind))
        return use_of(item) if known is None else known.files

    def all_facts(self) -> Iterator[Facts]:
        """Yield the facts of all messages in the cache. Those in the compressed store are unpacked page by
        page and not kept."""
        for key, packed in self._shelf.items():
            yield self._facts.get(key) or packed
        yield from (known for key, known in self._facts.items() if key not in self._shelf)

    def strip(self, working_dir: str) -> bool:
        """Set the working folder that is cut from the front of paths in facts computed later. Return whether
        the folder changed."""
        if self._reader.directory.rstrip("/") == working_dir.rstrip("/"):
            return False
        self._reader = FactReader(self.lexicon, working_dir)
        return True

    def forget(self, entry_id: str) -> None:
        """Delete the facts of one entry, whose text changed because a secret was redacted."""
        for kind in KINDS_OF_ITEM:
            key = _key(entry_id, kind)
            known = self._get(key)
            self.size -= 0 if known is None else known.size
            self._facts.pop(key, None)
            self._shelf.erase(key)
        self._stubs.pop(entry_id, None)
        self.limits.drop(entry_id)

    def release(self) -> None:
        """Free everything when the session is closed. Takes `lock` for this."""
        with self.lock:
            self._facts.clear()
            self._stubs.clear()
            self._shelf.clear()
            self.limits.clear()
            self.lexicon.release()

    def trim(self) -> None:
        """Drop the caches that only help while messages are read. If the cached messages exceed the limit,
        drop all facts too."""
        self.lexicon.settle()
        if self.size > self._limit:
            self.lexicon = Lexicon()
            self._reader = FactReader(self.lexicon, self._reader.directory)
            self._facts.clear()
            self._stubs.clear()
            self._shelf.clear()
            self.limits.clear()
            self.size = 0


def _key(entry_id: str, kind: str) -> str:
    """Return the key of an item in the cache: its entry id and, unless it is a message, its kind."""
    return entry_id if kind == "message" else f"{kind} {entry_id}"


def _mentions(item: Item, directory: str) -> bool:
    """Return whether the message's text may contain `directory`. JSON may spell a slash as `\\/`."""
    texts = written_texts(item.message.content) if directory else ()
    return any(directory in text or "\\/" in text for text in texts)
