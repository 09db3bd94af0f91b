"""A message as units: the lines that a record can quote, and what each of them shows.

Everything here depends on one message only, is worked out once and kept in a `FactCache`. What the
features that a unit shows are worth depends on the conversation: `reuse.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from compactd.core.atoms import CONSTRAINT, CUE, ERROR, atoms, plain_path, sentences
from compactd.core.entries import Item, is_summary
from compactd.core.fileops import FileUse, arguments_of, is_change, paths_in, use_of
from compactd.core.lexicon import ATOM, KINDS, Lexicon, Line
from compactd.core.pieces import clear
from compactd.core.roles import (
    ASSISTANT,
    HEADER,
    NOTE,
    RESULT,
    SHELL,
    SUMMARY,
    USER,
    argument_texts,
    in_header,
    result_role,
)
from compactd.messages import Document, Text, ToolCall, ToolResult

SENTENCE_CHARS: Final = 160
"""Prose lines from this length on are parted into sentences."""
LONG_LINE_CHARS: Final = 300
PIECE_CHARS: Final = 240
"""Longer lines are cut at white space into pieces of at most this."""
LOW_VALUE_CHARS: Final = 600
"""Pieces of a line longer than this are rarely worth their tokens: logs, minified code, data."""
LINE_CHARS: Final = 64_000
"""Of a longer line the head is looked at: it is data, and one call on it would hold the interpreter."""
WINDOW_CHARS: Final = 200_000
"""Texts are parted into lines in steps of this, for the same reason."""
UNIT_TOKENS: Final = 400
OWN_WORDS_CHARS: Final = 6_000
"""A user message longer than this is something pasted, but for its beginning and its end."""

_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"
_LINE_NUMBER = re.compile(r"\s*\d+(?:→|\| ?)")
_UNPRINTABLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\ud800-\udfff]")
_OUR_TAGS = frozenset(("<read-files>", "</read-files>", "<modified-files>", "</modified-files>"))


_MARKS = {USER: CONSTRAINT, ASSISTANT: CUE, RESULT: ERROR, SHELL: ERROR}


def _nothing(text: str) -> None:
    """No mark: the search that finds nothing."""


class Unit(Struct, frozen=True, array_like=True, gc=False):
    """A line, or a piece of one, that a record can quote."""

    text: str
    line: Line
    marked: bool = False
    """It decides something (the agent's), sets a limit (the user's), reports an error (a tool's)."""
    low: bool = False
    """A piece of a very long line."""


class Part(Struct, frozen=True, array_like=True, gc=False):
    """Neighbouring units of one message that play one role."""

    role: int
    units: tuple[Unit, ...]
    call_id: str | None
    """Of the call that this is part, or the result, of."""
    features: tuple[int, ...]
    """Each once."""
    times: tuple[int, ...]
    """For each of `features`, the number of units that show it."""


class Call(Struct, frozen=True, array_like=True, gc=False):
    """A call as its result needs to know it."""

    call_id: str
    role: int
    """The role of its result's lines."""
    files: tuple[str, ...]
    """As they were given."""
    changes: bool


class Facts(Struct, frozen=True, array_like=True, gc=False):
    """What one message is made of."""

    parts: tuple[Part, ...]
    calls: tuple[Call, ...]
    files: FileUse
    failed: frozenset[str]
    """Ids of the calls whose results here are errors."""
    atoms: frozenset[int]
    """Atoms of the message's lines as they came, the session's directory not taken off."""
    size: int
    """Code points looked at: what the cache is bounded by."""
    stripped: str
    """The directory that was looked for and taken off, with its closing slash; empty for none."""
    mentions: bool
    """The directory stands in this message."""


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text, in steps that do not hold the interpreter."""
    start = 0
    while len(text) - start > WINDOW_CHARS:
        end = text.rfind("\n", start, start + WINDOW_CHARS) + 1
        end = end or text.find("\n", start + WINDOW_CHARS) + 1 or len(text)
        yield from text[start : end - 1 if text[end - 1] == "\n" else end].split("\n")
        start = end
    yield from text[start:].split("\n")


def without_reminders(text: str) -> str:
    """`text` without what the agent's program put between `<system-reminder>` tags."""
    kept: list[str] = []
    at = 0
    while (start := text.find(_REMINDER, at)) >= 0:
        end = text.find(_REMINDER_END, start)
        if end < 0:
            break
        kept.append(text[at:start])
        at = end + len(_REMINDER_END)
    return text if not kept else "\n".join((*kept, text[at:]))


def printable(line: str) -> str:
    """`line` without terminal codes and the like; empty where leaving them out would make an atom."""
    if _UNPRINTABLE.search(line) is None:
        return line
    bare = _UNPRINTABLE.sub("", line.rpartition("\r")[2])
    return bare if atoms(line).keys() >= atoms(bare).keys() else ""


def without_directory(line: str, directory: str) -> str:
    """`line` without the directory before its paths, where each path is then one that `line` holds."""
    bare = line.replace(directory, "")
    past = {(kind, plain_path(value, directory)) for kind, value in atoms(line)}
    return bare if past.issuperset(atoms(bare)) else line


def _part(role: int, units: tuple[Unit, ...], call_id: str | None) -> Part:
    counts: Counter[int] = Counter()
    waiting: list[int] = []
    for unit in units:
        waiting.extend(unit.line.features)
        if len(waiting) > 20_000:  # one longer call would hold the interpreter
            counts.update(waiting)
            waiting.clear()
    counts.update(waiting)
    return Part(role, units, call_id, tuple(counts), tuple(counts.values()))


def _pieces(line: str) -> Iterator[str]:
    """`line` at white space into pieces of at most `PIECE_CHARS`; longer unbroken runs are left out."""
    piece: list[str] = []
    size = 0
    for chunk in line.split():
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
    """Parts messages into units, with one lexicon and one working directory."""

    def __init__(self, lexicon: Lexicon, working_dir: str) -> None:
        self.lexicon = lexicon
        self.directory = working_dir.rstrip("/") + "/" if working_dir.strip("/") else ""

    def look(self, line: str) -> Line:
        """What `line` shows once the session's directory is off its paths."""
        if self.directory and self.directory in line:
            line = line.replace(self.directory, "")
        return self.lexicon.line(line.strip())

    def units(self, text: str, mark: re.Pattern[str] | None, *, prose: bool) -> list[Unit]:
        """The units of a text, in order. O(length)."""
        look = self.look
        search = mark.search if mark is not None else _nothing
        found: list[Unit] = []
        numbered = "→" in text or "|" in text
        for raw in lines_of(text):
            line = raw[:LINE_CHARS].rstrip()
            if len(line) < 2:
                continue
            if numbered and (match := _LINE_NUMBER.match(line)) is not None:
                line = line[match.end() :]
            if not line.isprintable():
                line = printable(line)
            length = len(line)
            if length < SENTENCE_CHARS or (length <= LONG_LINE_CHARS and not prose):
                bare = line.strip()
                if len(bare) >= 2 and bare not in _OUR_TAGS:
                    found.append(Unit(line, look(line), search(bare) is not None))
                continue
            for sentence in sentences(line) if prose else (line,):
                if len(sentence) > LONG_LINE_CHARS:
                    low = len(raw) > LOW_VALUE_CHARS and not prose
                    found.extend(Unit(p, look(p), search(p) is not None, low) for p in _pieces(sentence))
                elif len(sentence.strip()) >= 2:
                    found.append(Unit(sentence, look(sentence), search(sentence) is not None))
        return [u for u in found if u.line.tokens < UNIT_TOKENS]

    def part(self, role: int, text: str, call_id: str | None = None, *, prose: bool = False) -> Part:
        units = self.units(without_reminders(text), _MARKS.get(role), prose=prose)
        return _part(role, tuple(units), call_id)

    def read(self, item: Item) -> Facts:
        """Everything about one message that depends on it alone. O(length)."""
        parts: list[Part] = []
        calls: list[Call] = []
        texts: list[str] = []
        for block in item.message.content:
            match block:
                case Text(text=text):
                    texts.append(text)
                    parts.extend(self._said(item, text))
                case Document(text=str() as text):
                    texts.append(text)
                    parts.append(self.part(RESULT, text))
                case ToolCall():
                    call, made, given = self._called(block)
                    texts.extend(given)
                    calls.append(call)
                    parts.extend(made)
                case ToolResult(call_id=call_id, content=content):
                    result = content if isinstance(content, str) else _joined(content)
                    texts.append(result)
                    parts.append(self.part(RESULT, result, call_id))
                case _:
                    pass
        use = use_of(item)
        mentions = bool(self.directory) and any(self.directory in text for text in texts)
        return Facts(
            parts=tuple(parts),
            calls=tuple(calls),
            files=use,
            failed=frozenset(use.failed),
            atoms=self._atoms(parts, texts if mentions else ()),
            size=sum(map(len, texts)),
            stripped=self.directory,
            mentions=mentions,
        )

    def _atoms(self, parts: Sequence[Part], texts: Sequence[str]) -> frozenset[int]:
        if texts:
            number = self.lexicon.atoms
            return frozenset(number[atom] for text in texts for atom in atoms(text))
        return frozenset(f for part in parts for f in part.features if f % KINDS == ATOM)

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
        text = without_reminders(text)
        if len(text) <= OWN_WORDS_CHARS:
            return [self.part(USER, text, prose=True)]
        head = text.rfind("\n", 0, OWN_WORDS_CHARS // 4) + 1 or text.rfind(" ", 0, OWN_WORDS_CHARS // 4) + 1
        tail = text.find("\n", len(text) - OWN_WORDS_CHARS // 4) + 1 or len(text)
        return [
            self.part(USER, text[:head], prose=True),
            self.part(NOTE, text[head:tail]),
            self.part(USER, text[tail:], prose=True),
        ]

    def _called(self, block: ToolCall) -> tuple[Call, list[Part], list[str]]:
        arguments = arguments_of(block)
        shown = [block.name]
        parts: list[Part] = []
        texts: list[str] = []
        for name, value in arguments.items():
            if isinstance(value, str) and in_header(name, value):
                shown.append(value.strip())
                texts.append(value)
            else:
                for role, text in argument_texts(name, value):
                    parts.append(self.part(role, text, block.call_id))
                    texts.append(text)
        header = printable(" ".join(shown)) or block.name
        unit = Unit(header, self.look(header))
        parts.insert(0, _part(HEADER, (unit,), block.call_id))
        role = result_role(block.name, arguments)
        return Call(block.call_id, role, paths_in(arguments), is_change(arguments)), parts, texts


def _joined(blocks: Iterable[object]) -> str:
    return "\n".join(b.text for b in blocks if isinstance(b, Text))


class FactCache:
    """What is known of each message of a session, by entry id. One session, one thread at a time.

    Bounded: after more than `limit` code points of messages everything is forgotten, and learnt again when
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
        if known is not None:
            directory = self._reader.directory
            if known.stripped == directory or not (known.mentions or _mentions(item, directory)):
                return known
            self._size -= known.size
        known = self._reader.read(item)
        self._facts[key] = known
        self._size += known.size
        return known

    def strip(self, working_dir: str) -> None:
        """Take this directory off the paths of what is learnt or asked for from here on."""
        if self._reader.directory.rstrip("/") != working_dir.rstrip("/"):
            self._reader = Reader(self.lexicon, working_dir)

    def forget(self, entry_id: str) -> None:
        """Drop what is known of one message, whose text changed (a secret was redacted)."""
        for key in [k for k in self._facts if k[0] == entry_id]:
            self._size -= self._facts.pop(key).size

    def release(self) -> None:
        """Lets go of everything, piece by piece: the session is closed."""
        clear(self._facts)
        self.lexicon.release()

    def trim(self) -> None:
        """Forget everything where more is kept than the limit allows."""
        if self._size > self._limit:
            self.lexicon = Lexicon()
            self._reader = Reader(self.lexicon, self._reader.directory)
            self._facts.clear()
            self._size = 0


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
                if directory in (content if isinstance(content, str) else _joined(content)):
                    return True
            case _:
                pass
    return False
