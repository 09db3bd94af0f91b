"""Runs the real `compactd` command as a process with its own home folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

COMPACTD = (sys.executable, "-m", "compactd")
TIMEOUT_S = 60
ANSI = re.compile(r"\x1b\[[0-9;]*m")

TERMINAL = {"FORCE_COLOR": "1", "COLUMNS": "80", "TERM": "xterm"}
"""Makes a command believe that it prints to a terminal of 80 columns."""


class Ended(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def words(self) -> str:
        """All that was printed, without colours and line breaks."""
        return " ".join(ANSI.sub("", self.out).split())


def environment(home: Path, extra: Mapping[str, str] = {}) -> dict[str, str]:
    keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "SYSTEMROOT") if name in os.environ}
    return {**keep, "HOME": str(home), "COMPACTD_HOME": str(home / "data"), **extra}


def started(home: Path, arguments: Iterable[object], extra: Mapping[str, str] = {}) -> subprocess.Popen:
    return subprocess.Popen(
        [*COMPACTD, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, extra),
        cwd=home,
    )


def ended(process: subprocess.Popen, timeout_s: float = TIMEOUT_S) -> Ended:
    out, err = process.communicate(timeout=timeout_s)
    return Ended(process.returncode, out.decode(), err.decode())


def recorded(name: str) -> Path:
    """A real session, which is not part of this project; skips the test where there are none."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    data = Path(os.environ.get("COMPACTD_TEST_DATA", beside))
    if not data.is_dir():
        pytest.skip("no recorded sessions: COMPACTD_TEST_DATA names none, and none are beside the checkout")
    return data / "sessions" / name


def recordings() -> list[Path]:
    """Every recorded session that this project has no copy of; none where there are none."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    data = Path(os.environ.get("COMPACTD_TEST_DATA", beside))
    found = [*data.glob("sessions/*"), *data.glob("more/*"), *data.glob("claude-code/*/*/transcript.jsonl")]
    return sorted(path for path in found if path.name != "MANIFEST.json")


def run(home: Path, *arguments: object, env: Mapping[str, str] = {}, timeout_s: float = TIMEOUT_S) -> Ended:
    """Runs `compactd ARGUMENTS...`."""
    return ended(started(home, arguments, env), timeout_s)


def run_each(home: Path, *commands: Iterable[object]) -> list[Ended]:
    """Runs several commands at once."""
    return [ended(process) for process in [started(home, command) for command in commands]]
