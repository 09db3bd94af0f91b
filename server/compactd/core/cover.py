"""Which units a record quotes: a greedy cover of what is likely to be needed, within a budget of tokens.

Each feature pays once: to the first unit quoted that shows it. A unit's price is its own tokens, plus its
group's header where none of the group stands in the record yet.
"""

from __future__ import annotations

import heapq

from msgspec import Struct

from compactd.core.pieces import release

NEIGHBOUR_GAIN = 0.2
"""A unit beside a quoted one is worth this much more: neighbours read as a text."""


class Candidates(Struct):
    """Units that may be quoted, in the order of the conversation: parallel lists."""

    features: list[tuple[int, ...]]
    price: list[float]
    """Tokens."""
    worth: list[float]
    """Factor by which the unit's features pay."""
    group: list[int]
    part: list[int]
    """Neighbours of one part stand beside each other."""
    header: list[int]
    """By group: the index of its header, or -1."""
    opening: list[float]
    """By group without a header: tokens of the mark that says where it is from."""


def cover(candidates: Candidates, weights: list[float], budget: float) -> list[int]:
    """Indices of units in the order they were picked, until their prices reach `budget` tokens.

    `weights[feature]` is what showing it is worth; it is set to 0 as the feature is covered. Ties go to the
    lower index. Lazy evaluation: a price can only fall when a neighbour is picked or a group opened, and
    then the unit is put back anew. O(n log n) at worst, O(n + picks × neighbours) in practice.
    """
    c = candidates
    features, price, worth, part, opening = c.features, c.price, c.worth, c.part, c.opening
    count = len(features)
    members: dict[int, list[int]] = {}
    for i, g in enumerate(c.group):
        members.setdefault(g, []).append(i)
    is_open = bytearray(len(c.header))
    picked = bytearray(count)
    beside = bytearray(count)
    get = weights.__getitem__

    def value(i: int) -> float:
        gain = worth[i] * sum(map(get, features[i]))
        cost = price[i]
        near = beside[i]
        if near:
            gain *= 1 + NEIGHBOUR_GAIN * near
        g = c.group[i]
        if not is_open[g]:
            head = c.header[g]
            if head < 0:
                cost += opening[g]
            elif head != i:
                gain += worth[head] * sum(map(get, features[head]))
                cost += price[head]
        return gain / cost

    heap: list[tuple[float, int]] = []
    for i in range(count):
        v = value(i)
        if v > 0:
            heapq.heappush(heap, (-v, i))
    picks: list[int] = []
    spent = 0.0
    while heap and spent < budget:
        _, i = heapq.heappop(heap)
        if picked[i]:
            continue
        v = value(i)
        if v <= 0:
            continue
        if heap and -v > heap[0][0]:
            heapq.heappush(heap, (-v, i))
            continue
        g = c.group[i]
        opened = [i]
        if not is_open[g]:
            is_open[g] = 1
            spent += opening[g]
            head = c.header[g]
            if head >= 0 and head != i and not picked[head]:
                opened.insert(0, head)
            stale = [j for j in members[g] if not picked[j]]
        else:
            stale = []
        for j in opened:
            picked[j] = 1
            picks.append(j)
            spent += price[j]
            for f in features[j]:
                weights[f] = 0.0
            for n in (j - 1, j + 1):
                if 0 <= n < count and part[n] == part[j] and not picked[n]:
                    beside[n] += 1
                    stale.append(n)
        for j in stale:
            if not picked[j]:
                v = value(j)
                if v > 0:
                    heapq.heappush(heap, (-v, j))
    release(heap)
    for group in members.values():
        release(group)
    return picks
