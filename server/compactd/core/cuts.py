"""Where a conversation may be cut, and where a walk back from its end arrives.

A cut is an index: the messages before it go, the message at it is the first that stays; the number of all
messages is the cut that keeps none. One small law a rule; `safe_cuts` is their intersection. (Rules:
behaviour.md, the profile table and "Time travel"; opal.md, "1. Find Cut Point".)
"""

from __future__ import annotations

from collections.abc import Sequence

from compactd.core.entries import Item, is_summary
from compactd.core.pairs import Matched, match
from compactd.core.rules import Kind, Move
from compactd.messages import Message, Text, ToolResult


def kind_of(message: Message) -> Kind:
    """What `message` is to a cut. A user message that holds tool results is a result; O(blocks)."""
    if message.role == "tool" or any(isinstance(block, ToolResult) for block in message.content):
        return "result"
    if message.role == "user" and message.meta is not None and message.meta.kind == "bash_execution":
        return "bash"
    return message.role


def is_request(message: Message) -> bool:
    """True for what a person asked: a user message with text of its own, not synthetic, no summary."""
    if message.role != "user" or is_summary(message):
        return False
    if message.meta is not None and message.meta.synthetic:
        return False
    return any(isinstance(block, Text) and block.text.strip() for block in message.content)


def newest_request(items: Sequence[Item]) -> int | None:
    """Index of the newest request (law 6); none where nobody asked anything."""
    return next((i for i in range(len(items) - 1, -1, -1) if is_request(items[i].message)), None)


def splits_no_pair(items: Sequence[Item], matched: Matched) -> list[bool]:
    """For each cut, whether every call stays on the same side as its result. O(blocks)."""
    return _outside(len(items), [(call[0], result[0]) for call, result in matched.result_of.items()])


def splits_no_open_call(items: Sequence[Item], matched: Matched) -> list[bool]:
    """For each cut, whether each call that still waits for its result stays, with all that follows it:
    cutting after it, even at the end, would orphan the result that is yet to come. O(blocks)."""
    return _outside(len(items), [(call[0], len(items)) for call in matched.open])


def starts_with_no_result(items: Sequence[Item], matched: Matched) -> list[bool]:
    """For each cut, whether what stays begins with something else than a tool result. O(blocks)."""
    return [kind_of(item.message) != "result" for item in items] + [True]


LAWS = (splits_no_pair, splits_no_open_call, starts_with_no_result)
"""Each gives, for the cuts 0 to len(items), whether it allows the cut."""


def safe_cuts(items: Sequence[Item], matched: Matched | None = None) -> tuple[int, ...]:
    """Every cut that all laws allow, rising; 0 always among them, unless the first message is a result.

    `matched`: the calls and results of `items`, where they were paired already. O(blocks).
    """
    known = match(items) if matched is None else matched
    allowed = zip(*(law(items, known) for law in LAWS), strict=True)
    return tuple(cut for cut, verdicts in enumerate(allowed) if all(verdicts))


def walk_back(items: Sequence[Item], keep_tokens: int, start: int, *, inclusive: bool) -> int | None:
    """Index of the message, walking from the newest to `start`, at which the total exceeds `keep_tokens`
    (`inclusive`: reaches it); none where all of them are within. O(messages)."""
    total = 0
    for index in range(len(items) - 1, start - 1, -1):
        total += items[index].tokens
        if total > keep_tokens or (inclusive and total == keep_tokens):
            return index
    return None


def move(
    items: Sequence[Item], stop: int, start: int, safe: Sequence[int], moves: Sequence[Move]
) -> int | None:
    """The cut that the walk's `stop` becomes: the first of `moves` that finds a safe cut of its kinds which
    leaves something to summarise (above `start`) gives it. None where none does. O(messages).

    A cut at `start` is where the last compaction cut: with nothing new to remove there, no other cut is
    looked for, or one compaction after the other would eat the tail up (law 2).
    """
    newest_turn = max(
        (i for i in range(start, len(items)) if kind_of(items[i].message) == "user"), default=-1
    )
    for rule in moves:
        if rule.only_in_newest_turn and stop <= newest_turn:
            continue
        if rule.direction == "forward":
            candidates = [cut for cut in safe if max(stop, start) <= cut < len(items)]
        else:
            candidates = [cut for cut in reversed(safe) if start <= cut <= stop]
        for cut in candidates:
            if cut < len(items) and kind_of(items[cut].message) not in rule.kinds:
                continue
            if cut > start:
                return cut
            if start > 0:
                return None
    return None


def _outside(length: int, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """For each cut 0 to `length`, whether it lies in no span: above its first index, up to its last."""
    reach = [0] * (length + 2)
    for first, last in spans:
        reach[first + 1] += 1
        reach[last + 1] -= 1
    depth, outside = 0, []
    for change in reach[: length + 1]:
        depth += change
        outside.append(depth == 0)
    return outside
