"""`python -m tests.faults.proof.nightly`: every test except those in editors, with all examples of each law.

The tests in frameworks for agents run after the others, with a Python of their own.

The result goes to docs/proof.json and docs/proof.md, unless arguments for pytest are given.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.faults.proof.parts import ROOT, Row
from tests.faults.proof.results import Kept, load, store, today, write_table
from tests.frameworks import environment
from tests.frameworks.hermes import environment as hermes

KEY = "tests/nightly"
PARALLEL = ("-n", "logical", "--dist", "worksteal")
OPTIONS = (
    *PARALLEL,
    *("-m", "not system and not framework and (agent or not editor)", "--hypothesis-profile=nightly"),
)


def row_of(closing: str, code: int) -> Row:
    """Return the result of a run, from pytest's last line and its exit code. Of two runs, the lines are one
    text, and the code is that of the first that failed."""
    passed = failed = 0
    for count, name in re.findall(r"(\d+) (passed|failed|errors?)\b", closing):
        if name == "passed":
            passed += int(count)
        else:
            failed += int(count)
    return Row(
        fault="every test, with all examples of each law (`make nightly`)",
        times=passed + failed,
        unit="tests",
        # A run that ended early is a failure too.
        lost=max(failed, int(code != 0 or not passed)),
    )


def run(*arguments: str) -> tuple[str, int]:
    """Run pytest and print its output. Return (its last line, its exit code)."""
    return _run([sys.executable, "-m", "pytest", *OPTIONS, *arguments], dict(os.environ))


def run_in_frameworks() -> list[tuple[str, int]]:
    """Run the tests in frameworks and print their output. Return (pytest's last line, its exit code) for each
    environment.
    """
    options = (*PARALLEL, "--hypothesis-profile=nightly")
    commands = [environment.command(*options)]
    if hermes.python() is not None:
        commands.append(hermes.command(*options))
    return [_run(command, environment.variables()) for command in commands]


def _run(command: list[str], variables: dict[str, str]) -> tuple[str, int]:
    closing = ""
    with subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True) as running:
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
    for more, more_code in run_in_frameworks():
        closing, code = f"{closing}; in frameworks: {more}", code or more_code
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
