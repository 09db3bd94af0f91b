"""Runs a public suite for compactors, compaction-conformance-kit, with compactd and the suite's compactors.

    python -m benchmarks.public_suite [--document] [--json FILE]

Each figure is measured twice: in the suite's own sessions, and in the same sessions with other words and no
labels. The suite is installed once, in an environment outside the tree. `COMPACTD` names another compactd
than this checkout's. docs/retention.md, "The public suite", describes the figures.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.against.places import failure_of, is_there, python_of
from benchmarks.against.setting_up import set_up
from benchmarks.peers import environment
from benchmarks.public_suite.adapter import Compactd
from benchmarks.public_suite.document import report, write
from benchmarks.public_suite.results import Forms
from benchmarks.public_suite.running import PLACE, run
from compactd.client import Client


class _Info(Struct):
    version: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.public_suite", description=__doc__)
    parser.add_argument("--document", action="store_true", help="write the tables to docs/retention.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the suite's results there")
    given = parser.parse_args(arguments)
    set_up((PLACE,), _say)
    if not is_there(PLACE):
        _say(f"the suite cannot be installed: {failure_of(PLACE)}")
        return 1
    forms, version = measured()
    if given.json is not None:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(forms)) + b"\n")
    print("\n".join(report(forms)))
    if given.document:
        today = datetime.datetime.now(datetime.UTC).date()
        write(forms, version, today.isoformat())
    return 0


def measured() -> tuple[Forms, str]:
    """Run the suite. Return its results and the version of compactd."""
    with tempfile.TemporaryDirectory(prefix="compactd-suite-") as folder:
        env = environment(Path(folder), Path(folder) / "home")
        command = None
        if named := os.environ.get("COMPACTD"):
            command = (named, "serve")
            env.pop("PYTHONPATH", None)  # it would load this checkout's code
        with Client(command, env=env) as client:
            version = client.ask("daemon/info", {}, _Info).version
            return run(str(python_of(PLACE)), Compactd(client).compact), version


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
