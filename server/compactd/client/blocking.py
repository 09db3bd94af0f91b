"""The blocking client of the daemon. It may be called from several threads."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import IO, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw

from compactd.client.calls import Calls
from compactd.client.events import (
    CLOSE_S,
    EVENTS_KEPT,
    HANDLER_FAILED,
    HURRY_S,
    STDERR_LINE_BYTES,
    STDERR_LINES,
    TIMEOUT_S,
    DaemonGone,
    Event,
    Interrupted,
    Params,
    RpcError,
    as_raw,
    event_of,
    own_command,
    refusal,
    result_of,
    resumed_event,
)
from compactd.client.frames import (
    ErrorObject,
    Incoming,
    Json,
    Outgoing,
    encode_frame,
    json_object,
    read_incoming,
)
from compactd.client.restart import RestartState, is_repeatable

T = TypeVar("T")

Answers = Mapping[str, Callable[[dict[str, Json]], object]]
"""Functions that answer the daemon's requests, by method (`tool/execute`, `session/compacting`). Each
function gets the params and returns the result.
"""

_Waiting = queue.SimpleQueue[Incoming | None]


class Client(Calls):
    """A client that runs its own daemon, from construction to `close`."""

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
        self._command = tuple(command or own_command())
        self._env = None if env is None else dict(env)
        self._is_lsp = framing == "lsp"
        self._on_event = on_event
        self._answers = answers or {}
        self._remembered = RestartState() if restarts else None
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._news = threading.Condition()
        self._starting = threading.RLock()
        self._link = self._start_link()

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
        return msgspec.json.decode(self._request(method, params, timeout_s), type=result)

    def notify(self, method: str, params: Params = None) -> None:
        """Send a notification. Raise `DaemonGone` if the daemon ended."""
        self._link.send(Outgoing("2.0", method=method, params={} if params is None else params))

    def events(self, timeout_s: float = TIMEOUT_S) -> Iterator[Event]:
        """Yield events in order, each once, until none comes for `timeout_s` or the daemon ends.

        At most `EVENTS_KEPT` events wait to be read. Older ones are dropped, which shows as a gap in `seq`.
        """
        while True:
            with self._news:
                end = monotonic() + timeout_s
                while not self._events:
                    left = end - monotonic()
                    if self._link.is_ended or left <= 0:
                        return
                    self._news.wait(left)
                event = self._events.popleft()
            yield event

    @property
    def stderr(self) -> str:
        """The last `STDERR_LINES` lines of the daemon's log."""
        return self._link.stderr

    @property
    def pid(self) -> int:
        """The process id of the daemon."""
        return self._link.process.pid

    # --- ending ---------------------------------------------------------------------------------------

    def close(self, timeout_s: float = CLOSE_S) -> int:
        """Stop the daemon by closing its input, and kill it after `timeout_s`. Return its exit code.

        May be called twice.
        """
        self._remembered = None
        return self._link.close(timeout_s)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After Ctrl-C or a timeout, the user does not want to wait for the daemon's remaining work.
        self.close(HURRY_S if isinstance(error, KeyboardInterrupt | TimeoutError) else CLOSE_S)

    # --- starting again -------------------------------------------------------------------------------

    def _request(self, method: str, params: Params, timeout_s: float) -> Raw:
        remembered = self._remembered
        if remembered is None:
            return self._link.ask(method, params, timeout_s)
        params = remembered.with_ids(method, params)
        link = self._ensure_running(self._link)
        try:
            result = link.ask(method, params, timeout_s)
        except DaemonGone as gone:
            link = self._ensure_running(link, gone)
            if not is_repeatable(method, params):
                raise Interrupted(
                    f"{gone}; the daemon was restarted: check whether the request was carried out",
                    gone.stderr,
                ) from gone
            result = link.ask(method, params, timeout_s)
        remembered.note(method, params, result)
        return result

    def _ensure_running(self, link: _Link, gone: DaemonGone | None = None) -> _Link:
        """Return a connection to a running daemon: `link` if its daemon still runs, otherwise a new one with
        the same sessions open. Raise `DaemonGone` if no restart is allowed. `gone`: the error with which
        `link` failed.
        """
        if not link.is_ended and gone is None:
            return link
        with self._starting:
            remembered = self._remembered
            if self._link is not link:
                return self._link
            if remembered is None or not remembered.may_restart(monotonic()):
                raise gone or link.gone_error("the next request")
            link.close(HURRY_S)
            new = self._start_link()
            for params in remembered.to_resume():
                session_id = str(params["session_id"])
                try:
                    result = new.ask("session/start", params, TIMEOUT_S)
                except RpcError:
                    remembered.forget_session(session_id)
                    continue
                self._take_event(resumed_event(session_id, result))
            self._link = new
            return new

    # --- what comes -----------------------------------------------------------------------------------

    def _start_link(self) -> _Link:
        return _Link(self._command, self._env, self._is_lsp, self._take, self._notify_ended)

    def _notify_ended(self) -> None:
        with self._news:
            self._news.notify_all()

    def _take(self, link: _Link, message: Incoming) -> None:
        """Handle a notification or a request of the daemon."""
        match message:
            case Incoming(method="agent/event"):
                event = event_of(message.params)
                if event is not None:
                    self._take_event(event)
            case Incoming(method=str(method), id=int() | str()):
                if method in self._answers:
                    threading.Thread(target=self._answer, args=(link, message), daemon=True).start()
                else:
                    link.answer(message, refusal(f"this client has no function that answers {method}"))
            case _:
                pass

    def _answer(self, link: _Link, message: Incoming) -> None:
        try:
            said: ErrorObject | Raw = as_raw(self._answers[str(message.method)](json_object(message.params)))
        except Exception as error:
            said = refusal(f"{message.method}: {error}", HANDLER_FAILED)
        link.answer(message, said)

    def _take_event(self, event: Event) -> None:
        if self._on_event is not None:
            self._on_event(event)
            return
        with self._news:
            self._events.append(event)
            self._news.notify_all()


class _Link:
    """A connection to one daemon process, with the requests that are not answered yet."""

    def __init__(
        self,
        command: Sequence[str],
        env: dict[str, str] | None,
        is_lsp: bool,
        take: Callable[[_Link, Incoming], None],
        ended: Callable[[], None],
    ) -> None:
        self._is_lsp = is_lsp
        self._take = take
        self._ended = ended
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[int, _Waiting] = {}
        self._last_id = 0
        self._log: deque[str] = deque(maxlen=STDERR_LINES)
        self.is_ended = False
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=env,
                # Ctrl-C goes to this process only. The daemon then sees the end of its stdin and finishes its
                # work.
                process_group=0,
            )
        except OSError as error:
            raise DaemonGone(f"the daemon could not be started: {error}") from error
        self._threads = [
            threading.Thread(target=work, args=(pipe,), daemon=True)
            for work, pipe in ((self._read, self.process.stdout), (self._drain, self.process.stderr))
        ]
        for thread in self._threads:
            thread.start()

    def ask(self, method: str, params: Params, timeout_s: float) -> Raw:
        """Send a request and return the undecoded result. Raise the errors of `Client.call`."""
        waiting: _Waiting = queue.SimpleQueue()
        with self._lock:
            self._last_id += 1
            request_id = self._last_id
            if not self.is_ended:
                self._waiting[request_id] = waiting
        if request_id not in self._waiting:
            raise self.gone_error(method)
        try:
            self.send(Outgoing("2.0", id=request_id, method=method, params={} if params is None else params))
            answer = waiting.get(timeout=timeout_s)
        except queue.Empty:
            with contextlib.suppress(DaemonGone):
                self.send(Outgoing("2.0", method="$/cancelRequest", params={"id": request_id}))
            raise TimeoutError(f"{method}: no answer within {timeout_s:g} s") from None
        finally:
            self._waiting.pop(request_id, None)
        if answer is None:
            raise self.gone_error(method)
        return result_of(answer, self.stderr)

    def answer(self, asked: Incoming, said: Raw | ErrorObject) -> None:
        """Answer the request `asked` of the daemon with a result or an error. Do nothing if the daemon
        ended.
        """
        outgoing = (
            Outgoing("2.0", id=asked.id or 0, error=said)
            if isinstance(said, ErrorObject)
            else Outgoing("2.0", id=asked.id or 0, result=said)
        )
        with contextlib.suppress(DaemonGone):
            self.send(outgoing)

    def send(self, message: Outgoing) -> None:
        """Write one message. Raise `DaemonGone` if the daemon ended."""
        frame = encode_frame(message, self._is_lsp)
        pipe = self.process.stdin
        try:
            with self._writing:
                if pipe is not None:
                    pipe.write(frame)
                    pipe.flush()
        except (OSError, ValueError):
            name = "an answer" if message.method is UNSET else message.method
            raise self.gone_error(name) from None

    @property
    def stderr(self) -> str:
        """The last `STDERR_LINES` lines of the daemon's log."""
        return "".join(tuple(self._log))

    def gone_error(self, doing: str) -> DaemonGone:
        """Return the error for a daemon that ended, after waiting up to 2 s for its log and its exit code.
        `doing`: the method that failed.
        """
        # The daemon has closed its stdout; the end of its log and its exit code follow shortly.
        for thread in self._threads[1:]:
            thread.join(1.0)
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(1.0)
        ended = "closed its output" if code is None else f"ended with code {code}"
        return DaemonGone(f"{doing}: the daemon {ended}", self.stderr)

    def close(self, timeout_s: float) -> int:
        """Stop the process: close its input, and kill it after `timeout_s`. Return its exit code."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        for thread in self._threads:
            thread.join(timeout_s)
        return code

    def _read(self, pipe: IO[bytes]) -> None:
        try:
            with pipe:
                for message in read_incoming(pipe, self._is_lsp):
                    self._handle(message)
        except (msgspec.MsgspecError, ValueError) as error:
            self._log.append(f"the daemon's stdout does not follow the protocol: {error}\n")
        finally:
            with self._lock:
                self.is_ended = True
                waiting = tuple(self._waiting.values())
            for one in waiting:
                one.put(None)
            self._ended()

    def _handle(self, message: Incoming) -> None:
        match message:
            case Incoming(method=None, id=int(number)) if number in self._waiting:
                self._waiting[number].put(message)
            case Incoming(method=None, error=ErrorObject(code=code, message=text)):
                self._log.append(
                    f"the daemon reported an error that belongs to no request: {text} ({code})\n"
                )
            case _:
                self._take(self, message)

    def _drain(self, pipe: IO[bytes]) -> None:
        with pipe:
            for line in iter(lambda: pipe.readline(STDERR_LINE_BYTES), b""):
                self._log.append(line.decode("utf-8", "replace"))
