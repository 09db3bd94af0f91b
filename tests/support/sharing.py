"""A shared daemon as a child process, and clients that attach to it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.child import Child
from tests.support.client import PATIENCE_S, Daemon, environment

COMPACTD = (sys.executable, "-m", "compactd")


ATTACH = (*COMPACTD, "attach")


@contextmanager
def own_sockets(idle_exit_s: int = 0) -> Iterator[dict[str, str]]:
    """Yield variables with which `compactd attach` starts a daemon of this test's own. It ends so many
    seconds after its last client.
    """
    # A socket's path is short, and the paths of tests are long.
    with tempfile.TemporaryDirectory(prefix="c", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield {"XDG_RUNTIME_DIR": folder, "COMPACTD_IDLE_EXIT": str(idle_exit_s)}


class Shared:
    """A shared daemon. Use it in a `with` statement, which kills it, and the clients that it has."""

    def __init__(
        self,
        home: Path,
        *,
        env: Mapping[str, str] | None = None,
        options: tuple[str, ...] = (),
        prefix: tuple[str, ...] = (),
    ) -> None:
        """`options`: further options of `serve --listen`. `prefix`: a command that runs it."""
        self.home = home
        self.env = dict(env or {})
        # A socket's path is short, and the paths of tests are long.
        self.folder = Path(tempfile.mkdtemp(prefix="c", dir="/tmp"))
        self.path = self.folder / "s"
        self._options = options
        self._prefix = prefix
        self._clients: list[Daemon] = []
        self.process: Child | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None = None, error: object = None, at: TracebackType | None = None
    ) -> None:
        for client in self._clients:
            client.__exit__()
        if self.process is not None:
            self.process.__exit__()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start the daemon, and wait until it listens."""
        if self.process is not None:
            self.process.__exit__()
        command = (*self._prefix, *COMPACTD, "serve", "--listen", "--socket", str(self.path))
        command += ("--idle-exit", "300", *self._options)
        self.process = Child(command, environment(self.home, self.env), "lines")
        until = time.monotonic() + PATIENCE_S
        while "listening at" not in self.process.log():
            assert self.process.process.poll() is None, self.process.log()
            assert time.monotonic() < until, "it does not listen"
            time.sleep(0.01)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.process.pid

    def attach(self, *, framing: str = "lines") -> Daemon:
        """Return a new client. Everything it sends and receives passes through `compactd attach`."""
        client = Daemon(
            self.home,
            framing=framing,
            env=self.env,
            command=(*COMPACTD, "attach", "--no-start", "--socket", str(self.path)),
        )
        self._clients.append(client)
        return client

    def connect(self) -> socket.socket:
        """Return a bare connection to the socket."""
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(PATIENCE_S)
        link.connect(str(self.path))
        return link

    def kill(self) -> None:
        """Kill the daemon with SIGKILL, and wait until it has ended."""
        assert self.process is not None
        self.process.kill()

    def terminate(self) -> int:
        """Ask the daemon to end, and return its exit code."""
        assert self.process is not None
        os.kill(self.pid, signal.SIGTERM)
        return self.process.process.wait(PATIENCE_S)
