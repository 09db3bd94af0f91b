"""Which messages stay in every later view: those their `meta` pins, and those that `session/pin` named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compactd.core.history.entries import EntryId, Item
from compactd.protocol.messages import Message


def is_pinned(message: Message) -> bool:
    """True where the message itself says so."""
    return message.meta is not None and message.meta.pinned


def pinned_of(items: Iterable[Item], marks: Mapping[EntryId, bool]) -> tuple[EntryId, ...]:
    """Ids of those of `items` that are pinned, in their order. `marks`: what `session/pin` said last of a
    message, which goes before its `meta`. O(items), and decodes those that nobody has asked for."""
    return tuple(
        item.entry_id
        for item in items
        if (is_pinned(item.message) if (mark := marks.get(item.entry_id)) is None else mark)
    )
