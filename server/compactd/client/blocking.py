"""The blocking client of the daemon. It may be called from several threads."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from subprocess import PIPE
from time import monotonic
from types import TracebackType
from typing import IO, Literal, TypeVar

import msgspec
from msgspec import Raw

from compactd.client.calls import Calls
from compactd.client.connection import Connection, DaemonClient, OutputName, Request
from compactd.client.events import CLOSE_S, HURRY_S, TIMEOUT_S, Event, Params, RpcError
from compactd.client.frames import Incoming, Json, json_object

T = TypeVar("T")

Answers = Mapping[str, Callable[[dict[str, Json]], object]]
"""Functions that answer the daemon's requests, by method (`tool/execute`, `session/compacting`). Each
function gets the params and returns the result.
"""


def _run(work: Coroutine[object, None, T]) -> T:
    """Run a coroutine that never suspends, because its waits block, and return its result."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a coroutine of the blocking client was suspended")


def _in_thread(
    begin: Callable[[], Coroutine[object, None, None]], closed_after: IO[bytes] | None = None
) -> threading.Thread:
    """Run the coroutine that `begin` returns in a thread. `begin` is called in that thread: Ctrl-C while the
    thread starts would leave a coroutine that nobody awaits, and Python warns about it.
    """

    def run() -> None:
        with closed_after or contextlib.nullcontext():
            _run(begin())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


class _Pipe:
    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe

    async def read(self, n: int, /) -> bytes:
        return os.read(self._pipe.fileno(), n)

    async def readline(self) -> bytes:
        return self._pipe.readline()

    async def readexactly(self, n: int, /) -> bytes:
        return self._pipe.read(n)


class _Waiter:
    def __init__(self) -> None:
        self._answers: queue.SimpleQueue[Incoming | None] = queue.SimpleQueue()

    def put(self, answer: Incoming | None) -> None:
        self._answers.put(answer)

    async def get(self, timeout_s: float) -> Incoming | None:
        try:
            return self._answers.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError from None

    def is_full(self) -> bool:
        return not self._answers.empty()


class _Lock:
    def __init__(self) -> None:
        self._lock = threading.RLock()

    async def __aenter__(self) -> None:
        self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class _Connection(Connection):
    """A connection with a thread for each output of the daemon."""

    async def spawn(self, command: Sequence[str], env: Mapping[str, str] | None) -> None:
        self._process = subprocess.Popen(  # noqa: ASYNC220 - coroutines of this client may block
            command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env, process_group=0
        )
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        self.pid, self.kill, self._stdin = self._process.pid, self._process.kill, stdin
        self._writing = threading.Lock()
        self._reading = {
            "stdout": _in_thread(lambda: self.read_messages(_Pipe(stdout)), stdout),
            "stderr": _in_thread(lambda: self.read_log(_Pipe(stderr)), stderr),
        }

    def waiter(self) -> _Waiter:
        return _Waiter()

    async def write(self, frame: bytes) -> None:
        with self._writing:
            self._stdin.write(frame)
            self._stdin.flush()

    def is_read(self) -> bool:
        """Return whether the daemon has read all that was sent. False where the system does not say it."""
        if sys.platform != "linux" or self._writing.locked():
            return False
        import fcntl
        import termios

        try:
            unread = fcntl.ioctl(self._stdin, termios.FIONREAD, b"\0\0\0\0")
        except (OSError, ValueError):
            return False
        return not any(unread)

    def close_input(self) -> None:
        with contextlib.suppress(OSError):
            self._stdin.close()

    def abandon(self) -> None:
        super().abandon()
        # The file objects stay unclosed on purpose: closing them would write what a thread of the parent had
        # begun to write.
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError, ValueError):
                if pipe is not None:
                    os.close(pipe.fileno())

    async def output_end(self, name: OutputName, timeout_s: float) -> None:
        self._reading[name].join(timeout_s)

    async def exit_code(self, timeout_s: float | None) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None


class Pending:
    """Requests that were sent and whose answers are not read yet. They are carried out even if nobody waits
    for their answers, and nothing is kept of these then.
    """

    def __init__(
        self, answers: Callable[[float], list[Raw | RpcError]], is_answered: Callable[[], bool]
    ) -> None:
        """`answers`: waits for the answers, at most so many seconds for each."""
        self._answers = answers
        self._is_answered = is_answered

    @property
    def is_answered(self) -> bool:
        """Whether `wait` would return at once. False if the daemon ended, whatever it answered before."""
        return self._is_answered()

    def wait(self, timeout_s: float = TIMEOUT_S) -> list[Raw | RpcError]:
        """Wait for the answers, and return what `Client.ask_all` returns. Raise what it raises: an error
        while the requests were sent is raised here, too. Call it once.
        """
        return self._answers(timeout_s)


class Client(DaemonClient, Calls):
    """A client that runs its own daemon, from construction to `close`."""

    _connection_type = _Connection

    def __init__(
        self,
        command: Sequence[str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        framing: Literal["lsp", "lines"] = "lsp",
        on_event: Callable[[Event], None] | None = None,
        answers: Answers | None = None,
        restarts: bool = False,
    ) -> None:
        """Start `command`, by default this Python's `compactd serve`. Raise `DaemonGone` if it cannot be
        started.

        `framing` says how messages are separated: by length headers as in LSP, or by line ends. `env` is the
        daemon's whole environment, by default that of this process. `on_event` is called in the thread that
        reads from the daemon, and must not call the daemon; without it, `events` yields the events. Each
        function of `answers` is called in a new thread.

        With `restarts`, a daemon that died is started again with the next request, at most three times a
        minute. Stored sessions are reopened, and each causes an event `client_resumed`. A request during
        which the daemon died is sent again. If that could carry the request out twice, `Interrupted` is
        raised instead. Messages without an id get one, so that a message that is sent twice is stored once.
        """
        super().__init__(command, env, framing == "lsp", answers, restarts)
        self._on_event = on_event
        self._news = threading.Condition()
        self._starting = _Lock()
        self._link = _run(self._start_link())

    # --- asking ---------------------------------------------------------------------------------------

    def call(self, method: str, params: Params = None, *, timeout_s: float = TIMEOUT_S) -> dict[str, Json]:
        """Call `method` and return its result as plain JSON; empty if it is null.

        Raise `RpcError` if the answer is an error, `DaemonGone` if the daemon ended, and `TimeoutError` if no
        answer came in time. After a timeout, the request is cancelled.
        """
        return json_object(self.ask(method, params, Raw, timeout_s=timeout_s))

    def ask(self, method: str, params: Params, result: type[T], *, timeout_s: float = TIMEOUT_S) -> T:
        """Call `method` like `call`, but return its result decoded as the type `result`: the one that
        `protocol/methods.py` gives for the method.
        """
        return msgspec.json.decode(_run(self._request(method, params, timeout_s)), type=result)

    def ask_all(self, requests: Sequence[Request], *, timeout_s: float = TIMEOUT_S) -> list[Raw | RpcError]:
        """Send several requests at once, `(method, params)` each, and wait for all answers. The daemon
        carries out those of one session in this order. Return the results, undecoded; an error is returned in
        its place, not raised. `timeout_s`: how long to wait for each. Otherwise like `call`.
        """
        return self.send_all(requests).wait(timeout_s)

    def send_all(self, requests: Sequence[Request]) -> Pending:
        """Send several requests at once, like `ask_all`, and return without waiting for the answers. This
        waits only while the daemon does not read, and while one that died is started again.
        """
        sent = _run(self._send_all(requests))
        return Pending(lambda timeout_s: _run(self._answers_to(sent, timeout_s)), sent.is_answered)

    @property
    def has_read_all(self) -> bool:
        """Whether the daemon has read all that was sent to it: the next 64 KiB can then be sent without
        waiting. False where the system does not say it (Linux does).
        """
        link = self._link
        return isinstance(link, _Connection) and link.is_read()

    def notify(self, method: str, params: Params = None) -> None:
        """Send a notification. Raise `DaemonGone` if the daemon ended."""
        _run(self._notify(method, params))

    def events(self, timeout_s: float = TIMEOUT_S) -> Iterator[Event]:
        """Yield events in order, each once, until none comes for `timeout_s` or the daemon ends.

        At most `EVENTS_KEPT` events wait to be read. Older ones are dropped, which shows as a gap in `seq`.
        """
        while True:
            with self._news:
                end = monotonic() + timeout_s
                while not self._events:
                    left = end - monotonic()
                    if self._running().is_ended or left <= 0:
                        return
                    self._news.wait(left)
                event = self._events.popleft()
            yield event

    # --- ending ---------------------------------------------------------------------------------------

    def close(self, timeout_s: float = CLOSE_S) -> int:
        """Stop the daemon by closing its input, and kill it after `timeout_s`. Return its exit code.

        May be called twice.
        """
        self._remembered = None
        return _run(self._running().close(timeout_s))

    def abandon(self) -> None:
        """Forget the daemon without stopping it, in a process that was forked from the one which started
        it. The client cannot be used afterwards, and must not be collected while the process runs.
        """
        self._remembered = None
        self._running().abandon()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After Ctrl-C or a timeout, the user does not want to wait for the daemon's remaining work.
        self.close(HURRY_S if isinstance(error, KeyboardInterrupt | TimeoutError) else CLOSE_S)

    # --- for the shared code --------------------------------------------------------------------------

    def _begin(self, work: Coroutine[object, None, None]) -> None:
        _in_thread(lambda: work)

    async def _value(self, answered: object) -> object:
        return answered

    def _notify_ended(self) -> None:
        with self._news:
            self._news.notify_all()

    def _take_event(self, event: Event) -> None:
        if self._on_event is not None:
            self._on_event(event)
            return
        with self._news:
            self._events.append(event)
            self._news.notify_all()
