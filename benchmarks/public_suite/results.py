"""The suite's results, as its benchmark gives them, and the tables of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from benchmarks.public_suite import COMPACTD
from benchmarks.retention.tables import table


class Conflicts(Struct, frozen=True):
    """How many of the statements that replace an earlier one are in the last context, in what way."""

    n: int
    resolved: int
    """The new value is there, and the earlier one is not."""
    both: int
    """The earlier value is there next to the new one."""


class Semantic(Struct, frozen=True):
    """The sessions with replaced statements and with pairs of similar ones."""

    conflicts: Conflicts
    distinct_pair_rate: float
    """The share of the pairs of which both statements survive."""


class Randomized(Struct, frozen=True):
    """The sessions with twenty statements each."""

    overall_final_survival: float
    """The share of the statements that survive the last round."""


class Entry(Struct, frozen=True):
    """A compactor at a budget."""

    compactor: str
    budget_fraction: float
    budget_compliant: bool
    randomized: Randomized
    semantic: Semantic


class Payload(Struct, frozen=True):
    """What the suite's benchmark returns."""

    kit_version: str
    budgets: tuple[float, ...]
    seeds: tuple[int, ...]
    rounds: int
    entries: tuple[Entry, ...]
    """By budget, and best first by the suite's ranking."""


Forms = dict[str, Payload]
"""The results by form: `own` and `relabelled`."""


COLUMNS: dict[str, Callable[[Entry], float]] = {
    "survival, %": lambda one: 100 * one.randomized.overall_final_survival,
    "resolved updates, %": lambda one: 100 * one.semantic.conflicts.resolved / one.semantic.conflicts.n,
    "stale next to new": lambda one: one.semantic.conflicts.both,
    "distinct pairs, %": lambda one: 100 * one.semantic.distinct_pair_rate,
}
"""What a table shows of each compactor, by the title of its column."""


def tables(forms: Forms) -> Iterator[tuple[str, str]]:
    """Yield (budget, table) for each budget. A cell has the figure of the suite's own sessions, that of the
    relabelled ones, and the difference."""
    own, relabelled = forms["own"], forms["relabelled"]
    for budget in own.budgets:
        copies = {one.compactor: one for one in relabelled.entries if one.budget_fraction == budget}
        rows = [
            [_name(one, copies[one.compactor]), *_cells(one, copies[one.compactor])]
            for one in own.entries
            if one.budget_fraction == budget
        ]
        conflicts = own.entries[0].semantic.conflicts.n
        titles = (title.replace("new", f"new, of {conflicts}") for title in COLUMNS)
        yield f"{budget:.0%}", table(["own → relabelled (difference)", *titles], rows)


def _name(own: Entry, copy: Entry) -> str:
    name = f"**{own.compactor}**" if own.compactor == COMPACTD else own.compactor
    return name if own.budget_compliant and copy.budget_compliant else f"{name}, over the budget"


def _cells(own: Entry, copy: Entry) -> Iterator[str]:
    for title, figure in COLUMNS.items():
        before, after = figure(own), figure(copy)
        digits = 0 if title.startswith("stale") else 1
        yield f"{before:.{digits}f} → {after:.{digits}f} ({after - before:+.{digits}f})"
