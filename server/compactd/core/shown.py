"""What the next request shows of a session's messages, after the compactions and prunes in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from compactd.core.entries import Compacted, EntryId, Item, Pruned, Stub, summary_message, with_stub
from compactd.messages import Message

Count = Callable[[Message], int]
"""Tokens of a message, in the session's estimator."""


def shown(
    steps: Sequence[Compacted | Pruned],
    path: Sequence[EntryId],
    originals: Mapping[EntryId, Item],
    recount: Count | None,
) -> tuple[list[Item], int]:
    """The view's items, and the index among them where the verbatim tail begins: summary, pinned, tail.

    `steps`: those in force, oldest first; the last compaction decides. `path`: entries from the root to the
    leaf. `recount` counts summaries and stubs, where the journal's counts are another estimator's. O(path).
    """
    stubs: dict[EntryId, Stub] = {}
    last: Compacted | None = None
    for step in steps:
        stubs.update((stub.entry_id, stub) for stub in step.stubs)
        if isinstance(step, Compacted):
            last = step
    items: list[Item] = []
    start = 0
    if last is not None:
        message = summary_message(last)
        tokens = last.summary_tokens if recount is None else recount(message)
        items.append(Item(entry_id=last.id, body=message, tokens=tokens, kind="summary"))
        items.extend(_with_stub_of(originals[i], stubs, recount) for i in last.pinned)
        start = path.index(last.id if last.first_kept is None else last.first_kept)
    tail_from = len(items)
    items.extend(_with_stub_of(originals[i], stubs, recount) for i in path[start:] if i in originals)
    return items, tail_from


def _with_stub_of(item: Item, stubs: Mapping[EntryId, Stub], recount: Count | None) -> Item:
    stub = stubs.get(item.entry_id)
    if stub is None:
        return item
    short = with_stub(item, stub)
    return short if recount is None else msgspec.structs.replace(short, tokens=recount(short.message))


def behind(items: Sequence[Item], entry_id: EntryId | None) -> tuple[int | None, int]:
    """(tokens of that message, none where it is not among `items`; tokens of what follows it, of everything
    where it is not there). O(what follows)."""
    came = 0
    for item in reversed(items):
        if item.entry_id == entry_id:
            return item.tokens, came
        came += item.tokens
    return None, came
