"""Build the view from a session's messages and from the compactions and prunes that are in force (not undone,
on the current branch)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from compactd.core.history.entries import (
    Compacted,
    EntryId,
    Item,
    ProviderSummary,
    Pruned,
    Stub,
    summary_message,
    with_stub,
)
from compactd.protocol.messages import Message

CountMessage = Callable[[Message], int]
"""A function that counts the tokens of a message with the session's estimator."""


class Recount(Struct, frozen=True):
    """What to count again because another estimator than the session's counted it."""

    steps: frozenset[EntryId]
    """The compactions and prunes whose token counts in the journal are from another estimator."""
    count: CountMessage


def build_view(
    steps: Sequence[Compacted | Pruned],
    path: Sequence[EntryId],
    originals: Mapping[EntryId, Item],
    recount: Recount | None,
) -> tuple[list[Item], int]:
    """Return the view's items (summary, pinned, tail), and the index at which the verbatim tail begins.

    `steps` are the compactions and prunes that are in force, oldest first. The view shows the summary of the
    last compaction. `path` has the entries from the root to the leaf. Without `recount`, the journal's token
    counts are used. O(path).
    """
    stubs: dict[EntryId, tuple[Stub, CountMessage | None]] = {}
    last: Compacted | None = None
    last_count: CountMessage | None = None
    for step in steps:
        count = recount.count if recount is not None and step.id in recount.steps else None
        stubs.update((stub.entry_id, (stub, count)) for stub in step.stubs)
        if isinstance(step, Compacted):
            last, last_count = step, count
    items: list[Item] = []
    start = 0
    if last is not None:
        message = summary_message(last)
        tokens = last.summary_tokens if last_count is None else last_count(message)
        items.append(item_of_summary(last.id, message, tokens, last.provider))
        items.extend(_with_stub_of(originals[i], stubs) for i in last.pinned)
        start = entry_index(path, last.id if last.first_kept is None else last.first_kept)
    tail_from = len(items)
    tail = [originals[i] for i in path[start:] if i in originals]
    # Copy the list as a whole if possible: there may be tens of thousands of messages, and most are
    # unchanged.
    items += [_with_stub_of(i, stubs) if i.entry_id in stubs else i for i in tail] if stubs else tail
    return items, tail_from


def item_of_summary(
    entry_id: EntryId, message: Message, tokens: int, provider: ProviderSummary | None
) -> Item:
    """Return a summary as an item of a view. `tokens` are those of `message`. If a request may contain the
    provider's own summary instead, the item counts as the larger of the two."""
    if provider is not None:
        tokens = max(tokens, provider.tokens)
    return Item(entry_id=entry_id, body=message, tokens=tokens, kind="summary", provider=provider)


def _with_stub_of(item: Item, stubs: Mapping[EntryId, tuple[Stub, CountMessage | None]]) -> Item:
    found = stubs.get(item.entry_id)
    if found is None:
        return item
    stub, count = found
    short = with_stub(item, stub)
    return short if count is None else msgspec.structs.replace(short, tokens=count(short.message))


def entry_index(path: Sequence[EntryId], entry_id: EntryId) -> int:
    """Return the index of the last entry with this id in `path`. Raise `ValueError` if there is none.
    O(path)."""
    return len(path) - 1 - path[::-1].index(entry_id)


def tokens_behind(items: Sequence[Item], entry_id: EntryId | None) -> tuple[int | None, int]:
    """Return (tokens of the message with this id, tokens of the messages after it). If the message is not
    among `items`, return (None, tokens of all items). O(messages after it)."""
    came = 0
    for item in reversed(items):
        if item.entry_id == entry_id:
            return item.tokens, came
        came += item.tokens
    return None, came
