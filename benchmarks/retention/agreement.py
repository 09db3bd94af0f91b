"""Compares this benchmark's versions of other methods with the scores in the shared file, cut by cut."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.retention import tables
from benchmarks.retention.scoring import BASELINES, Row

FILE = "retention_baselines.json"
POINT = 0.01
ROUNDING = 5e-5
"""The shared figures have four digits."""


class Shared(Struct, frozen=True):
    """A row of the shared file."""

    session: str
    cut: int
    method: str
    budget: int
    tokens: int
    linked: float | None
    cg: float


class Agreement(Struct, frozen=True):
    """The agreement of one method. Points are percent."""

    compared: int
    within: int
    """How many cuts have scores that differ by at most one point."""
    same_size: int
    """How many cuts have a context of the same number of tokens."""
    farthest_linked: float
    farthest_cg: float
    mean_linked: float
    """Ours less theirs, on average."""
    mean_cg: float


def agreements(rows: Sequence[Row], data: Path | None) -> dict[str, Agreement]:
    """Return the agreement by method; empty if there is no shared file to compare with."""
    file = None if data is None else data / FILE
    if file is None or not file.exists():
        return {}
    shared = msgspec.json.decode(file.read_bytes(), type=list[Shared])
    theirs = {(one.session, one.cut, one.method, one.budget): one for one in shared}
    found: dict[str, Agreement] = {}
    for method in BASELINES:
        pairs = [
            (row, one)
            for row in rows
            if row.method == method
            and not row.is_recorded
            and (one := theirs.get((row.session, row.cut, row.method, row.budget))) is not None
        ]
        if pairs:
            found[method] = _of(pairs)
    return found


def _of(pairs: Sequence[tuple[Row, Shared]]) -> Agreement:
    linked = [(row.linked or 0.0) - (one.linked or 0.0) for row, one in pairs]
    cg = [row.cg - one.cg for row, one in pairs]
    most = POINT + ROUNDING
    return Agreement(
        compared=len(pairs),
        within=sum(abs(a) <= most and abs(b) <= most for a, b in zip(linked, cg, strict=True)),
        same_size=sum(row.tokens == one.tokens for row, one in pairs),
        farthest_linked=round(100 * max(map(abs, linked)), 2),
        farthest_cg=round(100 * max(map(abs, cg)), 2),
        mean_linked=round(100 * sum(linked) / len(linked), 2),
        mean_cg=round(100 * sum(cg) / len(cg), 2),
    )


def table(found: dict[str, Agreement]) -> str:
    """One line a method."""
    head = ["against the shared figures", "cuts × budgets", "within a point", "same size"]
    head += ["farthest, linked / CG", "on average"]
    rows = (
        [
            tables.TITLES[method],
            f"{one.compared}",
            f"{one.within}",
            f"{one.same_size}",
            f"{one.farthest_linked:.2f} / {one.farthest_cg:.2f}",
            f"{one.mean_linked:+.2f} / {one.mean_cg:+.2f}",
        ]
        for method, one in found.items()
    )
    return tables.table(head, rows)
