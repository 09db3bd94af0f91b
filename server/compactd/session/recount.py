"""A session's messages counted for another tokenizer: many at a time, and beside the loop where that can be.

A fold asks for one message after the other, when the model or the settings have changed. A call into the
tokenizer for each, on the loop: 230 ms for a million tokens, in which nobody else was answered (2026-11).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from compactd.core.history.entries import Item
from compactd.core.tokens.counting import Counter, message_tokens, messages_tokens
from compactd.protocol.messages import Message

TOGETHER = 500
"""Messages counted at a time."""


class Recounting:
    """Tokens of messages by `counter`, of which those of `items` are expected, in their order."""

    def __init__(self, counter: Counter, items: Iterable[Item]) -> None:
        self.counter = counter
        self._upcoming: Iterator[Item] = iter(items)
        self._known: dict[int, tuple[Message, int]] = {}
        """By the identity of the message, which is kept so that no other one gets it."""

    def prepare(self) -> None:
        """Counts all that is expected. O(messages); made for a worker."""
        while some := [item.message for item in islice(self._upcoming, TOGETHER)]:
            self._count(some)

    def of(self, message: Message) -> int:
        """Tokens of `message`, wherever it is from."""
        known = self._known.get(id(message))
        return message_tokens(message, self.counter) if known is None else known[1]

    def next(self, message: Message) -> int:
        """The same, for who asks for the expected ones in order, each once: those behind it are counted with
        it, and what was given is forgotten."""
        if id(message) not in self._known:
            self._look_ahead(message)
        known = self._known.pop(id(message), None)
        return message_tokens(message, self.counter) if known is None else known[1]

    def forget(self) -> None:
        """Nothing is expected any more."""
        self._upcoming = iter(())
        self._known.clear()

    def _look_ahead(self, message: Message) -> None:
        for item in self._upcoming:
            # Whoever asks has the message decoded; it is no reason to decode those before it.
            if item.is_decoded and item.message is message:
                behind = (item.message for item in islice(self._upcoming, TOGETHER - 1))
                self._count([message, *behind])
                return

    def _count(self, messages: list[Message]) -> None:
        counts = messages_tokens(messages, self.counter)
        self._known.update((id(m), (m, n)) for m, n in zip(messages, counts, strict=True))
