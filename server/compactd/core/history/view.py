"""What the next request shows of a session's messages, after the compactions and prunes in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from compactd.core.history.entries import Compacted, EntryId, Item, Pruned, Stub, summary_message, with_stub
from compactd.protocol.messages import Message

STEP = 10_000
"""Entries looked through at once."""

Count = Callable[[Message], int]
"""Tokens of a message, in the session's estimator."""


class Recount(Struct, frozen=True):
    """How to count again what another estimator than the session's counted."""

    steps: frozenset[EntryId]
    """The compactions and prunes whose counts in the journal are another's."""
    count: Count


def shown(
    steps: Sequence[Compacted | Pruned],
    path: Sequence[EntryId],
    originals: Mapping[EntryId, Item],
    recount: Recount | None,
) -> tuple[list[Item], int]:
    """The view's items, and the index among them where the verbatim tail begins: summary, pinned, tail.

    `steps`: those in force, oldest first; the last compaction decides. `path`: entries from the root to the
    leaf. `recount`: none shows the journal's counts. O(path).
    """
    stubs: dict[EntryId, tuple[Stub, Count | None]] = {}
    last: Compacted | None = None
    last_count: Count | None = None
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
        items.append(Item(entry_id=last.id, body=message, tokens=tokens, kind="summary"))
        items.extend(_with_stub_of(originals[i], stubs) for i in last.pinned)
        start = place_of(path, last.id if last.first_kept is None else last.first_kept)
    tail_from = len(items)
    tail = [originals[i] for i in path[start:] if i in originals]
    # Most are as they came, and there may be tens of thousands.
    items += [_with_stub_of(i, stubs) if i.entry_id in stubs else i for i in tail] if stubs else tail
    return items, tail_from


def _with_stub_of(item: Item, stubs: Mapping[EntryId, tuple[Stub, Count | None]]) -> Item:
    found = stubs.get(item.entry_id)
    if found is None:
        return item
    stub, count = found
    short = with_stub(item, stub)
    return short if count is None else msgspec.structs.replace(short, tokens=count(short.message))


def place_of(path: Sequence[EntryId], entry_id: EntryId) -> int:
    """Where an entry stands; raises `ValueError` where it does not. O(what follows it), in steps of less than
    a millisecond: others get the interpreter between them."""
    end = len(path)
    while end > 0:
        start = max(0, end - STEP)
        with suppress(ValueError):
            return path.index(entry_id, start, end)
        end = start
    raise ValueError(f"{entry_id!r} is no entry of this path")


def behind(items: Sequence[Item], entry_id: EntryId | None) -> tuple[int | None, int]:
    """(tokens of that message, none where it is not among `items`; tokens of what follows it, of everything
    where it is not there). O(what follows)."""
    came = 0
    for item in reversed(items):
        if item.entry_id == entry_id:
            return item.tokens, came
        came += item.tokens
    return None, came
