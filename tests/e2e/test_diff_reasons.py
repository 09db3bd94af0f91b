"""`session/diff`: no fault of git stops a turn; who may read snapshots and when they are deleted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.git_marks import needs_git
from tests.support.talk import turns, user
from tests.support.work_trees import asked, diff, ended, lines_of, made_tree, started

pytestmark = needs_git


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return made_tree(tmp_path)


# --- what ends no turn -------------------------------------------------------------------------------


def test_a_work_tree_that_was_deleted_ends_no_turn(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    asked(daemon, session)
    ended(daemon, session)
    shutil.rmtree(tree)

    asked(daemon, session)
    ended(daemon, session)

    answer = diff(daemon, session)
    assert (answer["files"], answer["reason"]) == ([], "the session's working_dir no longer exists")


def test_a_git_that_hangs_holds_up_no_other_session(spawn: Spawn, tree: Path, tmp_path: Path) -> None:
    gate, bin_ = tmp_path / "gate", tmp_path / "bin"
    os.mkfifo(gate)
    bin_.mkdir()
    (bin_ / "git").write_text(f'#!/bin/sh\nread line < {gate}\nexec {shutil.which("git")} "$@"\n')
    (bin_ / "git").chmod(0o755)
    daemon = spawn(env={"PATH": f"{bin_}:{os.environ['PATH']}"})
    session = started(daemon, tree)
    daemon.call("session/append", session_id=session, messages=[user(5)])

    waiting = daemon.ask("turn/begin", session_id=session)
    other = daemon.call("session/start")["session_id"]
    daemon.call("session/append", session_id=other, messages=turns(1, 5))
    daemon.call("turn/begin", session_id=other)
    state = daemon.call("agent/state", session_id=session)

    assert not daemon.answered_so_far(waiting)
    assert state["message_count"] == 1
    with gate.open("w") as opened:
        opened.write("go\n")
    daemon.kill()


# --- what is kept -----------------------------------------------------------------------------------


def test_a_deleted_session_leaves_no_snapshots(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    asked(daemon, session)
    (tree / "secret.txt").write_text("x\n")
    ended(daemon, session)
    kept = list((daemon.home / "snapshots").iterdir())

    daemon.call("session/delete", session_id=session)

    assert kept
    assert not any(folder.exists() for folder in kept if session in folder.name)


def test_a_redaction_takes_the_snapshots_before_it_away(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    first = asked(daemon, session)
    (tree / "key.txt").write_text("the key\n")
    ended(daemon, session)
    folder = next(one for one in (daemon.home / "snapshots").iterdir() if session in one.name)

    daemon.call("session/redact", session_id=session, entry_ids=[first])

    gone = diff(daemon, session)
    assert (folder.exists(), gone["files"]) == (False, [])
    assert "session/redact" in gone["reason"]
    asked(daemon, session)
    (tree / "later.txt").write_text("x\n")
    ended(daemon, session)
    assert lines_of(diff(daemon, session)) == {"later.txt": ("added", 1, 0)}


def test_snapshots_are_for_the_user_alone(daemon: Daemon, tree: Path) -> None:
    session = started(daemon, tree)
    asked(daemon, session)
    ended(daemon, session)

    folder = daemon.home / "snapshots"

    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    assert {oct(one.stat().st_mode & 0o777) for one in folder.iterdir()} == {"0o700"}
