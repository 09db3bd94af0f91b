"""Score the units (lines) of a conversation: what quoting each one is worth and what it costs, as input for
the greedy cover."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from compactd.core.extract.conversation import Conversation
from compactd.core.extract.facts import EMPTY, LOW, MARKED, TELLING_SHIFT
from compactd.core.extract.features import ATOM, KINDS, RUN, SHAPES, Lexicon
from compactd.core.extract.greedy_cover import Candidates
from compactd.core.extract.line_roles import (
    ARGUMENT,
    ASSISTANT,
    COMMAND,
    HEADER,
    NEW,
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
from compactd.core.extract.reuse_model import EXACT, Statistics, shapes_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Floats = NDArray[np.float64]

FEATURE_WORTH: Final = (3.0, 2.0, 2.0, 4.0)
"""The worth of a feature that is certain to be used again, by kind: an atom, a word, a run of four signs, a
line."""
LINK_WORTH: Final = 6.0
"""The worth of a link: showing an atom together with a line that says something about it."""
LINK_LINES: Final = 3
"""Of the lines that say something about an atom, only the last ones, this many, can give the atom's link."""
LINK_WORDS: Final = 3
"""A line says something about an atom if it has at least this many significant words (all words except common
ones such as "the"), the atom included."""

ROLE_WORTH: Final = {
    USER: 10.0,
    HEADER: 2.6,
    COMMAND: 2.25,
    ASSISTANT: 2.4,
    ARGUMENT: 2.0,
    OLD: 0.75,
    NEW: 1.0,
    TODO: 3.0,
    READ: 0.65,
    SEARCH: 1.0,
}
"""A factor for the value of a line, by role; 1 for other roles. It expresses what a line is worth beyond the
predicted reuse of its features."""
MARK_FACTOR: Final = {ASSISTANT: 2.0, READ: 2.0, SHELL: 2.0, SEARCH: 2.0, RESULT: 2.0}
"""An additional factor for marked lines, by role. Lines are marked if they contain a decision of the agent or
an error."""
LOW_FACTOR: Final = 0.42
"""A factor for pieces of very long lines and for markup."""

SPARSE_FACTOR: Final = 0.6
SPARSE_ROLES: Final = (*RESULT_ROLES, ARGUMENT, OLD, NEW)
"""A factor for lines of code and of output with fewer than `LINK_WORDS` significant words: such a line does
not read alone."""

SAID_WORDS: Final = 2
"""A line that the agent said with fewer significant words, such as `Noted.`, is never quoted."""

SMALL_TOKENS: Final = 1500
LARGE_TOKENS: Final = 12_000
"""The `SMALL_…` factors below apply in full to a summary of at most `SMALL_TOKENS`. Above that they approach
1, which they reach at `LARGE_TOKENS`."""
SMALL_ATOM: Final = (1.0, 2.0, 2.0, 1.0)
"""A factor for atoms in a small summary, by the sort of the atom (see `features.ATOM_SHAPES`). A small
summary should contain the few things that must be spelled exactly: paths and literals. A larger summary also
has room for other words."""
SMALL_RUN: Final = 1.5
"""A factor for runs of four signs in a small summary."""
SMALL_ROLE: Final = {ASSISTANT: 1.3, HEADER: 0.3, OLD: 0.1, NEW: 0.35, READ: 0.2, SEARCH: 0.5}
"""A factor for lines in a small summary, by role; 1 for other roles. Lines of code and names of calls are
likely to be used again, but say little to a reader, who wants sentences, commands and errors first."""

LINE_TOKENS: Final = 1.2
MARK_TOKENS: Final = 2.0
HEADER_TOKENS: Final = 4.0
OPENING_TOKENS: Final = 5.0
"""What is written around a quoted line, in tokens: the marks around any line (`LINE_TOKENS`), the mark of a
tool's line (`MARK_TOKENS`), the brackets of a call's header (`HEADER_TOKENS`), and the entry id of a text
without a header (`OPENING_TOKENS`)."""


_MARKS_TOKENS: Final = {
    HEADER: HEADER_TOKENS,
    **dict.fromkeys((*RESULT_ROLES, NOTE), LINE_TOKENS + MARK_TOKENS),
}
"""The tokens of everything that is written around a line, by role; `LINE_TOKENS` for other roles."""


class Worth(Struct, frozen=True):
    """How much features, links and roles are worth in a summary of a certain size."""

    features: tuple[tuple[float, ...], ...]
    """The worth of a feature, by its kind and then its shape (see `features.feature_shape`)."""
    link: tuple[float, ...]
    """The worth of a link, by the sort of its atom (see `features.ATOM_SHAPES`)."""
    roles: dict[int, float]
    """A factor for the value of a line, by its role; 1 for other roles."""


def worth_in(budget_tokens: int) -> Worth:
    """Return the worth of features, links and roles in a summary of at most this many tokens."""
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


class LineValue:
    """Tells what the features of a line are worth, no matter who wrote it."""

    def __init__(self, lexicon: Lexicon, statistics: Statistics, weights: Floats) -> None:
        self._lexicon, self._statistics, self._weights = lexicon, statistics, weights

    def __call__(self, line: str) -> float:
        """Return the sum of the weights of the features in `line`. O(length)."""
        import numpy as np

        features = self._statistics.features
        shown = np.frombuffer(self._lexicon.line(line).shown, np.uint32)
        if not len(shown) or not len(features):
            return 0.0
        at = np.minimum(np.searchsorted(features, shown), len(features) - 1)
        return float(self._weights[at][features[at] == shown].sum())


def candidates(
    conversation: Conversation,
    statistics: Statistics,
    weights: Floats,
    worth: Worth,
    shown: Collection[int] = (),
) -> tuple[Candidates, Floats]:
    """Return the units that may be quoted, and what showing each of their features is worth.

    A feature's worth is its weight in `weights`. It is 0 if a message that stays in the view shows the
    feature, or if `shown` contains the feature's number. After the features come the links. An atom has a
    link if lines say something about it. The last `LINK_LINES` of these lines get the link as one more
    feature, so the first of them that is quoted gets the link's worth. O(features).
    """
    import numpy as np

    told, quotable = conversation.scene.parts, conversation.quotable
    amounts = np.fromiter((len(each.part.unit_features) // 4 for each in told), np.int64, len(told))
    weights = weights.copy()
    weights[statistics.feature[np.repeat(np.array(conversation.kept, np.bool_), amounts)]] = 0.0
    weights[np.isin(statistics.features, list(shown))] = 0.0

    sizes = np.fromiter((each.part.count for each in quotable), np.int64, len(quotable))
    role = np.repeat(np.fromiter((each.role for each in quotable), np.int64, len(quotable)), sizes)
    counts, tokens, flags = _columns(conversation)

    # Of all mentions, select those in quotable units whose features still pay.
    mine = np.zeros(len(told), np.bool_)
    mine[conversation.told_as] = True
    alive = np.repeat(mine, amounts)
    pays = weights[statistics.feature] > 0
    unit = np.repeat(np.arange(len(counts)), counts)[pays[alive]]
    alive &= pays
    feature = statistics.feature[alive]
    order = statistics.order[alive[statistics.order]]
    order = (np.add.accumulate(alive.astype(np.int64)) - 1)[order]

    telling = (role != HEADER) & (flags >> TELLING_SHIFT >= LINK_WORDS)
    is_atom = statistics.features % KINDS == ATOM
    links = _last_of_each(feature, order[(is_atom[feature] & telling[unit])[order]])
    # For each link, counted from 0, its atom.
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
        group=np.repeat(np.fromiter((each.group for each in quotable), np.int64, len(quotable)), sizes),
        part=np.repeat(np.arange(len(quotable)), sizes),
        header=[-1 if at < 0 else conversation.begin(at) for at in conversation.header],
        opening=[OPENING_TOKENS if at < 0 else 0.0 for at in conversation.header],
    ), weights


def _columns(conversation: Conversation) -> tuple[Indices, Indices, Indices]:
    """Return three arrays with a value for each quotable unit: the number of its features, its tokens in
    hundredths, its flags."""
    import numpy as np

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
    """Return the last `LINK_LINES` mentions of each feature. `feature` has the feature of each mention.
    `mentions` has indices of mentions, sorted by feature and then by position."""
    import numpy as np

    shown = feature[mentions]
    last = np.ones(len(shown), np.bool_)
    last[:-LINK_LINES] = shown[LINK_LINES:] != shown[:-LINK_LINES]
    return mentions[last]


def _starts(values: Indices, size: int) -> Indices:
    """Return the index at which each integer from 0 to `size` - 1 would begin if `values` were sorted; then
    the number of values."""
    import numpy as np

    return np.append(0, np.add.accumulate(np.bincount(values, minlength=size)))


def _worths(role: Indices, flags: Indices, of_roles: Mapping[int, float]) -> Floats:
    """Return, for each unit (line), the factor by which the worth of its features is multiplied. It follows
    from the unit's role, from its mark and from the length of its line."""
    import numpy as np

    roles = range(int(role.max(initial=0)) + 1)
    worth = np.array([of_roles.get(each, 1.0) for each in roles])[role]
    marked = np.array([MARK_FACTOR.get(each, 1.0) for each in roles])[role]
    worth *= np.where(flags & MARKED, marked, 1.0)
    worth *= np.where(flags & LOW, LOW_FACTOR, 1.0)
    worth *= np.where(flags & EMPTY, 0.0, 1.0)
    is_code = np.array([each in SPARSE_ROLES for each in roles])[role]
    worth *= np.where(is_code & (flags >> TELLING_SHIFT < LINK_WORDS), SPARSE_FACTOR, 1.0)
    worth *= np.where((role == ASSISTANT) & (flags >> TELLING_SHIFT < SAID_WORDS), 0.0, 1.0)
    return worth
