"""The Python client: spawns the daemon and speaks to it over its pipes.

    with Client() as client:
        started = client.ask("session/start", {"persist": False}, StartResult)
        client.call("session/append", {"session_id": started.session_id, "messages": [...]})

Calls may come from several threads; one thread reads what the daemon says.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import IO, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from compactd.client_frames import ErrorObject, Incoming, Json, Outgoing, framed, incoming, json_object

Params = Struct | Mapping[str, object] | None
"""Of a call: a struct of `rpc/wire.py`, or a table of anything that becomes JSON."""

T = TypeVar("T")

TIMEOUT_S = 60.0
CLOSE_S = 10.0
HURRY_S = 0.5
EVENTS_KEPT = 10_000
STDERR_LINES = 200
STDERR_LINE_BYTES = 4096

_METHOD_NOT_FOUND = -32601


class RpcError(Exception):
    """The daemon answered with an error. `code` is the contract's, `data` is for programs."""

    def __init__(
        self, code: int, message: str, data: dict[str, Json] | None = None, stderr: str = ""
    ) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data or {}
        self.stderr = stderr
        """The end of the daemon's log as it stood."""


class DaemonGone(Exception):
    """The daemon ended before it answered, or could not be started. `stderr`: the end of its log."""

    def __init__(self, message: str, stderr: str = "") -> None:
        super().__init__(message)
        self.stderr = stderr


class Event(Struct, frozen=True):
    """An `agent/event`."""

    session_id: str
    seq: int
    type: str
    fields: dict[str, Json]
    """All of its params."""


_Waiting = queue.SimpleQueue[Incoming | None]


def own_command() -> tuple[str, ...]:
    """How this Python starts a daemon of this package."""
    is_in_source = False
    # The folder we stand in may have been removed.
    with contextlib.suppress(OSError):
        is_in_source = Path(__file__).resolve().parents[1] == Path.cwd()
    # With -m alone, any file of that folder could be imported in place of another's.
    safe = () if is_in_source else ("-P",)
    return (sys.executable, *safe, "-m", "compactd", "serve")


class Client:
    """A daemon of one's own, from its start to `close`."""

    def __init__(
        self,
        command: Sequence[str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        framing: Literal["lsp", "lines"] = "lsp",
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        """Spawns `command`, by default this Python's `compactd serve`.

        `env` is its whole environment, by default this process's.

        `on_event` is called in the reading thread and may not call the daemon; without it events wait for
        `events`. Raises `DaemonGone` where the command cannot be started.
        """
        self._is_lsp = framing == "lsp"
        self._on_event = on_event
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._news = threading.Condition()
        self._waiting: dict[int, _Waiting] = {}
        self._is_ended = False
        self._last_id = 0
        self._writing = threading.Lock()
        self._log: deque[str] = deque(maxlen=STDERR_LINES)
        try:
            self._process = subprocess.Popen(
                list(command or own_command()),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=None if env is None else dict(env),
                # Ctrl-C is for us: the daemon then sees the end of its stdin and finishes what it has to.
                process_group=0,
            )
        except OSError as error:
            raise DaemonGone(f"the daemon could not be started: {error}") from error
        self._threads = [
            threading.Thread(target=work, args=(pipe,), daemon=True)
            for work, pipe in ((self._read, self._process.stdout), (self._drain, self._process.stderr))
        ]
        for thread in self._threads:
            thread.start()

    # --- asking ---------------------------------------------------------------------------------------

    def call(self, method: str, params: Params = None, *, timeout_s: float = TIMEOUT_S) -> dict[str, Json]:
        """The result of `method` as plain JSON; empty where it is null.

        Raises `RpcError`, `DaemonGone`, and `TimeoutError` where no answer came: then it is cancelled.
        """
        return json_object(self.ask(method, params, Raw, timeout_s=timeout_s))

    def ask(self, method: str, params: Params, result: type[T], *, timeout_s: float = TIMEOUT_S) -> T:
        """As `call`, with the result as the type that `rpc/methods.py` names for it."""
        waiting: _Waiting = queue.SimpleQueue()
        with self._news:
            self._last_id += 1
            request_id = self._last_id
            if self._is_ended:
                raise self._gone(method)
            self._waiting[request_id] = waiting
        self._send(Outgoing("2.0", id=request_id, method=method, params={} if params is None else params))
        try:
            answer = waiting.get(timeout=timeout_s)
        except queue.Empty:
            with contextlib.suppress(DaemonGone):
                self.notify("$/cancelRequest", {"id": request_id})
            raise TimeoutError(f"{method}: no answer within {timeout_s:g} s") from None
        finally:
            self._waiting.pop(request_id, None)
        if answer is None:
            raise self._gone(method)
        if answer.error is not None:
            error = answer.error
            raise RpcError(error.code, error.message, json_object(error.data), self.stderr)
        return msgspec.json.decode(answer.result, type=result)

    def notify(self, method: str, params: Params = None) -> None:
        """Sends a notification. Raises `DaemonGone`."""
        self._send(Outgoing("2.0", method=method, params={} if params is None else params))

    def events(self, timeout_s: float = TIMEOUT_S) -> Iterator[Event]:
        """Events in the order they came, each once, until none comes for `timeout_s` or the daemon ends.

        The newest `EVENTS_KEPT` wait to be taken; a gap in `seq` shows that older ones were dropped.
        """
        while True:
            with self._news:
                end = monotonic() + timeout_s
                while not self._events:
                    left = end - monotonic()
                    if self._is_ended or left <= 0:
                        return
                    self._news.wait(left)
                event = self._events.popleft()
            yield event

    @property
    def stderr(self) -> str:
        """The last `STDERR_LINES` lines of the daemon's log."""
        return "".join(tuple(self._log))

    @property
    def pid(self) -> int:
        """Of the daemon."""
        return self._process.pid

    # --- ending ---------------------------------------------------------------------------------------

    def close(self, timeout_s: float = CLOSE_S) -> int:
        """Ends the daemon by the end of its input, kills it after `timeout_s`; its exit code.

        May be called twice.
        """
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        for thread in self._threads:
            thread.join(timeout_s)
        return code

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Whoever gave up does not want to wait for what the daemon still does.
        self.close(HURRY_S if isinstance(error, KeyboardInterrupt | TimeoutError) else CLOSE_S)

    def _gone(self, doing: str) -> DaemonGone:
        # It has closed its stdout: what it last wrote to stderr, and its code, are there in a moment.
        for thread in self._threads[1:]:
            thread.join(1.0)
        code = self._process.poll()
        ended = "closed its output" if code is None else f"ended with code {code}"
        return DaemonGone(f"{doing}: the daemon {ended}", self.stderr)

    # --- the pipes ------------------------------------------------------------------------------------

    def _send(self, message: Outgoing) -> None:
        frame = framed(message, self._is_lsp)
        pipe = self._process.stdin
        try:
            with self._writing:
                if pipe is not None:
                    pipe.write(frame)
                    pipe.flush()
        except (OSError, ValueError):
            name = "an answer" if message.method is UNSET else message.method
            raise self._gone(name) from None

    def _read(self, pipe: IO[bytes]) -> None:
        try:
            with pipe:
                for message in incoming(pipe, self._is_lsp):
                    self._take(message)
        except (msgspec.MsgspecError, ValueError) as error:
            self._log.append(f"what came on stdout is not the protocol: {error}\n")
        finally:
            with self._news:
                self._is_ended = True
                self._news.notify_all()
                waiting = tuple(self._waiting.values())
            for one in waiting:
                one.put(None)

    def _take(self, message: Incoming) -> None:
        match message:
            case Incoming(method=None, id=int(number)) if number in self._waiting:
                self._waiting[number].put(message)
            case Incoming(method=None, error=ErrorObject(code=code, message=text)):
                self._log.append(f"an error without a request: {text} ({code})\n")
            case Incoming(method="agent/event"):
                self._take_event(json_object(message.params))
            case Incoming(method=str(method), id=int() | str() as request_id):
                # The daemon asks only what a client announced; this one announces nothing.
                error = ErrorObject(_METHOD_NOT_FOUND, f"{method} is not answered here")
                with contextlib.suppress(DaemonGone):
                    self._send(Outgoing("2.0", id=request_id, error=error))
            case _:
                pass

    def _take_event(self, fields: dict[str, Json]) -> None:
        session_id, seq, kind = fields.get("session_id"), fields.get("seq"), fields.get("type")
        if not (isinstance(session_id, str) and isinstance(seq, int) and isinstance(kind, str)):
            return
        event = Event(session_id, seq, kind, fields)
        if self._on_event is not None:
            self._on_event(event)
            return
        with self._news:
            self._events.append(event)
            self._news.notify_all()

    def _drain(self, pipe: IO[bytes]) -> None:
        with pipe:
            for line in iter(lambda: pipe.readline(STDERR_LINE_BYTES), b""):
                self._log.append(line.decode("utf-8", "replace"))
