"""A conversation as data for a summariser: one labelled line or paragraph a message, inside tags.

A transcript is data to a model, a dialogue an invitation to go on with it (opal.md, "Anti-continuation
measures"). The labels are literal: `[User]:`, `[Assistant]:`, `[Assistant tool calls]:`, `[Tool result]:`;
`[System]:` stands for system messages and for user messages that no person wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compactd.core.clip import text_of_result
from compactd.core.entries import Item, is_summary
from compactd.core.tokens import Counter, compact_arguments
from compactd.messages import Block, Document, Image, Message, Text, ToolCall, ToolResult

OPEN = "<conversation>"
CLOSE = "</conversation>"
_NAME = "conversation>"

REMINDER = ("<system-reminder>", "</system-reminder>")
"""What a client puts into a user's message for the model alone (Claude Code): no words of the user."""


def paragraphs(items: Sequence[Item], tool_output_chars: int) -> tuple[str, ...]:
    """The paragraphs of a transcript, oldest first: per message its text, its calls, its results.

    Each tool result, and each call's arguments, is cut at `tool_output_chars` code points with a note of how
    much is missing. Thinking is left out. Tags that would end the transcript early are defused. O(text).
    """
    return tuple(
        _defused(paragraph) for item in items for paragraph in _of_message(item.message, tool_output_chars)
    )


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


def without_reminders(text: str) -> str:
    """`text` without what a client wrote into it for the model. O(text)."""
    opening, closing = REMINDER
    if opening not in text:
        return text
    kept: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start)
        if end < 0:
            break
        kept.append(text[at:start])
        at = end + len(closing)
    kept.append(text[at:])
    return "".join(kept).strip()


def _of_message(message: Message, tool_output_chars: int) -> Iterator[str]:
    said: list[str] = []
    calls: list[str] = []
    results: list[str] = []
    for block in message.content:
        match block:
            case ToolCall():
                arguments = _cut(compact_arguments(block.arguments), tool_output_chars)
                calls.append(f"{block.name}({arguments})")
            case ToolResult():
                failed = "(error) " if block.is_error else ""
                results.append(f"[Tool result]: {failed}{_cut(text_of_result(block), tool_output_chars)}")
            case _:
                if text := _said(block):
                    said.append(text)
    if said:
        spoken = "\n".join(said)
        if message.role == "user" and not is_summary(message):
            spoken = without_reminders(spoken)
        if spoken:
            yield f"[{_label(message)}]: {spoken}"
    if calls:
        yield f"[Assistant tool calls]: {'; '.join(calls)}"
    yield from results


def _label(message: Message) -> str:
    synthetic = message.meta is not None and message.meta.synthetic
    match message.role:
        case "user":
            return "System" if synthetic else "User"
        case "assistant":
            return "Assistant"
        case "system":
            return "System"
        case "tool":
            return "Tool result"


def _said(block: Block) -> str:
    match block:
        case Text(text=text):
            return text.strip()
        case Image(media_type=media_type):
            return f"[image {media_type}]"
        case Document(title=title, media_type=media_type, text=text):
            return text if text is not None else f"[document {title or media_type}]"
        case _:
            return ""


def _cut(text: str, chars: int) -> str:
    """The first `chars` code points; a grapheme may be parted, a code point never."""
    return text if len(text) <= chars else f"{text[:chars]}… [characters left out: {len(text) - chars:,}]"


def _defused(paragraph: str) -> str:
    if _NAME not in paragraph:
        return paragraph
    return paragraph.replace(CLOSE, f"&lt;{CLOSE[1:]}").replace(OPEN, f"&lt;{OPEN[1:]}")


def _pieces(parts: Sequence[str], most_tokens: int, counter: Counter) -> Iterator[tuple[str, int]]:
    for part in parts:
        tokens = counter.count(part)
        if tokens <= most_tokens:
            yield part, tokens
            continue
        size = max(1, len(part) * most_tokens // tokens * 9 // 10)
        for start in range(0, len(part), size):
            piece = part[start : start + size]
            yield piece, counter.count(piece)
