"""Git work trees, and sessions in them with snapshots."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support.client import Daemon
from tests.support.talk import CHARS4, assistant, user


def git(folder: Path, *arguments: str) -> str:
    """Run git without this machine's settings. Return what it prints."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout


def started(daemon: Daemon, folder: Path | None, **more: Any) -> str:
    params: dict[str, Any] = {"snapshots": True, "compaction": CHARS4, **more}
    if folder is not None:
        params["working_dir"] = str(folder)
    return str(daemon.call("session/start", **params)["session_id"])


def asked(daemon: Daemon, session: str) -> str:
    """A user's message and the begin of its turn; its entry."""
    (entry_id,) = daemon.call("session/append", session_id=session, messages=[user(5)])["entry_ids"]
    daemon.call("turn/begin", session_id=session)
    return str(entry_id)


def ended(daemon: Daemon, session: str) -> None:
    daemon.call("turn/end", session_id=session, messages=[assistant(5)])


def diff(daemon: Daemon, session: str, **span: str) -> dict[str, Any]:
    return dict(daemon.call("session/diff", session_id=session, **span))


def lines_of(answer: dict[str, Any]) -> dict[str, tuple[str, int, int]]:
    return {one["file"]: (one["status"], one["additions"], one["deletions"]) for one in answer["files"]}


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder: what it holds and when it was written."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def made_tree(tmp_path: Path) -> Path:
    """A work tree with one commit."""
    root = tmp_path / "tree"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("one\ntwo\nthree\n")
    (root / "src" / "old.py").write_text("old\n")
    (root / ".gitignore").write_text("build/\n*.log\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    return root
