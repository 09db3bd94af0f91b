"""What reducing tool output at its entry saves and loses: replays recorded sessions, result by result.

Prints, for each level and for plain clipping and a shell filter, the tokens saved, the used facts and error
lines that are still shown, and the edits that are still possible. docs/reduce.md describes the rules.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.reduce import document
from benchmarks.reduce.figures import figures
from benchmarks.reduce.measure import Measured, measure, read
from benchmarks.reduce.reducers import reducers
from benchmarks.retention import sessions
from benchmarks.retention.atoms import Atom


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    given = argparse.ArgumentParser(
        prog="python -m benchmarks.reduce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    given.add_argument("--data", type=Path, help="folder with sessions/ and more/ (COMPACTD_TEST_DATA)")
    given.add_argument("--only", default="", metavar="REGEX", help="sessions whose names match")
    given.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N")
    given.add_argument("--write", action="store_true", help="write docs/reduce.md's figures anew")
    given.add_argument("--check", action="store_true", help="only compare the page with docs/reduce.json")
    return given


def measure_all(source: sessions.Source, common: frozenset[Atom]) -> dict[str, Measured]:
    """Return what each reducer saves and loses in the session of a file."""
    reading = read(sessions.read(source), common)
    return {name: measure(reading, make(), common) for name, make in reducers().items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    options = parser().parse_args(arguments)
    if options.check:
        wrong = document.stale()
        for name in wrong:
            print(f"{name} does not agree with reduce.json: python -m benchmarks.reduce --write")
        return 1 if wrong else 0
    began = time.perf_counter()
    found = sessions.sources(options.data or sessions.shared_data())
    common = sessions.commonplace(
        [(source.name, sessions.atoms_in(sessions.read(source))) for source in found]
    )
    wanted = [source for source in found if re.search(options.only, source.name)]
    if not wanted:
        print("no such session", file=sys.stderr)
        return 2
    with ProcessPoolExecutor(options.processes) as pool:
        measured = list(pool.map(partial(measure_all, common=common), wanted))
    done = figures(
        datetime.datetime.now(datetime.UTC).date().isoformat(),
        {name: [one[name] for one in measured] for name in reducers()},
    )
    if options.write:
        print(f"wrote {', '.join(map(str, document.write(done)))}")
    else:
        for name, text in document.blocks(done).items():
            print(f"\n{name}\n\n{text}")
    print(f"\n{len(wanted)} recordings in {time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
