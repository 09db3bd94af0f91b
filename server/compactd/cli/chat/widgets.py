"""A session's history as the pieces that a person sees: prompts, answers, calls, compactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Raw, Struct

from compactd.cli.framework.page import cleaned, one_line, plural
from compactd.cli.inspect.anatomy import target_of
from compactd.core.history.entries import is_summary
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
"""Of a tool's result that are shown when it is opened: more is no conversation."""


class Prompt(Struct, frozen=True):
    """What was asked."""

    entry_id: str
    text: str
    is_synthetic: bool = False
    """No person wrote it."""


class Answer(Struct, frozen=True):
    """What the model said, in markdown."""

    entry_id: str
    text: str


class Thought(Struct, frozen=True):
    """What it thought before."""

    entry_id: str
    text: str


class Call(Struct, frozen=True):
    """What it asked a tool."""

    entry_id: str
    call_id: str
    name: str
    what: str


class Result(Struct, frozen=True):
    """What the tool gave back."""

    entry_id: str
    call_id: str
    name: str
    text: str
    is_error: bool
    is_pruned: bool


class Compaction(Struct, frozen=True):
    """Where older messages became a summary."""

    entry_id: str
    result: CompactionResult
    is_in_force: bool
    """False where it was taken back, or a later one took its place."""


class Note(Struct, frozen=True):
    """A quiet line."""

    entry_id: str
    text: str


Piece = Prompt | Answer | Thought | Call | Result | Compaction | Note


def pieces_of(entries: Iterable[HistoryEntry], left: frozenset[str] = frozenset()) -> Iterator[Piece]:
    """What is seen of `entries`, oldest first. `left`: ids on branches that were left. O(entries)."""
    away, last = 0, ""
    for entry in entries:
        if entry.entry_id in left:
            away, last = away + 1, entry.entry_id
            continue
        if away:
            yield _branch(last, away)
            away = 0
        yield from _pieces(entry)
    if away:
        yield _branch(last, away)


def _branch(entry_id: str, count: int) -> Note:
    return Note(entry_id, f"{plural(count, 'entry', 'entries')} of another branch, not in the context")


def _pieces(entry: HistoryEntry) -> Iterator[Piece]:
    if entry.kind == "compaction" and entry.compaction is not None:
        yield Compaction(entry.entry_id, entry.compaction, entry.in_context)
    elif entry.kind == "prune":
        yield Note(entry.entry_id, "old tool results were shortened")
    elif isinstance(entry.message, Raw):
        yield from _said(entry, decode_message(entry.message))


def _said(entry: HistoryEntry, message: Message) -> Iterator[Piece]:
    texts: list[str] = []
    for block in message.content:
        match block:
            case ToolCall():
                yield from _spoken(entry, message, texts)
                yield Call(
                    entry.entry_id, block.call_id, one_line(block.name), one_line(target_of(block, None))
                )
            case ToolResult():
                text = shown(text_of(block.content))[:RESULT_CHARS]
                name = one_line(block.name or "")
                is_pruned = entry.pruned_at is not None
                yield Result(entry.entry_id, block.call_id, name, text, block.is_error, is_pruned)
            case Thinking(text=text) if text.strip():
                yield Thought(entry.entry_id, shown(text))
            case _:
                texts.append(text_of((block,)))
    yield from _spoken(entry, message, texts)


def _spoken(entry: HistoryEntry, message: Message, texts: list[str]) -> Iterator[Piece]:
    text = shown("\n\n".join(one for one in texts if one.strip()))
    texts.clear()
    if not text:
        return
    if message.role == "user":
        is_synthetic = message.meta is not None and message.meta.synthetic
        yield Prompt(entry.entry_id, text, is_synthetic or is_summary(message))
    elif message.role == "assistant":
        yield Answer(entry.entry_id, text)
    else:
        yield Note(entry.entry_id, f"{message.role}: {one_line(text)}")


def text_of(content: str | Sequence[Block]) -> str:
    """A content as text; what is none, in brackets."""
    if isinstance(content, str):
        return content
    texts = []
    for block in content:
        match block:
            case Text(text=text) | Thinking(text=text):
                texts.append(text)
            case Image(media_type=media_type):
                texts.append(f"[{media_type}]")
            case Document(text=text, title=title, media_type=media_type):
                texts.append(text or f"[{title or media_type}]")
            case _:
                texts.append("")
    return "\n".join(texts)


def shown(text: str) -> str:
    """`text` as it is shown: harmless, and without empty lines around it."""
    return harmless(text).strip("\n")


def harmless(text: str) -> str:
    """`text`, or a part of one, without what could command a terminal or reach outside its place."""
    return cleaned(text.replace("\r\n", "\n").replace("\r", "\n")).expandtabs(TAB)


def left_behind(entries: Sequence[HistoryEntry]) -> frozenset[str]:
    """Ids of the messages that are out of the context though no compaction took them: of branches left.

    Nothing but a branch leaves a message that is newer than what the last compaction kept. What a branch
    left before a compaction in force counts as what that one took. O(entries).
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
    """`compacted 41 messages · 158k → 16k · kept 87 % of the repeated details · u undo · enter open`, and
    the same with less and less, for less room."""
    text = rule_text(result)
    keys = "u undo · enter open" if is_in_force else "no longer in force"
    brief = text.removesuffix(" of the repeated details")
    return (f"{text} · {keys}", f"{brief} · {keys}", brief, brief.partition(" · ")[0])


def rule_text(result: CompactionResult) -> str:
    """`compacted 41 messages · 158k → 16k · kept 87 % of the repeated details`."""
    parts = [
        f"compacted {plural(result.messages_removed, 'message')}",
        f"{short(result.tokens_before)} → {short(result.tokens_after)}",
    ]
    if result.retention is not None and (result.retention.kept or result.retention.lost):
        parts.append(f"kept {100 * result.retention.score:.0f} % of the repeated details")
    return " · ".join(parts)


def short(tokens: int) -> str:
    """`950`, `8.4k`, `158k`, `1.2M`."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 9_950:
        return f"{tokens / 1_000:.1f}k"
    if tokens < 999_500:
        return f"{tokens / 1_000:.0f}k"
    return f"{tokens / 1_000_000:.1f}M"


def call_line(call: Call | None, result: Result | None) -> str:
    """A call and what came of it in one line: `bash  ls server  · 34 lines`."""
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
    """The prompts of a person by their entries, oldest first: (id, first line)."""
    return {e.entry_id: one_line(e.title) for e in entries if e.kind == "message" and e.title is not None}
