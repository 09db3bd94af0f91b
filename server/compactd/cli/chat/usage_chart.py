"""What fills the window: the cells of its bar by kind, and the largest entries. From what the daemon said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Raw, Struct

from compactd.cli.framework.page import one_line
from compactd.cli.inspect.anatomy import PARTS, divided, target_of
from compactd.cli.inspect.bar import FREE, GROUPS, Gauge, share
from compactd.cli.inspect.context import NOT_IN_FILE, fill
from compactd.core.history.entries import is_summary
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import Message, Text, TokenUsage, ToolCall, ToolResult
from compactd.protocol.wire import HistoryEntry

CELLS = 100


class Row(Struct, frozen=True, kw_only=True):
    """One entry of a session, as far as the panel needs it."""

    entry_id: str
    kind: str
    """Of `PARTS`."""
    tokens: int
    """As the daemon counts them."""
    parts: Mapping[str, int]
    """Them by `PARTS`: a message may hold text, calls and reasoning."""
    what: str
    is_in_context: bool
    is_pinned: bool
    is_error: bool = False


NAMES: Mapping[str, str] = {
    "results": "tool result",
    "calls": "tool call",
    "text": "answer",
    "user": "prompt",
    "summary": "summary",
    "system": "system",
}


LEGEND: Mapping[str, str] = {
    "system": "system prompt and tools",
    "results": "tool results",
    "calls": "tool calls",
    "user": "prompts",
    "text": "answers",
    "reasoning": "reasoning",
}


def rows_of(entries: Iterable[HistoryEntry], calls: dict[str, ToolCall]) -> dict[str, Row]:
    """By entry id, oldest first. `calls`: of the entries before; these are added. O(entries)."""
    rows: dict[str, Row] = {}
    for entry in entries:
        tokens = entry.tokens or 0
        if entry.compaction is not None:
            what, kind, is_error = entry.compaction.summary, "summary", False
            parts: Mapping[str, int] = {"summary": tokens}
        elif isinstance(entry.message, Raw):
            message = decode_message(entry.message)
            kind, what, is_error = _about(message, calls)
            parts = divided(message, tokens)
        else:
            continue
        rows[entry.entry_id] = Row(
            entry_id=entry.entry_id,
            kind=kind,
            tokens=tokens,
            parts=parts,
            what=one_line(what[:400]),
            is_in_context=entry.in_context,
            is_pinned=entry.pinned,
            is_error=is_error,
        )
    return rows


def _about(message: Message, calls: dict[str, ToolCall]) -> tuple[str, str, bool]:
    """Kind, what it is about, whether it failed. A message with calls is theirs."""
    kind = (
        "summary" if is_summary(message) else {"system": "system", "user": "user"}.get(message.role, "text")
    )
    what, is_error = "", False
    for block in message.content:
        match block:
            case ToolCall():
                calls[block.call_id] = block
                if kind != "calls":
                    kind, what = "calls", f"{block.name} {target_of(block, None)}"
            case ToolResult():
                call = calls.get(block.call_id)
                what = f"{call.name} {target_of(call, None)}" if call else block.name or "a call"
                kind, is_error = "results", is_error or block.is_error
            case Text(text=text) if not what:
                what = text[:400]
            case _:
                pass
    return kind, what, is_error


def gauge_of(rows: Iterable[Row], usage: TokenUsage, *, is_enabled: bool) -> Gauge:
    """The window as it is filled. How full it is stands in `usage`; `rows` only divide that. O(rows).

    What the rows do not explain is system prompt and tools; where they explain more than there is, they
    are estimates beside a report, and shrink to it.
    """
    parts = dict.fromkeys(PARTS, 0)
    for row in rows:
        if row.is_in_context:
            for part, tokens in row.parts.items():
                parts[part] += tokens
    used = usage.current_context_tokens or 0
    parts = dict(fill(parts, used).parts)
    parts["system"] += parts.pop(NOT_IN_FILE)
    return Gauge(
        parts=parts,
        used=used,
        window=usage.context_window,
        threshold=usage.threshold_tokens if is_enabled else None,
        is_guess=usage.context_window_confidence == "guess",
    )


def cells_of(gauge: Gauge) -> str:
    """The window as `CELLS` cells: each shade as many as its share, what is free behind; each part that is
    there has one at least."""
    whole = max(1, gauge.window or 0, gauge.used)
    cells = ""
    done = 0
    for shade, names in GROUPS:
        some = sum(gauge.parts.get(name, 0) for name in names)
        done += some
        cells += shade * max(min(1, some), round(CELLS * done / whole) - len(cells))
    return cells[:CELLS].ljust(CELLS, FREE)


def threshold_cell(gauge: Gauge) -> int | None:
    """The cell that a compaction comes at, counted from 0; none where none does."""
    whole = max(1, gauge.window or 0, gauge.used)
    if gauge.threshold is None or gauge.threshold > whole:
        return None
    return min(CELLS - 1, CELLS * gauge.threshold // whole)


def legend(gauge: Gauge) -> Sequence[str]:
    """What each shade means, with its share of the window: a line each."""
    lines = []
    for shade, names in GROUPS:
        shares = [f"{LEGEND.get(name, name)} {share(gauge, name)}" for name in names if gauge.parts.get(name)]
        if shares:
            lines.append(f"{shade} {' · '.join(shares)}")
    return lines


def largest(rows: Iterable[Row], most: int) -> Sequence[Row]:
    """The entries of the context that take most. O(rows · log most)."""
    from heapq import nlargest

    return nlargest(most, (row for row in rows if row.is_in_context), key=lambda row: row.tokens)


def pinned(rows: Iterable[Row], kept: Sequence[str]) -> Sequence[Row]:
    """The entries that stay in every view, oldest first. `kept`: those that the last compaction pinned."""
    return [row for row in rows if row.is_in_context and (row.is_pinned or row.entry_id in kept)]
