"""A message as units: the lines that a record can quote, and what each of them shows.

Everything here depends on one message only, is worked out once and kept in a `FactCache`. A unit shows
*features*, small integers: its atoms, its words, its runs of four words, and itself as a whole line. What
they are worth depends on the conversation: `reuse.py`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import count
from typing import Final

from msgspec import Struct

from compactd.core.atoms import (
    COMMON_WORDS,
    Atom,
    atoms_of_chunk,
    sentences,
    signs_of_chunk,
    words_of_chunk,
)
from compactd.core.entries import Item, is_summary
from compactd.core.fileops import FileUse, Json, arguments_of, is_change, paths_in, use_of
from compactd.messages import Document, Text, ToolCall, ToolResult

ATOM: Final = 0
WORD: Final = 1
RUN: Final = 2
LINE: Final = 3
KINDS: Final = 4
"""A feature's kind is its number modulo this."""

USER: Final = 0
HEADER: Final = 1
COMMAND: Final = 2
ASSISTANT: Final = 3
ARGUMENT: Final = 4
OLD: Final = 5
NEW: Final = 6
TODO: Final = 7
READ: Final = 8
SHELL: Final = 9
SEARCH: Final = 10
RESULT: Final = 11
SUMMARY: Final = 12
NOTE: Final = 13
ROLES: Final = 14

RESULT_ROLES: Final = frozenset((READ, SHELL, SEARCH, RESULT))
AGENT_ROLES: Final = frozenset((HEADER, COMMAND, ASSISTANT, ARGUMENT, OLD, NEW, TODO))

HEADER_CHARS = 220
SENTENCE_CHARS = 160
"""Prose lines from this length on are parted into sentences."""
PIECE_CHARS = 240
LONG_LINE_CHARS = 300
LOW_VALUE_CHARS = 600
"""Pieces of a line longer than this are rarely worth their tokens: logs, minified code, data."""
LINE_CHARS = 64_000
"""Of a longer line the head is looked at: it is data, and one call on it would hold the interpreter."""
UNIT_TOKENS = 400

OWN_WORDS_CHARS = 6_000
"""A user message longer than this is something pasted but for its beginning and its end."""

_HIDDEN_ARGUMENTS = frozenset(("description", "content", "prompt", "patch", "diff", "edits"))
_OLD = "old_string oldString old_str oldText old_text"
_OLD_ARGUMENTS = frozenset(_OLD.split())
_NEW = """
new_string newString new_str newText new_text content contents file_text new_content patch diff replacement
replacement_text insert_text new_source code_edit input
"""
_NEW_ARGUMENTS = frozenset(_NEW.split())
_COMMAND_ARGUMENTS = frozenset(("command", "cmd", "commands", "script", "code"))

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_LINE_NUMBER = re.compile(r"\s*\d+[→|]\s?")
_NUMBERED = re.compile(r"\s*\d+→", re.MULTILINE)
_UNPRINTABLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_PROSE = re.compile(r"[a-z,)] [a-z(]")
_SYMBOLS = re.compile(r"[^\w\s]+|[A-Z][a-z]*|\d{1,3}|_")

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
    # Fitted on o200k: a run of letters is one token up to about seven letters, signs and digits their own.
    if chunk.isascii():
        word = 0.6 if chunk[0].islower() else 0.0
        return 0.2 + 0.055 * len(chunk) + 0.62 * len(_SYMBOLS.findall(chunk)) + word
    return 0.5 + 0.75 * len(chunk)


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


class Unit(Struct, frozen=True, array_like=True, gc=False):
    """A line, or a piece of one, that a record can quote."""

    text: str
    line: Line
    low: bool = False
    """A piece of a very long line."""


class Part(Struct, frozen=True, array_like=True):
    """Neighbouring units of one message that play one role."""

    role: int
    units: tuple[Unit, ...]
    call_id: str | None
    """Of the call that this is part, or the result, of."""
    shown: tuple[tuple[int, int], ...]
    """(feature, number of units that show it), each feature once."""


class Call(Struct, frozen=True, array_like=True):
    """A call as its result needs to know it."""

    call_id: str
    role: int
    """The role of its result's lines."""
    files: tuple[str, ...]
    changes: bool


class Facts(Struct, frozen=True, array_like=True):
    """What one message is made of."""

    parts: tuple[Part, ...]
    calls: tuple[Call, ...]
    files: FileUse
    failed: frozenset[str]
    size: int
    """Code points looked at: what the cache is bounded by."""


def _counted(units: Iterable[Unit]) -> tuple[tuple[int, int], ...]:
    counts: Counter[int] = Counter()
    waiting: list[int] = []
    for unit in units:
        waiting.extend(unit.line.features)
        if len(waiting) > 20_000:  # one longer call would hold the interpreter
            counts.update(waiting)
            waiting.clear()
    counts.update(waiting)
    return tuple(counts.items())


def _pieces(line: str) -> Iterable[str]:
    """`line` at white space into pieces of at most `PIECE_CHARS`; longer unbroken runs are left out."""
    piece: list[str] = []
    size = 0
    for chunk in line[:LINE_CHARS].split():
        if len(chunk) > PIECE_CHARS:
            continue
        if size + len(chunk) > PIECE_CHARS and piece:
            yield " ".join(piece)
            piece, size = [], 0
        piece.append(chunk)
        size += len(chunk) + 1
    if piece:
        yield " ".join(piece)


class Reader:
    """Parts messages into units, with one lexicon."""

    def __init__(self, lexicon: Lexicon, working_dir: str) -> None:
        self.lexicon = lexicon
        self.strip = working_dir.rstrip("/") + "/" if working_dir.strip("/") else ""

    def clean(self, text: str) -> str:
        if "<system-reminder>" in text and len(text) < 4_000_000:
            text = _REMINDER.sub("", text)
        if self.strip and self.strip in text:
            text = text.replace(self.strip, "")
        return text

    def units(self, text: str, *, prose: bool) -> list[Unit]:
        """The units of a text, in order. O(length)."""
        look = self.lexicon.line
        found: list[Unit] = []
        numbered = "→" in text or "|" in text
        for raw in self.clean(text).split("\n"):
            line = raw.rstrip()
            if len(line) < 2:
                continue
            if numbered and (match := _LINE_NUMBER.match(line)) is not None:
                line = line[match.end() :]
            if not line.isprintable() and _UNPRINTABLE.search(line[:LINE_CHARS]) is not None:
                line = _UNPRINTABLE.sub("", line[:LINE_CHARS])
            length = len(line)
            if length < SENTENCE_CHARS or (length <= LONG_LINE_CHARS and not prose):
                if len(line.strip()) >= 2:
                    found.append(Unit(line, look(line)))
                continue
            for sentence in sentences(line[:LINE_CHARS]) if prose else (line,):
                if len(sentence) <= LONG_LINE_CHARS:
                    if len(sentence.strip()) >= 2:
                        found.append(Unit(sentence, look(sentence)))
                else:
                    low = length > LOW_VALUE_CHARS and not prose
                    found.extend(Unit(p, look(p), low) for p in _pieces(sentence))
        return [u for u in found if u.line.tokens < UNIT_TOKENS]

    def part(self, role: int, text: str, call_id: str | None = None, *, prose: bool = False) -> Part:
        units = self.units(text, prose=prose)
        return Part(role, tuple(units), call_id, _counted(units))

    def read(self, item: Item) -> Facts:
        """Everything about one message that depends on it alone. O(length)."""
        message = item.message
        parts: list[Part] = []
        calls: list[Call] = []
        size = 0
        for block in message.content:
            match block:
                case Text(text=text):
                    size += len(text)
                    parts.extend(self._said(item, text))
                case Document(text=str() as text):
                    size += len(text)
                    parts.append(self.part(RESULT, text))
                case ToolCall():
                    size += len(bytes(block.arguments))
                    call, made = self._called(block)
                    calls.append(call)
                    parts.extend(made)
                case ToolResult(call_id=call_id, content=content):
                    texts = (
                        [content]
                        if isinstance(content, str)
                        else [b.text for b in content if isinstance(b, Text)]
                    )
                    size += sum(map(len, texts))
                    parts.append(self.part(RESULT, "\n".join(texts), call_id))
                case _:
                    pass
        use = use_of(item)
        return Facts(tuple(parts), tuple(calls), use, frozenset(use.failed), size)

    def _said(self, item: Item, text: str) -> list[Part]:
        message = item.message
        meta = message.meta
        if is_summary(message):
            return [self.part(SUMMARY, text, prose=True)]
        if message.role == "assistant":
            return [self.part(ASSISTANT, text, prose=True)]
        if meta is not None and meta.kind == "bash_execution":
            return [self.part(SHELL, text)]
        if message.role != "user" or (meta is not None and meta.synthetic):
            return [self.part(NOTE, text, prose=True)]
        text = self.clean(text)
        if len(text) <= OWN_WORDS_CHARS:
            return [self.part(USER, text, prose=True)]
        head = text.rfind("\n", 0, OWN_WORDS_CHARS // 4) + 1 or OWN_WORDS_CHARS // 4
        tail = text.find("\n", len(text) - OWN_WORDS_CHARS // 4)
        tail = tail if tail > head else len(text)
        return [
            self.part(USER, text[:head], prose=True),
            self.part(NOTE, text[head:tail]),
            self.part(USER, text[tail:], prose=True),
        ]

    def _called(self, block: ToolCall) -> tuple[Call, list[Part]]:
        arguments = arguments_of(block)
        shown = [block.name]
        parts: list[Part] = []
        for name, value in arguments.items():
            if (
                isinstance(value, str)
                and name not in _HIDDEN_ARGUMENTS
                and name not in _OLD_ARGUMENTS
                and name not in _NEW_ARGUMENTS
                and 0 < len(value) <= HEADER_CHARS
                and "\n" not in value.strip()
            ):
                shown.append(value.strip())
            else:
                for role, text in _argument_texts(name, value):
                    parts.append(self.part(role, text, block.call_id))
        header = _UNPRINTABLE.sub("", self.clean(" ".join(shown)))
        unit = Unit(header, self.lexicon.line(header))
        parts.insert(0, Part(HEADER, (unit,), block.call_id, _counted((unit,))))
        changes = is_change(arguments)
        files = tuple(self.clean(p) for p in paths_in(arguments))
        return Call(block.call_id, result_role(block.name, arguments), files, changes), parts


def _argument_texts(name: str, value: Json) -> Iterable[tuple[int, str]]:
    """(role, text) of an argument that has no place in the header."""
    if isinstance(value, str):
        if name in _OLD_ARGUMENTS:
            yield OLD, value
        elif name in _NEW_ARGUMENTS:
            yield NEW, value
        elif name in _COMMAND_ARGUMENTS:
            yield COMMAND, value
        else:
            yield ARGUMENT, value
    elif isinstance(value, list):
        for entry in value:
            if isinstance(entry, str):
                yield from _argument_texts(name, entry)
            elif isinstance(entry, dict):
                todo = _todo(entry)
                if todo is not None:
                    yield TODO, todo
                else:
                    for key, inner in entry.items():
                        yield from _argument_texts(key, inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _argument_texts(key, inner)


def _todo(entry: dict[str, Json]) -> str | None:
    """`status: text` of an entry of a todo list."""
    status, text = entry.get("status"), entry.get("content", entry.get("step", entry.get("title")))
    if isinstance(status, str) and isinstance(text, str) and text.strip():
        return f"{status}: {text.strip()}"
    return None


def result_role(name: str, arguments: dict[str, Json]) -> int:
    """What kind of lines a tool gives back, told from its name and arguments."""
    lower = name.lower()
    if any(w in lower for w in ("grep", "glob", "search", "find")) or lower in ("ls", "list", "list_files"):
        return SEARCH
    if any(w in lower for w in ("bash", "shell", "exec", "terminal", "command")):
        return SHELL
    if not is_change(arguments) and (
        any(w in lower for w in ("read", "view", "cat", "open")) or (lower == "str_replace_editor")
    ):
        return READ
    return RESULT


class FactCache:
    """What is known of each message of a session, by entry id. One session, one thread at a time.

    Bounded: after more than `limit` code points of messages everything is forgotten and learnt again when
    it is asked for.
    """

    def __init__(self, working_dir: str | None = None, limit: int = 12_000_000) -> None:
        self.lexicon = Lexicon()
        self._reader = Reader(self.lexicon, working_dir or "")
        self._facts: dict[tuple[str, str], Facts] = {}
        self._size = 0
        self._limit = limit

    def learn(self, item: Item) -> Facts:
        """The facts of `item`, from the cache where it was learnt before. O(length) at the first time."""
        key = (item.entry_id, item.kind)
        known = self._facts.get(key)
        if known is None:
            known = self._reader.read(item)
            self._facts[key] = known
            self._size += known.size
        return known

    def forget(self, entry_id: str) -> None:
        """Drop what is known of one message, whose text changed (a secret was redacted)."""
        for key in [k for k in self._facts if k[0] == entry_id]:
            self._size -= self._facts.pop(key).size

    def trim(self) -> None:
        """Forget everything where more is kept than the limit allows."""
        if self._size > self._limit:
            self.lexicon = Lexicon()
            self._reader = Reader(self.lexicon, self._reader.strip)
            self._facts.clear()
            self._size = 0
