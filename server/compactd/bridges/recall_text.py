"""What was said, as text for a model: cut to a budget, marked by who said it, without control characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compactd.core import unseen
from compactd.formats.neutral import decode_message
from compactd.messages import Block, Message, ToolCall, ToolResult
from compactd.search import texts_of

TOKEN_CHARS = 4
"""Characters a token, as the specs' heuristic has it: budgets here are about how much a model reads."""
OWN_TOOLS = ("search_history", "expand", "context_state")


def plain(text: str) -> str:
    """With a mark for each character that would steer a terminal or hide; lines and tabs stay."""
    return text.replace("\r\n", "\n").translate(unseen.MARKED)


def spoken(raw: bytes) -> tuple[str, str]:
    """(who said it, all of its text) of a message in neutral shape; what our own tools gave back is left
    out."""
    message = decode_message(raw)
    return _speaker(message), "\n".join(_told(message.content))


def around(text: str, words: Sequence[str], most_chars: int) -> str:
    """The part of `text` with the most of `words`, in lower case, in about `most_chars` characters."""
    if len(text) <= most_chars:
        return text
    folded = text.casefold()
    places = [at for word in words if (at := folded.find(word)) >= 0]
    middle = max(places, key=lambda at: _held(folded, words, at, most_chars), default=0)
    start = max(0, min(middle - most_chars // 3, len(text) - most_chars))
    # A line is read from its beginning, where that is near.
    line = text.rfind("\n", max(0, start - 80), start) + 1
    start = line or start
    end = min(len(text), start + most_chars)
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _held(folded: str, words: Sequence[str], at: int, most_chars: int) -> int:
    start = max(0, at - most_chars // 3)
    return sum(word in folded[start : start + most_chars] for word in words)


def _told(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, ToolCall | ToolResult) and _is_own(block.name):
            continue
        yield from texts_of((block,))


def _is_own(name: str | None) -> bool:
    """Clients name a tool by its server too: `mcp__compactd__search_history`."""
    return name is not None and name.endswith(OWN_TOOLS) and (name in OWN_TOOLS or "compactd" in name)


def _speaker(message: Message) -> str:
    names = [b.name for b in message.content if isinstance(b, ToolResult) and b.name]
    if any(isinstance(block, ToolResult) for block in message.content):
        return f"tool {names[0]}" if names else "tool"
    return message.role
