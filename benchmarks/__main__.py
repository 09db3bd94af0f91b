"""Runs the benchmarks, prints one table, and writes the figures as JSON if asked.

python -m benchmarks [--json FILE] [PART...], with the parts start, wire, append, open, compact, first,
prepare, memory, stream, search, look, import, usage and share.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import msgspec

from benchmarks import (
    compacting,
    first_compaction,
    importing,
    looking,
    memory,
    opening,
    preparing,
    searching,
    sessions,
    sharing,
    streaming,
    transport,
    using,
)
from benchmarks.figures import Row, as_json, machine, show
from benchmarks.peers import environment

PARTS = (
    "start",
    "wire",
    "append",
    "open",
    "compact",
    "first",
    "prepare",
    "memory",
    "stream",
    "search",
    "look",
    "import",
    "usage",
    "share",
)

STORED_TOKENS = 1_100_000

HOW = (
    "Medians, the peers taken in turns in the same run. Processes start with warm bytecode "
    "(PYTHONDONTWRITEBYTECODE is unset, the first start of each is not counted). "
    "bare: benchmarks/bare_loop.py, asyncio + msgspec, nothing checked. pygls: stock pygls 2.1, start_io. "
    "msgspec: its own decode of the same journal into structs."
)


def measured(parts: Sequence[str], folder: Path, prompts: int) -> tuple[list[Row], list[str]]:
    """Return the rows of these parts, and notes about the run."""
    env = environment(folder, folder / "home")
    rows: list[Row] = []
    notes = [HOW]
    transport.warm(env)
    if "start" in parts:
        rows += transport.starts(env)
    if "wire" in parts:
        rows += transport.round_trips(env)
    if "append" in parts:
        rows += sessions.appends(env)
    if "open" in parts or "compact" in parts:
        stored = opening.store_long(env, STORED_TOKENS)
        if "open" in parts:
            rows += sessions.turns(env, opening.SESSION, stored)
            rows += opening.openings(env, stored)
    if "compact" in parts:
        more, told = compacting.compactions(env, folder)
        rows += more
        notes += told
    if "first" in parts:
        rows += first_compaction.first_compactions(env, folder)
    if "prepare" in parts:
        prepared = preparing.preparations(environment(folder, folder / "prepared"), folder)
        rows += prepared
        notes += [] if prepared else [preparing.MISSING]
    if "memory" in parts:
        rows += memory.memory(environment(folder, folder / "weighed"), folder / "weighed")
    if "stream" in parts:
        rows += streaming.streams(env, prompts)
    if "search" in parts:
        # Among no other sessions than its own.
        rows += searching.searches(environment(folder, folder / "searched"))
    if "look" in parts:
        rows += looking.looks(env, folder)
    if "import" in parts:
        found = importing.imports(environment(folder, folder / "imported"))
        rows += found
        notes += [] if found else [importing.MISSING]
    if "usage" in parts:
        used = using.usages(environment(folder, folder / "used"), folder / "used")
        rows += used
        notes += [] if used else ["usage: no recordings of Claude Code"]
    if "share" in parts:
        rows += sharing.shared_daemons(env)
    return rows, notes


def main() -> int:
    """Run the command line. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast compactd is.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"one or more of {', '.join(PARTS)}; default: all"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument(
        "--prompts",
        type=int,
        default=streaming.PROMPTS,
        metavar="N",
        help="over how many prompts the growth of memory is looked at",
    )
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    on = machine()
    began = perf_counter()
    gc.disable()
    with tempfile.TemporaryDirectory(prefix="compactd-benchmarks-") as folder:
        rows, notes = measured(options.parts or PARTS, Path(folder), options.prompts)
    notes.append(f"measured in {perf_counter() - began:.0f} s")
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(as_json(rows, notes, on))) + b"\n")
    show(rows, notes, on)
    return 0


if __name__ == "__main__":
    sys.exit(main())
