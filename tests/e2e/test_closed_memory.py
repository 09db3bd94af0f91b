"""The memory of a large session is returned when the session is closed."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import pytest

from tests.support.client import Daemon

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
RETURNED_S = 5.0
SLOWLY = 4
"""A busy machine may take so many times longer."""


def memory(daemon: Daemon) -> int:
    resident = Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[1]
    return int(resident) * os.sysconf("SC_PAGESIZE")


def test_closing_a_large_session_returns_its_memory(tmp_path: Path) -> None:
    dice = random.Random(1)
    with Daemon(tmp_path / "home") as daemon:
        daemon.call("session/start", session_id="large")
        for number in range(120):
            texts = [" ".join(f"word{dice.randrange(1_000)}" for _ in range(60)) for _ in range(100)]
            messages = [{"role": "user", "content": f"{number} {text}"} for text in texts]
            daemon.call("session/append", session_id="large", messages=messages)
    with Daemon(tmp_path / "home") as daemon:
        daemon.call("session/start", session_id="small")
        daemon.call("session/context", session_id="small")
        daemon.call("session/close", session_id="small")
        before = memory(daemon)
        daemon.call("session/start", session_id="large")
        daemon.call("session/context", session_id="large")
        grown = memory(daemon) - before

        daemon.call("session/close", session_id="large")
        until = time.monotonic() + SLOWLY * RETURNED_S
        while (left := memory(daemon) - before) > grown / 2 and time.monotonic() < until:
            time.sleep(0.1)

    assert grown > 20_000_000
    assert left <= grown / 2, f"{left / 1e6:.0f} of {grown / 1e6:.0f} MB are left"
