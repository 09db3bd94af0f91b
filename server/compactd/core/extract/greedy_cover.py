"""Choose which units (lines) to quote: a greedy cover of the features that are likely to be needed, within a
token budget.

A feature counts once: the first quoted unit that shows it gets the feature's value, and later units get
nothing for this feature. The price of a unit is its own tokens, plus its group's header if nothing of the
group is quoted yet. (A group is a call with its result, or the text of one message.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Floats = NDArray[np.float64]

NEIGHBOUR_GAIN = 0.5
"""A unit's value rises by this share for each neighbour that is quoted, because neighbours read as a
continuous text."""

RECOMPUTE_SHARE = 4
"""If a pick changes the values of more than a quarter of the units, the values of all units are recomputed,
because that is then faster. This is the divisor."""

PICKS_PER_PAUSE = 16
"""The number of picks between two calls of `pause`. A pick takes 60 to 200 µs."""


class Candidates(Struct):
    """The units (lines) that a summary may quote, in the order of the conversation, as parallel arrays:
    element i of an array belongs to unit i, unless the array says otherwise."""

    features: Indices
    """The features of all units in order, as indices into the list of weights."""
    starts: Indices
    """For each unit, the index in `features` where its features begin; then the end of the last unit."""
    order: Indices
    """Indices into `features`, sorted by the feature at that index and then by position."""
    first: Indices
    """For each feature, the index in `order` where its mentions begin; then the end of the last feature."""
    price: Floats
    """The estimated tokens of each unit."""
    worth: Floats
    """For each unit, the factor by which the weights of its features are multiplied."""
    group: Indices
    """The group of each unit: a call with its result, or the text of one message."""
    part: Indices
    """The part of each unit: the text of the message that it was split from. Units that follow each other in
    a part are neighbours in the message."""
    header: list[int]
    """For each group, the index of its header unit; -1 if it has none."""
    opening: list[float]
    """For each group without a header, the tokens of the reference that names its message; 0 for the other
    groups."""


class GreedyCover:
    """A running greedy cover. Units that were picked stay picked; a larger budget only adds more.

    `weights[feature]` is what showing the feature is worth. Weights are multiples of a power of two, so sums
    are exact. Of units with equal value, the one with the lower index is picked. O(features) to build, then
    O(units) per pick, in passes of a few microseconds.
    """

    def __init__(
        self, candidates: Candidates, weights: Floats, pause: Callable[[], None] | None = None
    ) -> None:
        """`pause` is called every few milliseconds during `pick_until`."""
        import numpy as np

        self._pause = pause
        c = self._c = candidates
        count = len(c.price)
        self._weights = weights.copy()
        self._unit = np.repeat(np.arange(count), np.diff(c.starts))
        # One extra unit without features serves as the header of units that need none.
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
        """For each unit, whether it is the header of other units."""
        self._heads[self._head[headed]] = True
        self._value = self._value_units(slice(None))
        self.picks: list[int] = []
        """The units that were picked so far, in the order in which they were picked."""
        self._spent = 0.0
        # After each step: the tokens spent, and the number of units picked.
        self._spendings, self._ends_of_steps = [0.0], [0]

    def pick_until(self, budget: float) -> list[int]:
        """Pick units until their prices together reach `budget` tokens. Return these units in the order in
        which they were picked. The result does not depend on earlier calls."""
        value = self._value
        while self._spent < budget and len(value):
            best = int(value.argmax())
            if value[best] <= 0:
                break
            self._pick(best)
            if self._pause is not None and len(self._spendings) % PICKS_PER_PAUSE == 1:
                self._pause()
            self._spendings.append(self._spent)
            self._ends_of_steps.append(len(self.picks))
        step = min(bisect_left(self._spendings, budget), len(self._spendings) - 1)
        return self.picks[: self._ends_of_steps[step]]

    def _value_units(self, units: Indices | slice) -> Floats:
        """Return what each of these units is worth per token now; 0 for a unit that was picked."""
        c = self._c
        gain = c.worth[units] * self._sums[: len(c.price)][units] * (1 + NEIGHBOUR_GAIN * self._near[units])
        gain += self._head_worth[units] * self._sums[self._head[units]]
        gain /= c.price[units] + self._extra[units]
        gain[self._picked[units]] = 0.0
        return gain

    def _pick(self, best: int) -> None:
        """Pick a unit, and its header if that is not quoted yet, and update the values of all units that this
        changes."""
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
            changed += self._take_features(unit)
        units = np.concatenate(changed)
        heads = units[self._heads[units]]
        if len(heads):
            groups = np.unique(c.group[heads]).tolist()
            units = np.concatenate(
                (units, *(self._members[self._ends[g] : self._ends[g + 1]] for g in groups))
            )
        if RECOMPUTE_SHARE * len(units) > len(self._value):
            self._value[:] = self._value_units(slice(None))
        else:
            self._value[units] = self._value_units(units)

    def _take_features(self, unit: int) -> list[Indices]:
        """Mark the features of `unit` as covered: subtract their weights from the sums of all units that show
        them. Return the units whose sums changed, one array per feature."""
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
