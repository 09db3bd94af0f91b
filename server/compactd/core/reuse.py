"""How likely it is that the agent writes something again before it is shown to it again.

Recurrence, recency and role of every feature of a conversation, and from them a chance: logistic in the
inputs below, with weights learned from recorded sessions whose future is known (`weights.py`). Ages are
in tokens from the end of a message to the end of the conversation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from compactd.core.lexicon import ATOM, KINDS, LINE, RUN, WORD
from compactd.core.pieces import filled, largest, release
from compactd.core.roles import AGENT_ROLES, COMMAND, HEADER, OLD, READ, RESULT_ROLES, SEARCH
from compactd.core.units import Part
from compactd.core.weights import ATOM_WEIGHTS, LINE_WEIGHTS, RUN_WEIGHTS, WORD_WEIGHTS

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
)

IN_HEADER, IN_OLD, IN_COMMAND, IN_SEARCH, IN_READ, IN_EDITED, ELSEWHERE, IN_REQUEST = (
    1 << n for n in range(8)
)

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
    size: int
    """No feature's number reaches this."""


class Statistics:
    """Where and how often each feature stands in a conversation. O(features shown)."""

    def __init__(self, scene: Scene) -> None:
        size = scene.size
        self.scene = scene
        self.last = filled(-1, size)
        self.last_agent = filled(-1, size)
        self.messages = filled(0, size)
        self.results = filled(0, size)
        self.units = filled(0, size)
        self.flags = filled(0, size)
        self.edit = filled(-1, size)
        self.touch = filled(-1, size)
        edits: dict[str, int] = {}
        touches: dict[str, int] = {}
        for told in scene.told:
            for file in told.files:
                touches[file] = told.message
                if told.changes:
                    edits[file] = told.message
        for told in scene.told:
            self._take(told, edits, touches)

    def release(self) -> None:
        """Lets go of everything, piece by piece: it is not needed any more."""
        for values in (
            self.last,
            self.last_agent,
            self.messages,
            self.results,
            self.units,
            self.flags,
            self.edit,
            self.touch,
        ):
            release(values)

    def _take(self, told: Told, edits: dict[str, int], touches: dict[str, int]) -> None:
        at, role = told.message, told.role
        last, messages, units, flags = self.last, self.messages, self.units, self.flags
        newest_edit = max((edits.get(f, -1) for f in told.files), default=-1)
        newest_touch = max((touches.get(f, -1) for f in told.files), default=-1)
        bits = _BITS.get(role, 0)
        if newest_edit >= 0:
            bits |= IN_EDITED
        if role != READ or newest_edit <= at:
            bits |= ELSEWHERE
        if at == self.scene.request:
            bits |= IN_REQUEST
        features = told.part.features
        for feature, shown in zip(features, told.part.times, strict=True):
            if last[feature] != at:
                last[feature] = at
                messages[feature] += 1
            units[feature] += shown
            flags[feature] |= bits
        if role in AGENT_ROLES:
            last_agent = self.last_agent
            for feature in features:
                last_agent[feature] = at
        elif role in RESULT_ROLES:
            results = self.results
            for feature in features:
                results[feature] += 1
        if newest_edit >= 0:
            edit = self.edit
            for feature in features:
                if edit[feature] < newest_edit:
                    edit[feature] = newest_edit
        if role == READ and newest_touch >= 0:
            touch = self.touch
            for feature in features:
                if touch[feature] < newest_touch:
                    touch[feature] = newest_touch


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

    def inputs(self, feature: int) -> tuple[float, ...]:
        """The inputs of one feature, in the order of `INPUTS`: what the weights were learned on."""
        s, scene, total = self.statistics, self.statistics.scene, self.total
        last = s.last[feature]
        age = self.ages[last]
        flags = s.flags[feature]
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
        )

    def weights(self, worth: Sequence[float]) -> list[float]:
        """`worth[kind]` × chance, for each feature that stands in the conversation; 0 for the others.

        The same as `logistic(weights · inputs)`, from tables: O(features).
        """
        s = self.statistics
        found = [0.0] * s.scene.size
        for kind, beta in _BETA.items():
            self._fill(found, kind, beta, worth[kind])
        return found

    def _fill(self, found: list[float], kind: int, beta: Sequence[float], worth: float) -> None:
        s, scene, total, ages = self.statistics, self.statistics.scene, self.total, self.ages
        base = beta[0] + beta[17] * math.log(total / 50_000)
        by_last = [
            base
            + beta[3] * freshness(age, math.inf)
            + beta[12] * math.log(1 + turns)
            + beta[14] * (age / total) ** 2
            + beta[15] * (age < YOUNG_TOKENS)
            for age, turns in zip(ages, scene.turns, strict=True)
        ]
        by_last_read = [
            value + beta[18] * age / total + beta[19] * (i >= scene.current_turn)
            for i, (value, age) in enumerate(zip(by_last, ages, strict=True))
        ]
        never = freshness(NEVER_TOKENS)
        # Index -1, "never", is the last place of each table.
        by_agent = [beta[4] * freshness(age) + beta[13] * (age < RECENT_TOKENS) for age in ages]
        by_agent.append(beta[4] * never)
        by_edit = [*(beta[9] * freshness(age) for age in ages), beta[9] * never]
        by_touch = [*(beta[20] * freshness(age) for age in ages), beta[20] * never]
        by_flags = [_flag_sum(flags, beta) for flags in range(256)]
        logs = [math.log(n) for n in range(1, 2 + max(largest(s.units), len(ages)))]
        exp = math.exp
        last, flags_of, units = s.last, s.flags, s.units
        messages, results, agents, edits, touches = s.messages, s.results, s.last_agent, s.edit, s.touch
        many, answers, spread = beta[2], beta[1], beta[10]
        for feature in range(kind, scene.size, KINDS):
            at = last[feature]
            if at < 0:
                continue
            flags = flags_of[feature]
            z = (
                by_flags[flags]
                + by_agent[agents[feature]]
                + by_edit[edits[feature]]
                + many * logs[messages[feature] - 1]
                + answers * logs[results[feature]]
                + spread * logs[units[feature]]
            )
            if flags & IN_READ:
                z += by_last_read[at] + by_touch[touches[feature]]
            else:
                z += by_last[at]
            found[feature] = worth / (1 + exp(-z))


_BETA = {ATOM: ATOM_WEIGHTS, WORD: WORD_WEIGHTS, RUN: RUN_WEIGHTS, LINE: LINE_WEIGHTS}


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
