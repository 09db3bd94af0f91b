"""A client that sends and receives raw bytes, so that tests can send invalid frames and see exact answers.

It imports no code of compactd, so that it judges the daemon from outside.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.child import Child, request

PATIENCE_S = 20.0
"""How long a test waits for an answer before it fails. No answer that does come takes so long."""


class RawClient(Child):
    """A daemon as a child process, whose output is read when a test asks for it. Use it in a `with`
    statement, which kills the daemon at the end."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str] | None = None, framing: str = "headers"
    ) -> None:
        super().__init__(command, {**os.environ, **(env or {})}, framing, buffer_bytes=0)
        self._buffer = bytearray()
        self.received: list[dict] = []
        """Every message that was read, in its order."""

    # --- sending ------------------------------------------------------------------------------------

    def send_raw(self, data: bytes) -> None:
        """Exactly these bytes. Blocks while the daemon does not read."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.stdin.fileno(), view) :]

    def send_until_full(self, data: bytes, quiet_s: float = 1.0) -> int:
        """Send as many of these bytes as the daemon takes. Stop when it takes none for `quiet_s`. Return how
        many."""
        fd = self.stdin.fileno()
        os.set_blocking(fd, False)
        view, sent = memoryview(data), 0
        while view and select.select([], [fd], [], quiet_s)[1]:
            written = os.write(fd, view[:65536])
            view, sent = view[written:], sent + written
        os.set_blocking(fd, True)
        return sent

    def call(self, id: object, method: str, params: object = None) -> dict:
        """Sends a request and waits for its answer."""
        self.send(request(id, method, params))
        return self.answer(id)

    def close_stdin(self) -> None:
        """The end of the input."""
        self.stdin.close()

    def close_stdout(self) -> None:
        """Close the reading end: from now on the daemon's writes meet a broken pipe."""
        self.stdout.close()

    # --- receiving ----------------------------------------------------------------------------------

    def read(self) -> dict:
        """The next message. Raises `EOFError` at the end of the output."""
        message = json.loads(self.read_body())
        self.received.append(message)
        return message

    def read_body(self) -> bytes:
        """The next message's bytes."""
        if self.framing == "lines":
            return self._until(b"\n")
        head = self._until(b"\r\n\r\n")
        name, _, value = head.partition(b": ")
        assert name == b"Content-Length", f"not a header: {head!r}"
        return self._exactly(int(value))

    def answer(self, id: object) -> dict:
        """The answer with this id; what comes before it is in `received`."""
        while True:
            message = self.read()
            if "method" not in message and message["id"] == id:
                return message

    def rest(self) -> bytes:
        """Everything up to the end of the output."""
        while self._more():
            pass
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def rest_messages(self) -> list[dict]:
        """The messages up to the end of the output."""
        messages = []
        while True:
            try:
                messages.append(self.read())
            except EOFError:
                return messages

    def wait(self) -> int:
        """The exit code."""
        return self.process.wait(PATIENCE_S)

    def memory_bytes(self) -> int:
        """The daemon's resident memory (Linux)."""
        resident = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(resident) * os.sysconf("SC_PAGESIZE")

    def peak_memory_bytes(self) -> int:
        """The most it ever had (Linux)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def _until(self, mark: bytes) -> bytes:
        start = 0
        while (found := self._buffer.find(mark, start)) < 0:
            start = max(0, len(self._buffer) - len(mark))
            if not self._more():
                raise EOFError(bytes(self._buffer))
        data = bytes(self._buffer[:found])
        del self._buffer[: found + len(mark)]
        return data

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if not self._more():
                raise EOFError(bytes(self._buffer))
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _more(self) -> bool:
        until = time.monotonic() + PATIENCE_S
        if not select.select([self.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
            raise TimeoutError(f"nothing came for {PATIENCE_S} s; stderr: {self.log()}")
        data = os.read(self.stdout.fileno(), 1 << 20)
        self._buffer += data
        return bool(data)
