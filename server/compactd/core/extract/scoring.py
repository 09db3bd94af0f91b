"""What the units of a conversation are worth and what they cost: what the cover chooses from."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from compactd.core.extract.conversation import Conversation
from compactd.core.extract.facts import LOW, MARKED, TELLING_SHIFT
from compactd.core.extract.greedy_cover import Candidates
from compactd.core.extract.lexicon import ATOM, KINDS, RUN, SHAPES
from compactd.core.extract.line_roles import (
    ARGUMENT,
    ASSISTANT,
    COMMAND,
    HEADER,
    NOTE,
    OLD,
    READ,
    RESULT,
    RESULT_ROLES,
    SEARCH,
    SHELL,
    TODO,
    USER,
)
from compactd.core.extract.reuse_model import EXACT, Statistics, repeated, shapes_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Floats = NDArray[np.float64]

FEATURE_WORTH: Final = (3.0, 2.0, 2.0, 4.0)
"""What a certain atom, word, run of four, line is worth."""
LINK_WORTH: Final = 6.0
"""What an atom is worth in a line that says something about it."""
LINK_LINES: Final = 3
LINK_WORDS: Final = 3
"""Telling words, the atom among them, of a line that says something about it."""

ROLE_WORTH: Final = {
    USER: 10.0,
    HEADER: 2.6,
    COMMAND: 2.25,
    ASSISTANT: 2.4,
    ARGUMENT: 2.0,
    OLD: 0.75,
    TODO: 3.0,
    READ: 0.65,
}
"""Factor for the features of a line, 1 for the roles left out: what they are worth beyond being foretold."""
MARK_FACTOR: Final = {ASSISTANT: 2.0, READ: 2.0, SHELL: 2.0, SEARCH: 2.0, RESULT: 2.0}
"""For the agent's decisions and for errors."""
LOW_FACTOR: Final = 0.42

SMALL_TOKENS: Final = 1500
LARGE_TOKENS: Final = 5000
"""Of a record: from the one to the other the factors below go to 1."""
SMALL_ATOM: Final = (1.0, 2.0, 2.0, 1.0)
"""For each shape of an atom. A small record is for what has to be spelled right: paths and literals, of which
there are few, each a fact of its own. A larger one has room for what foretells the next words, too."""
SMALL_RUN: Final = 1.5
SMALL_ROLE: Final = {ASSISTANT: 0.83, READ: 1.3}

LINE_TOKENS: Final = 1.2
MARK_TOKENS: Final = 2.0
HEADER_TOKENS: Final = 4.0
OPENING_TOKENS: Final = 5.0
"""What the marks around a line, the mark of a line that a tool wrote, a call's header, a text's entry id
cost."""


_MARKS_TOKENS: Final = {
    HEADER: HEADER_TOKENS,
    **dict.fromkeys((*RESULT_ROLES, NOTE), LINE_TOKENS + MARK_TOKENS),
}


class Worth(Struct, frozen=True):
    """What is worth how much in a record of some size."""

    features: tuple[tuple[float, ...], ...]
    """Of each kind and shape."""
    link: tuple[float, ...]
    """Of each shape of an atom."""
    roles: dict[int, float]


def worth_in(budget_tokens: int) -> Worth:
    """Of a record of at most so many tokens."""
    span = math.log(LARGE_TOKENS / SMALL_TOKENS)
    small = min(1.0, max(0.0, math.log(LARGE_TOKENS / max(1, budget_tokens)) / span))
    atoms = tuple(factor**small for factor in SMALL_ATOM)
    return Worth(
        features=tuple(
            tuple(
                worth * (atoms[shape] if kind == ATOM else SMALL_RUN**small if kind == RUN else 1.0)
                for shape in range(SHAPES)
            )
            for kind, worth in enumerate(FEATURE_WORTH)
        ),
        link=tuple(LINK_WORTH * factor for factor in atoms),
        roles={role: worth * SMALL_ROLE.get(role, 1.0) ** small for role, worth in ROLE_WORTH.items()},
    )


def candidates(
    conversation: Conversation,
    statistics: Statistics,
    weights: Floats,
    worth: Worth,
    shown: Collection[int] = (),
) -> tuple[Candidates, Floats]:
    """The units that may be quoted, and what showing each of their features is worth.

    That is `weights`, but 0 for what a message that stays shows, or is `shown` besides; and behind them the
    links: each atom's last telling lines have a further feature, which the first of them to be quoted covers.
    O(features).
    """
    import numpy as np

    told, quotable = conversation.scene.told, conversation.quotable
    amounts = np.fromiter((len(each.part.shown) // 4 for each in told), np.int64, len(told))
    weights = weights.copy()
    weights[statistics.feature[repeated(np.array(conversation.kept, np.bool_), amounts)]] = 0.0
    weights[np.isin(statistics.features, list(shown))] = 0.0

    sizes = np.fromiter((each.part.count for each in quotable), np.int64, len(quotable))
    role = repeated(np.fromiter((each.role for each in quotable), np.int64, len(quotable)), sizes)
    counts, tokens, flags = _columns(conversation)

    # Of all mentions those in quotable units whose features still pay.
    mine = np.zeros(len(told), np.bool_)
    mine[conversation.told_as] = True
    alive = repeated(mine, amounts)
    pays = weights[statistics.feature] > 0
    unit = repeated(np.arange(len(counts)), counts)[pays[alive]]
    alive &= pays
    feature = statistics.feature[alive]
    order = statistics.order[alive[statistics.order]]
    order = (np.add.accumulate(alive.astype(np.int64)) - 1)[order]

    telling = (role != HEADER) & (flags >> TELLING_SHIFT >= LINK_WORDS)
    is_atom = statistics.features % KINDS == ATOM
    links = _last_of_each(feature, order[(is_atom[feature] & telling[unit])[order]])
    # Of each link, counted from 0, its atom.
    atom, link = np.unique(feature[links], return_inverse=True)
    feature = np.concatenate((feature, len(weights) + link))
    unit = np.concatenate((unit, unit[links]))
    shapes = shapes_of(statistics.features[atom])
    linked = weights[atom] / np.array(worth.features[ATOM])[shapes] * np.array(worth.link)[shapes]
    weights = np.concatenate((weights, np.rint(linked * EXACT) / EXACT))
    order = np.concatenate((order, len(order) + np.argsort(link, kind="stable")))

    marks = np.array([_MARKS_TOKENS.get(each, LINE_TOKENS) for each in range(NOTE + 1)])
    by_unit = np.argsort(unit, kind="stable")
    place = np.empty(len(by_unit), np.int64)
    place[by_unit] = np.arange(len(by_unit))
    return Candidates(
        features=feature[by_unit],
        starts=_starts(unit, len(counts)),
        order=place[order],
        first=_starts(feature, len(weights)),
        price=tokens / 100 + marks[role],
        worth=_worths(role, flags, worth.roles),
        group=repeated(np.fromiter((each.group for each in quotable), np.int64, len(quotable)), sizes),
        part=repeated(np.arange(len(quotable)), sizes),
        header=[-1 if at < 0 else conversation.begin(at) for at in conversation.header],
        opening=[OPENING_TOKENS if at < 0 else 0.0 for at in conversation.header],
    ), weights


def _columns(conversation: Conversation) -> tuple[Indices, Indices, Indices]:
    """Of each quotable unit the number of its features, its tokens in hundredths, its flags."""
    import numpy as np

    # Not lists to be joined: that and their freeing at once would hold the interpreter.
    counts, tokens, flags = bytearray(), bytearray(), bytearray()
    for each in conversation.quotable:
        packed, count = each.part.packed, each.part.count
        end = len(packed)
        counts += packed[end - 5 * count : end - 3 * count]
        tokens += packed[end - 3 * count : end - count]
        flags += packed[end - count : end]
    return (
        np.frombuffer(counts, np.uint16).astype(np.int64),
        np.frombuffer(tokens, np.uint16).astype(np.int64),
        np.frombuffer(flags, np.uint8).astype(np.int64),
    )


def _last_of_each(feature: Indices, mentions: Indices) -> Indices:
    """The last `LINK_LINES` of each feature's mentions, which are sorted by feature, then by themselves."""
    import numpy as np

    shown = feature[mentions]
    last = np.ones(len(shown), np.bool_)
    last[:-LINK_LINES] = shown[LINK_LINES:] != shown[:-LINK_LINES]
    return mentions[last]


def _starts(values: Indices, size: int) -> Indices:
    """Where the values 0, 1, … `size` - 1 begin once `values` are sorted; at last the end."""
    import numpy as np

    return np.append(0, np.add.accumulate(np.bincount(values, minlength=size)))


def _worths(role: Indices, flags: Indices, of_roles: Mapping[int, float]) -> Floats:
    import numpy as np

    roles = range(int(role.max(initial=0)) + 1)
    worth = np.array([of_roles.get(each, 1.0) for each in roles])[role]
    marked = np.array([MARK_FACTOR.get(each, 1.0) for each in roles])[role]
    worth *= np.where(flags & MARKED, marked, 1.0)
    worth *= np.where(flags & LOW, LOW_FACTOR, 1.0)
    return worth
