"""Other users of the machine can read no file that compactd writes: no journal, nothing derived from one."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.agent_transcripts import Turn
from tests.support.client import Daemon
from tests.support.command_line import TIMEOUT_S, environment
from tests.support.git_marks import of_git
from tests.support.hook_runs import Agent
from tests.support.session_files import openai
from tests.support.talk import CHARS4, turns, user

OPEN_TO_ALL = """
import os, sys
os.umask(0)
os.execv(sys.executable, [sys.executable, "-m", "compactd", *sys.argv[1:]])
"""
"""Runs a compactd command under umask 0, so that new files would be open to all."""


def careless(*arguments: object) -> tuple[str, ...]:
    return (sys.executable, "-c", OPEN_TO_ALL, *map(str, arguments))


def open_to_others(folder: Path) -> Iterator[str]:
    """Yield each path in a folder, itself included, that other users may read, write or enter."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield f"{path.relative_to(folder.parent)} {stat.S_IMODE(path.stat().st_mode):o}"


@of_git
def test_whatever_a_daemon_writes_is_for_its_user_alone_under_any_umask(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / "a.txt").write_text("a\n")
    with Daemon(home, command=careless("serve")) as daemon:
        session = daemon.call(
            "session/start", compaction=CHARS4, title="t", working_dir=str(work), snapshots=True
        )["session_id"]
        daemon.call("turn/begin", session_id=session)
        daemon.call("turn/end", session_id=session, messages=[user(5), *turns(20, 50)])
        error = {"status": 400, "body": "prompt is too long: 213462 tokens > 200000 maximum"}
        daemon.call("turn/error", session_id=session, error=error)
        daemon.call("session/compact", session_id=session, keep_recent=100)
        daemon.call("session/search", query="once", limit=1)
        daemon.call("session/redact", session_id=session, entry_ids=["e1"])
        daemon.call("session/search", query="once", limit=1)
        daemon.call("session/export", session_id=session, format="compactd", path=str(home / "exported"))
        daemon.call("session/close", session_id=session)
        assert daemon.stop() == 0

    kinds = {path.name.rpartition(".")[2] for path in home.rglob("*") if path.is_file()}
    assert {"jsonl", "sqlite3", "exported"} <= kinds
    assert list(open_to_others(home)) == []


def test_what_the_hook_keeps_of_another_agents_session_is_for_its_user_alone(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(Turn("user", "Never touch the public API."))
    event = json.dumps(agent.session.event("Stop")).encode()

    done = subprocess.run(
        careless("hook", "claude-code"),
        input=event,
        env=environment(tmp_path),
        timeout=TIMEOUT_S,
        check=False,
    )

    kept = tmp_path / "data"
    assert done.returncode == 0
    assert {path.suffix for path in kept.rglob("*") if path.is_file()} >= {".json", ".jsonl"}
    assert list(open_to_others(kept)) == []


def test_a_file_that_a_command_makes_is_for_its_user_alone_and_one_that_was_there_stays_as_open(
    tmp_path: Path,
) -> None:
    file = openai(tmp_path / "in.json", 8)
    shared = tmp_path / "shared.jsonl"
    shared.write_text("")
    shared.chmod(0o644)

    for arguments in (
        ("compact", file, "--target", "2k", "--output", tmp_path / "compacted.json"),
        ("convert", file, shared, "--to", "pi", "--force"),
        ("inspect", file, "--html", tmp_path / "page.html"),
    ):
        done = subprocess.run(
            careless(*arguments), env=environment(tmp_path), cwd=tmp_path, timeout=TIMEOUT_S, check=False,
            capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0, (arguments, done.stderr)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir() if path.is_file()}
    assert modes.pop("in.json")
    assert modes == {"compacted.json": 0o600, "page.html": 0o600, "shared.jsonl": 0o644}
