"""The base of the tests' two wire clients: a daemon as a child process, with pipes, framing and log.

`client.Daemon` reads in a thread, so that a test can ask what came first. `raw_client.RawClient` reads when a
test asks for it, and sends what no library would send. Neither imports compactd: they judge it from outside.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self


def block(body: bytes) -> bytes:
    """Return a body with LSP's `Content-Length` header."""
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def line(body: bytes) -> bytes:
    """Return a body as one line."""
    return body + b"\n"


def request(id: object, method: str, params: object = None) -> bytes:
    """Return the body of a request, without `params` if they are None."""
    message: dict[str, object] = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        message["params"] = params
    return json.dumps(message).encode()


def notification(method: str, params: object = None) -> bytes:
    """Return the body of a notification, without `params` if they are None."""
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return json.dumps(message).encode()


class Child:
    """A child process. Use it in a `with` statement, which kills the process at the end if it still runs."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        framing: str,
        cwd: Path | None = None,
        buffer_bytes: int = -1,
    ) -> None:
        self.framing = framing
        """`lines`, or `headers` as in LSP."""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=dict(env),
            cwd=cwd,
            bufsize=buffer_bytes,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None = None, error: object = None, at: TracebackType | None = None
    ) -> None:
        self.kill()
        for stream in (self.stdin, self.stdout, self._stderr):
            # What was not sent before it was killed can no longer be.
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def framed(self, body: bytes) -> bytes:
        """Return a body in the framing that this child reads."""
        return line(body) if self.framing == "lines" else block(body)

    def send(self, *bodies: bytes) -> None:
        """Send bodies in this child's framing, in one write."""
        self.send_raw(b"".join(self.framed(body) for body in bodies))

    def send_raw(self, data: bytes) -> None:
        """Send exactly these bytes."""
        self.stdin.write(data)
        self.stdin.flush()

    def kill(self) -> None:
        """Kill the process with SIGKILL, and wait until it has ended."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def log(self) -> str:
        """Return what the process wrote to stderr so far."""
        self._stderr.seek(0)
        return self._stderr.read().decode("utf-8", "replace")
