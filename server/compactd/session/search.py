"""Plain-text search in all messages of a session, compacted or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from compactd.core.history.entries import Item
from compactd.protocol.messages import Block, Document, Text, Thinking, ToolCall, ToolResult

SNIPPET_CHARS = 160
"""The length of a snippet in code points, including the found text."""


class FoundMessage(Struct, frozen=True):
    """A message that contains the searched text."""

    item: Item
    snippet: str
    """The found text and the text around it, white space collapsed. About `SNIPPET_CHARS` code points."""


def searchable_texts(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield the texts in a message's `blocks` that can be searched: text, reasoning, tool calls with
    arguments, tool results and text documents. Base64 data is left out.
    """
    for block in blocks:
        match block:
            case Text(text=text) | Thinking(text=text):
                yield text
            case ToolCall():
                yield f"{block.name} {bytes(block.arguments).decode('utf-8', 'replace')}"
            case ToolResult(content=str() as text):
                yield text
            case ToolResult(content=tuple() as inner):
                yield from searchable_texts(inner)
            case Document(text=str() as text):
                yield text
            case _:
                pass


def search(items: Sequence[Item], query: str, limit: int) -> tuple[FoundMessage, ...]:
    """Return at most `limit` messages that contain `query`, newest first. Ignores case. O(length of the
    texts).
    """
    wanted = query.casefold()
    found: list[FoundMessage] = []
    for item in reversed(items):
        for text in searchable_texts(item.message.content):
            at = _find(text, wanted)
            if at is not None:
                found.append(FoundMessage(item, _snippet(text, at, len(query))))
                break
        if len(found) == limit:
            break
    return tuple(found)


def _find(text: str, wanted: str) -> int | None:
    folded = text.casefold()
    at = folded.find(wanted)
    if at < 0:
        return None
    # Case folding can make a text longer (ß becomes ss). Then map the place back to the original text.
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
