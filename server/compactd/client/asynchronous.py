"""The asyncio client of the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

import msgspec
from msgspec import Raw

from compactd.client.calls import AsyncCalls
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
from compactd.client.frames import ErrorObject, Incoming, Json, Outgoing, decoded, encode_frame, json_object
from compactd.client.restart import RestartState, is_repeatable

T = TypeVar("T")

AsyncAnswers = Mapping[str, Callable[[dict[str, Json]], Awaitable[object]]]
"""Coroutine functions that answer the daemon's requests, by method (`tool/execute`, `session/compacting`).
Each function gets the params and returns the result.
"""

LINE_LIMIT = 2**20
"""The largest header line in bytes. A body has no such limit, because its header gives its length."""


class AsyncClient(AsyncCalls):
    """A client that runs its own daemon, from `start` to `close`, in one event loop."""

    def __init__(
        self,
        command: Sequence[str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        answers: AsyncAnswers | None = None,
        restarts: bool = True,
    ) -> None:
        """Store the settings; `start` starts the daemon. The parameters mean the same as in `Client`, but
        `restarts` is on by default, and each function of `answers` runs in a task of its own.
        """
        self._command = tuple(command or own_command())
        self._env = None if env is None else dict(env)
        self._answers = answers or {}
        self._remembered = RestartState() if restarts else None
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._news = asyncio.Event()
        self._starting = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._link: _Link | None = None

    async def start(self) -> None:
        """Start the daemon. Raise `DaemonGone` if that fails."""
        self._link = await self._start_link()

    async def __aenter__(self) -> AsyncClient:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gave_up = isinstance(error, asyncio.CancelledError | KeyboardInterrupt | TimeoutError)
        await self.close(HURRY_S if gave_up else CLOSE_S)

    # --- asking ---------------------------------------------------------------------------------------

    async def call(
        self, method: str, params: Params = None, *, timeout_s: float = TIMEOUT_S
    ) -> dict[str, Json]:
        """Call `method` and return its result as plain JSON; empty if it is null.

        Raise `RpcError` if the answer is an error, `DaemonGone` if the daemon ended, and `TimeoutError` if no
        answer came in time. The request is cancelled after a timeout and if the caller is cancelled.
        """
        return json_object(await self.ask(method, params, Raw, timeout_s=timeout_s))

    async def ask(self, method: str, params: Params, result: type[T], *, timeout_s: float = TIMEOUT_S) -> T:
        """Call `method` like `call`, but return its result decoded as the type `result`: the one that
        `protocol/methods.py` gives for the method.
        """
        return msgspec.json.decode(await self._request(method, params, timeout_s), type=result)

    async def notify(self, method: str, params: Params = None) -> None:
        """Send a notification. Raise `DaemonGone` if the daemon ended."""
        message = Outgoing("2.0", method=method, params={} if params is None else params)
        await self._running().send(message)

    async def events(self) -> AsyncIterator[Event]:
        """Yield events in order, each once, until the client is closed. Without `restarts`, also stop if the
        daemon ends.

        At most `EVENTS_KEPT` events wait to be read. Older ones are dropped, which shows as a gap in `seq`.
        """
        while True:
            while self._events:
                yield self._events.popleft()
            if self._link is None or (self._link.is_ended and self._remembered is None):
                return
            self._news.clear()
            await self._news.wait()

    @property
    def stderr(self) -> str:
        """The last `STDERR_LINES` lines of the daemon's log."""
        return self._running().stderr

    @property
    def pid(self) -> int:
        """The process id of the daemon."""
        return self._running().process.pid

    async def close(self, timeout_s: float = CLOSE_S) -> int:
        """Stop the daemon by closing its input, and kill it after `timeout_s`. Return its exit code.

        May be called twice.
        """
        self._remembered = None
        code = await self._running().close(timeout_s)
        for task in tuple(self._tasks):
            task.cancel()
        self._news.set()
        return code

    # --- starting again -------------------------------------------------------------------------------

    async def _request(self, method: str, params: Params, timeout_s: float) -> Raw:
        remembered = self._remembered
        if remembered is None:
            return await self._running().ask(method, params, timeout_s)
        params = remembered.with_ids(method, params)
        link = await self._ensure_running(self._running())
        try:
            result = await link.ask(method, params, timeout_s)
        except DaemonGone as gone:
            link = await self._ensure_running(link, gone)
            if not is_repeatable(method, params):
                raise Interrupted(
                    f"{gone}; the daemon was restarted: check whether the request was carried out",
                    gone.stderr,
                ) from gone
            result = await link.ask(method, params, timeout_s)
        remembered.note(method, params, result)
        return result

    async def _ensure_running(self, link: _Link, gone: DaemonGone | None = None) -> _Link:
        """Return a connection to a running daemon: `link` if its daemon still runs, otherwise a new one with
        the same sessions open. Raise `DaemonGone` if no restart is allowed. `gone`: the error with which
        `link` failed.
        """
        if not link.is_ended and gone is None:
            return link
        async with self._starting:
            running, remembered = self._running(), self._remembered
            if running is not link:
                return running
            if remembered is None or not remembered.may_restart(time.monotonic()):
                raise gone or await link.gone_error_with_log("the next request")
            await link.close(HURRY_S)
            new = await self._start_link()
            for params in remembered.to_resume():
                session_id = str(params["session_id"])
                try:
                    result = await new.ask("session/start", params, TIMEOUT_S)
                except RpcError:
                    remembered.forget_session(session_id)
                    continue
                self._take_event(resumed_event(session_id, result))
            self._link = new
            return new

    # --- what comes -----------------------------------------------------------------------------------

    def _running(self) -> _Link:
        if self._link is None:
            raise DaemonGone("the client was not started; use `await client.start()` or `async with`")
        return self._link

    async def _start_link(self) -> _Link:
        link = _Link(self._take, self._news.set)
        await link.spawn(self._command, self._env)
        return link

    def _take(self, link: _Link, message: Incoming) -> None:
        match message:
            case Incoming(method="agent/event"):
                event = event_of(message.params)
                if event is not None:
                    self._take_event(event)
            case Incoming(method=str(), id=int() | str()):
                task = asyncio.create_task(self._answer(link, message))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case _:
                pass

    async def _answer(self, link: _Link, message: Incoming) -> None:
        method = str(message.method)
        if method not in self._answers:
            await link.answer(message, refusal(f"this client has no function that answers {method}"))
            return
        try:
            said: ErrorObject | Raw = as_raw(await self._answers[method](json_object(message.params)))
        except Exception as error:
            said = refusal(f"{method}: {error}", HANDLER_FAILED)
        await link.answer(message, said)

    def _take_event(self, event: Event) -> None:
        self._events.append(event)
        self._news.set()


class _Link:
    """A connection to one daemon process, with the requests that are not answered yet."""

    process: asyncio.subprocess.Process

    def __init__(self, take: Callable[[_Link, Incoming], None], ended: Callable[[], object]) -> None:
        self._take = take
        self._ended = ended
        self._waiting: dict[int, asyncio.Future[Incoming]] = {}
        self._last_id = 0
        self._log: deque[str] = deque(maxlen=STDERR_LINES)
        self._reading: tuple[asyncio.Task[None], ...] = ()
        self.is_ended = False

    async def spawn(self, command: Sequence[str], env: dict[str, str] | None) -> None:
        """Start the process. Raise `DaemonGone` if that fails."""
        try:
            self.process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=env,
                limit=LINE_LIMIT,
                # Ctrl-C goes to this process only. The daemon then sees the end of its stdin and finishes its
                # work.
                process_group=0,
            )
        except OSError as error:
            raise DaemonGone(f"the daemon could not be started: {error}") from error
        self._reading = (asyncio.create_task(self._read()), asyncio.create_task(self._drain()))

    async def ask(self, method: str, params: Params, timeout_s: float) -> Raw:
        """Send a request and return the undecoded result. Raise the errors of `AsyncClient.call`."""
        if self.is_ended:
            raise await self.gone_error_with_log(method)
        self._last_id += 1
        request_id = self._last_id
        waiting: asyncio.Future[Incoming] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = waiting
        try:
            await self.send(
                Outgoing("2.0", id=request_id, method=method, params={} if params is None else params)
            )
            async with asyncio.timeout(timeout_s):
                answer = await waiting
        except (TimeoutError, asyncio.CancelledError) as end:
            if waiting.cancelled() and self.is_ended:
                raise await self.gone_error_with_log(method) from None
            with contextlib.suppress(DaemonGone):
                await self.send(Outgoing("2.0", method="$/cancelRequest", params={"id": request_id}))
            if isinstance(end, TimeoutError):
                raise TimeoutError(f"{method}: no answer within {timeout_s:g} s") from None
            raise
        finally:
            self._waiting.pop(request_id, None)
        return result_of(answer, self.stderr)

    async def answer(self, asked: Incoming, said: Raw | ErrorObject) -> None:
        """Answer the request `asked` of the daemon with a result or an error. Do nothing if the daemon
        ended.
        """
        outgoing = (
            Outgoing("2.0", id=asked.id or 0, error=said)
            if isinstance(said, ErrorObject)
            else Outgoing("2.0", id=asked.id or 0, result=said)
        )
        with contextlib.suppress(DaemonGone):
            await self.send(outgoing)

    async def send(self, message: Outgoing) -> None:
        """Write one message. Wait while the daemon does not read. Raise `DaemonGone` if it ended."""
        pipe = self.process.stdin
        try:
            if pipe is not None:
                pipe.write(encode_frame(message, is_lsp=True))
                await pipe.drain()
        except (OSError, RuntimeError):
            raise await self.gone_error_with_log(str(message.method)) from None

    @property
    def stderr(self) -> str:
        """The last `STDERR_LINES` lines of the daemon's log."""
        return "".join(self._log)

    def gone_error(self, doing: str) -> DaemonGone:
        """Return the error for a daemon that ended. `doing`: the method that failed."""
        code = self.process.returncode
        ended = "closed its output" if code is None else f"ended with code {code}"
        return DaemonGone(f"{doing}: the daemon {ended}", self.stderr)

    async def close(self, timeout_s: float) -> int:
        """Stop the process: close its input, and kill it after `timeout_s`. Return its exit code."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            async with asyncio.timeout(timeout_s):
                code = await self.process.wait()
        except TimeoutError:
            os.kill(self.process.pid, signal.SIGKILL)
            code = await self.process.wait()
        await asyncio.gather(*self._reading, return_exceptions=True)
        return code

    async def gone_error_with_log(self, doing: str) -> DaemonGone:
        """Return the same error as `gone_error`, after waiting up to 1 s for the end of the log and the exit
        code.
        """
        # The daemon has closed its stdout; the end of its log and its exit code follow shortly.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.gather(*self._reading[1:], return_exceptions=True)
                await self.process.wait()
        return self.gone_error(doing)

    async def _read(self) -> None:
        pipe = self.process.stdout
        try:
            while pipe is not None and (length := await _length(pipe)) is not None:
                self._handle(decoded(await pipe.readexactly(length)))
        except (msgspec.MsgspecError, ValueError, asyncio.IncompleteReadError) as error:
            self._log.append(f"the daemon's stdout does not follow the protocol: {error}\n")
        finally:
            self.is_ended = True
            for waiting in tuple(self._waiting.values()):
                waiting.cancel()
            self._ended()

    def _handle(self, message: Incoming) -> None:
        match message:
            case Incoming(method=None, id=int(number)) if number in self._waiting:
                if not self._waiting[number].done():
                    self._waiting[number].set_result(message)
            case Incoming(method=None, error=ErrorObject(code=code, message=text)):
                self._log.append(
                    f"the daemon reported an error that belongs to no request: {text} ({code})\n"
                )
            case _:
                self._take(self, message)

    async def _drain(self) -> None:
        pipe = self.process.stderr
        while pipe is not None and (some := await pipe.read(STDERR_LINE_BYTES)):
            text = (self._log.pop() if self._log and not self._log[-1].endswith("\n") else "") + some.decode(
                "utf-8", "replace"
            )
            self._log.extend(line[:STDERR_LINE_BYTES] for line in text.splitlines(keepends=True))


async def _length(pipe: asyncio.StreamReader) -> int | None:
    """Read the headers of the next message, and return the length of its body in bytes; None at the end of
    the stream. Raise `ValueError` if there is no Content-Length.
    """
    length: int | None = None
    while line := await pipe.readline():
        if not line.strip():
            if length is None:
                raise ValueError("a header has no Content-Length")
            return length
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    return None
