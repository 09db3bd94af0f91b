"""Format stored messages for a model: cut to a budget, quoted line by line, with their authors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct

from compactd.core.authors.authors import Stretch
from compactd.core.authors.quoted_message import authors, message_stretches, quote_stretches
from compactd.core.text import sanitize
from compactd.core.text.quoting import quote_line
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import Message, ToolCall, ToolResult

TOKEN_CHARS = 4
"""Characters per token. It is enough that the budgets of answers are approximate."""
MAX_RECALL_ID_CHARS = 200
MAX_PLACES = 50
"""How many places of a word are compared."""
_OWN_TOOL_NAME = re.compile(
    r"(?:(?:mcp_{1,2})?compactd[_./:]{1,2})?(?:search_history|expand|context_state)|recall"
)
"""A pattern for the names that clients give to the tools of a server called `compactd`, e.g.
`mcp__compactd__search_history`, and for the tool of the adapters for frameworks.
"""
_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9_./@-]")


class RecallRecord(Struct, frozen=True):
    """A stored message."""

    who: str
    """Who wrote the message, for the header above it. Contains no character that could end the header."""
    parts: tuple[Stretch, ...]
    text: str
    """The whole text of the message, unchanged."""
    is_lookup: bool
    """Whether the message contains only calls or results of tools that are named like compactd's own tools. A
    name proves nothing, so such a message is shown last but never left out.
    """


def mark_controls(text: str) -> str:
    """Return the text with a mark for each character that would control a terminal or be invisible. Line
    breaks stay.
    """
    return text.replace("\r\n", "\n").translate(sanitize.MARKED)


def one_line_id(name: str) -> str:
    """Return `name`, an id that a client or an agent chose, on one line and without characters that could
    look like structure of the answer.
    """
    return quote_line(name[:MAX_RECALL_ID_CHARS], "assistant")


def recall_record(raw: bytes) -> RecallRecord:
    """Return the record of a message in neutral form. O(characters)."""
    message = decode_message(raw)
    parts = tuple(part for part in message_stretches(message) if part.text)
    return RecallRecord(
        _who(message, parts), parts, "\n".join(part.text for part in parts), _is_lookup(message)
    )


def excerpt(record: RecallRecord, words: Sequence[str], most_chars: int) -> tuple[str, int]:
    """Return (the part of a record that contains most of `words`, quoted; how many characters follow it).

    The part has about `most_chars` characters. `words` are in lower case. Without words, the part is the
    beginning of the record.
    """
    start, end = around(record.text, words, most_chars)
    shown = _cut(record, start, end)
    for _ in range(3):
        if not _is_too_long(shown, end - start, most_chars):
            break
        start, end = around(record.text, words, (end - start) * most_chars // len(shown))
        shown = _cut(record, start, end)
    return shown, len(record.text) - end


def part(record: RecallRecord, start: int, most_chars: int) -> tuple[str, int]:
    """Return (the record's text from the character `start` on, quoted; how many characters follow it).

    The part has about `most_chars` characters.
    """
    end = min(len(record.text), start + most_chars)
    shown = _cut(record, start, end)
    for _ in range(3):
        if not _is_too_long(shown, end - start, most_chars):
            break
        end = start + (end - start) * most_chars // len(shown)
        shown = _cut(record, start, end)
    return shown, len(record.text) - end


def _is_too_long(shown: str, taken: int, most_chars: int) -> bool:
    """Return whether fewer characters than those `taken` should be shown: there are many short lines, and
    their quote marks take most of the room.
    """
    return len(shown) > 1.25 * most_chars and taken >= most_chars // 8


def around(text: str, words: Sequence[str], most_chars: int) -> tuple[int, int]:
    """Return (start, end) of the part of `text` that contains most of `words`. It has about `most_chars`
    characters.
    """
    if len(text) <= most_chars:
        return 0, len(text)
    folded = text.casefold()
    places = _places(folded, words)
    middle = max(places, key=lambda at: _count_words(folded, words, at, most_chars), default=0)
    start = max(0, min(middle - most_chars // 3, len(text) - most_chars))
    end = start + most_chars
    # Start at the beginning of a line if one is near. The end stays: a word may be there.
    line = text.rfind("\n", max(0, start - 80), start) + 1
    return line or start, end


def _places(folded: str, words: Sequence[str]) -> list[int]:
    """Return where the words may be meant: all of them in a row, or else each as a whole word, or else inside
    another word.
    """
    if phrase := _whole(folded, " ".join(words), 1):
        return phrase
    places = [at for word in words for at in _whole(folded, word, MAX_PLACES)]
    return places or [at for word in words if (at := folded.find(word)) >= 0]


def _whole(folded: str, word: str, most: int) -> list[int]:
    """Return at most `most` places at which `word` is a word of its own."""
    found = re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", folded) if word else iter(())
    return [match.start() for match in islice(found, most)]


def _count_words(folded: str, words: Sequence[str], at: int, most_chars: int) -> int:
    start = max(0, at - most_chars // 3)
    return sum(word in folded[start : start + most_chars] for word in words)


def _cut(record: RecallRecord, start: int, end: int) -> str:
    """Return the record's text from `start` to `end`, quoted. Dots show where text was cut off."""
    shown: list[Stretch] = []
    at = 0
    for part in record.parts:
        first, last = max(start - at, 0), min(end - at, len(part.text))
        if first < last:
            before = "…" if not shown and start > 0 else ""
            after = "…" if last == end - at and end < len(record.text) else ""
            shown.append(Stretch(part.author, f"{before}{part.text[first:last]}{after}"))
        at += len(part.text) + 1
    return quote_stretches(shown)


def _is_lookup(message: Message) -> bool:
    blocks = message.content
    return bool(blocks) and all(
        isinstance(block, ToolCall | ToolResult) and _OWN_TOOL_NAME.fullmatch(block.name or "") is not None
        for block in blocks
    )


def _who(message: Message, parts: Sequence[Stretch]) -> str:
    who = list[str](authors(parts)) or [message.role]
    tool = next((b.name for b in message.content if isinstance(b, ToolResult) and b.name), None)
    if tool is not None and "tool" in who:
        who[who.index("tool")] = f"tool {_NOT_OF_A_NAME.sub('?', tool)[:MAX_RECALL_ID_CHARS]}"
    return " + ".join(who)
