"""The real daemon over a C library that misbehaves: a sync that fails or hangs, a clock that was set back.

These tests need a C compiler. The same faults are simulated everywhere (`faults.simulation`).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.real.starved import Told
from tests.support.client import Daemon, Refused

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
SOURCE = Path(__file__).parent / "real" / "shim.c"
TEXTS = [f"text {number}" for number in range(8)]

pytestmark = pytest.mark.skipif(
    COMPILER is None or sys.platform != "linux", reason="no C compiler, or no LD_PRELOAD"
)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run(
        [str(COMPILER), "-shared", "-fPIC", "-O1", "-o", str(made), str(SOURCE), "-ldl"], check=True
    )
    return made


@pytest.fixture
def flags(tmp_path: Path) -> Path:
    folder = tmp_path / "flags"
    folder.mkdir()
    return folder


def environment(shim: Path, flags: Path, clock_s: int = 0) -> dict[str, str]:
    return {
        "LD_PRELOAD": str(shim),
        "COMPACTD_SHIM": str(flags),
        "COMPACTD_SHIM_CLOCK_S": str(clock_s),
        "PYTHONDONTWRITEBYTECODE": "1",  # the shim's faults are for the daemon's files
    }


def durable(daemon: Daemon, told: Told, texts: list[str]) -> None:
    daemon.call("session/start", session_id="s1", durability="disk")
    told.append(daemon, "s1", texts)


def test_a_sync_that_fails_is_told_and_costs_nothing_that_was_acknowledged(
    tmp_path: Path, shim: Path, flags: Path
) -> None:
    home, told = tmp_path / "home", Told()
    with Daemon(home, env=environment(shim, flags)) as daemon:
        durable(daemon, told, TEXTS[:2])
        (flags / "fails").touch()
        told.append(daemon, "s1", TEXTS[2:4])
        (flags / "fails").unlink()
        # The disk may have dropped what that sync was to keep: this daemon writes no more of the session.
        told.append(daemon, "s1", TEXTS[4:5])
        daemon.call("session/close", session_id="s1")
        durable(daemon, told, TEXTS[5:7])

    assert {error.code for error in told.refused} == {1005}
    assert told.acknowledged["s1"][:2] == TEXTS[:2]
    assert told.acknowledged["s1"][-2:] == TEXTS[5:7]
    assert told.lost(home) == 0


def test_a_sync_that_hangs_holds_up_its_own_session_and_nobody_else(
    tmp_path: Path, shim: Path, flags: Path
) -> None:
    home, told = tmp_path / "home", Told()
    with Daemon(home, env=environment(shim, flags)) as daemon:
        durable(daemon, told, TEXTS[:1])
        (flags / "hangs").touch()
        hanging = daemon.ask(
            "session/append", session_id="s1", messages=[{"role": "user", "content": "it waits"}]
        )
        # Another session, of which nothing is synced, works on meanwhile.
        daemon.call("session/start", session_id="s2", persist=False)
        told.append(daemon, "s2", TEXTS[:3])
        daemon.call("daemon/ping")
        was_answered = daemon.answered_so_far(hanging)
        (flags / "hangs").unlink()
        daemon.result(hanging)
        told.acknowledged["s1"].append("it waits")
        del told.acknowledged["s2"]

    assert not was_answered
    assert told.refused == []
    assert told.lost(home) == 0


def test_a_kill_while_a_sync_hangs_costs_nothing_that_was_acknowledged(
    tmp_path: Path, shim: Path, flags: Path
) -> None:
    home, told = tmp_path / "home", Told()
    with Daemon(home, env=environment(shim, flags)) as daemon:
        durable(daemon, told, TEXTS[:3])
        (flags / "hangs").touch()
        hanging = daemon.ask(
            "session/append", session_id="s1", messages=[{"role": "user", "content": "it waits"}]
        )
        daemon.call("daemon/ping")
        daemon.kill()
        with pytest.raises((TimeoutError, Refused)):
            daemon.result(hanging)

    assert told.lost(home) == 0


@pytest.mark.parametrize("clock_s", [-10 * 365 * 86_400, 10 * 365 * 86_400], ids=["back", "ahead"])
def test_a_clock_that_jumped_between_two_daemons_changes_no_order(
    tmp_path: Path, shim: Path, flags: Path, clock_s: int
) -> None:
    home, told = tmp_path / "home", Told()
    with Daemon(home) as daemon:
        told.append(daemon, "s1", TEXTS[:3])
    with Daemon(home, env=environment(shim, flags, clock_s)) as daemon:
        told.append(daemon, "s1", TEXTS[3:5])
        entries = daemon.call("session/history", session_id="s1")["entries"]
        listed = daemon.call("session/list")["sessions"]

    at = [entry["at"] for entry in entries if entry["kind"] == "message"]
    assert abs(at[3] - at[2] - clock_s) < 86_400
    assert [one["session_id"] for one in listed] == ["s1"]
    assert told.lost(home) == 0
