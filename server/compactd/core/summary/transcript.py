"""Write a conversation as a transcript for a summariser: labelled paragraphs between tags.

A transcript is used because a model treats it as data, but takes a dialogue as an invitation to continue it
(docs/specs.md, "opal.md", "Anti-continuation measures"). The labels are fixed: `[User]:`, `[Assistant]:`,
`[Assistant tool calls]:`, `[Tool result]:`. `[System]:` is for system messages, and for user messages in
which no person typed anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compactd.core.authors.authors import author_of, is_typed, stretches_of
from compactd.core.history.entries import Item
from compactd.core.text.escape_invisible import file_name
from compactd.core.text.quoting import TOOL_MARK, neutralise, quote, quote_line
from compactd.core.text.tool_results import text_of_result
from compactd.core.tokens.counting import Counter, compact_arguments
from compactd.protocol.messages import Block, Document, Image, Message, Text, ToolCall, ToolResult

_OWN_LABELS = ("User", "Assistant")
_FOREIGN = (TOOL_MARK, "[Tool result]: ", "[System]: ")
"""The beginnings of lines that neither the user nor the assistant wrote. The first line of a paragraph begins
with the paragraph's label, every other such line with `TOOL_MARK`."""

OPEN = "<conversation>"
CLOSE = "</conversation>"


def paragraphs(items: Sequence[Item], tool_output_chars: int) -> tuple[str, ...]:
    """Return the paragraphs of a transcript, oldest first. Each message gives a paragraph with its text, then
    one with its calls, then one for each result.

    Each tool result and each call's arguments are cut at `tool_output_chars` code points, with a note of how
    much is missing. Thinking is left out. Each line that neither the user nor the assistant wrote is marked,
    and no text can pass for a label or a tag (`quoting.py`). O(text).
    """
    return tuple(paragraph for item in items for paragraph in _of_message(item.message, tool_output_chars))


def conversation(parts: Sequence[str]) -> str:
    """Return the paragraphs between the tags that show the model where the data begins and ends."""
    body = "\n\n".join(parts)
    return f"{OPEN}\n{body}\n{CLOSE}"


def chunks(parts: Sequence[str], most_tokens: int, counter: Counter) -> tuple[tuple[str, ...], ...]:
    """Divide the paragraphs into groups of at most `most_tokens` each, in order. A paragraph with more tokens
    is broken between code points. There is at least one group, which may be empty. O(text), counted once."""
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
    """Yield the paragraphs of one message."""
    said: list[str] = []
    calls: list[str] = []
    results: list[str] = []
    for block in message.content:
        match block:
            case ToolCall():
                arguments = _cut(compact_arguments(block.arguments), tool_output_chars)
                calls.append(quote_line(f"{block.name}({arguments})", "assistant"))
            case ToolResult():
                failed = "(error) " if block.is_error else ""
                lines = quote(_cut(text_of_result(block), tool_output_chars), "tool")
                # The label itself shows that the assistant did not write the first line.
                results.append(f"[Tool result]: {failed}{lines.removeprefix(TOOL_MARK)}")
            case _:
                said.extend(_quoted_stretches(message, block))
    if said:
        label, lines = _label(message), "\n".join(said)
        if label not in _OWN_LABELS:
            lines = lines.removeprefix(TOOL_MARK)
        # Do not put a line with the mark of a tool directly after the label of the user or the assistant.
        # Each line then shows its own author, wherever the text is cut.
        elif lines.startswith(TOOL_MARK):
            lines = f"\n{lines}"
        yield f"[{label}]: {lines}"
    if calls:
        yield f"[Assistant tool calls]: {'; '.join(calls)}"
    yield from results


def _label(message: Message) -> str:
    """Return the label of the paragraph with a message's text."""
    match message.role:
        case "user":
            return "User" if is_typed(message) else "System"
        case "assistant":
            return "Assistant" if author_of(message) == "assistant" else "System"
        case "system":
            return "System"
        case "tool":
            return "Tool result"


def _quoted_stretches(message: Message, block: Block) -> Iterator[str]:
    """Yield the text of a block as quotations, one for each stretch that has one author. Reminders that
    programs add to the user's messages are left out."""
    match block:
        case Text() | Document(text=str()):
            for stretch in stretches_of(message, block):
                is_reminder = message.role == "user" and stretch.author == "reminder"
                if not is_reminder and (text := stretch.text.strip()):
                    yield quote(text, stretch.author)
        case Image(media_type=media_type):
            yield f"[image {_name(media_type)}]"
        case Document(title=title, media_type=media_type):
            yield quote_line(f"[document {_name(title or media_type)}]", author_of(message, block))
        case _:
            pass


def _name(name: str) -> str:
    """Return a file name or media type for use inside brackets, changed so that it cannot pass for anything
    else."""
    return neutralise(file_name(name)).replace("]", ")")


def _cut(text: str, chars: int) -> str:
    """Return the first `chars` code points of `text`, and a note of how many are left out. A cut may split a
    grapheme but never a code point."""
    return text if len(text) <= chars else f"{text[:chars]}… [characters left out: {len(text) - chars:,}]"


def _pieces(parts: Sequence[str], most_tokens: int, counter: Counter) -> Iterator[tuple[str, int]]:
    """Yield the paragraphs, each with its tokens. Longer ones than `most_tokens` are broken into pieces."""
    for part in parts:
        tokens = counter.count(part)
        if tokens <= most_tokens:
            yield part, tokens
            continue
        size = max(1, len(part) * most_tokens // tokens * 9 // 10)
        for piece in _break_part(part, size):
            yield piece, counter.count(piece)


def _break_part(part: str, size: int) -> Iterator[str]:
    """Yield a paragraph in pieces of about `size` code points, cut after a line end if one is near. If a
    piece begins inside a line that neither the user nor the assistant wrote, the mark of such lines is put
    before it."""
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
