"""A message as units: the lines that a record can quote, and what each of them shows.

Everything here depends on one message only, is worked out once and kept in a `FactCache`. What the
features that a unit shows are worth depends on the conversation: `reuse.py`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder

from compactd.core.atoms import CONSTRAINT, CUE, ERROR, atoms
from compactd.core.entries import Item
from compactd.core.fileops import FileUse, use_of
from compactd.core.lexicon import ATOM, KINDS, Lexicon
from compactd.core.lines import OWN_WORDS_CHARS as OWN_WORDS_CHARS
from compactd.core.lines import Call, Source, Unit, joined, sources, split
from compactd.core.lines import without_reminders as without_reminders
from compactd.core.pieces import clear
from compactd.core.roles import ASSISTANT, COMMAND, HEADER, RESULT, SHELL, USER
from compactd.messages import Document, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from compactd.core.constraints import Limits

UNIT_TOKENS: Final = 400
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
_MARKS = {USER: CONSTRAINT, ASSISTANT: CUE, RESULT: ERROR, SHELL: ERROR}


def _nothing(text: str) -> None:
    """No mark: the search that finds nothing."""


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
        mark = _MARKS.get(role)
        search = mark.search if mark is not None else _nothing
        shown, counts, tokens, flags = array("I"), array("H"), array("H"), array("B")
        units: list[Unit] = []
        left_out: list[int] = []
        with_text = role in _WITH_TEXT
        for at, unit in enumerate(split(source)):
            text = unit.text
            line = look(text.replace(directory, "") if directory and directory in text else text)
            if line.tokens >= 100 * UNIT_TOKENS and role != HEADER:
                left_out.append(at)
                continue
            shown.extend(line.features)
            counts.append(len(line.features))
            tokens.append(min(line.tokens, MOST_TOKENS))
            marked = MARKED if search(text) is not None else 0
            flags.append(marked | (LOW if unit.low else 0) | min(line.telling, MOST_TELLING) << TELLING_SHIFT)
            if with_text:
                units.append(unit)
        packed = b"".join((shown, counts, tokens, flags))
        return Part(role, source.call_id, len(counts), packed, tuple(units), tuple(left_out))

    def read(self, item: Item) -> Facts:
        """Everything about one message that depends on it alone. O(length)."""
        calls: list[Call] = []
        texts: list[str] = []
        parts = tuple([self.part(source) for source in sources(item, calls, texts)])
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
            yield tuple([unit for at, unit in enumerate(split(source)) if at not in part.left_out])
        else:
            yield part.units or tuple(split(source))


def units_in(item: Item, facts: Facts, at: int) -> Iterator[Unit]:
    """The units of the part at `at`, one by one. O(length up to there)."""
    part = facts.parts[at]
    source = next(islice(sources(item, [], []), at, None))
    return (unit for place, unit in enumerate(split(source)) if place not in part.left_out)


_pack_into = Encoder().encode_into
_unpack = Decoder(Facts).decode


class FactCache:
    """What is known of each message of a session, by entry id. One session, one thread at a time: whoever may
    not be alone holds `lock`.

    Bounded: after more than `limit` code points of messages everything is forgotten, and learnt again when
    it is asked for. Between two uses the facts are bytes: a message's take 0.9 bytes for each of its own,
    1.4 as objects, and some 20 µs to be objects again (measured 2026-11).
    """

    def __init__(self, working_dir: str | None = None, limit: int = 48_000_000) -> None:
        self.lexicon = Lexicon()
        self._reader = Reader(self.lexicon, working_dir or "")
        self._packed: dict[str, bytes] = {}
        self._facts: dict[str, Facts] = {}
        """Those in use, whether they are packed or not."""
        self._limit = limit
        self.limits: dict[str, Limits] = {}
        """What the user's messages demand, by entry id: any thread may ask and add."""
        self.size = 0
        """Code points of the messages that are known."""
        self.lock = Lock()

    def learn(self, item: Item) -> Facts:
        """The facts of `item`, from the cache where it was learnt before. O(length) at the first time."""
        key = _key(item.entry_id, item.kind)
        known = self._known(key)
        if known is not None:
            directory = self._reader.directory
            if known.stripped == directory or not (known.mentions or _mentions(item, directory)):
                return known
            self.size -= known.size
            self._packed.pop(key, None)
        known = self._reader.read(item)
        self._facts[key] = known
        self.size += known.size
        return known

    def _known(self, key: str) -> Facts | None:
        known = self._facts.get(key)
        if known is None:
            packed = self._packed.get(key)
            if packed is not None:
                known = self._facts[key] = _unpack(packed)
        return known

    def give(self, entry_id: str, kind: str, facts: Facts) -> None:
        """Takes in what another process learnt of a message, with the same directory taken off."""
        self._facts[_key(entry_id, kind)] = facts
        self.size += facts.size

    def settle(self) -> None:
        """Forgets what only helps to learn more messages soon, and packs what is not in use. O(messages)."""
        self.lexicon.settle()
        facts, self._facts = self._facts, {}
        room = bytearray()
        for key, known in facts.items():
            if key not in self._packed:
                try:
                    _pack_into(known, room)
                except UnicodeEncodeError:  # half a surrogate pair in a path
                    self._facts[key] = known
                else:
                    # `encode` gives bytes that hold on to half as much again (msgspec 0.21, seen 2026-11).
                    self._packed[key] = bytes(room)
        clear(facts)

    def files(self, item: Item) -> FileUse:
        """What `item` says of files. O(1) where it was learnt, else O(length)."""
        known = self._known(_key(item.entry_id, item.kind))
        return use_of(item) if known is None else known.files

    def known(self) -> Iterator[Facts]:
        """The facts of all messages that are known, as they were learnt; those that are not in use are made
        for this, one by one."""
        for key, packed in self._packed.items():
            yield self._facts.get(key) or _unpack(packed)
        yield from (known for key, known in self._facts.items() if key not in self._packed)

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
            self._packed.pop(key, None)
        self.limits.pop(entry_id, None)

    def release(self) -> None:
        """Lets go of everything, piece by piece: the session is closed."""
        with self.lock:
            clear(self._facts)
            clear(self._packed)
            self.limits.clear()
            self.lexicon.release()

    def trim(self) -> None:
        """Forget everything where more is kept than the limit allows, and what helps to learn in any case."""
        self.lexicon.settle()
        if self.size > self._limit:
            self.lexicon = Lexicon()
            self._reader = Reader(self.lexicon, self._reader.directory)
            self._facts.clear()
            clear(self._packed)
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
