"""How the daemon bears load: a table, and the figures as JSON.

python -m benchmarks.load [--short | --full] [crowd unread flood long hundred recover]
python -m benchmarks.load soak --minutes 60 [--json FILE]
python -m benchmarks.load pictures [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import msgspec

from benchmarks.figures import Row, as_json, machine, show
from benchmarks.load import pipes
from benchmarks.load.bench import SIZES, Bench
from benchmarks.load.crowd import crowd
from benchmarks.load.document import write_soak, write_table
from benchmarks.load.hundred import hundred
from benchmarks.load.long import long
from benchmarks.load.recovering import recover
from benchmarks.load.soak import KILL_S, Soak, soak
from benchmarks.peers import environment

PARTS = ("crowd", "unread", "flood", "long", "hundred", "recover")
SOAK_FILE = Path("build/load/soak.json")

HOW = (
    "A client on asyncio asks small requests every 20 ms beside the load; bare loop: the same client's pings "
    "of a loop that does nothing, at the same time. On a busy machine read the two together; the absolute "
    "targets mean an idle one."
)


async def measured(bench: Bench, parts: Sequence[str]) -> list[Row]:
    """Return the rows of these parts, in the order of `PARTS`. Raises `Wrong` if something was lost."""
    await bench.prepare()
    rows: list[Row] = []
    if "crowd" in parts:
        rows += await crowd(bench)
    if "unread" in parts:
        rows += pipes.unread(bench)
    if "flood" in parts:
        rows += pipes.flood(bench)
    if "long" in parts:
        rows += await long(bench)
    if "hundred" in parts:
        rows += await hundred(bench)
    if "recover" in parts:
        rows += recover(bench)
    return rows


def main() -> int:
    """Run the command line. Raises `Wrong` if something was lost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART")
    size = parser.add_mutually_exclusive_group()
    for name in SIZES:
        size.add_argument(f"--{name}", dest="size", action="store_const", const=name)
    parser.add_argument("--watched", action="store_true", help="tell the loop's own stalls, and where")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/load.md")
    parser.add_argument("--minutes", type=float, default=60.0, help="of the soak")
    parser.add_argument("--kill", type=float, default=KILL_S, metavar="S", help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=1, help="of the soak")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE")
    told = parser.parse_args()
    if unknown := set(told.parts) - {*PARTS, "soak", "pictures"}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    if told.parts == ["pictures"]:
        found = msgspec.json.decode((told.json or SOAK_FILE).read_bytes(), type=Soak)
        print(*write_soak(found), sep="\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="compactd-load-") as name:
        folder = Path(name)
        env = environment(folder, folder / "home")
        if told.parts == ["soak"]:
            return _soak(told, folder, env)
        on, began = machine(), perf_counter()
        bench = Bench(SIZES[told.size or "short"], folder, env, told.watched)
        rows = asyncio.run(measured(bench, told.parts or PARTS))
        notes = [HOW, f"size: {told.size or 'short'}; measured in {perf_counter() - began:.0f} s"]
        if told.json is not None:
            told.json.write_bytes(msgspec.json.format(msgspec.json.encode(as_json(rows, notes, on))) + b"\n")
        if told.docs:
            write_table(rows, on)
        show(rows, notes, on)
    return 0


def _soak(told: argparse.Namespace, folder: Path, env: dict[str, str]) -> int:
    found = asyncio.run(soak(folder, env, told.minutes, told.json or SOAK_FILE, told.seed, told.kill))
    print(
        f"{found.minutes:.1f} minutes, {len(found.kills)} kills, {found.acknowledged:,} messages "
        f"acknowledged, {found.looked_at:,} looked at, {found.lost} lost"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
