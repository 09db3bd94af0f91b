"""Match tool calls with their results. The projection, cut points and `Pending` use these rules:

- A result belongs to the newest earlier message that contains a call with its id; of several calls with the
  same id in that message, to the first without a result. A `call_id` that occurs again later is a new call.
- A call is open until a later user or assistant message. A tool message, a user message with only results, a
  system message and an empty message close nothing.
- A further result of an answered call is a duplicate. A result without a call is an orphan.

(Rules: docs/dev/behaviour.md, "Time travel".)
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from compactd.core.history.entries import Item
from compactd.protocol.messages import Block, Message, Text, ToolCall, ToolResult

BlockPlace = tuple[int, int]
"""(index of the message, index of the block in it)."""


class Matched(Struct, frozen=True):
    """Which result answers which call."""

    result_of: dict[BlockPlace, BlockPlace]
    """The place of the result, by the place of its call."""
    unpaired: dict[BlockPlace, str]
    """For the place of each result that answers no call, the kind of repair that the projection makes."""
    open: tuple[BlockPlace, ...]
    """The calls that still wait for a result after the last message, in order."""


def is_blank(block: Block) -> bool:
    """Return whether a block is text with nothing but white space, which providers refuse."""
    return isinstance(block, Text) and (not block.text or block.text.isspace())


def closes_calls(message: Message) -> bool:
    """Return whether no earlier call is open after this message. That is so if the role is user or assistant
    and the message contains more than results and empty text. O(blocks)."""
    return message.role in ("user", "assistant") and any(
        not isinstance(block, ToolResult) and not is_blank(block) for block in message.content
    )


class Pending:
    """The calls that wait for a result, updated message by message, so that an append needs no rescan."""

    def __init__(self, items: Sequence[Item] = ()) -> None:
        self._open: dict[str, int] = {}
        # Messages before the last one that closes all calls do not matter, so they are not decoded.
        start = next((at for at in range(len(items) - 1, -1, -1) if closes_calls(items[at].message)), 0)
        for item in items[start:]:
            self.add(item.message)

    @property
    def call_ids(self) -> tuple[str, ...]:
        """The ids of the open calls, in the order of the calls. An id that several open calls have is
        repeated."""
        return tuple(call_id for call_id, calls in self._open.items() for _ in range(calls))

    def add(self, message: Message) -> None:
        """Add the next message. O(its blocks)."""
        calls: dict[str, int] = {}
        for block in message.content:
            if isinstance(block, ToolResult):
                if self._open:
                    self._answer(block.call_id)
            elif isinstance(block, ToolCall):
                calls[block.call_id] = calls.get(block.call_id, 0) + 1
        if (calls or self._open) and closes_calls(message):
            self._open = calls

    def _answer(self, call_id: str) -> None:
        left = self._open.pop(call_id, 0) - 1
        if left > 0:
            self._open[call_id] = left


def match(items: Sequence[Item]) -> Matched:
    """Match the calls and results of `items`. O(blocks)."""
    result_of: dict[BlockPlace, BlockPlace] = {}
    unpaired: dict[BlockPlace, str] = {}
    # per id, the unanswered calls of the newest message with that id, last first
    newest: dict[str, list[BlockPlace]] = {}
    open_places: dict[BlockPlace, None] = {}
    for index, item in enumerate(items):
        calls: dict[str, list[BlockPlace]] = {}
        for at, block in enumerate(item.message.content):
            if isinstance(block, ToolCall):
                calls.setdefault(block.call_id, []).append((index, at))
            elif isinstance(block, ToolResult):
                waiting = newest.get(block.call_id)
                if waiting:
                    call = waiting.pop()
                    result_of[call] = (index, at)
                    open_places.pop(call, None)
                else:
                    unpaired[index, at] = "orphan_result" if waiting is None else "duplicate_result"
        if closes_calls(item.message):
            open_places = {place: None for places in calls.values() for place in places}
        newest.update((call_id, places[::-1]) for call_id, places in calls.items())
    return Matched(result_of, unpaired, tuple(sorted(open_places)))
