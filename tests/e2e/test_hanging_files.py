"""A file that blocks (a pipe without a writer instead of a settings file) does not stall other sessions."""

from __future__ import annotations

import os
from pathlib import Path

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.git_marks import of_git
from tests.support.redacted import started
from tests.support.talk import turns
from tests.support.work_trees import asked, diff, git
from tests.support.work_trees import started as started_in


def hung(daemon: Daemon, work: Path) -> int:
    """Send `session/start` for a folder whose settings file blocks. Return the request's id."""
    work.mkdir(exist_ok=True)
    os.mkfifo(work / ".compactd.toml")
    return daemon.ask("session/start", session_id="hung", working_dir=str(work))


def test_other_sessions_are_answered_while_a_sessions_settings_cannot_be_read(
    spawn: Spawn, tmp_path: Path
) -> None:
    daemon = spawn()
    other = started(daemon, turns(2, 20))

    opening = hung(daemon, tmp_path / "work")
    for _ in range(3):
        daemon.call("daemon/ping")
        assert daemon.call("agent/state", session_id=other)["status"] == "idle"
        assert daemon.call("session/configure", session_id=other, compaction={"prune": True})

    assert not daemon.answered_so_far(opening)
    (warning,) = daemon.result(opening)["warnings"]
    assert ".compactd.toml could not be read within" in warning
    daemon.call("session/configure", session_id="hung", compaction={"prune": True})
    assert daemon.call("session/append", session_id="hung", messages=turns(1, 5))["entry_ids"]
    assert daemon.stop() == 0


def test_a_stored_session_whose_settings_cannot_be_read_any_more_is_resumed(
    spawn: Spawn, tmp_path: Path
) -> None:
    daemon, work = spawn(), tmp_path / "work"
    work.mkdir()
    (work / ".compactd.toml").write_text("[compaction]\nprune_minimum = 33_300\n")
    daemon.call("session/start", session_id="s", working_dir=str(work))
    daemon.call("session/close", session_id="s")
    (work / ".compactd.toml").unlink()
    os.mkfifo(work / ".compactd.toml")

    resumed = daemon.call("session/start", session_id="s")

    assert resumed["resumed"] is True
    assert "it is ignored" in resumed["warnings"][0]
    told = daemon.call("session/configure", session_id="s")["settings"]["prune_minimum"]
    assert told["source"] != ".compactd.toml"


def test_a_settings_file_is_read_again_when_its_session_is_started_again(
    spawn: Spawn, tmp_path: Path
) -> None:
    daemon, file = spawn(), tmp_path / ".compactd.toml"

    def told() -> int:
        settings = daemon.call("session/configure", session_id="s")["settings"]
        return int(settings["prune_minimum"]["value"])

    file.write_text("[compaction]\nprune_minimum = 33_300\n")
    daemon.call("session/start", session_id="s", working_dir=str(tmp_path))
    first = told()
    file.write_text("[compaction]\nprune_minimum = 44_400\n")
    daemon.call("session/configure", session_id="s", compaction={"prune": True})
    unread = told()

    assert daemon.call("session/start", session_id="s")["resumed"] is True

    assert (first, unread, told()) == (33_300, 33_300, 44_400)


@of_git
def test_a_pipe_as_gitignore_costs_a_session_its_snapshots_and_says_so(spawn: Spawn, tmp_path: Path) -> None:
    daemon, work = spawn(), tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q")
    os.mkfifo(work / ".gitignore")
    session = started_in(daemon, work)

    asked(daemon, session)

    told = diff(daemon, session)["reason"]
    assert told == ".gitignore is not a regular file, and git waits for it: remove it"
