"""The measured servers as child processes, and a client that costs only one read and one write per call.

A server is started like an installed program: Python may keep compiled bytecode of its imports, in a folder
of the run. Environment variables that forbid bytecode are not passed on.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter

import msgspec
from msgspec import Raw, Struct

HERE = Path(__file__).parent

COMPACTD = (sys.executable, "-P", "-m", "compactd", "serve")
BARE = (sys.executable, "-P", str(HERE / "bare_loop.py"))
PYGLS = (sys.executable, "-P", str(HERE / "stock_pygls.py"))

PATIENCE_S = 60.0
"""When a peer that does not answer is given up."""

PING = b'{"jsonrpc":"2.0","id":%d,"method":"daemon/ping","params":{}}'

_READ_BYTES = 1 << 20
_LOG_BYTES = 4096  # of its end, told where a peer failed


class PeerFailed(Exception):
    """A peer ended, refused, or kept silent; there is nothing to measure."""


class Message(Struct, frozen=True):
    """A message that a peer sent."""

    id: int | None = None
    method: str | None = None
    params: Raw = Raw(b"{}")
    result: Raw = Raw(b"null")
    error: Raw = Raw(b"null")


_decode = msgspec.json.Decoder(Message).decode


def environment(folder: Path, home: Path) -> dict[str, str]:
    """This process's environment with a bytecode cache and a data folder of the run's own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("COMPACTD_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    return {
        **kept,
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "COMPACTD_HOME": str(home),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }


class Peer:
    """A server as a child process. Use it in a `with`: at its end it is killed, if it still runs."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], *, lines: bool = False) -> None:
        self.lines = lines
        """Whether each message is one line of JSON, without LSP's headers."""
        self.events: list[Message] = []
        """Every message that was not the awaited answer, oldest first."""
        self._buffer = b""
        self._last_id = 0
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self.spawned_at = perf_counter()
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=dict(env),
            bufsize=0,
        )
        if self.process.stdin is None or self.process.stdout is None:
            raise PeerFailed("no pipes")
        self.to_peer = self.process.stdin.fileno()
        self.from_peer = self.process.stdout.fileno()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self._log):
            if pipe is not None:
                pipe.close()

    def framed(self, body: bytes) -> bytes:
        """A body as this peer reads it."""
        return body + b"\n" if self.lines else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)

    # --- one request, one answer ----------------------------------------------------------------------

    def call(self, method: str, params: object = None) -> Raw:
        """The result of a request. Raises `PeerFailed` for an error."""
        asked = self.ask(method, params)
        while (message := self.receive()).id != asked or message.method is not None:
            self.events.append(message)
        return result_of(message)

    def ask(self, method: str, params: object = None) -> int:
        """Sends a request; its id."""
        self._last_id += 1
        body = {
            "jsonrpc": "2.0",
            "id": self._last_id,
            "method": method,
            "params": {} if params is None else params,
        }
        self.send(self.framed(msgspec.json.encode(body)))
        return self._last_id

    def timed(self, method: str, params: object = None) -> float:
        """Return the seconds from the first byte of a request to the last of its answer."""
        began = perf_counter()
        self.call(method, params)
        return perf_counter() - began

    def ping(self) -> float:
        """Return the seconds of a `daemon/ping`, while nothing else is under way."""
        self._last_id += 1
        frame = self.framed(PING % self._last_id)
        began = perf_counter()
        os.write(self.to_peer, frame)
        while (message := self.receive()).id != self._last_id:
            self.events.append(message)
        return perf_counter() - began

    def core_s(self) -> float:
        """Return the CPU seconds of the peer so far; 0 if the system does not say."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    # --- bytes ----------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """All of these bytes. Blocks while the peer does not read."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.to_peer, view) :]

    def receive(self) -> Message:
        """The next message."""
        while True:
            end = self._end_of_body()
            if end is not None:
                start, stop, rest = end
                message = _decode(memoryview(self._buffer)[start:stop])
                self._buffer = self._buffer[rest:]
                return message
            self._buffer += self.read()

    def read(self) -> bytes:
        """Return the bytes that have arrived; wait if there are none yet."""
        if not select.select([self.from_peer], [], [], PATIENCE_S)[0]:
            raise PeerFailed("no answer")
        data = os.read(self.from_peer, _READ_BYTES)
        if not data:
            code = self.process.wait()
            self._log.seek(0)
            log = self._log.read()[-_LOG_BYTES:].decode("utf-8", "replace")
            raise PeerFailed(f"the peer ended with code {code}: {log}")
        return data

    def _end_of_body(self) -> tuple[int, int, int] | None:
        """(start, end) of the first body in the buffer, and where the next message begins."""
        if self.lines:
            end = self._buffer.find(b"\n")
            return None if end < 0 else (0, end, end + 1)
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return None
        length = int(self._buffer[: head + 2].partition(b"Content-Length: ")[2].partition(b"\r")[0])
        start = head + 4
        return (start, start + length, start + length) if len(self._buffer) >= start + length else None

    def end(self) -> None:
        """Ends the peer by the end of its input, and waits."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        while os.read(self.from_peer, _READ_BYTES):
            pass
        self.process.wait(PATIENCE_S)


def result_of(message: Message) -> Raw:
    """The result of an answer. Raises `PeerFailed` for an error."""
    if bytes(message.error) != b"null":
        raise PeerFailed(bytes(message.error).decode("utf-8", "replace"))
    return message.result
