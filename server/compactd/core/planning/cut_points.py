"""Where a conversation may be cut, and where a walk back from its end arrives.

A cut is an index: the messages before it go, the message at it is the first that stays; the number of all
messages is the cut that keeps none. A cut is safe where

- every call stays on the same side as its result;
- each call that still waits for its result stays, with all that follows it: cutting after it, even at the
  end, would orphan the result that is yet to come;
- what stays begins with something else than a tool result.

`Outline.cuts` has the safe ones. (Rules: docs/dev/behaviour.md, the profile table and "Time travel";
docs/specs.md, "opal.md", "1. Find Cut Point".)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compactd.core.budget.rules import Move

if TYPE_CHECKING:
    from compactd.core.history.outline import Outline


def walk_back(outline: Outline, keep_tokens: int, start: int, *, inclusive: bool) -> int | None:
    """Index of the message, walking from the newest to `start`, at which the total exceeds `keep_tokens`
    (`inclusive`: reaches it); none where all of them are within. O(log messages)."""
    sums, end = outline.sums, len(outline)
    if start >= end:
        return None
    find = bisect_right if inclusive else bisect_left
    index = find(sums, sums[end] - keep_tokens, start, end) - 1
    return index if index >= start else None


def move(outline: Outline, stop: int, start: int, moves: Sequence[Move]) -> int | None:
    """The cut that the walk's `stop` becomes: the first of `moves` that finds a safe cut of its kinds which
    leaves something to summarise (above `start`) gives it. None where none does. O(messages), at the speed
    of a search in bytes.

    A cut at `start` is where the last compaction cut: with nothing new to remove there, no other cut is
    looked for, or one compaction after the other would eat the tail up (law 2).
    """
    newest_turn = outline.newest("user", start, len(outline))
    for rule in moves:
        if rule.only_in_newest_turn and stop <= (-1 if newest_turn is None else newest_turn):
            continue
        if rule.direction == "forward":
            cut = outline.first_safe(max(stop, start), rule.kinds)
            if cut == 0:
                cut = outline.first_safe(1, rule.kinds)
        else:
            cut = outline.last_safe(start, stop, rule.kinds)
        if cut is not None and cut > start:
            return cut
        if cut is not None and start > 0:
            return None
    return None
