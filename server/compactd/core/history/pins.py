"""Find which messages are pinned: by their own `meta`, or by `session/pin`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compactd.core.history.entries import EntryId, Item
from compactd.protocol.messages import Message


def is_pinned(message: Message) -> bool:
    """Return whether the message's own `meta` pins it."""
    return message.meta is not None and message.meta.pinned


def pinned_of(items: Iterable[Item], marks: Mapping[EntryId, bool]) -> tuple[EntryId, ...]:
    """Return the ids of the pinned messages among `items`, in order. `marks` says, for each message that
    `session/pin` named, whether it is pinned, and takes precedence over the message's `meta`. O(items);
    messages without a mark are decoded."""
    return tuple(
        item.entry_id
        for item in items
        if (is_pinned(item.message) if (mark := marks.get(item.entry_id)) is None else mark)
    )
