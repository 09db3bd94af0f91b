"""What fills the context window: the cells of the bar by kind, and the largest entries. All of it is computed
from the daemon's data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Raw, Struct

from compactd.cli.framework.page import one_line
from compactd.cli.inspect.anatomy import PARTS, call_subject, divide
from compactd.cli.inspect.bar import FREE, GROUPS, Gauge, share
from compactd.cli.inspect.context import NOT_IN_FILE, breakdown_of
from compactd.core.history.entries import is_summary
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import Message, Text, TokenUsage, ToolCall, ToolResult
from compactd.protocol.wire import HistoryEntry

CELLS = 100


class ChartEntry(Struct, frozen=True, kw_only=True):
    """What the panel needs to know about one entry of a session."""

    entry_id: str
    kind: str
    """The kind of the entry: one of `PARTS`, such as `user` or `results`."""
    tokens: int
    """The tokens of the entry, as the daemon counts them."""
    parts: Mapping[str, int]
    """The same tokens, divided among `PARTS`: a message may contain text, calls and reasoning."""
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


def rows_of(entries: Iterable[HistoryEntry], calls: dict[str, ToolCall]) -> dict[str, ChartEntry]:
    """Return a row for each compaction and each message in `entries`, by entry id, oldest first. O(entries).

    `calls`: the tool calls of earlier entries, by call id. The calls in `entries` are added to it.
    """
    rows: dict[str, ChartEntry] = {}
    for entry in entries:
        tokens = entry.tokens or 0
        if entry.compaction is not None:
            what, kind, is_error = entry.compaction.summary, "summary", False
            parts: Mapping[str, int] = {"summary": tokens}
        elif isinstance(entry.message, Raw):
            message = decode_message(entry.message)
            kind, what, is_error = _kind_and_subject(message, calls)
            parts = divide(message, tokens)
        else:
            continue
        rows[entry.entry_id] = ChartEntry(
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


def _kind_and_subject(message: Message, calls: dict[str, ToolCall]) -> tuple[str, str, bool]:
    """Return the kind of a message, its subject, and whether it failed. A message with tool calls counts as
    a call.
    """
    kind = (
        "summary" if is_summary(message) else {"system": "system", "user": "user"}.get(message.role, "text")
    )
    what, is_error = "", False
    for block in message.content:
        match block:
            case ToolCall():
                calls[block.call_id] = block
                if kind != "calls":
                    kind, what = "calls", f"{block.name} {call_subject(block, None)}"
            case ToolResult():
                call = calls.get(block.call_id)
                what = f"{call.name} {call_subject(call, None)}" if call else block.name or "a call"
                kind, is_error = "results", is_error or block.is_error
            case Text(text=text) if not what:
                what = text[:400]
            case _:
                pass
    return kind, what, is_error


def gauge_of(rows: Iterable[ChartEntry], usage: TokenUsage, *, is_enabled: bool) -> Gauge:
    """Divide the used tokens of the window among the kinds of entries. O(rows).

    The total comes from `usage`. Tokens that the rows do not explain are system prompt and tools. If the sum
    of the rows exceeds the total, the rows are scaled down to it, because they are estimates. `is_enabled`:
    automatic compaction is on.
    """
    parts = dict.fromkeys(PARTS, 0)
    for row in rows:
        if row.is_in_context:
            for part, tokens in row.parts.items():
                parts[part] += tokens
    used = usage.current_context_tokens or 0
    parts = dict(breakdown_of(parts, used).parts)
    parts["system"] += parts.pop(NOT_IN_FILE)
    return Gauge(
        parts=parts,
        used=used,
        window=usage.context_window,
        threshold=usage.threshold_tokens if is_enabled else None,
        is_guess=usage.context_window_confidence == "guess",
    )


def cells_of(gauge: Gauge) -> str:
    """Return the bar of the window as `CELLS` characters. Each group of parts has cells of its own shade, in
    proportion to its tokens; a group that is not empty has at least one. The remaining cells are free.
    """
    whole = max(1, gauge.window or 0, gauge.used)
    cells = ""
    done = 0
    for shade, names in GROUPS:
        some = sum(gauge.parts.get(name, 0) for name in names)
        done += some
        cells += shade * max(min(1, some), round(CELLS * done / whole) - len(cells))
    return cells[:CELLS].ljust(CELLS, FREE)


def threshold_cell(gauge: Gauge) -> int | None:
    """Return the index of the bar's cell at the compaction threshold, from 0; None if there is no threshold,
    or if it is beyond the end of the bar.
    """
    whole = max(1, gauge.window or 0, gauge.used)
    if gauge.threshold is None or gauge.threshold > whole:
        return None
    return min(CELLS - 1, CELLS * gauge.threshold // whole)


def legend(gauge: Gauge) -> Sequence[str]:
    """Return one line per shade of the bar: the parts that it shows, and their shares of the window."""
    lines = []
    for shade, names in GROUPS:
        shares = [f"{LEGEND.get(name, name)} {share(gauge, name)}" for name in names if gauge.parts.get(name)]
        if shares:
            lines.append(f"{shade} {' · '.join(shares)}")
    return lines


def largest(rows: Iterable[ChartEntry], most: int) -> Sequence[ChartEntry]:
    """Return the `most` largest entries of the context, largest first. O(rows · log most)."""
    from heapq import nlargest

    return nlargest(most, (row for row in rows if row.is_in_context), key=lambda row: row.tokens)


def pinned_entries(rows: Iterable[ChartEntry], kept: Sequence[str]) -> Sequence[ChartEntry]:
    """Return the entries in the context that have a pin or that the last compaction pinned, oldest first.
    `kept`: the ids of the entries that the last compaction pinned.
    """
    return [row for row in rows if row.is_in_context and (row.is_pinned or row.entry_id in kept)]
