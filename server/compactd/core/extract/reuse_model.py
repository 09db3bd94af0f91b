"""How likely it is that the agent writes something again before it is shown to it again.

Recurrence, recency and role of every feature of a conversation, and from them a chance: logistic in the
inputs below, with weights learned from recorded sessions whose future is known (`weights.py`). Ages are
in tokens from the end of a message to the end of the conversation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from compactd.core.extract.facts import Part
from compactd.core.extract.lexicon import ATOM, KINDS, LINE, RUN, SHAPES, WORD, shape_of
from compactd.core.extract.line_roles import AGENT_ROLES, COMMAND, HEADER, OLD, READ, RESULT_ROLES, SEARCH
from compactd.core.extract.reuse_weights import ATOM_WEIGHTS, LINE_WEIGHTS, RUN_WEIGHTS, WORD_WEIGHTS
from compactd.core.text.slices import PIECE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Numbers = NDArray[np.uint32]
    Weights = NDArray[np.float64]
    Number = TypeVar("Number", bound=np.generic)

INPUTS: Final = (
    "one",
    "log of 1 + results that show it",
    "log of messages that show it",
    "freshness of the last mention",
    "freshness of the agent's last mention",
    "in a header",
    "in a replaced text",
    "in a command of several lines",
    "in a search result",
    "freshness of the newest edit of a file that shows it",
    "log of 1 + units that show it",
    "in the newest request",
    "log of 1 + user turns since the last mention",
    "written by the agent in the last 6,000 tokens",
    "square of age by total",
    "younger than 3,000 tokens",
    "read, in files never edited",
    "log of total by 50,000",
    "read: age by total",
    "read: last mention in the current turn",
    "read: freshness of that file's last touch",
    "only read, in files edited later",
    "of shape 1",
    "of shape 2",
    "of shape 3",
)

IN_HEADER, IN_OLD, IN_COMMAND, IN_SEARCH, IN_READ, IN_EDITED, ELSEWHERE, IN_REQUEST = (
    1 << n for n in range(8)
)

EXACT: Final = float(1 << 30)
"""Weights are whole multiples of 1 by this: a sum of a thousand has 10 bits to spare."""

NEVER_TOKENS = 200_000
RECENT_TOKENS = 6_000
YOUNG_TOKENS = 3_000


def freshness(age: float, limit: float = NEVER_TOKENS) -> float:
    """0 for now, falling with the logarithm of the age in tokens."""
    return -math.log(1 + min(age, limit) / 1000)


class Told(Struct, array_like=True, gc=False):
    """A part in its place in the conversation."""

    message: int
    """Index of its message, oldest 0."""
    part: Part
    role: int
    files: tuple[str, ...] = ()
    changes: bool = False


class Scene(Struct):
    """A conversation as the statistics see it."""

    told: list[Told]
    tokens: list[int]
    """Of each message."""
    turns: list[int]
    """User requests after each message."""
    current_turn: int
    """Index of the newest request; 0 where there is none."""
    request: int | None


class Statistics:
    """Where and how often each feature stands in a conversation. O(n log n) for n features shown.

    A *mention* is a feature in a unit; mentions and units are in the order of the conversation. The arrays
    below that speak of features are in the order of `features`.
    """

    def __init__(self, scene: Scene) -> None:
        import numpy as np

        self.scene = scene
        told = scene.told
        # Not a list to be joined: that and its freeing at once would hold the interpreter.
        shown = bytearray()
        for each in told:
            shown += each.part.shown
        mentions = np.frombuffer(shown, np.uint32)
        amounts = np.fromiter((len(each.part.shown) // 4 for each in told), np.int64, len(told))
        # The number of a mention makes every key another: any sort is a stable one.
        keys = mentions.astype(np.uint64) << np.uint64(32)
        keys |= np.arange(len(keys), dtype=np.uint64)
        keys.sort()
        ordered = (keys >> np.uint64(32)).astype(np.uint32)
        self.order: Indices = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
        """Mentions by feature, each feature's from the oldest on."""
        begins = np.ones(len(ordered), np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
        first = np.flatnonzero(begins)
        self.first: Indices = np.append(first, len(ordered))
        """Of each feature the place in `order` where its mentions begin; behind the last one the end."""
        self.features: Numbers = ordered[first]
        """The numbers of all features that are shown, by rising number."""
        self.feature: Indices = np.empty(len(ordered), np.int64)
        """Of each mention: the place of its feature in `features`."""
        # A sum that casts holds the interpreter, 10 ms for a million mentions, and takes ten times as long.
        self.feature[self.order] = np.add.accumulate(begins.astype(np.int64)) - 1
        # For each place in `order` the told part.
        by = repeated(np.arange(len(told)), amounts)[self.order]
        message = np.fromiter((each.message for each in told), np.int64, len(told))
        agent = np.fromiter((each.role in AGENT_ROLES for each in told), np.bool_, len(told))
        result = np.fromiter((each.role in RESULT_ROLES for each in told), np.bool_, len(told))
        bits, edit, touch = (np.fromiter(values, np.int64, len(told)) for values in _told_values(scene))
        messages = message[by]
        self.last: Indices = messages[self.first[1:] - 1]
        """Index of the newest message that shows it."""
        self.last_agent: Indices = np.maximum.reduceat(np.where(agent, message, -1)[by], first)
        """The same of the agent's, -1 for none."""
        self.units: Indices = np.diff(self.first)
        """Units that show it."""
        apart = begins.copy()
        apart[1:] |= messages[1:] != messages[:-1]
        self.messages: Indices = np.add.reduceat(apart.astype(np.int64), first)
        """Messages that show it."""
        apart = begins.copy()
        apart[1:] |= by[1:] != by[:-1]
        apart &= result[by]
        self.results: Indices = np.add.reduceat(apart.astype(np.int64), first)
        """Results that show it."""
        self.flags: Indices = np.bitwise_or.reduceat(bits[by], first)
        self.edit: Indices = np.maximum.reduceat(edit[by], first)
        """The newest edit of a file that shows it, as the index of its message, -1 for none."""
        self.touch: Indices = np.maximum.reduceat(touch[by], first)
        """The newest touch of a file that was read and shows it, in the same way."""

    def place(self, feature: int) -> int:
        """Of a feature that is shown, the place in `features`."""
        return int(self.features.searchsorted(feature))


def _told_values(scene: Scene) -> tuple[list[int], list[int], list[int]]:
    """Of each told part: flags; newest edit, -1 for none, of its files; newest touch, if it was read."""
    edits: dict[str, int] = {}
    touches: dict[str, int] = {}
    for told in scene.told:
        for file in told.files:
            touches[file] = told.message
            if told.changes:
                edits[file] = told.message
    flags: list[int] = []
    newest_edits: list[int] = []
    newest_touches: list[int] = []
    for told in scene.told:
        newest_edit = max([edits.get(f, -1) for f in told.files], default=-1)
        newest_touch = max([touches.get(f, -1) for f in told.files], default=-1)
        bits = _BITS.get(told.role, 0)
        if newest_edit >= 0:
            bits |= IN_EDITED
        if told.role != READ or newest_edit <= told.message:
            bits |= ELSEWHERE
        if told.message == scene.request:
            bits |= IN_REQUEST
        flags.append(bits)
        newest_edits.append(newest_edit)
        newest_touches.append(newest_touch if told.role == READ else -1)
    return flags, newest_edits, newest_touches


_BITS = {HEADER: IN_HEADER, OLD: IN_OLD, COMMAND: IN_COMMAND, SEARCH: IN_SEARCH, READ: IN_READ}


class Chances:
    """The chance of each feature, by tables over the integers that the statistics hold."""

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        scene = statistics.scene
        ages: list[int] = [0] * len(scene.tokens)
        after = 0
        for i in range(len(scene.tokens) - 1, -1, -1):
            ages[i] = after
            after += scene.tokens[i]
        self.ages = ages
        self.total = max(after, 1)
        self._fresh = [freshness(age) for age in ages]
        self._ever_fresh = [freshness(age, math.inf) for age in ages]

    def inputs(self, feature: int) -> tuple[float, ...]:
        """The inputs of one feature that is shown, in the order of `INPUTS`: what the weights were learned
        on."""
        s, scene, total = self.statistics, self.statistics.scene, self.total
        shape = shape_of(feature)
        feature = s.place(feature)
        last = int(s.last[feature])
        age = self.ages[last]
        flags = int(s.flags[feature])
        read = bool(flags & IN_READ)
        agent = s.last_agent[feature]
        agent_age = self.ages[agent] if agent >= 0 else NEVER_TOKENS
        edit_age = self.ages[s.edit[feature]] if s.edit[feature] >= 0 else NEVER_TOKENS
        touch_age = self.ages[s.touch[feature]] if s.touch[feature] >= 0 else NEVER_TOKENS
        return (
            1.0,
            math.log(1 + s.results[feature]),
            math.log(max(1, s.messages[feature])),
            freshness(age, math.inf),
            freshness(agent_age),
            float(bool(flags & IN_HEADER)),
            float(bool(flags & IN_OLD)),
            float(bool(flags & IN_COMMAND)),
            float(bool(flags & IN_SEARCH)),
            freshness(edit_age),
            math.log(1 + s.units[feature]),
            float(bool(flags & IN_REQUEST)),
            math.log(1 + scene.turns[last]),
            float(agent_age < RECENT_TOKENS),
            (age / total) ** 2,
            float(age < YOUNG_TOKENS),
            float(read and not flags & IN_EDITED),
            math.log(total / 50_000),
            age / total if read else 0.0,
            float(read and last >= scene.current_turn),
            freshness(touch_age) if read else 0.0,
            float(not flags & ELSEWHERE),
            float(shape == 1),
            float(shape == 2),
            float(shape == 3),
        )

    def weights(self, worth: Sequence[Sequence[float]]) -> Weights:
        """`worth[kind][shape]` × chance, for each of the statistics' features, in their order.

        The same as `logistic(weights · inputs)`, from tables, and rounded so that sums of them are exact in
        any order: the same on every machine. O(features).
        """
        import numpy as np

        s = self.statistics
        found = np.zeros(len(s.features), np.float64)
        kinds = s.features % KINDS
        for kind, beta in _BETA.items():
            these = np.flatnonzero(kinds == kind)
            shapes = shapes_of(s.features[these])
            worths = np.array(worth[kind], np.float64)[shapes]
            found[these] = worths / (1 + np.exp(-self._sums(these, beta, shapes)))
        return np.rint(found * EXACT) / EXACT

    def _sums(self, these: Indices, beta: Sequence[float], shapes: Indices) -> Weights:
        """weights · inputs for the features at these places."""
        import numpy as np

        s, scene, total, ages = self.statistics, self.statistics.scene, self.total, self.ages
        base = beta[0] + beta[17] * math.log(total / 50_000)
        by_last = [
            base
            + beta[3] * fresh
            + beta[12] * math.log(1 + turns)
            + beta[14] * (age / total) ** 2
            + beta[15] * (age < YOUNG_TOKENS)
            for age, turns, fresh in zip(ages, scene.turns, self._ever_fresh, strict=True)
        ]
        by_last_read = [
            value + beta[18] * age / total + beta[19] * (i >= scene.current_turn)
            for i, (value, age) in enumerate(zip(by_last, ages, strict=True))
        ]
        never = freshness(NEVER_TOKENS)
        # Index -1, "never", is the last place of each table.
        by_agent = [
            beta[4] * fresh + beta[13] * (age < RECENT_TOKENS)
            for age, fresh in zip(ages, self._fresh, strict=True)
        ]
        by_agent.append(beta[4] * never)
        by_edit = [*(beta[9] * fresh for fresh in self._fresh), beta[9] * never]
        by_touch = [*(beta[20] * fresh for fresh in self._fresh), beta[20] * never]
        by_flags = [_flag_sum(flags, beta) for flags in range(256)]
        units, flags, last = s.units[these], s.flags[these], s.last[these]
        most = max(int(units.max(initial=0)), len(ages))
        logs = np.array([math.log(n) for n in range(1, 2 + most)])

        def of(table: Sequence[float], at: Indices) -> Weights:
            values: Weights = np.array(table, np.float64)[at]
            return values

        z = of(by_flags, flags) + of(by_agent, s.last_agent[these]) + of(by_edit, s.edit[these])
        z += of((0.0, *beta[22:]), shapes)
        z += beta[2] * logs[s.messages[these] - 1]
        z += beta[1] * logs[s.results[these]]
        z += beta[10] * logs[units]
        read = (flags & IN_READ) != 0
        z += np.where(read, of(by_last_read, last) + of(by_touch, s.touch[these]), of(by_last, last))
        return z


_BETA = {ATOM: ATOM_WEIGHTS, WORD: WORD_WEIGHTS, RUN: RUN_WEIGHTS, LINE: LINE_WEIGHTS}


def repeated(values: NDArray[Number], amounts: Indices) -> NDArray[Number]:
    """`np.repeat`, piece by piece: the whole at once holds the interpreter, 16 ms for six million."""
    import numpy as np

    found = np.empty(int(amounts.sum()), values.dtype)
    end = 0
    for start in range(0, len(values), PIECE):
        piece = np.repeat(values[start : start + PIECE], amounts[start : start + PIECE])
        found[end : end + len(piece)] = piece
        end += len(piece)
    return found


def shapes_of(features: Numbers) -> Indices:
    """`shape_of` each."""
    import numpy as np

    numbers = features.astype(np.int64)
    return np.where(numbers % KINDS == RUN, 0, numbers // KINDS % SHAPES)


def _flag_sum(flags: int, beta: Sequence[float]) -> float:
    return (
        beta[5] * bool(flags & IN_HEADER)
        + beta[6] * bool(flags & IN_OLD)
        + beta[7] * bool(flags & IN_COMMAND)
        + beta[8] * bool(flags & IN_SEARCH)
        + beta[11] * bool(flags & IN_REQUEST)
        + beta[16] * (bool(flags & IN_READ) and not flags & IN_EDITED)
        + beta[21] * (not flags & ELSEWHERE)
    )
