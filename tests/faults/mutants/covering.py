"""Which tests run which lines, measured by coverage.py, and how long each test takes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import coverage

from tests.faults.mutants.places import ROOT, SOURCE

CORE = "tests/unit/core"
PARTS = (
    (
        *(f"{CORE}/{room}" for room in ("planning", "budget", "authors", "history", "models", "cost")),
        "tests/unit/compaction",
        "tests/unit/session",
        "tests/parity",
    ),
    (*(f"{CORE}/{room}" for room in ("summary", "constraints", "text", "work")), "tests/properties"),
)
"""The tests, in as many parts as run at once."""
ALSO = {
    "agent/recovery.py": (
        "tests/e2e/test_failed_requests.py",
        "tests/e2e/test_loop_events.py",
        "tests/e2e/test_own_loop.py",
    )
}
"""Tests of a file in a daemon of their own, whose lines are not measured."""
UNKNOWN_S = 15.0
MARKED = "not system and not editor and not framework and not agent and not nightly"


class Covering:
    """The tests that run each line."""

    def __init__(self, tests: dict[tuple[str, int], set[str]], seconds: dict[str, float]) -> None:
        """`tests`: by (file below server/compactd, line), the functions `path::name`."""
        self._tests = tests
        self._seconds = seconds
        self._lines: dict[str, int] = defaultdict(int)
        for names in tests.values():
            for name in names:
                self._lines[name] += 1

    def of(self, file: str, line: int) -> list[str]:
        """Return the tests that run a line, those first that run the fewest lines: they are about it."""
        found = self._tests.get((file, line), set())
        return [*sorted(found, key=lambda name: (self._lines[name], name)), *ALSO.get(file, ())]

    def seconds(self, name: str) -> float:
        """Return how long a test took, with all its parameters."""
        return self._seconds.get(name, UNKNOWN_S)


def measure() -> Covering:
    """Run the tests under coverage.py. A few minutes."""
    with tempfile.TemporaryDirectory() as folder:
        with ThreadPoolExecutor(len(PARTS)) as pool:
            done = list(pool.map(lambda n: _run(Path(folder) / str(n), PARTS[n]), range(len(PARTS))))
        tests: dict[tuple[str, int], set[str]] = defaultdict(set)
        seconds: dict[str, float] = defaultdict(float)
        for each in done:
            _read_lines(each, tests)
            _read_seconds(each, seconds)
        return Covering(tests, seconds)


def _run(folder: Path, part: Sequence[str]) -> Path:
    folder.mkdir()
    settings = folder / "coveragerc"
    settings.write_text(f"[run]\ndynamic_context = test_function\nsource = {SOURCE}\n")
    measured = ["coverage", "run", f"--rcfile={settings}", f"--data-file={folder / 'data'}", "-m", "pytest"]
    options = ["-q", "-p", "no:cacheprovider", "-m", MARKED, f"--junitxml={folder / 'xml'}"]
    subprocess.run(
        [sys.executable, "-m", *measured, *options, *part],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(SOURCE.parent), str(ROOT)))},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return folder


def _read_lines(folder: Path, tests: dict[tuple[str, int], set[str]]) -> None:
    data = coverage.CoverageData(str(folder / "data"))
    data.read()
    for path in data.measured_files():
        file = str(Path(path).relative_to(SOURCE))
        for line, contexts in data.contexts_by_lineno(path).items():
            tests[file, line].update(filter(None, map(_node_of, contexts)))


def _node_of(context: str) -> str | None:
    """Return `path::name` for `tests.unit.core.test_x.test_y`; None for a line that no test runs itself."""
    module, _, name = context.rpartition(".")
    return f"{module.replace('.', '/')}.py::{name}" if name.startswith("test_") else None


def _read_seconds(folder: Path, seconds: dict[str, float]) -> None:
    for case in ET.parse(folder / "xml").iter("testcase"):
        path = case.get("classname", "").replace(".", "/")
        seconds[f"{path}.py::{case.get('name', '').partition('[')[0]}"] += float(case.get("time", 0))
