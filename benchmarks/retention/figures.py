"""Means and paired differences of rows: what the tables, the pictures and the JSON show."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from benchmarks.retention.aside import is_aside
from benchmarks.retention.judging import LEAST_PROBES
from benchmarks.retention.probes import CATEGORIES
from benchmarks.retention.scoring import Row

PARTS = ("tuned", "aside")
"""Sessions that methods may be tuned on, and held-out sessions."""

RESAMPLES = 2_000
INTERVAL = 0.95

Value = Callable[[Row], float | None]


class Score(Struct, frozen=True):
    """Means over cuts, then sessions; percent."""

    linked: float
    cg: float
    sessions: int
    cuts: int
    refused: int
    """Cuts where the newest request alone does not fit: not in the means."""


class Difference(Struct, frozen=True):
    """How many points one method is above another on the same cuts."""

    mean: float
    low: float
    high: float
    """Ends of the interval that resampled sessions give."""
    least: float
    most: float
    """The largest mean if one session is left out, over all sessions."""


def linked(row: Row) -> float | None:
    """Return the row's linked retention, or None."""
    return row.linked


def cg(row: Row) -> float | None:
    """Return the row's CG, or None."""
    return row.cg


def part_of(rows: Iterable[Row], part: str) -> list[Row]:
    """The rows of the tuned or the put-aside sessions; of `all`, all."""
    return [row for row in rows if part == "all" or is_aside(row.session) == (part == "aside")]


def by_session(rows: Iterable[Row], value: Value) -> dict[str, float]:
    """The mean over each session's cuts."""
    found: dict[str, list[float]] = {}
    for row in rows:
        known = value(row)
        if known is not None and not row.is_refused:
            found.setdefault(row.session, []).append(known)
    return {name: mean(values) for name, values in sorted(found.items())}


def mean(values: Iterable[float]) -> float:
    """0 for none."""
    known = list(values)
    return sum(known) / len(known) if known else 0.0


def score(rows: Sequence[Row]) -> Score:
    """Return the score of one method within one budget."""
    scored = [row for row in rows if not row.is_refused]
    return Score(
        linked=percent(mean(by_session(rows, linked).values())),
        cg=percent(mean(by_session(rows, cg).values())),
        sessions=len({row.session for row in scored}),
        cuts=len(scored),
        refused=len(rows) - len(scored),
    )


def percent(share: float) -> float:
    """Return a share in percent, rounded to a hundredth."""
    return round(100 * share, 2)


def categories(rows: Iterable[Row]) -> dict[str, float]:
    """The share of each category's probes that is kept: mean over the cuts where it counts; percent."""
    scored = [row for row in rows if not row.is_refused]
    shares: dict[str, float] = {}
    for name in CATEGORIES:
        counted = [row.found[name] for row in scored if row.found.get(name, (0, 0))[1] >= LEAST_PROBES]
        if counted:
            shares[name] = percent(mean(kept / total for kept, total in counted))
    return shares


def difference(ours: Iterable[Row], theirs: Iterable[Row], value: Value) -> Difference | None:
    """Return the paired difference of two methods, over the cuts at which both have a score; None if there
    are no such cuts."""
    other = {(row.session, row.start, row.cut): row for row in theirs if not row.is_refused}
    pairs: dict[str, list[float]] = {}
    for row in ours:
        rival = other.get((row.session, row.start, row.cut))
        if rival is None or row.is_refused:
            continue
        mine, its = value(row), value(rival)
        if mine is not None and its is not None:
            pairs.setdefault(row.session, []).append(mine - its)
    means = [mean(values) for _, values in sorted(pairs.items())]
    if not means:
        return None
    low, high = interval(means)
    without = [mean(means[:at] + means[at + 1 :]) if len(means) > 1 else means[0] for at in range(len(means))]
    return Difference(
        percent(mean(means)), percent(low), percent(high), percent(min(without)), percent(max(without))
    )


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the bootstrap confidence interval (`INTERVAL`) of the mean. The seed is fixed."""
    draw = random.Random(len(values))
    means = sorted(mean(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    edge = int(RESAMPLES * (1 - INTERVAL) / 2)
    return means[edge], means[-1 - edge]


class Figures(Struct, frozen=True):
    """All published figures in percent, without single cuts: by part, method, budget, category, session."""

    data: str
    """A description of the sessions."""
    budgets: tuple[int, ...]
    scores: dict[str, dict[str, dict[str, Score]]]
    """Scores by part, method and budget (`own` for recorded compactions)."""
    differences: dict[str, dict[str, dict[str, dict[str, Difference]]]]
    """compactd minus a rival, by part, rival, budget and figure."""
    categories: dict[str, dict[str, dict[str, float]]]
    """Means over all sessions, by method, budget and category."""
    sessions: dict[str, dict[str, tuple[float, float]]]
    """(linked, CG) of all sessions within `sessions_budget`, by session and method."""
    sessions_budget: int
    made: int
    """How many of compactd's summaries contain an atom that their past does not contain."""
    over: int
    """How many of compactd's compactions exceed their budget plus what rendering the messages adds."""


OWN_SIZE = "own"
RENDERING = 1.03
"""A context is rendered with a mark at each message, which the engine does not count."""


def figures(
    rows: Sequence[Row], budgets: tuple[int, ...], data: str, ours: str, rivals: Sequence[str]
) -> Figures:
    """Everything from the rows of a run."""
    methods = list(dict.fromkeys(row.method for row in rows))
    keyed: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        keyed.setdefault((row.method, OWN_SIZE if row.is_recorded else str(row.budget)), []).append(row)
    sizes = [str(budget) for budget in budgets]
    if any(size == OWN_SIZE for _, size in keyed):
        sizes.append(OWN_SIZE)
    middle = min(budgets, key=lambda budget: abs(budget - 8_000))
    mine = [row for row in rows if row.method == ours]
    return Figures(
        data=data,
        budgets=budgets,
        scores={
            part: {
                method: {
                    size: score(chosen)
                    for size in sizes
                    if (chosen := part_of(keyed.get((method, size), []), part))
                }
                for method in methods
            }
            for part in ("all", *PARTS)
        },
        differences={
            part: {
                rival: {size: _differences(keyed, ours, rival, size, part) for size in sizes}
                for rival in rivals
                if rival in methods and ours in methods
            }
            for part in ("all", *PARTS)
        },
        categories={
            method: {size: categories(keyed.get((method, size), [])) for size in sizes} for method in methods
        },
        sessions=_sessions(keyed, methods, str(middle)),
        sessions_budget=middle,
        made=sum(bool(row.made) for row in mine),
        over=sum(row.tokens > RENDERING * row.budget for row in mine),
    )


def _differences(
    keyed: Mapping[tuple[str, str], list[Row]], ours: str, rival: str, size: str, part: str
) -> dict[str, Difference]:
    mine = part_of(keyed.get((ours, size), []), part)
    its = part_of(keyed.get((rival, size), []), part)
    found = {"linked": difference(mine, its, linked), "cg": difference(mine, its, cg)}
    return {name: one for name, one in found.items() if one is not None}


def _sessions(
    keyed: Mapping[tuple[str, str], list[Row]], methods: Sequence[str], size: str
) -> dict[str, dict[str, tuple[float, float]]]:
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for method in methods:
        rows = keyed.get((method, size), [])
        gains = by_session(rows, cg)
        for name, share in by_session(rows, linked).items():
            found.setdefault(name, {})[method] = (percent(share), percent(gains[name]))
    return dict(sorted(found.items()))
