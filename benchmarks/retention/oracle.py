"""An upper bound for `extract`: the same algorithm, but told what the agent will write again.

A feature that the agent writes in the future, before a tool result or a user shows it, gets the chance 1. All
other features share what is left of the budget by their learned chances. Nothing else changes: the worth of
roles and kinds, the sections, the newest request, the tail. The difference between `extract` and this bound
is lost because the future is unknown; the difference between the bound and 100 % is lost because of the
format and the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

from benchmarks.retention import ours, scoring, tables
from benchmarks.retention.ablations import Variant, set_to, varied
from benchmarks.retention.figures import OWN_SIZE, PARTS, Figures, Score, part_of, score
from benchmarks.retention.points import Cut, count
from benchmarks.retention.scoring import OURS, Job, Row
from compactd.core.extract import extract
from compactd.core.extract.facts import FactCache
from compactd.core.extract.features import KINDS
from compactd.core.extract.recent_files import working_directory
from compactd.core.extract.reuse_model import EXACT, ReuseModel, shapes_of
from compactd.core.history.entries import Item

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ORACLE = "oracle"
UNFORETOLD = 0.02
"""Factor for the learned chance of what is not written again: it only fills what is left."""

Scores = dict[str, dict[str, Score]]
"""Scores by part and budget."""


def written_again(cut: Cut, items: Sequence[Item]) -> frozenset[int]:
    """The features of the past that the agent writes in the future before a result or a user shows them."""
    cache = FactCache()
    learnt = [cache.learn(item) for item in items]
    cache.strip(working_directory(learnt, cache.lexicon))
    past: set[int] = set()
    for item in items:
        past.update(_features(cache, item))
    shown: set[int] = set()
    again: set[int] = set()
    for number, record in enumerate(cut.future):
        if record.role == "system":
            continue
        mine = _features(cache, Item(entry_id=f"f{number}", body=ours.message_of(record), tokens=1))
        if record.role == "assistant":
            again |= (mine & past) - shown
        shown |= mine
    return frozenset(again)


def _features(cache: FactCache, item: Item) -> set[int]:
    return {feature for part in cache.learn(item).parts for feature in part.features}


def _foretold(again: frozenset[int]) -> type[ReuseModel]:
    class Foretold(ReuseModel):
        def weights(self, worth: Sequence[Sequence[float]]) -> NDArray[np.float64]:
            import numpy as np

            features = self.statistics.features
            known = np.isin(features, np.fromiter(again, features.dtype, len(again)))
            whole = np.array(worth, np.float64)[(features % KINDS).astype(np.int64), shapes_of(features)]
            found = np.where(known, whole, UNFORETOLD * super().weights(worth))
            rounded: NDArray[np.float64] = np.rint(found * EXACT) / EXACT
            return rounded

    return Foretold


def _rows(job: Job) -> list[Row]:
    rows: list[Row] = []
    for cut in scoring.cuts(job):
        items = ours.items_of(cut.past)
        again = written_again(cut, items)
        with varied(Variant(ORACLE, (set_to(extract, ReuseModel.__name__, _foretold(again)),))):
            for budget in (count(cut.summary),) if cut.summary else job.budgets:
                made = ours.in_process(items, budget)
                rows.append(scoring.judged(cut, ORACLE, budget, made.context))
    return rows


def _cached(job: Job) -> list[Row]:
    key = f"{ORACLE} {UNFORETOLD} {job.budgets} {scoring.key_of(job)}"
    return scoring.remembered(job.cache, key, lambda: _rows(job))


def measured(jobs: Sequence[Job], processes: int) -> Scores:
    """The oracle at every cut."""
    rows: list[Row] = []
    if processes == 1:
        scoring.keep_memory()
        for job in jobs:
            rows += _cached(job)
    else:
        with ProcessPoolExecutor(processes, initializer=scoring.keep_memory) as pool:
            for mine in pool.map(_cached, jobs):
                rows += mine
    sizes = [*map(str, jobs[0].budgets), OWN_SIZE]
    return {
        part: {
            size: score(chosen)
            for size in sizes
            if (chosen := [row for row in part_of(rows, part) if _size(row) == size])
        }
        for part in ("all", *PARTS)
    }


def _size(row: Row) -> str:
    return OWN_SIZE if row.is_recorded else str(row.budget)


def table(found: Figures, oracle: Scores, part: str) -> str:
    """Return a table of `extract` and the oracle (linked retention / CG), with their difference."""
    mine = found.scores[part].get(OURS, {})
    sizes = [size for size in oracle.get(part, {}) if size in mine]
    pairs = [(mine[size], oracle[part][size]) for size in sizes]
    return tables.table(
        ["linked / CG, %", *map(tables.size_title, sizes)],
        [
            ["**extract**", *(f"{one.linked:.1f} / {one.cg:.1f}" for one, _ in pairs)],
            ["told the future", *(f"{one.linked:.1f} / {one.cg:.1f}" for _, one in pairs)],
            ["between them", *(f"{b.linked - a.linked:+.1f} / {b.cg - a.cg:+.1f}" for a, b in pairs)],
        ],
    )
