"""A session's history as pieces to show: prompts, answers, tool calls and results, compactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Raw, Struct

from compactd.cli.framework.page import one_line, plural, without_controls
from compactd.cli.inspect.anatomy import call_subject
from compactd.cli.inspect.markup import short
from compactd.core.history.entries import is_summary
from compactd.core.text.tool_results import text_of_result
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import (
    Block,
    CompactionResult,
    Document,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from compactd.protocol.wire import HistoryEntry

TAB = 4
RESULT_CHARS = 20_000
"""The most characters of a tool result that are shown when it is opened."""


class PromptPiece(Struct, frozen=True):
    """A prompt, or another message in the role user."""

    text: str
    is_synthetic: bool = False
    """True if the user did not write the message: it is marked as synthetic, or is a summary."""
    author: str = ""
    """The other client that sent the prompt; empty if it was the chat, or is not known."""


class AnswerPiece(Struct, frozen=True):
    """An answer of the model, in Markdown."""

    text: str


class ThoughtPiece(Struct, frozen=True):
    """The model's reasoning before an answer."""

    text: str


class CallPiece(Struct, frozen=True):
    """A tool call."""

    call_id: str
    name: str
    what: str


class ResultPiece(Struct, frozen=True):
    """The result of a tool call."""

    call_id: str
    name: str
    text: str
    is_error: bool
    is_pruned: bool


class CompactionPiece(Struct, frozen=True):
    """A compaction."""

    result: CompactionResult
    is_in_force: bool
    """False if the compaction was undone or replaced by a later compaction."""


class NotePiece(Struct, frozen=True):
    """A line that tells the user something about the session's history."""

    text: str


Piece = PromptPiece | AnswerPiece | ThoughtPiece | CallPiece | ResultPiece | CompactionPiece | NotePiece


def pieces_of(
    entries: Iterable[HistoryEntry],
    left: frozenset[str] = frozenset(),
    authors: Mapping[str, str] = {},
) -> Iterator[Piece]:
    """Yield the pieces to show of `entries`, oldest first. `left`: ids of the entries on branches other than
    the current one; each run of such entries becomes one note. `authors`: entry id -> the other client that
    sent the prompt. O(entries).
    """
    away = 0
    for entry in entries:
        if entry.entry_id in left:
            away += 1
            continue
        if away:
            yield _branch(away)
            away = 0
        for piece in _pieces(entry):
            if isinstance(piece, PromptPiece) and (author := authors.get(entry.entry_id)):
                yield PromptPiece(piece.text, piece.is_synthetic, author)
            else:
                yield piece
    if away:
        yield _branch(away)


def _branch(count: int) -> NotePiece:
    return NotePiece(f"{plural(count, 'entry', 'entries')} of another branch, not in the context")


def _pieces(entry: HistoryEntry) -> Iterator[Piece]:
    if entry.kind == "compaction" and entry.compaction is not None:
        yield CompactionPiece(entry.compaction, entry.in_context)
    elif entry.kind == "prune":
        yield NotePiece("old tool results or a long request were shortened")
    elif isinstance(entry.message, Raw):
        yield from _message_pieces(entry, decode_message(entry.message))


def _message_pieces(entry: HistoryEntry, message: Message) -> Iterator[Piece]:
    texts: list[str] = []
    for block in message.content:
        match block:
            case ToolCall():
                yield from _text_pieces(message, texts)
                yield CallPiece(block.call_id, one_line(block.name), one_line(call_subject(block, None)))
            case ToolResult():
                name = one_line(block.name or "")
                is_pruned = entry.pruned_at is not None
                yield ResultPiece(block.call_id, name, result_text(block), block.is_error, is_pruned)
            case Thinking(text=text) if text.strip():
                yield ThoughtPiece(display_text(text))
            case _:
                texts.append(block_text(block))
    yield from _text_pieces(message, texts)


def _text_pieces(message: Message, texts: list[str]) -> Iterator[Piece]:
    text = display_text("\n\n".join(one for one in texts if one.strip()))
    texts.clear()
    if not text:
        return
    if message.role == "user":
        is_synthetic = message.meta is not None and message.meta.synthetic
        yield PromptPiece(text, is_synthetic or is_summary(message))
    elif message.role == "assistant":
        yield AnswerPiece(text)
    else:
        yield NotePiece(f"{message.role}: {one_line(text)}")


def block_text(block: Block) -> str:
    """Return a block of a message as text. An image or a document without text becomes its type or title in
    brackets.
    """
    match block:
        case Text(text=text) | Thinking(text=text):
            return text
        case Image(media_type=media_type):
            return f"[{media_type}]"
        case Document(text=text, title=title, media_type=media_type):
            return text or f"[{title or media_type}]"
        case _:
            return ""


def result_text(result: ToolResult) -> str:
    """Return the beginning of a tool result as text."""
    return display_text(text_of_result(result))[:RESULT_CHARS]


def display_text(text: str) -> str:
    """Return `text` without control characters and without empty lines around it."""
    return escape_controls(text).strip("\n")


def escape_controls(text: str) -> str:
    """Return `text` without characters that a terminal would act on or that move the cursor."""
    return without_controls(text.replace("\r\n", "\n").replace("\r", "\n")).expandtabs(TAB)


def left_behind(entries: Sequence[HistoryEntry]) -> frozenset[str]:
    """Return the ids of the messages that are on branches other than the current one.

    They are the messages that are not in the context, from the first message on that the last compaction
    kept. Messages before it count as removed by that compaction, whatever their branch. O(entries).
    """
    first_kept = None
    for entry in reversed(entries):
        if entry.compaction is not None and entry.in_context:
            first_kept = entry.compaction.first_kept_entry_id
            break
    place = {entry.entry_id: at for at, entry in enumerate(entries)}
    begin = place.get(first_kept, len(entries)) if first_kept is not None else 0
    return frozenset(e.entry_id for e in entries[begin:] if e.kind == "message" and not e.in_context)


def rule_texts(result: CompactionResult, *, is_in_force: bool) -> Sequence[str]:
    """Return titles of a compaction for different widths, from the longest to the shortest.

    The longest is like `compacted 41 messages · 158k → 16k · kept 87 % of the repeated details · u undo ·
    enter open`.
    """
    text = rule_text(result)
    keys = "u undo · enter open" if is_in_force else "no longer in force"
    brief = text.removesuffix(" of the repeated details")
    return (f"{text} · {keys}", f"{brief} · {keys}", brief, brief.partition(" · ")[0])


def rule_text(result: CompactionResult) -> str:
    """Return a title such as `compacted 41 messages · 158k → 16k · kept 87 % of the repeated details`."""
    parts = [
        f"compacted {plural(result.messages_removed, 'message')}",
        f"{short(result.tokens_before)} → {short(result.tokens_after)}",
    ]
    if result.retention is not None and (result.retention.kept or result.retention.lost):
        parts.append(f"kept {100 * result.retention.score:.0f} % of the repeated details")
    return " · ".join(parts)


def call_line(call: CallPiece | None, result: ResultPiece | None) -> str:
    """Return a tool call and its result in one line, such as `bash  ls server  · 34 lines`."""
    name = (call.name if call else "") or (result.name if result else "") or "tool"
    parts = [f"{name}  {call.what}".rstrip() if call else name]
    if result is not None:
        lines = result.text.count("\n") + 1 if result.text else 0
        parts.append(plural(lines, "line"))
        if result.is_error:
            parts.append("failed")
        if result.is_pruned:
            parts.append("shortened in the context")
    return " · ".join(parts)


def titles(entries: Iterable[HistoryEntry]) -> Mapping[str, str]:
    """Return entry id -> title, in one line, for each prompt of the user, oldest first."""
    return {e.entry_id: one_line(e.title) for e in entries if e.kind == "message" and e.title is not None}


def turn_ends(entries: Sequence[HistoryEntry]) -> list[tuple[str, str]]:
    """Return (entry id of the prompt, entry id of the last message) of each turn, oldest first."""
    ends: list[tuple[str, str]] = []
    for entry in entries:
        if entry.kind != "message":
            continue
        if entry.title is not None:
            ends.append((entry.entry_id, entry.entry_id))
        elif ends:
            ends[-1] = (ends[-1][0], entry.entry_id)
    return ends
