"""What each part of `extract` is worth: the same cuts with one part changed or left out.

A variant sets constants or classes of the engine's modules in a process of its own, runs, and sets them back.
A name that the engine no longer has is an error, not a row without effect.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from types import ModuleType
from typing import TYPE_CHECKING

from msgspec import Struct

from benchmarks.retention import ours, scoring, tables
from benchmarks.retention.figures import PARTS, Score, part_of, score
from benchmarks.retention.scoring import OURS, Job, Row
from compactd.core.extract import extract, greedy_cover
from compactd.core.extract import scoring as worth
from compactd.core.extract.features import KINDS
from compactd.core.extract.greedy_cover import Candidates, GreedyCover
from compactd.core.extract.line_roles import HEADER, READ, RESULT_ROLES, USER
from compactd.core.extract.reuse_model import ReuseModel, Statistics
from compactd.core.planning import fit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BUDGETS = (4_000, 8_000)
"""The default budgets. There are two because what helps at one budget may hurt at another."""

NEVER = 10**9
"""A divisor that leaves nothing."""


class Set(Struct, frozen=True):
    """An attribute of an engine's module for the time of a run."""

    module: ModuleType
    name: str
    make: Callable[[], object]


class Variant(Struct, frozen=True):
    """One row of the table."""

    title: str
    sets: tuple[Set, ...] = ()


def set_to(module: ModuleType, name: str, value: object) -> Set:
    """A value that is at hand."""
    return Set(module, name, lambda: value)


def _features(**shares: float) -> tuple[Set, ...]:
    """`FEATURE_WORTH` with the worth of some kinds multiplied."""
    kinds = ("atom", "word", "run", "line")
    changed = tuple(
        value * shares.get(kind, 1.0) for kind, value in zip(kinds, worth.FEATURE_WORTH, strict=True)
    )
    # A kind divides the links' worth too: it cannot be 0.
    changed = tuple(value or 1e-9 for value in changed)
    return (set_to(worth, "FEATURE_WORTH", changed),)


def _roles(**changes: dict[int, float]) -> tuple[Set, ...]:
    return (set_to(worth, "ROLE_WORTH", changes["to"]),)


class SeenAgain:
    """A cover in which each feature pays every time it is shown: the best lines by themselves."""

    def __init__(self, candidates: Candidates, weights: NDArray[np.float64]) -> None:
        import numpy as np

        c = self._candidates = candidates
        units = np.repeat(np.arange(len(c.price)), np.diff(c.starts))
        sums = np.bincount(units, weights[c.features], len(c.price))
        self._order = np.argsort(-(c.worth * sums / c.price), kind="stable")
        self.picks: list[int] = []

    def until(self, budget: float) -> list[int]:
        """The best units, each with its header, until their prices reach `budget`."""
        c = self._candidates
        picked: dict[int, None] = {}
        spent = 0.0
        for best in map(int, self._order):
            if spent >= budget:
                break
            head = c.header[int(c.group[best])]
            for unit in (head, best):
                if unit >= 0 and unit not in picked:
                    picked[unit] = None
                    spent += float(c.price[unit])
        self.picks = list(picked)
        return self.picks


class EvenChances(ReuseModel):
    """Every feature of a kind as likely as the others: nothing is known of its past."""

    def __init__(self, statistics: Statistics) -> None:
        super().__init__(statistics)
        self._features = statistics.features

    def weights(self, worth: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """Return the weights, with the features of each kind set to their kind's mean."""
        found = super().weights(worth).copy()
        for kind in range(KINDS):
            mine = (self._features % KINDS == kind) & (found > 0)
            if mine.any():
                found[mine] = round(float(found[mine].mean()) * 2**20) / 2**20
        return found


def variants() -> tuple[Variant, ...]:
    """The table's rows."""
    roles = worth.ROLE_WORTH
    no_tail = (set_to(fit, "TAIL_DIVISOR", NEVER), set_to(fit, "CLIPPED_DIVISOR", NEVER))
    no_files = (set_to(extract, "FILES_SHARE", 0.0), set_to(extract, "FILES_TOKENS", 0))
    return (
        Variant("as it is"),
        Variant("no novelty: what is shown pays again", (set_to(extract, GreedyCover.__name__, SeenAgain),)),
        Variant("no learned chances", (set_to(extract, ReuseModel.__name__, EvenChances),)),
        Variant("no link feature", (set_to(worth, "LINK_WORTH", 0.0),)),
        Variant("no atoms but as links", _features(atom=0.01)),
        Variant("no words", _features(word=0)),
        Variant("no runs of four", _features(run=0)),
        Variant("no whole lines", _features(line=0)),
        Variant("no roles but user and header", _roles(to={USER: roles[USER], HEADER: roles[HEADER]})),
        Variant("the user's words as others'", _roles(to={**roles, USER: 1.0})),
        Variant("decisions and errors as other lines", (set_to(worth, "MARK_FACTOR", {}),)),
        Variant("no tool output", _roles(to={**roles, **dict.fromkeys(RESULT_ROLES, 0.0)})),
        Variant("no read output", _roles(to={**roles, READ: 0.0})),
        Variant("no gain beside a neighbour", (set_to(greedy_cover, "NEIGHBOUR_GAIN", 0.0),)),
        Variant("no verbatim tail", no_tail),
        Variant("a verbatim tail of half", (set_to(fit, "TAIL_DIVISOR", 2),)),
        Variant("no file lists", no_files),
    )


@contextlib.contextmanager
def varied(variant: Variant) -> Iterator[None]:
    """The engine of this process as `variant` has it. Raises `AttributeError` for a name it does not have."""
    before: list[tuple[ModuleType, str, object]] = []
    try:
        for one in variant.sets:
            before.append((one.module, one.name, getattr(one.module, one.name)))
            setattr(one.module, one.name, one.make())
        yield
    finally:
        for module, name, value in reversed(before):
            setattr(module, name, value)


class _Work(Struct, frozen=True):
    job: Job
    at: int
    """The index of the variant in `variants()`."""
    every: int
    first: int
    """Cuts of the sessions before, for `every`."""


def _rows(work: _Work) -> list[Row]:
    variant = variants()[work.at]
    cuts = [cut for cut in scoring.cuts(work.job) if not cut.summary]
    # Each cut's place among all cuts, so that one in `every` is taken whatever the session.
    cuts = [cut for at, cut in enumerate(cuts, work.first) if at % work.every == 0]
    rows: list[Row] = []
    with varied(variant):
        for cut in cuts:
            items = ours.items_of(cut.past)
            for budget in work.job.budgets:
                made = ours.in_process(items, budget)
                rows.append(scoring.judged(cut, OURS, budget, made.context))
    return rows


def _cached(work: _Work) -> list[Row]:
    title = variants()[work.at].title
    key = f"ablation {title} {work.every} {work.first} {work.job.budgets} {scoring.key_of(work.job)}"
    return scoring.remembered(work.job.cache, key, lambda: _rows(work))


class Ablation(Struct, frozen=True):
    """One variant's scores, by part and budget."""

    title: str
    scores: dict[str, dict[str, Score]]


def measured(jobs: Sequence[Job], every: int, processes: int) -> list[Ablation]:
    """Every variant on one in `every` cuts."""
    first, firsts = 0, list[int]()
    for job in jobs:
        firsts.append(first)
        first += sum(not cut.summary for cut in scoring.cuts(job))
    works = [
        _Work(job, at, every, begin)
        for at in range(len(variants()))
        for job, begin in zip(jobs, firsts, strict=True)
    ]
    rows: dict[int, list[Row]] = {}
    with ProcessPoolExecutor(processes, initializer=scoring.keep_memory) as pool:
        for work, mine in zip(works, pool.map(_cached, works), strict=True):
            rows.setdefault(work.at, []).extend(mine)
    return [
        Ablation(
            variant.title,
            {
                part: {
                    str(budget): score(
                        [row for row in part_of(rows.get(at, ()), part) if row.budget == budget]
                    )
                    for budget in jobs[0].budgets
                }
                for part in ("all", *PARTS)
            },
        )
        for at, variant in enumerate(variants())
    ]


def table(found: Sequence[Ablation], part: str) -> str:
    """The scores as it is; the differences of the others, in points."""
    base = found[0].scores[part]
    head = ["linked / CG, points", *map(tables.size_title, base)]
    rows = [[found[0].title, *(f"{one.linked:.1f} / {one.cg:.1f}" for one in base.values())]]
    for ablation in found[1:]:
        rows.append(
            [
                ablation.title,
                *(
                    f"{one.linked - base[size].linked:+.1f} / {one.cg - base[size].cg:+.1f}"
                    for size, one in ablation.scores[part].items()
                ),
            ]
        )
    return tables.table(head, rows)


def report(jobs: Sequence[Job], every: int, processes: int) -> str:
    """The tables of the tuned and the put-aside sessions."""
    found = measured(jobs, every, processes)
    shown: list[str] = []
    for part in PARTS:
        counted = next(iter(found[0].scores[part].values()))
        if counted.cuts:
            shown.append(f"{tables.PART_TITLES[part]}: {counted.cuts} cuts\n\n{table(found, part)}\n")
    return "\n".join(shown)
