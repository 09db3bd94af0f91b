"""Count the tokens of a session's messages again, with another tokenizer, after the model changed.

The session's state asks for the tokens of one message after the other. One tokenizer call per message would
block the event loop too long. So one call counts many messages, in a worker if possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from compactd.core.history.entries import Item
from compactd.core.tokens.counting import Counter, message_tokens, messages_tokens
from compactd.protocol.messages import Message

TOGETHER = 500
"""How many messages are counted in one call."""


class RecountCache:
    """A cache of the token counts by `counter`. The caller is expected to ask for the messages of `items`, in
    their order.
    """

    def __init__(self, counter: Counter, items: Iterable[Item]) -> None:
        self.counter = counter
        self._upcoming: Iterator[Item] = iter(items)
        self._known: dict[int, tuple[Message, int]] = {}
        """By `id(message)`, (the message, its tokens). The message is kept so that its `id` is not used for
        another object."""

    def prepare(self) -> None:
        """Count all expected messages in advance. O(messages); call it in a worker."""
        while some := [item.message for item in islice(self._upcoming, TOGETHER)]:
            self._count(some)

    def of(self, message: Message) -> int:
        """Return the number of tokens of any message, expected or not."""
        known = self._known.get(id(message))
        return message_tokens(message, self.counter) if known is None else known[1]

    def next(self, message: Message) -> int:
        """Return the number of tokens of the next expected message. Ask for each message once, in order.

        A message that is not counted yet is counted together with the messages after it, up to `TOGETHER` in
        one tokenizer call. The cache then drops the count that it returns.
        """
        if id(message) not in self._known:
            self._look_ahead(message)
        known = self._known.pop(id(message), None)
        return message_tokens(message, self.counter) if known is None else known[1]

    def forget(self) -> None:
        """Drop all counts and expect no further messages."""
        self._upcoming = iter(())
        self._known.clear()

    def _look_ahead(self, message: Message) -> None:
        for item in self._upcoming:
            # The message asked for is decoded. Do not decode the ones before it.
            if item.is_decoded and item.message is message:
                behind = (item.message for item in islice(self._upcoming, TOGETHER - 1))
                self._count([message, *behind])
                return

    def _count(self, messages: list[Message]) -> None:
        counts = messages_tokens(messages, self.counter)
        self._known.update((id(m), (m, n)) for m, n in zip(messages, counts, strict=True))
