"""Plain-text search in what was ever said, compacted or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from compactd.core.history.entries import Item
from compactd.protocol.messages import Block, Document, Text, Thinking, ToolCall, ToolResult

SNIPPET_CHARS = 160
"""Code points around a hit that are shown, the hit included."""


class Found(Struct, frozen=True):
    """A message that holds the text."""

    item: Item
    snippet: str
    """The hit and what stands around it, white space folded, at most about `SNIPPET_CHARS` code points."""


def texts_of(blocks: Sequence[Block]) -> Iterator[str]:
    """The texts a person could look for: text, reasoning, calls with their arguments, results. No base64."""
    for block in blocks:
        match block:
            case Text(text=text) | Thinking(text=text):
                yield text
            case ToolCall():
                yield f"{block.name} {bytes(block.arguments).decode('utf-8', 'replace')}"
            case ToolResult(content=str() as text):
                yield text
            case ToolResult(content=tuple() as inner):
                yield from texts_of(inner)
            case Document(text=str() as text):
                yield text
            case _:
                pass


def search(items: Sequence[Item], query: str, limit: int) -> tuple[Found, ...]:
    """Messages that hold `query`, newest first, at most `limit`. Case is ignored. O(length of the texts)."""
    wanted = query.casefold()
    found: list[Found] = []
    for item in reversed(items):
        for text in texts_of(item.message.content):
            at = _find(text, wanted)
            if at is not None:
                found.append(Found(item, _snippet(text, at, len(query))))
                break
        if len(found) == limit:
            break
    return tuple(found)


def _find(text: str, wanted: str) -> int | None:
    folded = text.casefold()
    at = folded.find(wanted)
    if at < 0:
        return None
    # Folding may lengthen a text (ß becomes ss): then the place is looked for again from there.
    return at if len(folded) == len(text) else _place(text, at)


def _place(text: str, folded_at: int) -> int:
    length = 0
    for index, char in enumerate(text):
        if length >= folded_at:
            return index
        length += len(char.casefold())
    return len(text)


def _snippet(text: str, at: int, length: int) -> str:
    around = max(0, SNIPPET_CHARS - length) // 2
    start, end = max(0, at - around), min(len(text), at + length + around)
    middle = " ".join(text[start:end].split())
    return f"{'…' if start > 0 else ''}{middle}{'…' if end < len(text) else ''}"
