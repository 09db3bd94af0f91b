"""A daemon that is forked from this process, which has already imported its modules.

It saves the tenth of a second that Python needs to load them. Its pipes, files, locks and death are real.

Use it for thousands of kills; `e2e.client.Daemon` starts a daemon as a user does.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import select
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import compactd
from tests.support.client import PATIENCE_S, Refused, environment

LEFT_OUT = (
    "compactd.cli",
    "compactd.integrations",
    "compactd.client",
    "compactd.__main__",
)
_READ_BYTES = 1 << 16


def load() -> None:
    """Imports what a daemon may need, once. Starts no thread: a process with threads must not fork."""
    for found in pkgutil.walk_packages(compactd.__path__, "compactd."):
        if not found.name.startswith(LEFT_OUT):
            import_module(found.name)
    gc.collect()
    gc.freeze()


class Forked:
    """Like `Daemon`, but without threads: answers are read when a test waits for them. One message per
    line."""

    def __init__(self, home: Path) -> None:
        # Nothing that is buffered here may be written twice.
        sys.stdout.flush()
        sys.stderr.flush()
        self._log = home.parent / "stderr"
        asked, answers = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _serve(home, self._log, asked, answers)
        os.close(asked[0])
        os.close(answers[1])
        self._to_daemon, self._from_daemon = asked[1], answers[0]
        self._buffer = b""
        self._answers: dict[object, dict[str, Any]] = {}
        self._last_id = 0
        self._is_dead = False

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        os.close(self._to_daemon)
        os.close(self._from_daemon)

    def ask(self, method: str, **params: Any) -> int:
        """Sends a request and gives back its id."""
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        data = memoryview(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        while data:
            data = data[os.write(self._to_daemon, data) :]
        return self._last_id

    def call(self, method: str, **params: Any) -> Any:
        """The result of a request; raises `Refused` for an error."""
        return self.result(self.ask(method, **params))

    def result(self, id: object) -> Any:
        """Return the result of the request with this id. Raise `Refused` if it is an error, and
        `TimeoutError` if no answer comes."""
        until = time.monotonic() + PATIENCE_S
        while id not in self._answers:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._from_daemon], [], [], left)[0] or not self._take():
                raise TimeoutError(f"no answer; stderr: {self.log()[-2_000:]}")
        value = self._answers[id]
        if "error" in value:
            raise Refused(value["error"])
        return value["result"]

    def log(self) -> str:
        """Return what this daemon and those before it in this home folder wrote to stderr."""
        return self._log.read_text("utf-8", "replace")

    def kill(self) -> None:
        """SIGKILL, wherever it stands; returns when it is gone. What it has sent can still be read."""
        if not self._is_dead:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._is_dead = True

    def _take(self) -> bool:
        """Reads what is there; false at the end."""
        data = os.read(self._from_daemon, _READ_BYTES)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            value = json.loads(line)
            if "method" not in value:
                self._answers[value["id"]] = value
        return bool(data)


def _serve(home: Path, log: Path, asked: tuple[int, int], answers: tuple[int, int]) -> None:
    """Become the daemon in the child process. Never return."""
    code = 70
    try:
        os.environ.clear()
        os.environ.update(environment(home))
        # By the numbers behind the streams: the test runner puts others in their place.
        os.dup2(asked[0], 0)
        os.dup2(answers[1], 1)
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        os.closerange(3, 256)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        sys.argv = ["compactd", "serve"]
        from compactd.__main__ import main

        code = main()
    finally:
        os._exit(code)
