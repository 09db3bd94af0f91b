"""Search the texts of messages for a path as a whole name. A longer path or name that only contains it does
not count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compactd.protocol.messages import Block, Document, Text, ToolCall, ToolResult


def contains_whole_path(text: str, path: str) -> bool:
    """Return whether `text` contains `path` as a whole, not only as part of a longer name. O(text)."""
    at = text.find(path)
    while at >= 0:
        before, behind = text[at - 1 : at], text[at + len(path) : at + len(path) + 1]
        if not (before.isalnum() or before in ("/", "\\", "_", "-", ".")) and not (
            behind.isalnum() or behind in ("_", "/")
        ):
            return True
        at = text.find(path, at + 1)
    return False


def written_texts(content: Iterable[Block]) -> Iterator[str]:
    """Yield the texts in the blocks of a message: text, documents, tool results, and the arguments of tool
    calls."""
    for block in content:
        match block:
            case Text(text=text) | Document(text=str() as text):
                yield text
            case ToolCall(arguments=arguments):
                yield bytes(arguments).decode("utf-8", "replace")
            case ToolResult(content=str() as text):
                yield text
            case ToolResult(content=tuple() as inner):
                yield from written_texts(inner)
            case _:
                pass
