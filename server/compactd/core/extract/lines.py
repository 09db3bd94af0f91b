"""Split a message into texts and the texts into *units*, the lines or pieces of lines that a summary can
quote.

The split is deterministic, so facts that were stored for the n-th unit stay true when the message is split
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from compactd.core.authors.authors import USER as AUTHOR_USER
from compactd.core.authors.authors import author_of, spans_of
from compactd.core.authors.typed_parts import typed_parts
from compactd.core.extract.line_roles import (
    ARGUMENT,
    ASSISTANT,
    HEADER,
    NOTE,
    RESULT,
    SHELL,
    SUMMARY,
    TODO,
    USER,
    argument_texts,
    is_in_header,
    result_role,
)
from compactd.core.history.entries import Item, is_summary
from compactd.core.text.atoms import atoms, plain_path, sentences
from compactd.core.text.escape_invisible import file_name
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.message_text import join_text_blocks
from compactd.core.work.file_operations import (
    MAX_PATH_CHARS,
    PATH_ARGUMENTS,
    arguments_of,
    is_change,
    paths_in,
)
from compactd.protocol.messages import Document, Text, ToolCall, ToolResult

SENTENCE_CHARS: Final = 160
"""Prose lines with at least this many characters are split into sentences."""
LONG_LINE_CHARS: Final = 300
PIECE_CHARS: Final = 240
"""Lines longer than `LONG_LINE_CHARS` are cut at white space into pieces of at most `PIECE_CHARS`
characters."""
LOW_VALUE_CHARS: Final = 600
"""A piece of a line with more characters than this is rarely worth its tokens, because such lines are logs,
minified code or data."""
LINE_CHARS: Final = 64_000
"""Only this many characters of a line are examined. A longer line is data, and examining all of it in one
call would take long."""

_RULES: Final = "|-=_*#~+: "
"""A line of only these signs is a ruler."""
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"
_LINE_NUMBER = LazyPattern(r"\s*\d+(?:→|\| ?)")
_UNPRINTABLE = LazyPattern(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")
_SOFT_ENDS = LazyPattern("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""Characters that other programs take for line ends but this module does not. They become spaces, so that the
words around them stay apart."""
_PLANS = LazyPattern(r"todo|plan|task|checklist|progress", re.IGNORECASE)
"""Matches names of tools that keep a todo list or a plan."""
_OUR_TAGS = frozenset(("<read-files>", "</read-files>", "<modified-files>", "</modified-files>"))
"""Tags that compactd writes around lists of files in a summary. They are not quoted."""


class Unit(Struct, frozen=True, array_like=True, gc=False):
    """A line, or a piece of one, that a summary can quote."""

    text: str
    low: bool = False
    """Whether the unit is a piece of a line of more than `LOW_VALUE_CHARS`, which is rarely worth its
    tokens."""


class SourceText(Struct, frozen=True, array_like=True, gc=False):
    """One text of a message, before it is split into units. Its units become one `FactPart`."""

    role: int
    """The role of its lines, one of the constants in `line_roles.py`."""
    text: str
    call_id: str | None = None
    """The call that the text belongs to, as argument or as result; None if it belongs to none."""
    prose: bool = False
    """Whether long lines are split into sentences."""


class CallInfo(Struct, frozen=True, array_like=True, gc=False):
    """The facts about a tool call that are needed to judge its result."""

    call_id: str
    role: int
    """The role of the lines in the call's result."""
    files: tuple[str, ...]
    """The files that the call names, as the arguments spell them."""
    changes: bool
    """Whether the call modifies files."""


def without_reminders(text: str) -> str:
    """Return `text` without `<system-reminder>` blocks, which the agent's program puts into messages."""
    kept: list[str] = []
    at = 0
    while (start := text.find(_REMINDER, at)) >= 0:
        end = text.find(_REMINDER_END, start)
        if end < 0:
            break
        kept.append(text[at:start])
        at = end + len(_REMINDER_END)
    return text if not kept else "\n".join((*kept, text[at:]))


def without_line_number(line: str) -> str:
    """Return a line of a file without the number that a tool puts in front."""
    found = _LINE_NUMBER.match(line)
    return line if found is None else line[found.end() :]


def printable(line: str) -> str:
    """Return `line` without terminal codes and other control characters. Return an empty string if removing
    them would create an atom (a name) that the line does not contain."""
    if _UNPRINTABLE.search(line) is None:
        return line
    bare = _UNPRINTABLE.sub("", _SOFT_ENDS.sub(" ", line.rpartition("\r")[2]))
    return bare if atoms(line).keys() >= atoms(bare).keys() else ""


def without_directory(line: str, directory: str) -> str:
    """Return `line` with `directory` cut from the front of its paths. Return `line` unchanged if the cut
    would create a path that `line` does not contain."""
    bare = line.replace(directory, "")
    past = {(kind, plain_path(value, directory)) for kind, value in atoms(line)}
    return bare if past.issuperset(atoms(bare)) else line


def _pieces(line: str) -> Iterator[str]:
    """Yield `line` in pieces of at most `PIECE_CHARS` characters, cut at white space. Words longer than that
    are dropped."""
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


def split(source: SourceText) -> Iterator[Unit]:
    """Yield the units of a text (its lines, or pieces of long ones) in order. Units that are too large for a
    summary to quote (`facts.UNIT_TOKENS`) are included. O(length)."""
    if source.role == HEADER:
        yield Unit(source.text)
        return
    text, prose = without_reminders(source.text), source.prose
    numbered = "→" in text or "|" in text
    for raw in text.split("\n"):
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
            if len(bare) >= 2 and bare not in _OUR_TAGS and bare.strip(_RULES):
                yield Unit(line)
            continue
        for sentence in sentences(line) if prose else (line,):
            if len(sentence) > LONG_LINE_CHARS:
                low = len(raw) > LOW_VALUE_CHARS and not prose
                for piece in _pieces(sentence):
                    yield Unit(piece, low)
            elif len(sentence.strip()) >= 2:
                yield Unit(sentence)


def sources(item: Item, calls: list[CallInfo], texts: list[str]) -> Iterator[SourceText]:
    """Yield the texts of a message, in order. Append its calls to `calls`, and the texts as they are written
    in the message to `texts`."""
    for block in item.message.content:
        match block:
            case Text(text=text):
                texts.append(text)
                yield from _text_sources(item, block)
            case Document(text=str() as text):
                texts.append(text)
                yield SourceText(RESULT, text)
            case ToolCall():
                yield from _call_sources(block, calls, texts)
            case ToolResult(call_id=call_id, content=content):
                result = content if isinstance(content, str) else join_text_blocks(content)
                texts.append(result)
                yield SourceText(RESULT, result, call_id)
            case _:
                pass


def _text_sources(item: Item, block: Text) -> Iterator[SourceText]:
    """Yield the texts of a text block, with the role of their author."""
    message, text = item.message, block.text
    meta = message.meta
    if is_summary(message):
        yield SourceText(SUMMARY, text, prose=True)
    elif message.role == "assistant" and author_of(message, block) == "assistant":
        yield SourceText(ASSISTANT, text, prose=True)
    elif meta is not None and meta.kind == "bash_execution":
        yield SourceText(SHELL, text)
    elif author_of(message, block) != AUTHOR_USER:
        yield SourceText(NOTE, text, prose=True)
    else:
        for start, end, is_own in typed_parts(text, spans_of(message, block)):
            yield SourceText(USER if is_own else NOTE, text[start:end], prose=is_own)


def _call_sources(block: ToolCall, calls: list[CallInfo], texts: list[str]) -> Iterator[SourceText]:
    """Yield the header of a call (its name, file and short arguments), then its other arguments. Append the
    call to `calls` and its texts to `texts`."""
    arguments = arguments_of(block)
    shown = [block.name]
    rest: list[SourceText] = []
    for name, value in arguments.items():
        is_path = name in PATH_ARGUMENTS and isinstance(value, str) and 0 < len(value) <= MAX_PATH_CHARS
        if is_path or (isinstance(value, str) and is_in_header(name, value)):
            shown.append(file_name(str(value).strip()) if is_path else str(value).strip())
            texts.append(str(value))
        else:
            for role, text in argument_texts(name, value):
                # Other tools may have lists of the same form, such as tickets; those are not the agent's
                # plan.
                is_plan = role != TODO or _PLANS.search(block.name) is not None
                rest.append(SourceText(role if is_plan else ARGUMENT, text, block.call_id))
                texts.append(text)
    role = result_role(block.name, arguments)
    calls.append(CallInfo(block.call_id, role, paths_in(arguments), is_change(arguments)))
    yield SourceText(HEADER, printable(" ".join(shown)) or block.name, block.call_id)
    yield from rest
