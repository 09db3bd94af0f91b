"""The client for programs without an event loop. Calls may come from several threads."""

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
    resumed,
)
from compactd.client.frames import ErrorObject, Incoming, Json, Outgoing, framed, incoming, json_object
from compactd.client.restart import Remembered, is_repeatable

T = TypeVar("T")

Answers = Mapping[str, Callable[[dict[str, Json]], object]]
"""What the daemon may ask (`tool/execute`, `session/compacting`), and what answers it from its params."""

_Waiting = queue.SimpleQueue[Incoming | None]


class Client(Calls):
    """A daemon of one's own, from its start to `close`."""

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
        """Spawns `command`, by default this Python's `compactd serve`.

        `env` is its whole environment, by default this process's.

        `on_event` is called in the reading thread and may not call the daemon; without it events wait for
        `events`. `answers` are called in threads of their own. Raises `DaemonGone` where the command cannot
        be started.

        With `restarts`, a daemon that died is started anew with the next request, at most three times a
        minute; stored sessions are opened again, each told by an event `client_resumed`, and what was asked
        is asked again where that changes nothing; else `Interrupted` is raised. Messages get an id where they
        have none, so that what is sent twice is kept once.
        """
        self._command = tuple(command or own_command())
        self._env = None if env is None else dict(env)
        self._is_lsp = framing == "lsp"
        self._on_event = on_event
        self._answers = answers or {}
        self._remembered = Remembered() if restarts else None
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._news = threading.Condition()
        self._starting = threading.RLock()
        self._link = self._linked()

    # --- asking ---------------------------------------------------------------------------------------

    def call(self, method: str, params: Params = None, *, timeout_s: float = TIMEOUT_S) -> dict[str, Json]:
        """The result of `method` as plain JSON; empty where it is null.

        Raises `RpcError`, `DaemonGone`, and `TimeoutError` where no answer came: then it is cancelled.
        """
        return json_object(self.ask(method, params, Raw, timeout_s=timeout_s))

    def ask(self, method: str, params: Params, result: type[T], *, timeout_s: float = TIMEOUT_S) -> T:
        """As `call`, with the result as the type that `protocol/methods.py` names for it."""
        return msgspec.json.decode(self._asked(method, params, timeout_s), type=result)

    def notify(self, method: str, params: Params = None) -> None:
        """Sends a notification. Raises `DaemonGone`."""
        self._link.send(Outgoing("2.0", method=method, params={} if params is None else params))

    def events(self, timeout_s: float = TIMEOUT_S) -> Iterator[Event]:
        """Events in the order they came, each once, until none comes for `timeout_s` or the daemon ends.

        The newest `EVENTS_KEPT` wait to be taken; a gap in `seq` shows that older ones were dropped.
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
        """Of the daemon."""
        return self._link.process.pid

    # --- ending ---------------------------------------------------------------------------------------

    def close(self, timeout_s: float = CLOSE_S) -> int:
        """Ends the daemon by the end of its input, kills it after `timeout_s`; its exit code.

        May be called twice.
        """
        self._remembered = None
        return self._link.close(timeout_s)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Whoever gave up does not want to wait for what the daemon still does.
        self.close(HURRY_S if isinstance(error, KeyboardInterrupt | TimeoutError) else CLOSE_S)

    # --- starting again -------------------------------------------------------------------------------

    def _asked(self, method: str, params: Params, timeout_s: float) -> Raw:
        remembered = self._remembered
        if remembered is None:
            return self._link.ask(method, params, timeout_s)
        params = remembered.prepared(method, params)
        link = self._alive(self._link)
        try:
            result = link.ask(method, params, timeout_s)
        except DaemonGone as gone:
            link = self._alive(link, gone)
            if not is_repeatable(method, params):
                raise Interrupted(f"{gone}; a new one runs", gone.stderr) from gone
            result = link.ask(method, params, timeout_s)
        remembered.note(method, params, result)
        return result

    def _alive(self, link: _Link, gone: DaemonGone | None = None) -> _Link:
        """A daemon that runs: `link`, or one started in its place with its sessions open."""
        if not link.is_ended and gone is None:
            return link
        with self._starting:
            remembered = self._remembered
            if self._link is not link:
                return self._link
            if remembered is None or not remembered.may_restart(monotonic()):
                raise gone or link.gone("the next request")
            link.close(HURRY_S)
            new = self._linked()
            for params in remembered.to_resume():
                session_id = str(params["session_id"])
                try:
                    result = new.ask("session/start", params, TIMEOUT_S)
                except RpcError:
                    remembered.lost(session_id)
                    continue
                self._take_event(resumed(session_id, result))
            self._link = new
            return new

    # --- what comes -----------------------------------------------------------------------------------

    def _linked(self) -> _Link:
        return _Link(self._command, self._env, self._is_lsp, self._take, self._ended)

    def _ended(self) -> None:
        with self._news:
            self._news.notify_all()

    def _take(self, link: _Link, message: Incoming) -> None:
        """A notification or a request of the daemon's."""
        match message:
            case Incoming(method="agent/event"):
                event = event_of(message.params)
                if event is not None:
                    self._take_event(event)
            case Incoming(method=str(method), id=int() | str()):
                if method in self._answers:
                    threading.Thread(target=self._answer, args=(link, message), daemon=True).start()
                else:
                    link.answer(message, refusal(f"{method} is not answered here"))
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
    """One daemon process, and what was asked of it."""

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
                # Ctrl-C is for us: the daemon then sees the end of its stdin and finishes what it has to.
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
        """The result as it came."""
        waiting: _Waiting = queue.SimpleQueue()
        with self._lock:
            self._last_id += 1
            request_id = self._last_id
            if not self.is_ended:
                self._waiting[request_id] = waiting
        if request_id not in self._waiting:
            raise self.gone(method)
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
            raise self.gone(method)
        return result_of(answer, self.stderr)

    def answer(self, asked: Incoming, said: Raw | ErrorObject) -> None:
        """Answers what the daemon asked; nothing where it has gone."""
        outgoing = (
            Outgoing("2.0", id=asked.id or 0, error=said)
            if isinstance(said, ErrorObject)
            else Outgoing("2.0", id=asked.id or 0, result=said)
        )
        with contextlib.suppress(DaemonGone):
            self.send(outgoing)

    def send(self, message: Outgoing) -> None:
        """Writes one message. Raises `DaemonGone`."""
        frame = framed(message, self._is_lsp)
        pipe = self.process.stdin
        try:
            with self._writing:
                if pipe is not None:
                    pipe.write(frame)
                    pipe.flush()
        except (OSError, ValueError):
            name = "an answer" if message.method is UNSET else message.method
            raise self.gone(name) from None

    @property
    def stderr(self) -> str:
        """The end of the log."""
        return "".join(tuple(self._log))

    def gone(self, doing: str) -> DaemonGone:
        """The error that says so."""
        # It has closed its stdout: what it last wrote to stderr, and its code, are there in a moment.
        for thread in self._threads[1:]:
            thread.join(1.0)
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(1.0)
        ended = "closed its output" if code is None else f"ended with code {code}"
        return DaemonGone(f"{doing}: the daemon {ended}", self.stderr)

    def close(self, timeout_s: float) -> int:
        """By the end of its input, then by force; its exit code."""
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
                for message in incoming(pipe, self._is_lsp):
                    self._taken(message)
        except (msgspec.MsgspecError, ValueError) as error:
            self._log.append(f"what came on stdout is not the protocol: {error}\n")
        finally:
            with self._lock:
                self.is_ended = True
                waiting = tuple(self._waiting.values())
            for one in waiting:
                one.put(None)
            self._ended()

    def _taken(self, message: Incoming) -> None:
        match message:
            case Incoming(method=None, id=int(number)) if number in self._waiting:
                self._waiting[number].put(message)
            case Incoming(method=None, error=ErrorObject(code=code, message=text)):
                self._log.append(f"an error without a request: {text} ({code})\n")
            case _:
                self._take(self, message)

    def _drain(self, pipe: IO[bytes]) -> None:
        with pipe:
            for line in iter(lambda: pipe.readline(STDERR_LINE_BYTES), b""):
                self._log.append(line.decode("utf-8", "replace"))
