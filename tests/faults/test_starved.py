"""The real daemon without a resource that it needs: it says so, continues, and loses nothing acknowledged."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.real import killing
from tests.faults.real.starved import Told, limited, powerless, small_disk, stopped
from tests.support.client import Daemon

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits and signals of POSIX")

TEXTS = [f"text {number} " + "x" * 3_000 for number in range(12)]


def test_a_kill_at_any_moment_costs_nothing_that_was_acknowledged() -> None:
    kills, checked = killing.run(seed=1, kills=4)

    assert kills == 4
    assert checked > 0


def test_a_file_that_may_not_grow_is_told_as_a_full_disk(tmp_path: Path) -> None:
    home, told = tmp_path / "home", Told()
    with Daemon(home, command=limited("RLIMIT_FSIZE", 20_000)) as daemon:
        told.append(daemon, "s1", TEXTS)
        told.append(daemon, "s2", TEXTS[:2])

    assert {error.code for error in told.refused} == {1005}
    assert len(told.acknowledged["s2"]) == 2
    assert told.lost(home) == 0


def test_too_many_open_files_are_told_and_other_sessions_go_on(tmp_path: Path) -> None:
    home, told = tmp_path / "home", Told()
    with Daemon(home, command=limited("RLIMIT_NOFILE", 24)) as daemon:
        told.append(daemon, "s0", TEXTS[:1])
        for number in range(1, 14):
            told.append(daemon, f"s{number}", TEXTS[:1])
        told.append(daemon, "s0", TEXTS[1:3])

    assert {error.code for error in told.refused} == {1005}
    assert "too many files" in told.refused[0].message
    assert len(told.acknowledged["s0"]) == 2 or len(told.acknowledged["s0"]) == 3
    assert told.lost(home) == 0


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited so on Linux alone")
def test_a_daemon_out_of_memory_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    home, told = tmp_path / "home", Told()
    with Daemon(home, command=limited("RLIMIT_AS", 400 * 1024 * 1024)) as daemon:
        told.append(daemon, "s1", TEXTS[:3])
        huge = b'{"session_id":"s1","messages":[{"role":"user","content":"' + b"x" * 120_000_000 + b'"}]}'
        try:
            answered = daemon.answer(daemon.ask_raw("session/append", huge)).value
        except (TimeoutError, BrokenPipeError):
            answered = {}  # the system ended it
        assert "result" not in answered or answered["result"]["entry_ids"]

    assert told.lost(home) == 0


def test_a_folder_without_permission_is_told_and_mended_by_giving_it_back(tmp_path: Path) -> None:
    home, told = tmp_path / "home", Told()
    with Daemon(home, command=powerless()) as daemon:
        told.append(daemon, "s1", TEXTS[:2])
        (home / "sessions").chmod(0o500)
        told.append(daemon, "s2", TEXTS[:2])
        told.append(daemon, "s1", TEXTS[2:3])
        (home / "sessions").chmod(0o700)
        told.append(daemon, "s2", TEXTS[:2])

    assert [error.code for error in told.refused] == [1005]
    assert (len(told.acknowledged["s1"]), len(told.acknowledged["s2"])) == (3, 2)
    assert told.lost(home) == 0


def test_a_small_disk_that_fills_costs_what_was_refused_and_nothing_else() -> None:
    try:
        with small_disk(200) as disk:
            told = Told()
            with Daemon(disk / "home") as daemon:
                told.append(daemon, "s1", TEXTS * 8)
                assert daemon.call("daemon/ping") is not None

            assert {error.code for error in told.refused} == {1005}
            assert told.lost(disk / "home") == 0
    except PermissionError:
        pytest.skip("no file system may be mounted here")


def test_a_clock_that_was_set_back_changes_no_order(tmp_path: Path) -> None:
    """Records carry times and are ordered by their numbers: a journal from the future is added to as ever."""
    home, told = tmp_path / "home", Told()
    with Daemon(home) as daemon:
        told.append(daemon, "s1", TEXTS[:3])
    (journal,) = (home / "sessions").glob("*.jsonl")
    os.utime(journal, (time.time() + 10**6,) * 2)
    with Daemon(home) as daemon:
        told.append(daemon, "s1", TEXTS[3:5])

    assert told.lost(home) == 0


def test_a_hanging_process_that_goes_on_has_lost_nothing_and_keeps_its_session(tmp_path: Path) -> None:
    home, told = tmp_path / "home", Told()
    with Daemon(home) as daemon:
        told.append(daemon, "s1", TEXTS[:2])
        with stopped(daemon.process), Daemon(home) as other:
            followed = other.call("session/start", session_id="s1")
            assert any("another process has this session open" in warning for warning in followed["warnings"])
            assert other.refusal(
                "session/append", session_id="s1", messages=[{"role": "user", "content": "x"}]
            )
        told.append(daemon, "s1", TEXTS[2:4])

    assert told.lost(home) == 0


def test_a_lock_that_a_dead_process_left_means_nothing(tmp_path: Path) -> None:
    home, told = tmp_path / "home", Told()
    with Daemon(home) as daemon:
        told.append(daemon, "s1", TEXTS[:2])
        daemon.kill()
    (lock,) = (home / "sessions").glob("*.lock")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    lock.write_text(f"{ended.pid}\n")
    with Daemon(home) as daemon:
        told.append(daemon, "s1", TEXTS[2:4])

    assert told.refused == []
    assert told.lost(home) == 0
