"""Measures compactd and all other contenders in one run, and prints one table.

python -m benchmarks.against [--quick] [--json FILE] [--document] [--no-setup] [PART ...]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import reduce
from pathlib import Path

import msgspec

from benchmarks.against.document import write
from benchmarks.against.running import FULL, PARTS, QUICK, SERVERS_FULL, SERVERS_QUICK, Run, joined, run
from benchmarks.against.setting_up import set_up
from benchmarks.against.table import in_core_time, show


def main() -> int:
    """Run the command line. Return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.against", description="How fast compactd is, beside everybody else."
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"one or more of {', '.join(PARTS)}; default: all"
    )
    parser.add_argument("--quick", action="store_true", help="small sessions, few runs: at most two minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--document", action="store_true", help="write docs/peers.md and its plots")
    parser.add_argument(
        "--from",
        type=Path,
        metavar="FILE",
        dest="sources",
        action="append",
        help="measure nothing: read a --json; given again, its rows in the place of the same ones",
    )
    parser.add_argument("--no-setup", action="store_true", help="install nothing: leave out who is not there")
    parser.add_argument("--core", action="store_true", help="show the processor's time, not the clock's")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    done = _done(options)
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(done)) + b"\n")
    show(
        in_core_time(done.results) if options.core else done.results,
        done.machine,
        [f"measured in {done.seconds:.0f} s on {done.date}"],
    )
    if options.document:
        for path in write(done):
            print(f"wrote {path}")
    return 0


def _done(options: argparse.Namespace) -> Run:
    if options.sources:
        return reduce(joined, [msgspec.json.decode(file.read_bytes(), type=Run) for file in options.sources])
    if not options.no_setup:
        set_up(say=_say)
    pace, sizes = (QUICK, SERVERS_QUICK) if options.quick else (FULL, SERVERS_FULL)
    with tempfile.TemporaryDirectory(prefix="compactd-against-") as folder:
        parts = options.parts or PARTS
        return run(Path(folder), pace, sizes, _say, parts=parts, is_quick=options.quick)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
