"""List what a request in a provider's format loses of a session, message by message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Raw

from compactd.formats.files.losses import Loss
from compactd.formats.messages.base import read_messages
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Block, Document, Image, Message, Thinking


def shape_losses(messages: Sequence[Message], made: Sequence[Raw], format: str) -> Iterator[Loss]:
    """Yield what `messages` lose in `made`, their request in the format `format`, in the order of the
    messages. O(bytes).

    What the projection repairs is not included; the projection itself reports its repairs.
    """
    left = _count_blocks(made, format)
    for place, message in enumerate(messages):
        yield from ((place, what) for what in _unsendable_fields(message))
        for block in message.content:
            key = _key(block)
            if key is None:
                continue
            if left[key] > 0:
                left[key] -= 1
            else:
                yield place, _NAMES[type(block)]


_NAMES: dict[type[Block], str] = {Thinking: "the thinking", Image: "an image", Document: "a document"}


def _count_blocks(made: Sequence[Raw], format: str) -> Counter[str]:
    """Return how often the request `made` contains each thought, image and document, by `_key`."""
    try:
        read = [message for message, _ in read_messages(made, format)]
    except CompactdError:
        return Counter()
    keys = (_key(block) for message in read for block in message.content)
    return Counter(key for key in keys if key is not None)


def _key(block: Block) -> str | None:
    match block:
        case Thinking():
            return f"thinking {block.text or block.redacted}"
        case Image():
            return f"image {block.data or block.url}"
        case Document():
            return f"document {block.data or block.url or block.text}"
        case _:
            return None


def _unsendable_fields(message: Message) -> Iterator[str]:
    """Yield the fields next to a message's content that no provider's request can contain."""
    if message.id is not None:
        yield "the message's id"
    if message.created_at is not None:
        yield "the time"
    if message.usage is not None:
        yield "the usage report"
    if message.stop_reason is not None:
        yield "the stop reason"
    meta = message.meta
    if meta is not None and (meta.synthetic or meta.kind is not None or meta.pinned):
        yield "whether a program wrote the message, its kind, and whether it is pinned"
