"""Breaks on purpose: `python -m faults.breaks` makes each in a copy of the daemon, and says what finds it.

A break is an edit of one place of the source. What is to find it runs on the copy: the simulation from seed 1
on, or one file of tests. Exit code 1 where a break was found by nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "server" / "compactd"
SIMULATION = "simulation"
PATIENCE_S = 240
QUICK_S = 20


class Break(Struct, frozen=True):
    """One wrong edit."""

    name: str
    file: str
    """Below server/compactd."""
    old: str
    new: str
    found_by: str = SIMULATION
    """The simulation, or a file below tests."""
    is_slow: bool = False
    """Needs longer than `QUICK_S` to be found."""


BREAKS = (
    Break(
        "no fsync",
        "store/journal_file.py",
        "                self._sync(self._fd)\n",
        "                pass\n",
    ),
    Break(
        "acknowledged before it is written",
        "store/journal.py",
        "            self._work(loop)\n            failure = await self._wait(batch, loop)\n        for",
        "            self._work(loop)\n        for",
    ),
    Break(
        "renamed before it is synced",
        "store/files.py",
        "            if durable:\n                disk.sync(fd)\n"
        "        finally:\n            disk.close(fd)\n        disk.rename(beside, path)\n",
        "            disk.rename(beside, path)\n            if durable:\n                disk.sync(fd)\n"
        "        finally:\n            disk.close(fd)\n",
        "faults/test_found.py",
    ),
    Break(
        "a torn tail is accepted",
        "store/folder.py",
        "            size_bytes=content.end,\n",
        "            size_bytes=len(data),\n",
    ),
    Break(
        "the checksum is ignored",
        "store/records.py",
        """            or not starts(b',"crc":"%08x"}' % crc32(view[pos:tail]), tail, end)\n""",
        """            or not starts(b',"crc":"', tail, end)\n""",
        "store/test_records.py",
    ),
    Break(
        "a compaction is committed on a stale path",
        "compacting.py",
        "            parent=state.leaf,\n            first_kept=first_kept,\n",
        "            parent=leaf,\n            first_kept=first_kept,\n",
        "faults/test_found.py",
    ),
    Break(
        "a wake-up of the writer is lost",
        "store/journal.py",
        "            self._give_up(batch, failure)\n        self._work(done.get_loop())\n",
        "            self._give_up(batch, failure)\n",
    ),
    Break(
        "the lock is not taken",
        "store/locks.py",
        "            if disk.lock(fd):\n",
        "            if disk.lock(fd) or True:\n",
    ),
    Break(
        "the index is trusted without its journal",
        "store/index.py",
        "            if known is not None and (known[1] != first or known[2] > os.fstat(fd).st_size):\n",
        "            if known is not None and False:\n",
        "store/test_index.py",
    ),
    Break(
        "writes that wait are dropped at the end of input",
        "store/journal.py",
        "            self._is_closed = True\n            self._work(loop)\n",
        "            self._is_closed = True\n            self._queue.clear()\n",
    ),
    Break(
        "undo leaves the epoch as it was",
        "rewinding.py",
        "target=step.id, epoch=session.fold.epoch + 1)",
        "target=step.id, epoch=session.fold.epoch)",
    ),
    Break(
        "a redaction misses the index",
        "store/journal_file.py",
        "            if drop_index(self._path.parent, self._disk):\n",
        "            if False:\n",
    ),
    Break(
        "the index comes back after a redaction",
        "store/journal_file.py",
        "                self._disk.sync_folder(self._path.parent.parent)\n",
        "                pass\n",
    ),
    Break(
        "what another process wrote is acknowledged without a sync",
        "store/folder.py",
        '            is_synced=durability != "disk",\n',
        "            is_synced=True,\n",
        "faults/test_found.py",
    ),
    Break(
        "the names of new files are not synced",
        "store/journal_file.py",
        "                    self._disk.sync_folder(folder)\n",
        "                    pass\n",
    ),
    Break(
        "a half-kept write of several records is damage",
        "store/records.py",
        "    damage = Damage(line=line_number, after=tuple(after)) if after and not is_torn else None\n",
        "    damage = Damage(line=line_number, after=tuple(after)) if after else None\n",
        "faults/test_found.py",
    ),
    Break(
        "a session that could not begin keeps its lock",
        "sessions.py",
        "            await journal.close()  # else this process would keep its lock\n",
        "",
        "faults/test_found.py",
    ),
    Break(
        "a failed sync is asked again",
        "store/journal_file.py",
        "            self._cut_back()\n            return Failure(errno=refused.errno, is_broken=True)\n",
        "            return Failure(errno=refused.errno, is_broken=False)\n",
    ),
)
"""The first twelve are those that every suite of a daemon like this one has to find."""


def broken_copy(one: Break, folder: Path) -> None:
    """The daemon with this break, in `folder`/compactd."""
    shutil.copytree(SOURCE, folder / "compactd", ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "compactd" / one.file
    text = path.read_text(encoding="utf-8")
    if text.count(one.old) != 1:
        raise SystemExit(f"{one.name}: its place in {one.file} is there {text.count(one.old)} times")
    path.write_text(text.replace(one.old, one.new), encoding="utf-8")


def found(one: Break, seed: int) -> tuple[str, float]:
    """What found it, in a few words, and after how many seconds; nothing where nothing did."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as named:
        folder = Path(named)
        broken_copy(one, folder)
        if one.found_by == SIMULATION:
            command = ["faults.simulation", "--seed", str(seed), "--minutes", str(PATIENCE_S / 60)]
        else:
            command = ["pytest", "-x", "-q", "-p", "no:cacheprovider", str(ROOT / "tests" / one.found_by)]
        path = os.pathsep.join((str(folder), str(ROOT / "tests")))
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", *command],
            env={**os.environ, "PYTHONPATH": path},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S + 60,
        )
    if ran.returncode == 0:
        return "", time.monotonic() - began
    seen = re.findall(r"^(?:FAILED [^ ]*::|seed \d+, step \d+, trace \w+: )(.*)$", ran.stdout, re.MULTILINE)
    assert seen, ran.stdout[-2000:] + ran.stderr[-2000:]
    return f"{one.found_by}: {seen[0][:100]}", time.monotonic() - began


def main() -> int:
    """Exit code 1 where a break was not found."""
    asked = argparse.ArgumentParser(prog="python -m faults.breaks", description=__doc__)
    asked.add_argument("--quick", action="store_true", help=f"only those found in less than {QUICK_S} s")
    asked.add_argument("--only", default="", help="those whose name holds this")
    asked.add_argument("--seed", type=int, default=1, help="the simulation's first")
    asked.add_argument("--json", type=Path, default=None, help="where the results go")
    told = asked.parse_args()
    results: list[dict[str, object]] = []
    for one in BREAKS:
        if told.only in one.name and not (told.quick and one.is_slow):
            by, took_s = found(one, told.seed)
            results.append({"break": one.name, "found_by": by, "took_s": round(took_s, 1)})
            print(f"{'found ' if by else 'MISSED'} {took_s:6.1f} s  {one.name:58} {by}", flush=True)
    if told.json is not None:
        told.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    missed = [result for result in results if not result["found_by"]]
    print(f"{len(results) - len(missed)} of {len(results)} breaks found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
