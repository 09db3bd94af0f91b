"""Predict, for each feature of a conversation, how likely it is that the agent writes it again before it
reads it again.

The model is a logistic regression. Its inputs are how often, how recently and in which roles a feature occurs
in the conversation. Its weights are learned from recorded sessions, for which the continuation is known
(`reuse_weights.py`). `benchmarks/retention/reuse_inputs.py` lists the inputs in the order of the weights. The
age of a message is the number of tokens from its end to the end of the conversation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from compactd.core.extract.facts import FactPart
from compactd.core.extract.features import ATOM, KINDS, LINE, RUN, SHAPES, WORD
from compactd.core.extract.line_roles import AGENT_ROLES, COMMAND, HEADER, OLD, READ, RESULT_ROLES, SEARCH
from compactd.core.extract.reuse_weights import ATOM_WEIGHTS, LINE_WEIGHTS, RUN_WEIGHTS, WORD_WEIGHTS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Numbers = NDArray[np.uint32]
    Weights = NDArray[np.float64]

IN_HEADER, IN_OLD, IN_COMMAND, IN_SEARCH, IN_READ, IN_EDITED, ELSEWHERE, IN_REQUEST = (
    1 << n for n in range(8)
)
"""Flags of a feature: where it occurs. `IN_EDITED` means in a text of a file that was edited, `ELSEWHERE` in
anything except a read file that was edited after it was read."""

EXACT: Final = float(1 << 30)
"""Weights are rounded to multiples of 1/`EXACT`, so that sums are exact. A float has enough digits for a sum
of a thousand weights, with 10 bits to spare."""

NEVER_TOKENS = 200_000
"""An age of this many tokens stands for "never"."""
RECENT_TOKENS = 6_000
YOUNG_TOKENS = 3_000


def freshness(age: float, limit: float = NEVER_TOKENS) -> float:
    """Return how recent something is: 0 for age 0, and lower for a greater age, by the logarithm of the age
    in tokens. An age above `limit` counts as `limit`."""
    return -math.log(1 + min(age, limit) / 1000)


class PlacedPart(Struct, array_like=True, gc=False):
    """A part of a message (the units of one text) with its position in the conversation."""

    message: int
    """The index of the message that contains the part; the oldest has 0."""
    part: FactPart
    role: int
    """The role of its lines, one of the constants in `line_roles.py`."""
    files: tuple[str, ...] = ()
    """The files that the call names to which this part belongs."""
    changes: bool = False
    """Whether the part belongs to a call that modifies files, and is not its result."""


class Scene(Struct):
    """The input of the statistics: the parts of a conversation, and the size and the turn of each message."""

    parts: list[PlacedPart]
    """The parts of all messages, oldest first."""
    tokens: list[int]
    """The tokens of each message."""
    turns: list[int]
    """For each message, the number of user requests that follow it."""
    current_turn: int
    """The index of the message with the newest request; 0 if there is none."""
    request: int | None
    """The index of the request that the caller named; None if it is not in the conversation."""


class Statistics:
    """Arrays that say where and how often each feature (a word, a path, …) occurs in a conversation. Computed
    in O(n log n) for n mentions.

    A *mention* is one feature in one unit. Mentions and units are in the order of the conversation. Arrays
    with a value per feature are in the order of `features`.
    """

    def __init__(self, scene: Scene) -> None:
        import numpy as np

        self.scene = scene
        told = scene.parts
        mentions = np.frombuffer(b"".join([each.part.unit_features for each in told]), np.uint32)
        amounts = np.fromiter((len(each.part.unit_features) // 4 for each in told), np.int64, len(told))
        # The key contains the mention's index, so all keys are distinct and any sort is stable.
        keys = mentions.astype(np.uint64) << np.uint64(32)
        keys |= np.arange(len(keys), dtype=np.uint64)
        keys.sort()
        ordered = (keys >> np.uint64(32)).astype(np.uint32)
        self.order: Indices = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
        """Indices of mentions, sorted by feature and then from the oldest on."""
        begins = np.ones(len(ordered), np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
        first = np.flatnonzero(begins)
        self.first: Indices = np.append(first, len(ordered))
        """For each feature, the index in `order` where its mentions begin; then the end of the last
        feature."""
        self.features: Numbers = ordered[first]
        """The numbers of all features that occur in the conversation, in ascending order."""
        self.feature: Indices = np.empty(len(ordered), np.int64)
        """For each mention, the index of its feature in `features`."""
        # Convert to integers first: a sum over booleans is ten times slower.
        self.feature[self.order] = np.add.accumulate(begins.astype(np.int64)) - 1
        # For each mention in the order of `order`, the index of its part.
        by = np.repeat(np.arange(len(told)), amounts)[self.order]
        message = np.fromiter((each.message for each in told), np.int64, len(told))
        agent = np.fromiter((each.role in AGENT_ROLES for each in told), np.bool_, len(told))
        result = np.fromiter((each.role in RESULT_ROLES for each in told), np.bool_, len(told))
        bits, edit, touch = (np.fromiter(values, np.int64, len(told)) for values in _part_values(scene))
        messages = message[by]
        self.last: Indices = messages[self.first[1:] - 1]
        """For each feature, the index of the newest message that shows it."""
        self.last_agent: Indices = np.maximum.reduceat(np.where(agent, message, -1)[by], first)
        """For each feature, the index of the newest message in which the agent wrote it; -1 for none."""
        self.units: Indices = np.diff(self.first)
        """For each feature, the number of units that show it."""
        apart = begins.copy()
        apart[1:] |= messages[1:] != messages[:-1]
        self.messages: Indices = np.add.reduceat(apart.astype(np.int64), first)
        """For each feature, the number of messages that show it."""
        apart = begins.copy()
        apart[1:] |= by[1:] != by[:-1]
        apart &= result[by]
        self.results: Indices = np.add.reduceat(apart.astype(np.int64), first)
        """For each feature, the number of tool results that show it."""
        self.flags: Indices = np.bitwise_or.reduceat(bits[by], first)
        """For each feature, the flags (`IN_HEADER` and so on) of all parts that show it, combined."""
        self.edit: Indices = np.maximum.reduceat(edit[by], first)
        """For each feature, the index of the message with the newest edit of a file in whose text it occurs;
        -1 for none."""
        self.touch: Indices = np.maximum.reduceat(touch[by], first)
        """For each feature, the index of the message with the newest use of a file whose text, as it was
        read, contains the feature; -1 for none."""

    def place(self, feature: int) -> int:
        """Return the index in `features` of the feature with this number. The feature must occur in the
        conversation."""
        return int(self.features.searchsorted(feature))


def _part_values(scene: Scene) -> tuple[list[int], list[int], list[int]]:
    """Return three lists, with one entry per part:

    1. its flags;
    2. the index of the last message that edited one of the part's files, or -1;
    3. if the part is the text of a file that was read: the index of the last message that used that file;
       otherwise -1.
    """
    edits: dict[str, int] = {}
    touches: dict[str, int] = {}
    for told in scene.parts:
        for file in told.files:
            touches[file] = told.message
            if told.changes:
                edits[file] = told.message
    flags: list[int] = []
    newest_edits: list[int] = []
    newest_touches: list[int] = []
    for told in scene.parts:
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


class ReuseModel:
    """The predicted chance of reuse of each feature in a conversation."""

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

    def weights(self, worth: Sequence[Sequence[float]]) -> Weights:
        """Return `worth[kind][shape]` × chance of reuse for each feature, in the order of
        `Statistics.features`. (A feature's shape is what `feature_shape` returns.)

        The chance is `logistic(weights · inputs)`. It is computed from tables of the few values that each
        input can have. The result is rounded so that sums are exact in any order and the same on every
        machine. O(features).
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

    def _sums(self, these: Indices, coefficients: Sequence[float], shapes: Indices) -> Weights:
        """Return weights · inputs (the scalar product) for the features at these indices, with `coefficients`
        as weights."""
        import numpy as np

        s, scene, total, ages = self.statistics, self.statistics.scene, self.total, self.ages
        base = coefficients[0] + coefficients[17] * math.log(total / 50_000)
        by_last = [
            base
            + coefficients[3] * fresh
            + coefficients[12] * math.log(1 + turns)
            + coefficients[14] * (age / total) ** 2
            + coefficients[15] * (age < YOUNG_TOKENS)
            for age, turns, fresh in zip(ages, scene.turns, self._ever_fresh, strict=True)
        ]
        by_last_read = [
            value + coefficients[18] * age / total + coefficients[19] * (i >= scene.current_turn)
            for i, (value, age) in enumerate(zip(by_last, ages, strict=True))
        ]
        never = freshness(NEVER_TOKENS)
        # Index -1 ("never") is the last element of each table.
        by_agent = [
            coefficients[4] * fresh + coefficients[13] * (age < RECENT_TOKENS)
            for age, fresh in zip(ages, self._fresh, strict=True)
        ]
        by_agent.append(coefficients[4] * never)
        by_edit = [*(coefficients[9] * fresh for fresh in self._fresh), coefficients[9] * never]
        by_touch = [*(coefficients[20] * fresh for fresh in self._fresh), coefficients[20] * never]
        by_flags = [_flag_sum(flags, coefficients) for flags in range(256)]
        units, flags, last = s.units[these], s.flags[these], s.last[these]
        most = max(int(units.max(initial=0)), len(ages))
        logs = np.array([math.log(n) for n in range(1, 2 + most)])

        def of(table: Sequence[float], at: Indices) -> Weights:
            values: Weights = np.array(table, np.float64)[at]
            return values

        z = of(by_flags, flags) + of(by_agent, s.last_agent[these]) + of(by_edit, s.edit[these])
        z += of((0.0, *coefficients[22:]), shapes)
        z += coefficients[2] * logs[s.messages[these] - 1]
        z += coefficients[1] * logs[s.results[these]]
        z += coefficients[10] * logs[units]
        read = (flags & IN_READ) != 0
        z += np.where(read, of(by_last_read, last) + of(by_touch, s.touch[these]), of(by_last, last))
        return z


_BETA = {ATOM: ATOM_WEIGHTS, WORD: WORD_WEIGHTS, RUN: RUN_WEIGHTS, LINE: LINE_WEIGHTS}


def shapes_of(features: Numbers) -> Indices:
    """Return the shape of each feature: the sort of an atom, or the class of length of a word or a line. See
    `feature_shape`."""
    import numpy as np

    numbers = features.astype(np.int64)
    return np.where(numbers % KINDS == RUN, 0, numbers // KINDS % SHAPES)


def _flag_sum(flags: int, coefficients: Sequence[float]) -> float:
    """Return the part of weights · inputs that depends on the flags."""
    return (
        coefficients[5] * bool(flags & IN_HEADER)
        + coefficients[6] * bool(flags & IN_OLD)
        + coefficients[7] * bool(flags & IN_COMMAND)
        + coefficients[8] * bool(flags & IN_SEARCH)
        + coefficients[11] * bool(flags & IN_REQUEST)
        + coefficients[16] * (bool(flags & IN_READ) and not flags & IN_EDITED)
        + coefficients[21] * (not flags & ELSEWHERE)
    )
