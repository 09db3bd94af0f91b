"""Definitions of an outline's parts, each computed from all messages of a view, to compare outlines with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compactd.core.history.entries import Item
from compactd.core.history.message_kinds import is_request, kind_of, newest_request
from compactd.core.history.outline import Outline, OutlineBuilder
from compactd.core.history.pins import is_pinned
from compactd.core.history.tool_pairs import BlockPlace, Matched, closes_calls, is_blank, match
from compactd.protocol.messages import ToolCall, ToolResult


def outline_of(items: Iterable[Item]) -> Outline:
    """The outline of these messages."""
    return OutlineBuilder(items).outline()


def splits_no_pair(items: Sequence[Item], matched: Matched) -> list[bool]:
    """For each cut, whether every call stays on the same side as its result."""
    return _outside(len(items), [(call[0], result[0]) for call, result in matched.result_of.items()])


def splits_no_open_call(items: Sequence[Item], matched: Matched) -> list[bool]:
    """For each cut, whether each call that still waits for its result stays, with all that follows it."""
    return _outside(len(items), [(call[0], len(items)) for call in matched.open])


def starts_with_no_result(items: Sequence[Item], matched: Matched) -> list[bool]:
    """For each cut, whether what stays begins with something else than a tool result."""
    return [kind_of(item.message) != "result" for item in items] + [True]


LAWS = (splits_no_pair, splits_no_open_call, starts_with_no_result)
"""Each gives, for the cuts 0 to len(items), whether it allows the cut."""


def lawful_cuts(items: Sequence[Item]) -> tuple[int, ...]:
    """Every cut that all laws allow."""
    matched = match(items)
    verdicts = zip(*(law(items, matched) for law in LAWS), strict=True)
    return tuple(cut for cut, allowed in enumerate(verdicts) if all(allowed))


def safe_cuts(items: Sequence[Item]) -> tuple[int, ...]:
    """The cuts that the outline of these messages allows."""
    return tuple(outline_of(items).safe(0, len(items)))


def pairs(items: Sequence[Item]) -> tuple[tuple[int, int], ...]:
    """(index of the call's message, index of its result's message) of each call that has a result."""
    return tuple((call[0], result[0]) for call, result in sorted(match(items).result_of.items()))


def open_calls(items: Sequence[Item]) -> tuple[int, ...]:
    """The messages whose calls are still open after the last item."""
    return tuple(sorted({place[0] for place in match(items).open}))


def batches(items: Sequence[Item]) -> dict[int, frozenset[int]]:
    """For each message with a call or a result, all that belong to its calls."""
    group: dict[int, set[int]] = {}
    for (call, _), (result, _) in match(items).result_of.items():
        joined = group.get(call, {call}) | group.get(result, {result})
        for index in joined:
            group[index] = joined
    return {index: frozenset(members) for index, members in group.items()}


def unanswered(items: Sequence[Item]) -> dict[int, int]:
    """Messages with calls that have no result, and how many."""
    answered = match(items).result_of
    found = {
        index: sum(
            isinstance(block, ToolCall) and (index, at) not in answered
            for at, block in enumerate(item.message.content)
        )
        for index, item in enumerate(items)
    }
    return {index: count for index, count in found.items() if count}


def left_out(items: Sequence[Item]) -> dict[int, tuple[int, ...]]:
    """Messages with results that answer no call, and which blocks those are."""
    return _by_message(match(items).unpaired)


def moved(items: Sequence[Item]) -> dict[int, tuple[int, ...]]:
    """Messages with results that stand apart from their call, and which blocks those are."""
    return _by_message(
        result
        for call, result in match(items).result_of.items()
        if not all(_only_results(item) for item in items[call[0] + 1 : result[0]])
    )


def shown_tokens(items: Iterable[Item]) -> int:
    """Return the tokens of all messages that are not empty."""
    return sum(item.tokens for item in items if not all(is_blank(block) for block in item.message.content))


def pinned(items: Sequence[Item]) -> tuple[int, ...]:
    """Messages that their `meta` pins."""
    return tuple(index for index, item in enumerate(items) if is_pinned(item.message))


def newest_spoken(items: Sequence[Item]) -> int | None:
    """The newest request that is no shell command."""
    newest = newest_request(items)
    if newest is None or kind_of(items[newest].message) != "bash":
        return newest
    spoken = (i for i in range(newest - 1, -1, -1) if is_request(items[i].message))
    return next((i for i in spoken if kind_of(items[i].message) != "bash"), None)


def stop_of_walk(items: Sequence[Item], keep_tokens: int, start: int, *, inclusive: bool) -> int | None:
    """Return where a walk back from the end stops, checked message by message."""
    total = 0
    for index in range(len(items) - 1, start - 1, -1):
        total += items[index].tokens
        if total > keep_tokens or (inclusive and total == keep_tokens):
            return index
    return None


def _only_results(item: Item) -> bool:
    message = item.message
    return not closes_calls(message) and all(
        isinstance(block, ToolResult) or is_blank(block) for block in message.content
    )


def _by_message(places: Iterable[BlockPlace]) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for index, at in sorted(places):
        found.setdefault(index, []).append(at)
    return {index: tuple(blocks) for index, blocks in found.items()}


def _outside(length: int, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Return for each cut, 0 to `length`, whether it is in no span. A cut is in a span if it is above its
    first index and not above its last."""
    reach = [0] * (length + 2)
    for first, last in spans:
        reach[first + 1] += 1
        reach[last + 1] -= 1
    depth, outside = 0, []
    for change in reach[: length + 1]:
        depth += change
        outside.append(depth == 0)
    return outside
