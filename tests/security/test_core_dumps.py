"""A daemon that crashes writes no core dump; the program that started it keeps its own limits."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.client import Daemon, environment

KEY = "sk-in-the-memory-0123456789"

LIFTED = (
    "import resource as r; r.setrlimit(r.RLIMIT_CORE, (r.getrlimit(r.RLIMIT_CORE)[1],) * 2); "
    "import signal; signal.signal(signal.SIGQUIT, signal.SIG_DFL); "
)
"""Dumps are allowed, as far as this machine lets them be, and SIGQUIT too where a shell runs this in the
background and ignores it."""

EMBEDDING = (
    LIFTED
    + """
import pathlib
from compactd.client import Client

def now():
    filter = pathlib.Path("/proc/self/coredump_filter")
    return r.getrlimit(r.RLIMIT_CORE), filter.read_text() if filter.exists() else ""

before = now()
with Client() as client:
    client.call("daemon/info")
assert now() == before, (before, now())
print("the same")
"""
)


def serving(folder: Path) -> list[str]:
    """A daemon in `folder` whose parent allows dumps."""
    folder.mkdir()
    start = f"import os; os.chdir({str(folder)!r}); os.execv({sys.executable!r}, "
    return [sys.executable, "-c", f"{LIFTED}{start}[{sys.executable!r}, '-m', 'compactd', 'serve'])"]


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGQUIT])
def test_a_daemon_that_crashes_leaves_neither_memory_nor_keys(number: signal.Signals, tmp_path: Path) -> None:
    work = tmp_path / "work"
    env = {"OPENAI_API_KEY": KEY, "PYTHONFAULTHANDLER": ""}
    with Daemon(tmp_path / "home", env=env, command=serving(work)) as daemon:
        daemon.call("daemon/info")
        proc = Path(f"/proc/{daemon.process.pid}")
        limits = (proc / "limits").read_text() if proc.exists() else "Max core file size 0 "
        told = (proc / "coredump_filter").read_text() if proc.exists() else "0"

        daemon.process.send_signal(number)

        assert daemon.process.wait(30) == -number
    assert re.search(r"Max core file size +0 ", limits)
    assert int(told, 16) == 0
    left = [file for file in work.rglob("*") if file.is_file()]
    assert [file for file in left if KEY.encode() in file.read_bytes()] == []
    assert left == []


def test_a_program_that_uses_the_client_library_keeps_its_own_limits(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EMBEDDING],
        env={**environment(tmp_path / "home"), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.returncode) == ("the same\n", 0), done.stderr
