"""A message as units: the lines that a record can quote, and what each of them shows.

Everything here depends on one message only, is worked out once and kept in a `FactCache`. What the
features that a unit shows are worth depends on the conversation: `reuse.py`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from itertools import chain, islice
from threading import Lock
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.msgpack import Decoder

from compactd.core.authors.typed_parts import OWN_WORDS_CHARS as OWN_WORDS_CHARS
from compactd.core.extract.compressed_store import Shelf
from compactd.core.extract.file_operations import FileUse, use_of
from compactd.core.extract.lexicon import ATOM, KINDS, Lexicon, Line
from compactd.core.extract.line_roles import COMMAND, HEADER, USER
from compactd.core.extract.lines import Call, Source, Unit, joined, sources, split
from compactd.core.extract.lines import without_reminders as without_reminders
from compactd.core.extract.markers import MARKS
from compactd.core.extract.packed_dict import Stowed
from compactd.core.history.entries import Item
from compactd.core.text.atoms import atoms
from compactd.core.text.slices import clear
from compactd.protocol.messages import Document, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from compactd.core.constraints.constraints import Limits

UNIT_TOKENS: Final = 400
SMALL_CHARS: Final = 200
"""A unit shorter than this has fewer tokens, whatever stands in it: no character is estimated above 1.7."""
MARKED: Final = 1
"""Of a unit's flags: it decides something (the agent's), sets a limit (the user's), reports an error (a
tool's)."""
LOW: Final = 2
"""It is a piece of a very long line."""
TELLING_SHIFT: Final = 2
MOST_TELLING: Final = 63
"""From there on: how many of its words say something."""

MOST_TOKENS: Final = 0xFFFF
"""Hundredths; a header's price ends there."""

KINDS_OF_ITEM: Final = ("message", "summary", "stub")

_WITH_TEXT = frozenset((USER, HEADER, COMMAND))


class Part(Struct, frozen=True, array_like=True, gc=False):
    """Neighbouring units of one message that play one role, packed."""

    role: int
    call_id: str | None
    """Of the call that this is part, or the result, of."""
    count: int
    """Units."""
    packed: bytes
    """For each unit its features (`I`, in the order of the units), then for each unit the number of them
    (`H`), its estimated tokens in hundredths (`H`), and its flags (`B`)."""
    units: tuple[Unit, ...] = ()
    """Of what the user said, of headers and of commands; the others are read again where they are quoted."""
    left_out: tuple[int, ...] = ()
    """Places among the units of the text of those that are too large to be quoted."""

    @property
    def shown(self) -> bytes:
        """The features of each unit, one behind the other, as `I`."""
        return self.packed[: len(self.packed) - 5 * self.count]

    @property
    def features(self) -> tuple[int, ...]:
        """What the units show, each once. O(features)."""
        return tuple(dict.fromkeys(array("I", self.shown)))

    @property
    def atoms(self) -> tuple[int, ...]:
        """Those of them that are atoms. O(features)."""
        if not self.count:
            # Nothing but atoms, each once.
            return tuple(array("I", self.packed))
        return tuple(dict.fromkeys([f for f in array("I", self.shown) if f % KINDS == ATOM]))


class Facts(Struct, frozen=True, array_like=True, gc=False):
    """What one message is made of."""

    parts: tuple[Part, ...]
    calls: tuple[Call, ...]
    files: FileUse
    failed: frozenset[str]
    """Ids of the calls whose results here are errors."""
    size: int
    """Code points looked at: what the cache is bounded by."""
    stripped: str
    """The directory that was looked for and taken off, with its closing slash; empty for none."""
    whole: bytes | None = None
    """Atoms of the message's lines as they came, as `I`, where the directory stands in this message."""

    @property
    def mentions(self) -> bool:
        """The directory stands in this message."""
        return self.whole is not None

    @property
    def atoms(self) -> frozenset[int]:
        """Atoms of the message's lines as they came, the session's directory not taken off. O(features)."""
        if self.whole is not None:
            return frozenset(array("I", self.whole))
        return frozenset().union(*(part.atoms for part in self.parts))


class Reader:
    """Parts messages into units, with one lexicon and one working directory."""

    def __init__(self, lexicon: Lexicon, working_dir: str) -> None:
        self.lexicon = lexicon
        self.directory = working_dir.rstrip("/") + "/" if working_dir.strip("/") else ""

    def part(self, source: Source) -> Part:
        """What a text shows, unit by unit. O(length)."""
        role, directory, look = source.role, self.directory, self.lexicon.line
        units: list[Unit] = []
        lines: list[Line] = []
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
        flags = [min(line.telling, MOST_TELLING) << TELLING_SHIFT for line in lines]
        for at, unit in enumerate(units):
            if unit.low:
                flags[at] |= LOW
        for at in marked:
            flags[at] |= MARKED
        packed = b"".join(
            (
                *[line.shown for line in lines],
                array("H", [len(line.shown) // 4 for line in lines]),
                array("H", [min(line.tokens, MOST_TOKENS) for line in lines]),
                bytes(flags),
            )
        )
        with_text = tuple(units) if role in _WITH_TEXT else ()
        return Part(role, source.call_id, len(units), packed, with_text, tuple(left_out))

    def named(self, source: Source) -> Part:
        """As `part`, but of what the text shows the atoms alone, and its units where they have a text."""
        role, directory = source.role, self.directory
        units: list[Unit] = []
        chunks: list[list[str]] = []
        for unit in split(source):
            text = unit.text
            bare = text.replace(directory, "") if directory and directory in text else text
            if len(bare) >= SMALL_CHARS and role != HEADER and self._is_too_large(bare):
                continue
            units.append(unit)
            chunks.append(bare.split())
        names = map(self.lexicon.names.__getitem__, dict.fromkeys(chain.from_iterable(chunks)))
        found = array("I", list(dict.fromkeys(chain.from_iterable(names)))).tobytes()
        return Part(role, source.call_id, 0, found, tuple(units) if role in _WITH_TEXT else ())

    def _is_too_large(self, text: str) -> bool:
        return self.lexicon.line(text).tokens >= 100 * UNIT_TOKENS

    def read(self, item: Item, part: Callable[[Source], Part] | None = None) -> Facts:
        """Everything about one message that depends on it alone. O(length)."""
        calls: list[Call] = []
        texts: list[str] = []
        parts = tuple(map(part or self.part, sources(item, calls, texts)))
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


def units_of(item: Item, facts: Facts) -> Iterator[tuple[Unit, ...]]:
    """The units of each of a message's parts, as they were packed. O(length)."""
    for source, part in zip(sources(item, [], []), facts.parts, strict=True):
        if part.left_out:
            left_out = frozenset(part.left_out)
            yield tuple([unit for at, unit in enumerate(split(source)) if at not in left_out])
        else:
            yield part.units or tuple(split(source))


class UnitReader:
    """Reads the units of one message forwards, one by one, without keeping them. Each text of the message is
    read once, however many parts it has: O(its length) for all of them together."""

    def __init__(self, item: Item, facts: Facts) -> None:
        self._parts = facts.parts
        self._sources = sources(item, [], [])
        self._at = -1
        self._passed = 0
        """Units of the current part that were read."""
        self._rest: Iterator[Unit] = iter(())

    def is_past(self, at: int, nth: int) -> bool:
        """Whether this unit was passed already: only a new reader can read it again."""
        return (at, nth) < (self._at, self._passed)

    def read(self, at: int, nth: int) -> Unit:
        """The `nth` unit of the part at `at`, which is not past."""
        if at != self._at:
            source = next(islice(self._sources, at - self._at - 1, None))
            left_out = frozenset(self._parts[at].left_out)
            self._rest = (unit for place, unit in enumerate(split(source)) if place not in left_out)
            self._at, self._passed = at, 0
        unit = next(islice(self._rest, nth - self._passed, None))
        self._passed = nth + 1
        return unit


_unpack = Decoder(list[tuple[str, Facts]]).decode


class FactCache:
    """What is known of each message of a session, by entry id. One session, one thread at a time: whoever may
    not be alone holds `lock`.

    Bounded: after more than `limit` code points of messages everything is forgotten, and learnt again when
    it is asked for. Between two uses the facts are on a shelf: a message's take 0.5 bytes for each of its
    own, 1.4 as objects (measured 2026-11).
    """

    def __init__(self, working_dir: str | None = None, limit: int = 48_000_000) -> None:
        self.lexicon = Lexicon()
        self._reader = Reader(self.lexicon, working_dir or "")
        self._shelf = Shelf(_unpack)
        self._facts: dict[str, Facts] = {}
        """Those in use, whether they are on the shelf or not."""
        self._limit = limit
        self.limits: Stowed[Limits] = Stowed()
        """What the user's messages demand, by entry id: any thread may ask and add."""
        self.size = 0
        """Code points of the messages that are known."""
        self.lock = Lock()

    def learn(self, item: Item) -> Facts:
        """The facts of `item`, from the cache where it was learnt before. O(length) at the first time."""
        key = _key(item.entry_id, item.kind)
        known = self._known(key)
        if known is not None:
            if self._is_as_told(known, item):
                return known
            self.size -= known.size
            self._shelf.drop(key)
        known = self._reader.read(item)
        self._facts[key] = known
        self.size += known.size
        return known

    def learn_names(self, item: Item, known: Facts | None) -> Facts:
        """What `known`, learnt here before, or the cache tells of `item`; else its calls, its files and what
        it names, which is not kept. O(length) at most, a fifth of the time of `learn`."""
        known = known or self._known(_key(item.entry_id, item.kind))
        if known is not None and self._is_as_told(known, item):
            return known
        return self._reader.read(item, self._reader.named)

    def _is_as_told(self, known: Facts, item: Item) -> bool:
        """What is known of a message is what would be learnt of it now."""
        directory = self._reader.directory
        return known.stripped == directory or not (known.mentions or _mentions(item, directory))

    def _known(self, key: str) -> Facts | None:
        known = self._facts.get(key)
        if known is None:
            # Whoever asks for one asks for its neighbours next.
            for other, facts in self._shelf.beside(key):
                self._facts.setdefault(other, facts)
            known = self._facts.get(key)
        return known

    def give(self, entry_id: str, kind: str, facts: Facts) -> None:
        """Takes in what another process learnt of a message, with the same directory taken off."""
        self._facts[_key(entry_id, kind)] = facts
        self.size += facts.size

    def settle(self) -> None:
        """Forgets what only helps to learn more messages soon, and packs everything. O(messages)."""
        self.lexicon.settle()
        self.lexicon.pack()
        self.pack()
        self._shelf.tidy()
        self.limits.stow()

    def pack(self) -> None:
        """Puts what is in use on the shelf. O(messages in use)."""
        self.lexicon.lighten()
        facts, self._facts = self._facts, {}
        for key, known in facts.items():
            if key not in self._shelf and not self._shelf.put(key, known):
                self._facts[key] = known
        clear(facts)

    def files(self, item: Item) -> FileUse:
        """What `item` says of files. O(1) where it was learnt, else O(length)."""
        known = self._known(_key(item.entry_id, item.kind))
        return use_of(item) if known is None else known.files

    def known(self) -> Iterator[Facts]:
        """The facts of all messages that are known, as they were learnt; those that are not in use are made
        for this, page by page."""
        for key, packed in self._shelf.items():
            yield self._facts.get(key) or packed
        yield from (known for key, known in self._facts.items() if key not in self._shelf)

    def strip(self, working_dir: str) -> bool:
        """Take this directory off the paths of what is learnt or asked for from here on. True where it is
        another one than before."""
        if self._reader.directory.rstrip("/") == working_dir.rstrip("/"):
            return False
        self._reader = Reader(self.lexicon, working_dir)
        return True

    def forget(self, entry_id: str) -> None:
        """Drop what is known of one message, whose text changed (a secret was redacted)."""
        for kind in KINDS_OF_ITEM:
            key = _key(entry_id, kind)
            known = self._known(key)
            self.size -= 0 if known is None else known.size
            self._facts.pop(key, None)
            self._shelf.erase(key)
        self.limits.drop(entry_id)

    def release(self) -> None:
        """Lets go of everything, piece by piece: the session is closed."""
        with self.lock:
            clear(self._facts)
            self._shelf.clear()
            self.limits.clear()
            self.lexicon.release()

    def trim(self) -> None:
        """Forget everything where more is kept than the limit allows, and what helps to learn in any case."""
        self.lexicon.settle()
        if self.size > self._limit:
            self.lexicon = Lexicon()
            self._reader = Reader(self.lexicon, self._reader.directory)
            self._facts.clear()
            self._shelf.clear()
            self.limits.clear()
            self.size = 0


def _key(entry_id: str, kind: str) -> str:
    return entry_id if kind == "message" else f"{kind} {entry_id}"


def _mentions(item: Item, directory: str) -> bool:
    """True where `directory` may stand in the message's text."""
    if not directory:
        return False
    for block in item.message.content:
        match block:
            case Text(text=text) | Document(text=str() as text):
                if directory in text:
                    return True
            case ToolCall(arguments=arguments):
                raw = bytes(arguments)
                if directory.encode() in raw or b"\\/" in raw:
                    return True
            case ToolResult(content=content):
                if directory in (content if isinstance(content, str) else joined(content)):
                    return True
            case _:
                pass
    return False
