"""Stored messages as text for a model: cut to a budget, quoted line by line, with who wrote them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from compactd.core.authors.authors import Stretch
from compactd.core.authors.quoted_message import authors, quoted, said
from compactd.core.text import sanitize
from compactd.core.text.quoting import quoted_line
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import Message, ToolCall, ToolResult

TOKEN_CHARS = 4
"""Characters a token, as the specs' heuristic has it: budgets here are about how much a model reads."""
MOST_NAME_CHARS = 200
_LIKE_OURS = re.compile(r"(?:(?:mcp_{1,2})?compactd[_./:]{1,2})?(?:search_history|expand|context_state)")
"""As clients name a tool of a server that is called `compactd`: `mcp__compactd__search_history`."""
_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9_./@-]")


class Record(Struct, frozen=True):
    """A stored message."""

    who: str
    """Who wrote it, for its header: no sign in it could end the header."""
    parts: tuple[Stretch, ...]
    text: str
    """All of its text, as it was written."""
    is_lookup: bool
    """Nothing but a call or an answer of a tool that is named like ours. A name proves nothing: such a record
    is shown last, never left out."""


def plain(text: str) -> str:
    """With a mark for each character that would steer a terminal or hide; lines and tabs stay."""
    return text.replace("\r\n", "\n").translate(sanitize.MARKED)


def named(name: str) -> str:
    """An id of a client's or an agent's, on one line and without what could pass for structure."""
    return quoted_line(name[:MOST_NAME_CHARS], "assistant")


def record(raw: bytes) -> Record:
    """Of a message in neutral shape. O(characters)."""
    message = decode_message(raw)
    parts = tuple(part for part in said(message) if part.text)
    return Record(_who(message, parts), parts, "\n".join(part.text for part in parts), _is_lookup(message))


def excerpt(record: Record, words: Sequence[str], most_chars: int) -> tuple[str, int]:
    """The part of a record with the most of `words`, in lower case, quoted, in about `most_chars` characters;
    without `words`, its beginning. And how many characters of the record follow that part."""
    start, end = around(record.text, words, most_chars)
    shown = _cut(record, start, end)
    for _ in range(3):
        if len(shown) <= 1.25 * most_chars or end - start < most_chars // 8:
            break
        # Many short lines: their marks take most of it.
        start, end = around(record.text, words, (end - start) * most_chars // len(shown))
        shown = _cut(record, start, end)
    return shown, len(record.text) - end


def around(text: str, words: Sequence[str], most_chars: int) -> tuple[int, int]:
    """Where the part of `text` with the most of `words` begins and ends, about `most_chars` characters."""
    if len(text) <= most_chars:
        return 0, len(text)
    folded = text.casefold()
    places = [at for word in words if (at := folded.find(word)) >= 0]
    middle = max(places, key=lambda at: _held(folded, words, at, most_chars), default=0)
    start = max(0, min(middle - most_chars // 3, len(text) - most_chars))
    # A line is read from its beginning, where that is near.
    line = text.rfind("\n", max(0, start - 80), start) + 1
    start = line or start
    return start, min(len(text), start + most_chars)


def _held(folded: str, words: Sequence[str], at: int, most_chars: int) -> int:
    start = max(0, at - most_chars // 3)
    return sum(word in folded[start : start + most_chars] for word in words)


def _cut(record: Record, start: int, end: int) -> str:
    """From `start` to `end` of the record's text, quoted; dots where something was cut off."""
    shown: list[Stretch] = []
    at = 0
    for part in record.parts:
        first, last = max(start - at, 0), min(end - at, len(part.text))
        if first < last:
            before = "…" if not shown and start > 0 else ""
            after = "…" if last == end - at and end < len(record.text) else ""
            shown.append(Stretch(part.author, f"{before}{part.text[first:last]}{after}"))
        at += len(part.text) + 1
    return quoted(shown)


def _is_lookup(message: Message) -> bool:
    blocks = message.content
    return bool(blocks) and all(
        isinstance(block, ToolCall | ToolResult) and _LIKE_OURS.fullmatch(block.name or "") is not None
        for block in blocks
    )


def _who(message: Message, parts: Sequence[Stretch]) -> str:
    who = list[str](authors(parts)) or [message.role]
    tool = next((b.name for b in message.content if isinstance(b, ToolResult) and b.name), None)
    if tool is not None and "tool" in who:
        who[who.index("tool")] = f"tool {_NOT_OF_A_NAME.sub('?', tool)[:MOST_NAME_CHARS]}"
    return " + ".join(who)
