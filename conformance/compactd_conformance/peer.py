"""The program under test as a child process. Every read and write has a deadline.

A single thread reads and writes, so that results depend only on the order of messages.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TypeVar

import msgspec

from compactd._runtime.programs import resolve_command
from compactd_conformance.frames import (
    Broken,
    Event,
    Fault,
    Framing,
    NotStarted,
    ReceivedMessage,
    parse_message,
    read,
    request,
    shorten_value,
)

T = TypeVar("T")

READ_BYTES = 1 << 18
LOG_CHARS = 600
KILLED_S = 5.0

_SEPARATOR = b"\r\n\r\n"


class Peer:
    """The tested program as a running process, from its start until `end` stops it."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], framing: Framing, patience_s: float
    ) -> None:
        """Start the command. Raise `NotStarted` if that fails."""
        self.framing: Framing = framing
        self.received: list[ReceivedMessage] = []
        """All received messages, in order."""
        self.sent: list[str] = []
        """The messages sent so far, shortened for a report; newest last."""
        self._patience_s = patience_s
        self._buffer = bytearray()
        self._is_at_end = False
        self._last_id = 0
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `end`
        try:
            self._process = subprocess.Popen(
                [resolve_command(command[0], env.get("PATH"), Path.cwd()), *command[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=dict(env),
                bufsize=0,
                process_group=0,
            )
        except OSError as error:
            self._log.close()
            raise NotStarted(f"{command[0]}: {error.strerror or error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        os.set_blocking(self._in.fileno(), False)

    # --- asking ---------------------------------------------------------------------------------------

    def call(self, method: str, params: Mapping[str, object] | None, shape: type[T]) -> T:
        """Send a request and return its result as `shape`. Raise `Broken` if the answer is an error or lacks
        fields of `shape`.
        """
        return self.result(self.ask(method, params), shape)

    def ask(self, method: str, params: Mapping[str, object] | None = None) -> int:
        """Send a request and return its id."""
        self._last_id += 1
        self.send(request(self._last_id, method, {} if params is None else params))
        return self._last_id

    def ask_raw(self, method: str, params: bytes) -> int:
        """Send a request with exactly these bytes as params, and return its id."""
        self._last_id += 1
        self.send(
            b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (self._last_id, method.encode(), params)
        )
        return self._last_id

    def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Send a notification."""
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def send(self, *bodies: bytes) -> None:
        """Send bodies in this connection's framing, in one write."""
        self.send_raw(b"".join(self.frame(body) for body in bodies))

    def frame(self, body: bytes) -> bytes:
        """Return a body with its framing."""
        return (
            body + b"\n" if self.framing == "lines" else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )

    def send_raw(self, data: bytes) -> None:
        """Send exactly these bytes. Read the program's output in the meantime, so that neither side blocks
        the other.
        """
        self.sent.append(shorten_value(data))
        view, until = memoryview(data), monotonic() + self._patience_s
        with selectors.DefaultSelector() as ready:
            ready.register(self._in, selectors.EVENT_WRITE)
            if not self._is_at_end:
                ready.register(self._out, selectors.EVENT_READ)
            while view:
                left = until - monotonic()
                events = ready.select(left) if left > 0 else []
                if not events:
                    raise self._broken("that the input is read", "it was not read")
                for key, _ in events:
                    if key.fileobj is self._out:
                        self._take_in()
                        if self._is_at_end:
                            ready.unregister(self._out)
                        continue
                    try:
                        view = view[os.write(self._in.fileno(), view) :]
                    except BlockingIOError:
                        continue
                    except OSError:
                        raise self._broken("that the input is read", "the program closed its input") from None

    # --- what comes -----------------------------------------------------------------------------------

    def result(self, id: object, shape: type[T]) -> T:
        """Wait for the answer to the request with this id. Return its result as a value of the type `shape`.
        Raise `Broken` if the answer is an error.
        """
        got = self.answer(id)
        if got.error is not None:
            raise Broken("a result", f"error {got.error.code}: {got.error.message}")
        return read(got.result, shape)

    def refusal(self, method: str, params: Mapping[str, object]) -> Fault:
        """Send a request and return the error of its answer. Raise `Broken` if the answer is a result."""
        return self.error_answer(self.ask(method, params))

    def error_answer(self, id: object) -> Fault:
        """Wait for the answer to the request with this id, and return its error. Raise `Broken` if the answer
        is a result.
        """
        got = self.answer(id)
        if got.error is None:
            raise Broken("an error", f"the result {shorten_value(bytes(got.result))}")
        return got.error

    def answer(self, id: object) -> ReceivedMessage:
        """Wait for the first answer to the request with this id, and return it."""
        wanted = msgspec.json.encode(id)
        return self.wait(lambda got: got.id == wanted and not got.method, f"an answer to request {id}")

    def answers(self, id: object) -> tuple[ReceivedMessage, ...]:
        """Return all answers with this id that were received so far."""
        wanted = msgspec.json.encode(id)
        return tuple(got for got in self.received if got.id == wanted and not got.method)

    def wait_request(self, method: str, after: int = -1) -> ReceivedMessage:
        """Wait for the first request `method` from the program after the position `after`, and return it."""
        return self.wait(lambda got: got.method == method and bool(got.id), f"the request {method}", after)

    def reply(self, asked: ReceivedMessage, result: object) -> None:
        """Send `result` as the answer to `asked`, a request from the program."""
        self.send(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (asked.id, msgspec.json.encode(result)))

    def event(self, session_id: str, type: str, after: int = -1) -> Event:
        """Wait for the first event of this type of this session after the position `after`, and return it."""

        def is_it(got: ReceivedMessage) -> bool:
            if got.method != "agent/event":
                return False
            event = read(got.params, Event)
            return (event.session_id, event.type) == (session_id, type)

        got = self.wait(is_it, f"the event {type}", after)
        return msgspec.structs.replace(read(got.params, Event), at=got.at)

    def events(self, session_id: str, after: int = -1) -> tuple[Event, ...]:
        """Return the events of a session that were received so far, after the position `after`."""
        found = (
            msgspec.structs.replace(read(got.params, Event), at=got.at)
            for got in self.received[after + 1 :]
            if got.method == "agent/event"
        )
        return tuple(event for event in found if event.session_id == session_id)

    @property
    def now(self) -> int:
        """The position of the last received message."""
        return len(self.received) - 1

    def wait(self, is_it: Callable[[ReceivedMessage], bool], what: str, after: int = -1) -> ReceivedMessage:
        """Wait for the first message after the position `after` for which `is_it` is true, and return it.
        Raise `Broken` if the deadline passes or the program ends before that. The error says that `what` was
        expected.
        """
        until = monotonic() + self._patience_s
        at = after + 1
        while True:
            while at < len(self.received):
                if is_it(self.received[at]):
                    return self.received[at]
                at += 1
            if self._is_at_end:
                raise self._broken(what, "the program closed its output")
            if not self._readable(until):
                raise self._broken(what, f"nothing within {self._patience_s:g} s")
            self._take_in()

    # --- its end --------------------------------------------------------------------------------------

    def stop(self) -> int:
        """Close the program's input, and read its output to the end. Return the exit code."""
        self._in.close()
        return self.wait_for_end()

    def wait_for_end(self) -> int:
        """Read the program's output to the end. Return its exit code. Raise `Broken` if the program does not
        exit.
        """
        until = monotonic() + self._patience_s
        while not self._is_at_end:
            if not self._readable(until):
                raise self._broken(
                    "that the program ends", (f"it was still running after {self._patience_s:g} s")
                )
            self._take_in()
        try:
            return self._process.wait(max(0.1, until - monotonic()))
        except subprocess.TimeoutExpired:
            raise self._broken("that the program ends", "it closed its output and kept running") from None

    def vanish(self) -> None:
        """Close both pipes, as if the client had died, and wait until the program exits. Raise `Broken` if it
        does not exit.
        """
        self._in.close()
        self._out.close()
        self._is_at_end = True
        try:
            self._process.wait(self._patience_s)
        except subprocess.TimeoutExpired:
            raise self._broken(
                "that the program ends", f"it was still running after {self._patience_s:g} s"
            ) from None

    def kill(self) -> None:
        """Send SIGKILL to the program and to the processes that it started. Return when all have ended, at
        the latest after `KILLED_S` seconds.
        """
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        # The output ends when every process that has it open has ended.
        until = monotonic() + KILLED_S
        while not self._is_at_end and self._readable(until):
            self._is_at_end = not os.read(self._out.fileno(), READ_BYTES)

    def end(self) -> None:
        """Kill the program if it still runs, and close its pipes."""
        self.kill()
        for stream in (self._in, self._out, self._log):
            with contextlib.suppress(OSError):
                stream.close()

    @property
    def is_alive(self) -> bool:
        """Whether the program still runs and its output is open."""
        return self._process.poll() is None and not self._is_at_end

    # --- bytes ----------------------------------------------------------------------------------------

    def _readable(self, until: float) -> bool:
        left = until - monotonic()
        with selectors.DefaultSelector() as ready:
            ready.register(self._out, selectors.EVENT_READ)
            # The deadline also ends the wait for a program that never stops writing.
            return left > 0 and bool(ready.select(left))

    def _take_in(self) -> None:
        data = os.read(self._out.fileno(), READ_BYTES)
        if not data:
            self._is_at_end = True
            return
        self._buffer += data
        while (body := self._next_body()) is not None:
            self.received.append(parse_message(len(self.received), body))

    def _next_body(self) -> bytes | None:
        if self.framing == "lines":
            end = self._buffer.find(b"\n")
            if end < 0:
                return None
            body = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            return body
        head, separator, _ = self._buffer.partition(_SEPARATOR)
        if not separator:
            return None
        length = _length(bytes(head))
        start = len(head) + len(separator)
        if len(self._buffer) < start + length:
            return None
        body = bytes(self._buffer[start : start + length])
        del self._buffer[: start + length]
        return body

    def _broken(self, expected: str, seen: str) -> Broken:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LOG_CHARS))
        log = self._log.read().decode("utf-8", "replace").strip()
        return Broken(expected, f"{seen}; its log ends: {log}" if log else seen)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    raise Broken("a header block with Content-Length", shorten_value(head))


def environment(home: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the program's environment: `environ` without settings and API keys, and with the data folder
    `home`.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(("COMPACTD_", "OPENCODE_", "XDG_")) and not name.endswith("_API_KEY")
    }
    folders = {
        name: str(home.parent / "user" / name.lower()) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME")
    }
    return {**kept, **folders, "COMPACTD_HOME": str(home)}
