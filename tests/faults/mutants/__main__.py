"""`python -m tests.faults.mutants`: make small wrong edits, one at a time in a copy of the daemon, and run
the tests that cover each. What no test finds has survived.

`survivors.json` explains those that no test can find, or that need none. Exit code 1 if another one survived.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import msgspec
from msgspec import Struct

from tests.faults.mutants.covering import MARKED, Covering, measure
from tests.faults.mutants.places import ROOT, SOURCE, Mutant, sample

COUNT, SEED = 300, 1
AT_ONCE = 2
MOST_S = 20.0
"""The tests of a mutant that are run first take so long in all. If it survives them, the others are run."""
PATIENCE = 8
"""A mutant whose tests take so many times longer than without it does not end, so it is found."""
LEAST_PATIENCE_S = 60.0
EXPLAINED = Path(__file__).parent / "survivors.json"


class Verdict(Struct, frozen=True, kw_only=True):
    """The result for a mutant."""

    name: str
    outcome: str
    """`found`, `survived`, or `not covered`."""
    seconds: float


class Copy:
    """A copy of the daemon, in which one mutant at a time is made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(SOURCE, folder / "compactd", ignore=shutil.ignore_patterns("__pycache__"))
        # By the content, not the time: an edit may be as long as what it replaces, in the same second.
        compiled = ["compileall", "-q", "--invalidation-mode", "checked-hash", str(folder)]
        subprocess.run([sys.executable, "-m", *compiled], check=True)

    def is_found(self, mutant: Mutant, tests: list[str], seconds: float) -> bool:
        """Return whether one of these tests fails with the mutant, or does not end. `seconds`: how long they
        take without it.
        """
        file = self._folder / "compactd" / mutant.file
        right = file.read_bytes()
        file.write_bytes(mutant.apply(right))
        try:
            options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "-m", MARKED]
            ran = subprocess.run(
                [sys.executable, "-m", "pytest", *options, *tests],
                cwd=ROOT,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join((str(self._folder), str(ROOT))),
                    "PYTHONDONTWRITEBYTECODE": "1",
                },
                capture_output=True,
                check=False,
                timeout=LEAST_PATIENCE_S + PATIENCE * seconds,
            )
        except subprocess.TimeoutExpired:
            return True
        finally:
            file.write_bytes(right)
        return ran.returncode != 0


def judge(mutant: Mutant, copies: Queue[Copy], covering: Covering) -> Verdict:
    """Run the tests that cover a mutant."""
    began = time.monotonic()
    tests = covering.of(mutant.file, mutant.line)
    first: list[str] = []
    while len(first) < len(tests) and sum(map(covering.seconds, tests[: len(first) + 1])) < MOST_S:
        first.append(tests[len(first)])
    copy = copies.get()
    try:
        found = any(
            some and copy.is_found(mutant, some, sum(map(covering.seconds, some)))
            for some in (first, tests[len(first) :])
        )
    finally:
        copies.put(copy)
    outcome = "found" if found else "survived" if tests else "not covered"
    return Verdict(name=mutant.name, outcome=outcome, seconds=round(time.monotonic() - began, 1))


def main() -> int:
    """Print each survivor and the score. Return the exit code."""
    asked = argparse.ArgumentParser(prog="python -m tests.faults.mutants", description=__doc__)
    asked.add_argument("--count", type=int, default=COUNT)
    asked.add_argument("--seed", type=int, default=SEED, help="another seed draws another sample")
    asked.add_argument("--only", default="", help="those whose name holds this")
    asked.add_argument("--json", type=Path, default=None, help="where the results go")
    told = asked.parse_args()
    explained: dict[str, str] = json.loads(EXPLAINED.read_text("utf-8"))
    mutants = [mutant for mutant in sample(told.count, told.seed) if told.only in mutant.name]
    covering = measure()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        copies: Queue[Copy] = Queue()
        for number in range(AT_ONCE):
            copies.put(Copy(Path(folder) / str(number)))
        verdicts = []
        for verdict in pool.map(lambda mutant: judge(mutant, copies, covering), mutants):
            verdicts.append(verdict)
            if verdict.outcome != "found":
                print(f"{verdict.outcome}: {verdict.name}", flush=True)
                print(f"  {explained.get(verdict.name, 'not explained')}", flush=True)
    left = [one for one in verdicts if one.outcome != "found"]
    unexplained = [one for one in left if one.name not in explained]
    print(
        f"{len(verdicts) - len(left)} of {len(verdicts)} mutants found (seed {told.seed}), "
        f"{len(left) - len(unexplained)} more are explained, {len(unexplained)} are not"
    )
    if told.json is not None:
        told.json.write_bytes(msgspec.json.format(msgspec.json.encode(verdicts)) + b"\n")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
