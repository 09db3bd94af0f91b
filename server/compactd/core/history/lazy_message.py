"""Messages that are decoded lazily: they stay bytes until someone asks for them.

Opening a session folds all its entries, but most messages are not needed before the next compaction, which
runs in a worker. Decoding all of them would double the time to open.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from msgspec import Raw, Struct

from compactd.protocol.messages import Message

Decode = Callable[[Raw], Message]
"""A function that decodes a message from its bytes in compactd's own format. It raises an error for the
client if the bytes are not a message."""

_deciding = Lock()


class LazyMessage(Struct, eq=False, gc=False):
    """A message as in the journal, decoded once when it is first needed.

    It is equal to the message that it contains. Several threads may read it; all get the same object.
    """

    source: Raw
    decode: Decode
    known: Message | None = None
    """The decoded message, once someone asked for it. Only the first thread that decodes sets it, because
    code that compares blocks by identity must never see two objects."""

    @property
    def message(self) -> Message:
        """The message. O(bytes) the first time. Raises what `decode` raises."""
        known = self.known
        if known is None:
            message = self.decode(self.source)
            with _deciding:
                if self.known is None:
                    self.known = message
                known = self.known
        return known

    def drop_decoded(self) -> None:
        """Drop the decoded message and keep the bytes. The next access decodes them again and gives an equal
        object."""
        with _deciding:
            self.known = None

    @property
    def is_decoded(self) -> bool:
        """Whether the message is decoded."""
        return self.known is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LazyMessage):
            return self.message == other.message
        return self.message == other if isinstance(other, Message) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.message)
