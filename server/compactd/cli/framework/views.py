"""What a compaction changed in the view: for each message its tokens before and after, and its fate (kept,
pinned, pruned or summarised).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from compactd.cli.inspect.anatomy import description_of
from compactd.cli.inspect.context import breakdown_of, round_each
from compactd.core.history.active_steps import ViewStep
from compactd.core.history.entries import Compacted, Entry, Item, View
from compactd.core.history.state import replay
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import CompactionResult, ToolCall
from compactd.storage.journal_records import scan

Fate = Literal["kept", "pinned", "pruned", "summarised"]

FATES: tuple[Fate, ...] = ("kept", "pinned", "pruned", "summarised")


class MessageRow(Struct, frozen=True, kw_only=True):
    """A message of the view before a compaction, and what happened to it."""

    entry_id: str
    fate: Fate
    kind: str
    what: str
    tokens: int
    """Tokens before the compaction."""
    tokens_after: int
    """Tokens after the compaction. 0 if the message was summarised."""


class CompactionChange(Struct, frozen=True, kw_only=True):
    """What a compaction changed. Sizes are in tokens."""

    rows: tuple[MessageRow, ...]
    """The messages of the view before the compaction, oldest first."""
    summary: str
    """The text of the summary; empty if nothing was summarised."""
    summary_tokens: int
    tokens_before: int
    """Size of the whole request before the compaction."""
    tokens_after: int
    fixed_tokens: int
    """Tokens of the system prompt and tools, whether or not the file contains them."""
    messages_before: int
    messages_after: int
    at: float
    """Time of the compaction, in Unix seconds."""
    result: CompactionResult | None
    """The result of the compaction; None for a prune."""

    def totals_of(self, fate: Fate) -> tuple[int, int, int]:
        """Return (number of messages with this fate, their tokens before, their tokens after)."""
        rows = [row for row in self.rows if row.fate == fate]
        return len(rows), sum(row.tokens for row in rows), sum(row.tokens_after for row in rows)


def last_change(
    data: bytes, working_dir: str | None = None, used: int | None = None
) -> CompactionChange | None:
    """Find the last compaction or prune in the journal `data` that was not undone. Return what it changed;
    None if there is none.

    `used`: tokens of the request before that compaction; by default the size in the journal. File names in
    the result are relative to `working_dir`. Raise `ValueError` if the journal is damaged or has another
    version. O(bytes).
    """
    found = scan(data)
    if found.damage is not None or not found.records:
        raise ValueError("the journal is damaged")
    try:
        decode = msgspec.json.Decoder(Entry).decode
        entries: list[Entry] = [decode(record) for record in found.records]
        steps = replay(entries, decode_message).in_force.steps
        return _change(entries, steps[-1], working_dir, used) if steps else None
    except (msgspec.MsgspecError, LookupError) as error:
        raise ValueError("the journal is damaged") from error


def _change(
    entries: Sequence[Entry], step: ViewStep, working_dir: str | None, used: int | None
) -> CompactionChange:
    at = next(n for n, entry in enumerate(entries) if isinstance(entry, type(step)) and entry.id == step.id)
    state = replay(entries[:at], decode_message)
    before = state.view()
    parts = {"fixed": sum(state.fixed), "messages": before.tokens}
    context = breakdown_of(parts, state.size if used is None else used)
    state.apply(entries[at])
    after = state.view()
    found = list(_rows(before, after, step, working_dir))
    tokens = round_each((row.tokens for row in found), context.scaled)
    rows = tuple(
        replace(row, tokens=now, tokens_after=now if row.tokens_after == row.tokens else then)
        for row, now, then in zip(
            found, tokens, map(context.scaled, (row.tokens_after for row in found)), strict=True
        )
    )
    summary_tokens = context.scaled(step.summary_tokens) if isinstance(step, Compacted) else 0
    beside = max(0, context.used - sum(row.tokens for row in rows))
    return CompactionChange(
        rows=rows,
        summary=step.summary if isinstance(step, Compacted) else "",
        summary_tokens=summary_tokens,
        tokens_before=context.used,
        tokens_after=beside + summary_tokens + sum(row.tokens_after for row in rows),
        fixed_tokens=beside,
        messages_before=len(before.items),
        messages_after=len(after.items),
        at=step.at,
        result=step.shown_result if isinstance(step, Compacted) else None,
    )


def _rows(before: View, after: View, step: ViewStep, working_dir: str | None) -> Iterator[MessageRow]:
    stays = {item.entry_id: item for item in after.items}
    pinned = set(step.pinned) if isinstance(step, Compacted) else set[str]()
    calls: dict[str, ToolCall] = {}
    for item in before.items:
        message = item.message
        calls.update((block.call_id, block) for block in message.content if isinstance(block, ToolCall))
        kind, what = description_of(message, calls, working_dir)
        now = stays.get(item.entry_id)
        yield MessageRow(
            entry_id=item.entry_id,
            fate=_fate(item, now, pinned),
            kind=kind,
            what=what,
            tokens=item.tokens,
            tokens_after=now.tokens if now is not None else 0,
        )


def _fate(item: Item, now: Item | None, pinned: set[str]) -> Fate:
    if now is None:
        return "summarised"
    if now.kind == "stub" and item.kind != "stub":
        return "pruned"
    return "pinned" if item.entry_id in pinned else "kept"
