"""`session/diff` without a git repository or without git. These tests do not need git."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Spawn
from tests.support.work_trees import asked, diff, ended, started


def repository(git_dir: Path) -> None:
    """Create the files that make a folder a repository (gitrepository-layout), and no more."""
    (git_dir / "objects").mkdir(parents=True)
    (git_dir / "refs").mkdir()
    (git_dir / "HEAD").write_text("ref: refs/heads/main\n")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    repository(root / ".git")
    (root / "a.py").write_text("one\n")
    return root


def test_where_nothing_can_be_told_the_reason_is(spawn: Spawn, tree: Path, tmp_path: Path) -> None:
    daemon = spawn()
    plain, gone, bare = tmp_path / "plain", tmp_path / "gone", tmp_path / "bare.git"
    plain.mkdir()
    gone.mkdir()
    repository(bare)
    sessions = {
        "snapshots": started(daemon, tree, snapshots=False),
        "not in a git work tree": started(daemon, plain),
        "not in a git": started(daemon, bare),
        "no longer exists": started(daemon, gone),
        "no working_dir": started(daemon, None),
        "memory": started(daemon, tree, persist=False),
        "not an absolute path": started(daemon, Path("relative")),
    }
    gone.rmdir()
    for session in sessions.values():
        asked(daemon, session)
        ended(daemon, session)

    answers = {reason: diff(daemon, session) for reason, session in sessions.items()}

    assert all(answer["files"] == [] for answer in answers.values())
    assert {reason: reason in answer["reason"] for reason, answer in answers.items()} == dict.fromkeys(
        answers, True
    )
    assert not (daemon.home / "snapshots").exists()


def test_without_git_turns_go_on_and_the_reason_is_told(spawn: Spawn, tree: Path, tmp_path: Path) -> None:
    daemon = spawn(env={"PATH": str(tmp_path / "empty")})
    session = started(daemon, tree)
    asked(daemon, session)
    ended(daemon, session)

    answer = diff(daemon, session)

    assert answer["files"] == []
    assert "git was not found" in answer["reason"]
