"""One run of the whole comparison: measures the servers and the libraries, and notes machine and versions."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

import msgspec
from msgspec import Struct

from benchmarks.against import wire
from benchmarks.against.contenders import CONTENDERS, Contender, all_versions
from benchmarks.against.racing import Pace, Race
from benchmarks.against.ranks import write_ranks
from benchmarks.against.results import LIBRARY_ROWS, START, Result
from benchmarks.against.workload import make
from benchmarks.figures import machine
from benchmarks.peers import environment

KEYS = tuple(row.key for row in LIBRARY_ROWS)
PARTS = ("servers", "start", *KEYS)

FULL = Pace(
    main=1_000_000,
    sizes=(10_000, 100_000, 1_000_000, 10_000_000),
    rounds=7,
    budget_s=12.0,
    patience_s=120.0,
    starts=7,
    start_budget_s=25.0,
)
QUICK = Pace(
    main=100_000,
    sizes=(10_000, 30_000, 100_000),
    rounds=3,
    budget_s=0.5,
    patience_s=30.0,
    starts=2,
    start_budget_s=1.0,
)

SERVERS_FULL = wire.Sizes(starts=11, rounds=15, pings=150, pipelined=10_000, floods=5, large=5)
SERVERS_QUICK = wire.Sizes(starts=3, rounds=4, pings=60, pipelined=3_000, floods=2, large=0)


class Again(Struct, frozen=True, kw_only=True):
    """Rows that a later run measured again."""

    rows: tuple[str, ...]
    """The titles of these rows."""
    date: str
    seconds: float
    load_1_min: float


class Run(Struct, frozen=True, kw_only=True):
    """All results of a run, as `--json` writes them."""

    date: str
    machine: dict[str, str | int | float]
    quick: bool
    seconds: float
    results: tuple[Result, ...]
    versions: dict[str, str]
    """The version of each contender."""
    installed: dict[str, list[str]] = {}
    """Every installed package, by environment."""
    again: tuple[Again, ...] = ()


def joined(first: Run, then: Run) -> Run:
    """Return `first` with each row replaced that `then` measured again, for all its contenders and sizes."""
    anew = {key for key in _keys(first) if _who(first, key) <= _who(then, key)}
    results = [
        result
        for key in _keys(first)
        for result in (then if key in anew else first).results
        if result.row.key == key
    ]
    again = Again(
        rows=tuple(dict.fromkeys(result.row.what for result in results if result.row.key in anew)),
        date=then.date,
        seconds=then.seconds,
        load_1_min=float(then.machine["load_1_min"]),
    )
    return msgspec.structs.replace(
        first,
        results=tuple(results),
        versions={**first.versions, **then.versions},
        again=(*first.again, again),
    )


def _keys(done: Run) -> list[str]:
    return list(dict.fromkeys(result.row.key for result in done.results))


def _who(done: Run, key: str) -> set[tuple[str, int | None]]:
    return {
        (figure.who, result.tokens)
        for result in done.results
        if result.row.key == key
        for figure in result.figures
    }


def run(
    folder: Path,
    pace: Pace,
    sizes: wire.Sizes,
    say: Callable[[str], None],
    *,
    parts: Sequence[str] = PARTS,
    contenders: Sequence[Contender] = CONTENDERS,
    is_quick: bool = False,
) -> Run:
    """Run the measurements and return the results. All files are written to `folder`. The garbage collector
    of this process is off meanwhile."""
    began, on = perf_counter(), machine()
    env = environment(folder, folder / "home")
    results: list[Result] = []
    gc.disable()
    try:
        if "servers" in parts:
            results += wire.race(env, folder, sizes, say)
        write_ranks(folder / "ranks")
        with Race(contenders, env, folder, pace, say) as race:
            if "start" in parts:
                say("  starts of the libraries")
                results = _with_starts(results, race)
            keys = [key for key in KEYS if key in parts]
            if keys:
                results += race.rows(keys, [make(folder, tokens) for tokens in pace.sizes])
            versions = dict(race.versions)
    finally:
        gc.enable()
    return Run(
        date=datetime.now(UTC).date().isoformat(),
        machine={**on, "load_1_min_after": round(os.getloadavg()[0], 2)},
        quick=is_quick,
        seconds=round(perf_counter() - began, 1),
        results=tuple(results),
        versions=versions,
        installed=all_versions(),
    )


def _with_starts(results: Sequence[Result], race: Race) -> list[Result]:
    """The libraries' starts in the servers' row, where that was run."""
    figures = tuple(race.starts())
    if any(result.row.key == START.key for result in results):
        return [
            msgspec.structs.replace(result, figures=(*result.figures, *figures))
            if result.row.key == START.key
            else result
            for result in results
        ]
    return [*results, Result(row=START, tokens=None, workload="", figures=figures, cannot={})]
