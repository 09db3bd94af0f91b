"""How a context grew: its size turn by turn, its compactions, and a forecast of the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from compactd.cli.inspect.anatomy import MessagePlace
from compactd.core.budget.budget import is_due
from compactd.core.history.entries import is_summary
from compactd.core.tokens.counting import Counter, message_tokens
from compactd.core.tokens.usage import context_size, normalise, visible_output
from compactd.protocol.messages import Message

T = TypeVar("T")

LEVELS = "▁▂▃▄▅▆▇█"
MIN_GROWTH_POINTS = 3
"""The least number of sizes for a forecast."""


class GrowthPoint(Struct, frozen=True):
    """The size of the context after an answer, in tokens."""

    turn: int
    tokens: int
    since: int
    """The number of compactions before the answer."""


class Growth(Struct, frozen=True, kw_only=True):
    """How a context grew."""

    sizes: tuple[GrowthPoint, ...]
    """The size after each answer, oldest first."""
    compactions: tuple[int, ...]
    """The turn of each compaction."""
    measured: bool
    """True if the sizes come from the provider's usage reports; otherwise they are estimates."""

    @property
    def by_turn(self) -> tuple[GrowthPoint, ...]:
        """The last size of each turn. A turn with a compaction has two sizes: the last one before the
        compaction and the last one after it.
        """
        last = {(size.since, size.turn): size for size in self.sizes}
        return tuple(last.values())


class Forecast(Struct, frozen=True, kw_only=True):
    """When the next compaction is due, if the context keeps growing as it did since the last compaction."""

    steps: int
    unit: str
    """`turn`, or `answer` if there were too few turns."""
    tokens_each: int


def growth_of(
    messages: Sequence[Message],
    places: Sequence[MessagePlace],
    counter: Counter,
    fixed_tokens: int,
    compacted_after: Sequence[int] = (),
    counted: Mapping[int, int] = {},
) -> Growth:
    """Return the growth of a whole conversation. O(messages).

    `fixed_tokens`: tokens of the system prompt and tools. `compacted_after`: for each compaction that left no
    summary in `messages`, how many of `messages` came before it. `counted`: message number -> tokens of the
    message, if they are known already.
    """
    sizes = [_reported_size(message) for message in messages]
    answers = sum(message.role == "assistant" for message in messages)
    measured = 2 * sum(size is not None for size in sizes) > answers
    found: list[GrowthPoint] = []
    compactions: list[int] = []
    total = fixed_tokens
    for message, place, size in zip(messages, places, sizes, strict=True):
        if is_summary(message) or place.number - 1 in compacted_after:
            compactions.append(place.turn)
            total = fixed_tokens
        if measured:
            # The provider's reports give the sizes, so nothing is counted.
            if size is not None:
                found.append(GrowthPoint(place.turn, size, len(compactions)))
            continue
        known = counted.get(place.number)
        total += message_tokens(message, counter) if known is None else known
        if message.role == "assistant":
            found.append(GrowthPoint(place.turn, total, len(compactions)))
    if messages and len(messages) in compacted_after:
        compactions.append(places[-1].turn)
    return Growth(sizes=tuple(found), compactions=tuple(compactions), measured=measured)


def _reported_size(message: Message) -> int | None:
    """Return the size of the context after an answer, as the provider reported it; None for other messages
    and for answers without a report.
    """
    if message.role != "assistant" or message.usage is None:
        return None
    usage, _ = normalise(message.usage)
    size = context_size(usage)
    return size + visible_output(usage) if size else None


def forecast(growth: Growth, used: int, threshold: int | None) -> Forecast | None:
    """Return when the next compaction is due; None if the context does not grow, if too little is known, or
    if a compaction is due already. `used`: tokens of the next request.
    """
    if threshold is None or is_due(used, threshold):
        return None
    for unit, sizes in (("turn", growth.by_turn), ("answer", growth.sizes)):
        live = [size.tokens for size in sizes if size.since == len(growth.compactions)]
        if len(live) < MIN_GROWTH_POINTS:
            continue
        each = (live[-1] - live[0]) // (len(live) - 1)
        if each > 0:
            return Forecast(steps=max(1, -(-(threshold - used) // each)), unit=unit, tokens_each=each)
    return None


def thin(values: Sequence[T], most: int) -> list[T]:
    """Return at most `most` of `values`, evenly chosen, including the last."""
    count = min(most, len(values))
    return [values[(at + 1) * len(values) // count - 1] for at in range(count)]


def sparkline(values: Sequence[int], width: int) -> str:
    """Return `values` as a line of at most `width` bars. If there are more values than bars, each bar shows
    the largest of several values.
    """
    if not values:
        return ""
    count = min(width, len(values))
    shares = [values[i * len(values) // count : (i + 1) * len(values) // count] for i in range(count)]
    highest = max(1, *values)
    top = len(LEVELS) - 1
    return "".join(LEVELS[min(top, max(share) * len(LEVELS) // highest)] for share in shares)
