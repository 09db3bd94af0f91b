"""What compacting costs and saves: replays recorded sessions under policies, and bills each request.

Prints the bill of each policy by providers' price lists, what losses cost included, and the share of the
used facts that the context had. docs/cost.md describes the rules. Without the shared recordings it replays
the session that is in the repository.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cost import document, running
from benchmarks.cost.figures import figures, policies
from benchmarks.retention import sessions


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    given = argparse.ArgumentParser(
        prog="python -m benchmarks.cost",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    given.add_argument("--data", type=Path, help="folder with sessions/ and more/ (COMPACTD_TEST_DATA)")
    given.add_argument("--only", default="", metavar="REGEX", help="sessions whose names match")
    given.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N")
    given.add_argument("--cache", type=Path, default=running.CACHE, metavar="DIR")
    given.add_argument("--document", action="store_true", help="write docs/cost.md's figures anew")
    given.add_argument("--check", action="store_true", help="only compare docs/cost.md with docs/cost.json")
    return given


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    options = parser().parse_args(arguments)
    if options.check:
        wrong = document.stale()
        for name in wrong:
            print(f"{name} does not agree with cost.json: python -m benchmarks.cost --document")
        return 1 if wrong else 0
    began = time.perf_counter()
    found = running.wanted(options.data or sessions.shared_data())
    lists, engine = running.price_lists(), running.engine()
    common = running.common_of(found, options.cache, engine)
    chosen = policies(lists)
    jobs = [
        running.Job(source, chosen, common, options.cache, engine)
        for source in sorted(found, key=lambda source: -source.file.stat().st_size)
        if re.search(options.only, source.name)
    ]
    replays = sorted(running.run(jobs, options.processes), key=lambda replayed: replayed.name)
    if not replays:
        print("no such session", file=sys.stderr)
        return 2
    done = figures(lists, replays)
    if options.document:
        print(f"wrote {', '.join(map(str, document.write(done)))}")
    else:
        for name, text in document.blocks(done).items():
            print(f"\n{name}\n\n{text}")
    print(f"\n{len(jobs)} recordings in {time.perf_counter() - began:.0f} s on {options.processes} processes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
