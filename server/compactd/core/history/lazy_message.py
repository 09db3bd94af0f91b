"""Messages that stay bytes until somebody asks for them.

To open a stored session is to fold all its entries, and most of the messages in them are looked at by nobody
before the next compaction, which runs in a worker: decoding all of them took half the time of an opening
(measured 2026-11).
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from msgspec import Raw, Struct

from compactd.protocol.messages import Message

Decode = Callable[[Raw], Message]
"""A message out of its bytes in neutral shape. Raises what is told to the client where it holds none."""

_deciding = Lock()


class OnDemand(Struct, eq=False, gc=False):
    """A message as the journal has it, decoded when it is first asked for, and once.

    Equal to the message it holds. Several threads may ask: all of them get the same object.
    """

    source: Raw
    decode: Decode
    known: Message | None = None
    """The message, once it was asked for. Whoever decodes first decides: who compares blocks by identity
    must not meet two of them."""

    @property
    def message(self) -> Message:
        """The message. O(bytes) at first. Raises as `decode`."""
        known = self.known
        if known is None:
            message = self.decode(self.source)
            with _deciding:
                if self.known is None:
                    self.known = message
                known = self.known
        return known

    def let_go(self) -> None:
        """Keeps the bytes alone: whoever asks next gets another object, equal to the one that was known."""
        with _deciding:
            self.known = None

    @property
    def is_decoded(self) -> bool:
        """True once somebody asked for the message."""
        return self.known is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OnDemand):
            return self.message == other.message
        return self.message == other if isinstance(other, Message) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.message)
