"""Plain-text search in all messages of a session, compacted or not, and in the originals of tool outputs that
were reduced.

A message that shows a reduced output and the original are found once: the original is the hit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from compactd.core.history.entries import Item, OutputLink, number_of
from compactd.core.history.outputs import ReducedOutputs
from compactd.core.history.state import SessionState
from compactd.protocol.messages import Block, Document, Text, Thinking, ToolCall, ToolResult

SNIPPET_CHARS = 160
"""The length of a snippet in code points, including the found text."""


class FoundMessage(Struct, frozen=True):
    """A message, or the original of a reduced output, that contains the searched text."""

    item: Item
    snippet: str
    """The found text and the text around it, white space collapsed. About `SNIPPET_CHARS` code points."""
    is_shown: bool = True
    """Whether the messages contain the text. False if a reduction left it out."""


def searched_items(state: SessionState) -> list[Item]:
    """Return the messages of the current branch and the originals of its reduced outputs, oldest first.
    O(messages)."""
    items, outputs = state.path_items(), state.outputs
    if not outputs.entries:
        return items
    items += [outputs.items[entry_id] for entry_id in outputs.on_path(frozenset(state.path))]
    return sorted(items, key=lambda item: number_of(item.entry_id) or 0)


def searchable_texts(blocks: Sequence[Block], links: Sequence[OutputLink] = ()) -> Iterator[str]:
    """Yield the texts in a message's `blocks` that can be searched: text, reasoning, tool calls with
    arguments, tool results and text documents. Base64 data is left out, and so are the reduced texts of
    `links`, because their originals are searched.
    """
    reduced = {(link.block, link.part) for link in links if link.is_exact}
    for at, block in enumerate(blocks):
        match block:
            case Text(text=text) | Thinking(text=text):
                yield text
            case ToolCall():
                yield f"{block.name} {bytes(block.arguments).decode('utf-8', 'replace')}"
            case ToolResult() if (at, None) in reduced:
                pass
            case ToolResult(content=str() as text):
                yield text
            case ToolResult(content=tuple() as inner):
                rest = [one for part, one in enumerate(inner) if (at, part) not in reduced]
                yield from searchable_texts(rest)
            case Document(text=str() as text):
                yield text
            case _:
                pass


def search(
    items: Sequence[Item], query: str, limit: int, outputs: ReducedOutputs | None = None
) -> tuple[FoundMessage, ...]:
    """Return at most `limit` of `items` that contain `query`, newest first. Ignores case. `outputs` are the
    session's reduced outputs. O(length of the texts).
    """
    wanted = query.casefold()
    found: list[FoundMessage] = []
    for item in reversed(items):
        links = () if outputs is None else outputs.links.get(item.entry_id, ())
        # An original is decoded for this search alone: it is large, and no request contains it.
        message = item.message if item.kind != "output" else item.decoded().message
        for text in searchable_texts(message.content, links):
            at = _find(text, wanted)
            if at is not None:
                output = None if outputs is None else outputs.entries.get(item.entry_id)
                is_shown = output is None or _find(output.shown, wanted) is not None
                found.append(FoundMessage(item, _snippet(text, at, len(query)), is_shown))
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
