"""How calls and their results find each other: the one mechanism behind projection, cuts and `pending_calls`.

- A result belongs to the newest message before it that holds a call with its id; among calls of one message
  with the same id, to the first that has none. A `call_id` that comes again later is a new call.
- A call is open until a later user or assistant message. A tool message, a user message of nothing but
  results, a system message and an empty message close nothing.
- A further result of an answered call is a duplicate; a result whose call is not there is an orphan.
(Rules: docs/dev/behaviour.md, "Time travel".)
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from compactd.core.history.entries import Item
from compactd.protocol.messages import Block, Message, Text, ToolCall, ToolResult

Place = tuple[int, int]
"""(index of the message, index of the block in it)."""


class Matched(Struct, frozen=True):
    """Which result answers which call."""

    result_of: dict[Place, Place]
    """Call to result."""
    unpaired: dict[Place, str]
    """Result to the kind of its repair."""
    open: tuple[Place, ...]
    """Calls that are open at the end, in order."""


def is_blank(block: Block) -> bool:
    """True for text of nothing but white space, which providers refuse."""
    return isinstance(block, Text) and (not block.text or block.text.isspace())


def closes_calls(message: Message) -> bool:
    """True for a message after which no earlier call is open: a user's or an assistant's, with something in
    it beside results and empty text. O(blocks)."""
    return message.role in ("user", "assistant") and any(
        not isinstance(block, ToolResult) and not is_blank(block) for block in message.content
    )


class Pending:
    """The calls that wait for a result, kept up message by message, so that an append needs no rescan."""

    __slots__ = ("_open",)

    def __init__(self, items: Sequence[Item] = ()) -> None:
        self._open: dict[str, int] = {}
        # What came before the last message that closes all calls is of no more consequence, and stays bytes.
        start = next((at for at in range(len(items) - 1, -1, -1) if closes_calls(items[at].message)), 0)
        for item in items[start:]:
            self.add(item.message)

    @property
    def call_ids(self) -> tuple[str, ...]:
        """Ids of the open calls, in the order they were made; an id as often as it is open."""
        return tuple(call_id for call_id, calls in self._open.items() for _ in range(calls))

    def add(self, message: Message) -> None:
        """Takes in the next message. O(its blocks)."""
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


def pending_calls(items: Sequence[Item]) -> tuple[str, ...]:
    """Ids of the calls that are open after the last item, in the order they were made. O(blocks)."""
    return Pending(items).call_ids


def pairs(items: Sequence[Item]) -> tuple[tuple[int, int], ...]:
    """(index of the call's message, index of its result's message) for each call that has a result.

    By rising call; both indices into `items`; a late result, after the call was closed, included. O(blocks).
    """
    return tuple((call[0], result[0]) for call, result in sorted(match(items).result_of.items()))


def open_calls(items: Sequence[Item]) -> tuple[int, ...]:
    """Indices of the messages whose calls are still open after the last item. O(blocks)."""
    return tuple(sorted({place[0] for place in match(items).open}))


def open_call_barriers(items: Sequence[Item]) -> tuple[bool, ...]:
    """For each index, whether a cut before it would part a call from its result, or an open call from what
    follows. As long as `items`. O(blocks)."""
    matched = match(items)
    reach = [0] * (len(items) + 1)
    spans = [(call[0], result[0]) for call, result in matched.result_of.items()]
    spans += [(call[0], len(items) - 1) for call in matched.open]
    for start, end in spans:
        reach[start + 1] += 1
        reach[end + 1] -= 1
    barriers, depth = [], 0
    for change in reach[: len(items)]:
        depth += change
        barriers.append(depth > 0)
    return tuple(barriers)


def match(items: Sequence[Item]) -> Matched:
    """Calls and results of `items`, paired. O(blocks)."""
    result_of: dict[Place, Place] = {}
    unpaired: dict[Place, str] = {}
    newest: dict[str, list[Place]] = {}  # unanswered calls of the newest message with that id, last first
    open_places: dict[Place, None] = {}
    for index, item in enumerate(items):
        calls: dict[str, list[Place]] = {}
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
