"""`python -m tests.faults.proof.nightly`: every test except those in editors, with all examples of each law.

The result goes to docs/proof.json and docs/proof.md, unless arguments for pytest are given.
"""

from __future__ import annotations

import re
import subprocess
import sys

from tests.faults.proof.parts import ROOT, Row
from tests.faults.proof.results import Kept, load, store, today, write_table

KEY = "tests/nightly"
OPTIONS = (
    *("-n", "logical", "--dist", "worksteal"),
    *("-m", "not system and (agent or not editor)", "--hypothesis-profile=nightly"),
)


def row_of(closing: str, code: int) -> Row:
    """Return the result of a run, from pytest's last line and its exit code."""
    counts = {name: int(count) for count, name in re.findall(r"(\d+) (passed|failed|errors?)\b", closing)}
    passed = counts.pop("passed", 0)
    failed = sum(counts.values())
    return Row(
        fault="every test, with all examples of each law (`make nightly`)",
        times=passed + failed,
        unit="tests",
        # A run that ended early is a failure too.
        lost=max(failed, int(code != 0 or not passed)),
    )


def run(*arguments: str) -> tuple[str, int]:
    """Run pytest and print its output. Return (its last line, its exit code)."""
    command = [sys.executable, "-m", "pytest", *OPTIONS, *arguments]
    closing = ""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            closing = line.strip(" =\n") or closing
    return closing, running.returncode


def commit() -> str:
    """Return the commit that is checked out, with a mark if files have changed since."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "no commit"
    return told.stdout.strip()


def main() -> int:
    """Run the tests, and store the result unless arguments were given. Return pytest's exit code."""
    of = commit()
    arguments = sys.argv[1:]
    closing, code = run(*arguments)
    if arguments:
        return code
    row = row_of(closing, code)
    kept = load()
    kept[KEY] = Kept(
        part="tests",
        row=row,
        date=today(),
        all_times=row.times,
        all_lost=row.lost,
        note=f"{of}: {closing}",
    )
    store(kept)
    write_table(kept)
    return code


if __name__ == "__main__":
    sys.exit(main())
