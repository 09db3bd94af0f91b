"""The inputs of the reuse model, computed one by one, for learning and checking its weights.

`ReuseModel.weights` computes the same from tables for all features at once.
"""

from __future__ import annotations

import math
from typing import Final

from compactd.core.extract.features import feature_shape
from compactd.core.extract.reuse_model import (
    ELSEWHERE,
    IN_COMMAND,
    IN_EDITED,
    IN_HEADER,
    IN_OLD,
    IN_READ,
    IN_REQUEST,
    IN_SEARCH,
    NEVER_TOKENS,
    RECENT_TOKENS,
    YOUNG_TOKENS,
    ReuseModel,
    freshness,
)

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
"""The inputs of the model, in the order of the weights."""


def inputs_of(model: ReuseModel, feature: int) -> tuple[float, ...]:
    """Return the inputs of the logistic model for one feature, given by its number, in the order of
    `INPUTS`."""
    s, scene, total, ages = model.statistics, model.statistics.scene, model.total, model.ages
    shape = feature_shape(feature)
    feature = s.place(feature)
    last = int(s.last[feature])
    age = ages[last]
    flags = int(s.flags[feature])
    read = bool(flags & IN_READ)
    agent = s.last_agent[feature]
    agent_age = ages[agent] if agent >= 0 else NEVER_TOKENS
    edit_age = ages[s.edit[feature]] if s.edit[feature] >= 0 else NEVER_TOKENS
    touch_age = ages[s.touch[feature]] if s.touch[feature] >= 0 else NEVER_TOKENS
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
