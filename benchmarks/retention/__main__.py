"""How much of what an agent needs later a compaction keeps: `make retention`.

Scores `extract` and other methods at every cut of recorded sessions. Prints linked retention and CG for the
sessions that methods were tuned on and for the held-out ones, with paired differences. docs/retention.md
describes the metric. Without the shared recordings it measures the session that is in the repository.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.retention import (
    ablations,
    agreement,
    document,
    lost,
    oracle,
    ours,
    pictures,
    scoring,
    sessions,
    tables,
)
from benchmarks.retention.figures import PARTS, Figures, figures
from benchmarks.retention.scoring import BASELINES, METHODS, OURS, RECORDED, Job, Timed
from benchmarks.retention.sessions import Source

BUDGETS = (2_000, 4_000, 8_000, 16_000)
RIVALS = ("keep_last", "structured")
"""The methods that compactd is compared with on the same cuts."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    given = argparse.ArgumentParser(
        prog="python -m benchmarks.retention",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    given.add_argument("--data", type=Path, help="folder with sessions/ and more/ (COMPACTD_TEST_DATA)")
    given.add_argument("--own", action="store_true", help="measure the project's own session only")
    given.add_argument("--only", default="", metavar="REGEX", help="sessions whose names match")
    given.add_argument("--budgets", type=_numbers, metavar="N,N", help="tokens (2000,4000,8000,16000)")
    given.add_argument("--methods", type=_names, default=METHODS, metavar="NAME,NAME")
    given.add_argument("--daemon", action="store_true", help="compact through the real daemon")
    given.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N")
    given.add_argument("--cache", type=Path, default=scoring.CACHE, metavar="DIR")
    given.add_argument("--session", metavar="NAME", help="with --lost: the session to look at")
    given.add_argument("--lost", action="store_true", help="what extract loses of a session, atom by atom")
    given.add_argument("--method", choices=METHODS, default=OURS, help="with --lost: another method")
    given.add_argument("--ablations", action="store_true", help="what each part of extract is worth")
    given.add_argument("--oracle", action="store_true", help="ours beside one that is told the future")
    given.add_argument(
        "--every", type=int, default=2, metavar="N", help="with --ablations and --document: every Nth cut (2)"
    )
    given.add_argument("--document", action="store_true", help="write docs/retention.md's figures anew")
    return given


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = sorted(set(names) - set(METHODS))
    if unknown:
        raise argparse.ArgumentTypeError(f"no method {', '.join(unknown)}; there are {', '.join(METHODS)}")
    return names


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    options = parser().parse_args(arguments)
    options.budgets = options.budgets or (ablations.BUDGETS if options.ablations else BUDGETS)
    data = None if options.own else options.data or sessions.shared_data()
    found = sessions.sources(data)
    wanted = [source for source in found if re.search(options.only, source.name)]
    if options.lost and not options.session:
        print("--lost needs --session NAME", file=sys.stderr)
        return 2
    if options.session:
        wanted = [source for source in found if source.name == options.session]
    if not wanted:
        print(f"no such session; there are {', '.join(source.name for source in found)}", file=sys.stderr)
        return 2
    jobs = _jobs(options, found, wanted, data)
    if options.lost:
        _show_lost(jobs[0], options.method)
        return 0
    if options.ablations:
        print(ablations.report(jobs, options.every, options.processes))
        return 0
    began = time.perf_counter()
    rows = scoring.all_scored(jobs, options.processes)
    if not rows:
        print("no session here is long enough to be cut", file=sys.stderr)
        return 1
    done = summed(rows, options.budgets, _said_of(data, wanted, rows))
    for line in tables.report(done):
        print(line)
    _write(rows, done, options.cache)
    _tell_times(rows, time.perf_counter() - began, options)
    agreed = agreement.agreements([timed.row for timed in rows], data)
    if agreed:
        print(f"\n{agreement.table(agreed)}")
    foretold: oracle.Scores = {}
    if options.oracle or options.document:
        foretold = oracle.measured(jobs, options.processes)
        for part in PARTS:
            print(f"\n{tables.PART_TITLES[part]}\n\n{oracle.table(done, foretold, part)}")
    if options.document:
        shown = document.published(done, agreed, foretold, jobs, options.every, options.processes)
        print(f"wrote {', '.join(map(str, document.write(shown, options.cache / 'kept')))}")
    return 0


def _jobs(
    options: argparse.Namespace, found: Sequence[Source], wanted: Sequence[Source], data: Path | None
) -> list[Job]:
    kept = options.cache / "kept"
    common = scoring.common_of(found, kept) if data is not None else frozenset()
    engine = scoring.engine()
    methods = (*options.methods, RECORDED) if OURS in options.methods else options.methods
    return [
        Job(source, common, methods, options.budgets, kept, engine, by_daemon=options.daemon)
        for source in wanted
    ]


def summed(rows: Sequence[Timed], budgets: tuple[int, ...], said: str) -> Figures:
    """Return the figures of a run."""
    return figures([timed.row for timed in rows], budgets, said, OURS, RIVALS)


def _said_of(data: Path | None, wanted: Sequence[Source], rows: Sequence[Timed]) -> str:
    cut = sorted({timed.row.session for timed in rows})
    if data is None or cut == [sessions.OWN_NAME]:
        return f"the project's own session (examples/{sessions.OWN.name}), {len(cut)} of {len(wanted)} files"
    own = " and the project's own" if sessions.OWN_NAME in cut else ""
    others = len(cut) - (sessions.OWN_NAME in cut)
    return f"{others} shared sessions{own}, of {len(wanted)} files; the others are too short to be cut"


def _write(rows: Sequence[Timed], done: Figures, cache: Path) -> None:
    scoring.write_rows(rows, cache / "cuts.json")
    (cache / "figures.json").write_bytes(msgspec.json.format(msgspec.json.encode(done), indent=1) + b"\n")
    written = pictures.write(done, cache)
    print(f"\nwrote {', '.join(map(str, (cache / 'cuts.json', cache / 'figures.json', *written)))}")


def _tell_times(rows: Sequence[Timed], seconds: float, options: argparse.Namespace) -> None:
    mine = [timed for timed in rows if timed.row.method == OURS]
    if mine:
        slow = max(mine, key=lambda timed: timed.seconds)
        how = "through the daemon" if options.daemon else "in process"
        print(f"extract, {how}: slowest {slow.seconds:.2f} s for {slow.row.past:,} tokens, cold")
    print(f"{len(rows):,} compactions scored in {seconds:.0f} s on {options.processes} processes")


def _show_lost(job: Job, method: str) -> None:
    for cut in scoring.cuts(job):
        if cut.summary:
            continue
        for budget in job.budgets:
            if method == OURS:
                context = ours.in_process(ours.items_of(cut.past), budget).context
            else:
                context = BASELINES[method](cut, budget)
            where = f"messages {cut.point.start} to {cut.point.cut - 1}"
            title = f"{cut.session}, {where}, {method} at {budget:,}"
            for line in lost.report(cut, context, title):
                print(line)
            print()


if __name__ == "__main__":
    sys.exit(main())
