"""A conversation as data for a summariser: one labelled line or paragraph a message, inside tags.

A transcript is data to a model, a dialogue an invitation to go on with it (docs/specs.md, "opal.md",
"Anti-continuation measures"). The labels are literal: `[User]:`, `[Assistant]:`, `[Assistant tool calls]:`,
`[Tool result]:`; `[System]:` stands for system messages and for user messages that no person wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compactd.core.authors.authors import author_of, is_typed, stretches_of
from compactd.core.history.entries import Item
from compactd.core.text.quoting import TOOL_MARK, neutral, quote, quoted_line
from compactd.core.text.tool_results import text_of_result
from compactd.core.text.visible import file_name
from compactd.core.tokens.counting import Counter, compact_arguments
from compactd.protocol.messages import Block, Document, Image, Message, Text, ToolCall, ToolResult

_OWN_LABELS = ("User", "Assistant")
_FOREIGN = (TOOL_MARK, "[Tool result]: ", "[System]: ")
"""How lines begin that neither the user nor the assistant wrote: the label marks the first one."""

OPEN = "<conversation>"
CLOSE = "</conversation>"


def paragraphs(items: Sequence[Item], tool_output_chars: int) -> tuple[str, ...]:
    """The paragraphs of a transcript, oldest first: per message its text, its calls, its results.

    Each tool result, and each call's arguments, is cut at `tool_output_chars` code points with a note of how
    much is missing. Thinking is left out. Each line that neither the user nor the assistant wrote is marked,
    and no text can pass for a label or a tag (`quoting.py`). O(text).
    """
    return tuple(paragraph for item in items for paragraph in _of_message(item.message, tool_output_chars))


def conversation(parts: Sequence[str]) -> str:
    """Paragraphs between the tags that say where the data begins and ends."""
    body = "\n\n".join(parts)
    return f"{OPEN}\n{body}\n{CLOSE}"


def chunks(parts: Sequence[str], most_tokens: int, counter: Counter) -> tuple[tuple[str, ...], ...]:
    """The paragraphs in runs of at most `most_tokens` each, in order; a longer paragraph is broken between
    code points. At least one run, perhaps empty. O(text), counted once."""
    runs: list[tuple[str, ...]] = []
    run: list[str] = []
    used = 0
    for part, tokens in _pieces(parts, max(1, most_tokens), counter):
        if run and used + tokens > most_tokens:
            runs.append(tuple(run))
            run, used = [], 0
        run.append(part)
        used += tokens + 1
    if run or not runs:
        runs.append(tuple(run))
    return tuple(runs)


def _of_message(message: Message, tool_output_chars: int) -> Iterator[str]:
    said: list[str] = []
    calls: list[str] = []
    results: list[str] = []
    for block in message.content:
        match block:
            case ToolCall():
                arguments = _cut(compact_arguments(block.arguments), tool_output_chars)
                calls.append(quoted_line(f"{block.name}({arguments})", "assistant"))
            case ToolResult():
                failed = "(error) " if block.is_error else ""
                lines = quote(_cut(text_of_result(block), tool_output_chars), "tool")
                # The label marks the first line.
                results.append(f"[Tool result]: {failed}{lines.removeprefix(TOOL_MARK)}")
            case _:
                said.extend(_said(message, block))
    if said:
        label, lines = _label(message), "\n".join(said)
        if label not in _OWN_LABELS:
            lines = lines.removeprefix(TOOL_MARK)
        # No mark stands behind a label that says otherwise: wherever the text is cut, a line tells by itself.
        elif lines.startswith(TOOL_MARK):
            lines = f"\n{lines}"
        yield f"[{label}]: {lines}"
    if calls:
        yield f"[Assistant tool calls]: {'; '.join(calls)}"
    yield from results


def _label(message: Message) -> str:
    match message.role:
        case "user":
            return "User" if is_typed(message) else "System"
        case "assistant":
            return "Assistant" if author_of(message) == "assistant" else "System"
        case "system":
            return "System"
        case "tool":
            return "Tool result"


def _said(message: Message, block: Block) -> Iterator[str]:
    """The stretches of a block as they are quoted; what programs remind the model of is left out."""
    match block:
        case Text() | Document(text=str()):
            for stretch in stretches_of(message, block):
                is_reminder = message.role == "user" and stretch.author == "reminder"
                if not is_reminder and (text := stretch.text.strip()):
                    yield quote(text, stretch.author)
        case Image(media_type=media_type):
            yield f"[image {_name(media_type)}]"
        case Document(title=title, media_type=media_type):
            yield quoted_line(f"[document {_name(title or media_type)}]", author_of(message, block))
        case _:
            pass


def _name(name: str) -> str:
    """A file's name or kind inside brackets: one that could be taken for more stands in quotes."""
    return neutral(file_name(name)).replace("]", ")")


def _cut(text: str, chars: int) -> str:
    """The first `chars` code points; a grapheme may be parted, a code point never."""
    return text if len(text) <= chars else f"{text[:chars]}… [characters left out: {len(text) - chars:,}]"


def _pieces(parts: Sequence[str], most_tokens: int, counter: Counter) -> Iterator[tuple[str, int]]:
    for part in parts:
        tokens = counter.count(part)
        if tokens <= most_tokens:
            yield part, tokens
            continue
        size = max(1, len(part) * most_tokens // tokens * 9 // 10)
        for piece in _broken(part, size):
            yield piece, counter.count(piece)


def _broken(part: str, size: int) -> Iterator[str]:
    """A paragraph in pieces of about `size` code points, broken after a line's end if one is near. A piece
    that begins in the middle of a line somebody else wrote gets that line's mark."""
    start, mark = 0, ""
    while start < len(part):
        end = start + size
        if end < len(part):
            end = part.rfind("\n", start + size // 2, end) + 1 or end
        yield mark + part[start:end]
        line = part[part.rfind("\n", 0, end) + 1 : end]
        mark = TOOL_MARK if mark and "\n" not in part[start:end] else ""
        if line and line.startswith(_FOREIGN):
            mark = TOOL_MARK
        start = end
