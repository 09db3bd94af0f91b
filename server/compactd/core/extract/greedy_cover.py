"""Which units a record quotes: a greedy cover of what is likely to be needed, within a budget of tokens.

Each feature pays once: to the first unit quoted that shows it. A unit's price is its own tokens, plus its
group's header where none of the group stands in the record yet.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from msgspec import Struct

from compactd._runtime.yield_gil import breathe
from compactd.core.extract.reuse_model import repeated

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Floats = NDArray[np.float64]

NEIGHBOUR_GAIN = 0.2
"""A unit beside a quoted one is worth this much more: neighbours read as a text."""

ALL_SHARE = 4
"""Where more than this part of all values changes, all are worked out anew: that is one pass."""

PICKS_A_BREATH = 16
"""A pick is some ten short calls of numpy: 60 to 200 µs."""


class Candidates(Struct):
    """Units that may be quoted, in the order of the conversation: parallel arrays."""

    features: Indices
    """Of all units, one behind the other: places in the list of weights."""
    starts: Indices
    """Where the features of each unit begin; behind the last one the end."""
    order: Indices
    """Places in `features`, sorted by what stands there, then by themselves."""
    first: Indices
    """Of each feature the place in `order` where its mentions begin; behind the last one the end."""
    price: Floats
    """Tokens."""
    worth: Floats
    """Factor by which the unit's features pay."""
    group: Indices
    part: Indices
    """Neighbours of one part stand beside each other."""
    header: list[int]
    """By group: the index of its header, or -1."""
    opening: list[float]
    """By group without a header: tokens of the mark that says where it is from."""


class Cover:
    """The greedy cover, on its way: what was picked stays picked where more is asked for.

    `weights[feature]` is what showing it is worth, a multiple of a power of two so that sums are exact. Ties
    go to the lower index. O(features) to begin with, then O(units) a pick, in passes of some microseconds.
    """

    def __init__(self, candidates: Candidates, weights: Floats) -> None:
        import numpy as np

        c = self._c = candidates
        count = len(c.price)
        self._weights = weights.copy()
        self._unit = repeated(np.arange(count), np.diff(c.starts))
        # One unit more than there are, which shows nothing: the header of those that need none.
        self._sums = np.bincount(self._unit, weights[c.features], count + 1)
        head = np.array([*c.header, -1], np.int64)[c.group]
        headed = (head >= 0) & (head != np.arange(count))
        self._head = np.where(headed, head, count)
        self._head_worth = np.append(c.worth, 0.0)[self._head]
        self._extra = np.append(c.price, 0.0)[self._head]
        bare = np.flatnonzero(head < 0)
        self._extra[bare] = np.array([*c.opening, 0.0])[c.group[bare]]
        self._near = np.zeros(count, np.float64)
        self._open = bytearray(len(c.header))
        self._picked = np.zeros(count, np.bool_)
        members = np.argsort(c.group, kind="stable")
        ends = np.searchsorted(c.group[members], np.arange(len(c.header) + 1))
        self._members, self._ends = members, ends
        self._heads = np.zeros(count + 1, np.bool_)
        """Units that others bring with them."""
        self._heads[self._head[headed]] = True
        self._value = self._valued(slice(None))
        self.picks: list[int] = []
        """Units in the order they were picked."""
        self._spent = 0.0
        # What was spent, and how many units were picked, after each step.
        self._spendings, self._ends_of_steps = [0.0], [0]

    def until(self, budget: float) -> list[int]:
        """The units picked until their prices reach `budget` tokens, whatever was asked for before."""
        value = self._value
        while self._spent < budget and len(value):
            best = int(value.argmax())
            if value[best] <= 0:
                break
            self._pick(best)
            if len(self._spendings) % PICKS_A_BREATH == 1:  # the first pick is the longest
                breathe()
            self._spendings.append(self._spent)
            self._ends_of_steps.append(len(self.picks))
        step = min(bisect_left(self._spendings, budget), len(self._spendings) - 1)
        return self.picks[: self._ends_of_steps[step]]

    def _valued(self, units: Indices | slice) -> Floats:
        """What these units are worth for their price as things stand."""
        c = self._c
        gain = c.worth[units] * self._sums[: len(c.price)][units] * (1 + NEIGHBOUR_GAIN * self._near[units])
        gain += self._head_worth[units] * self._sums[self._head[units]]
        gain /= c.price[units] + self._extra[units]
        gain[self._picked[units]] = 0.0
        return gain

    def _pick(self, best: int) -> None:
        import numpy as np

        c = self._c
        group = int(c.group[best])
        changed: list[Indices] = []
        opened = [best]
        if not self._open[group]:
            self._open[group] = 1
            self._spent += c.opening[group]
            head = c.header[group]
            if head >= 0 and head != best and not self._picked[head]:
                opened.insert(0, head)
            members = self._members[self._ends[group] : self._ends[group + 1]]
            self._head[members] = len(c.price)
            self._head_worth[members] = 0.0
            self._extra[members] = 0.0
            changed.append(members)
        for unit in opened:
            self._picked[unit] = True
            self.picks.append(unit)
            self._spent += float(c.price[unit])
            beside = [n for n in (unit - 1, unit + 1) if 0 <= n < len(c.price) and c.part[n] == c.part[unit]]
            self._near[beside] += 1
            changed.append(np.array([unit, *beside], np.int64))
            changed += self._covered(unit)
        units = np.concatenate(changed)
        heads = units[self._heads[units]]
        if len(heads):
            groups = np.unique(c.group[heads]).tolist()
            units = np.concatenate(
                (units, *(self._members[self._ends[g] : self._ends[g + 1]] for g in groups))
            )
        if ALL_SHARE * len(units) > len(self._value):
            self._value[:] = self._valued(slice(None))
        else:
            self._value[units] = self._valued(units)

    def _covered(self, unit: int) -> list[Indices]:
        """Takes the features of `unit` from all that show them; who they are."""
        c, sums = self._c, self._sums
        features = c.features[c.starts[unit] : c.starts[unit + 1]]
        weights = self._weights[features].tolist()
        first, last = c.first[features].tolist(), c.first[features + 1].tolist()
        self._weights[features] = 0.0
        changed: list[Indices] = []
        for weight, begin, end in zip(weights, first, last, strict=True):
            if weight > 0:
                showing = self._unit[c.order[begin:end]]
                sums[showing] -= weight
                changed.append(showing)
        return changed
