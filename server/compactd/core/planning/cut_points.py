"""Find the cut point: the places where a conversation may be cut, and the one at which a compaction cuts it.

A cut is the index of the first message that stays; the messages before it are removed. A cut at the number of
messages keeps none. A cut is safe if

- every call is on the same side as its result;
- each call that still waits for its result stays, together with everything after it (a cut after it, even at
  the end, would orphan the result that is yet to come);
- the first message that stays is not a tool result.

`Outline.cuts` has the safe cuts. (Rules: docs/dev/behaviour.md, the profile table and "Time travel";
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
    """Add up the tokens of messages from the newest back to `start`. Return the index of the message with
    which the sum exceeds `keep_tokens` (with `inclusive`: reaches it). Return None if the sum of all these
    messages does not get that far. O(log messages)."""
    sums, end = outline.sums, len(outline)
    if start >= end:
        return None
    find = bisect_right if inclusive else bisect_left
    index = find(sums, sums[end] - keep_tokens, start, end) - 1
    return index if index >= start else None


def move(outline: Outline, stop: int, start: int, moves: Sequence[Move]) -> int | None:
    """Return the safe cut to use if `walk_back` stopped at the message `stop`; None if there is none.

    The rules in `moves` are tried in order. The first rule that finds a safe cut above `start`, the place of
    the last compaction's cut, decides. If `start` is above 0, a rule that finds only a cut at or before
    `start` ends the search; otherwise repeated compactions would consume the tail (law 2). O(messages), as a
    search in bytes.
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
        if cut is not None and not _is_in_range(outline, cut, stop, rule):
            continue
        if cut is not None and cut > start:
            return cut
        if cut is not None and start > 0:
            return None
    return None


def _is_in_range(outline: Outline, cut: int, stop: int, rule: Move) -> bool:
    """Return whether what stays after `cut` is as much as the rule wants. O(1)."""
    end = outline.sums[len(outline)]
    stays, walked = end - outline.sums[cut], end - outline.sums[stop]
    return rule.min_share * walked <= stays and (rule.max_share is None or stays <= rule.max_share * walked)
