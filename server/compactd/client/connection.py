"""What both Python clients do: requests, answers, restarts, the end of the daemon.

It is written once, as coroutines. They wait only by abstract methods of `Connection` and `DaemonClient`. In
the asyncio client, these suspend. In the blocking client, they block, so a coroutine ends at its first step.
"""

from __future__ import annotations

import contextlib
import re
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Literal, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct

from compactd.client.events import (
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
    Pipe,
    encode_frame,
    json_object,
    read_incoming,
)
from compactd.client.restart import RestartState, is_repeatable

OutputName = Literal["stdout", "stderr"]
Request = tuple[str, Params]
"""A method and its params."""

_LOG_LINE = re.compile(rb"[^\n]{%d}|[^\n]*\n" % STDERR_LINE_BYTES)
"""A line of the daemon's log. A longer one counts as several."""


class Waiter(Protocol):
    """A place for the answer to one request."""

    def put(self, answer: Incoming | None) -> None:
        """Store the answer; None if the daemon ended. The code that reads from the daemon calls this."""

    async def get(self, timeout_s: float) -> Incoming | None:
        """Wait for the answer. Raise `TimeoutError` if it does not come in time."""

    def is_full(self) -> bool:
        """Return whether something is stored that nobody has waited for yet."""
        ...


Asked = dict[int, tuple[str, Waiter]]
"""Requests that were sent: their ids, each with its method and the place for its answer."""


class Connection(ABC):
    """A connection to one daemon process, with the requests that are not answered yet."""

    given_up: tuple[type[BaseException], ...] = (TimeoutError,)
    """Exceptions of a wait after which the request is cancelled at the daemon."""

    pid: int
    kill: Callable[[], None]

    def __init__(
        self, is_lsp: bool, take: Callable[[Connection, Incoming], None], ended: Callable[[], None]
    ) -> None:
        """`take` gets notifications and requests of the daemon; `ended` is called when its output ends."""
        self._is_lsp = is_lsp
        self._take = take
        self._ended = ended
        self._lock = threading.Lock()
        self._waiting: dict[int, Waiter] = {}
        self._last_id = 0
        self._log: deque[str] = deque(maxlen=STDERR_LINES)
        self._begun_line = b""
        self.is_ended = False

    # --- how a client waits ---------------------------------------------------------------------------

    @abstractmethod
    async def spawn(self, command: Sequence[str], env: Mapping[str, str] | None) -> None:
        """Start the process, and `read_messages` and `read_log` beside everything else. Raise `OSError` if
        that fails.

        The process gets a group of its own, so that Ctrl-C goes to the client only. The daemon then sees the
        end of its stdin and finishes its work.
        """

    @abstractmethod
    def waiter(self) -> Waiter:
        """Return a place for an answer."""

    @abstractmethod
    async def write(self, frame: bytes) -> None:
        """Write to the daemon's stdin. Raise `OSError`, `ValueError` or `RuntimeError` if it is closed."""

    @abstractmethod
    def close_input(self) -> None:
        """Close the daemon's stdin."""

    def abandon(self) -> None:
        """Close the daemon's pipes without a word to it. For a process that was forked from the daemon's
        client.
        """
        self.is_ended = True

    @abstractmethod
    async def output_end(self, name: OutputName, timeout_s: float) -> None:
        """Wait at most `timeout_s` for the end of an output."""

    @abstractmethod
    async def exit_code(self, timeout_s: float | None) -> int | None:
        """Wait for the process, at most `timeout_s`. Return its exit code; None if it still runs."""

    # --- asking ---------------------------------------------------------------------------------------

    async def ask(self, method: str, params: Params, timeout_s: float) -> Raw:
        """Send a request and return the undecoded result. Raise the errors of `Client.call`."""
        (answered,) = await self.ask_all([(method, params)], timeout_s)
        if isinstance(answered, RpcError):
            raise answered
        return answered

    async def ask_all(self, requests: Sequence[Request], timeout_s: float) -> list[Raw | RpcError]:
        """Send requests, then wait for each answer at most `timeout_s`. Return what they answered."""
        return await self.answers_to(await self.send_all(requests), timeout_s)

    async def send_all(self, requests: Sequence[Request]) -> Asked:
        """Send requests. The answers may be read later, or never."""
        asked: Asked = {}
        try:
            for method, params in requests:
                request_id, waiter = await self._expect(method)
                asked[request_id] = (method, waiter)
                await self.send(
                    Outgoing("2.0", id=request_id, method=method, params={} if params is None else params)
                )
        except BaseException as error:
            await self._give_up(asked, error)
            raise
        return asked

    async def answers_to(self, asked: Asked, timeout_s: float) -> list[Raw | RpcError]:
        """Wait for each answer at most `timeout_s`. Return what was answered."""
        answered: list[Raw | RpcError] = []
        try:
            for method, waiter in asked.values():
                answered.append(await self._answer_to(method, waiter, timeout_s))
        except BaseException as error:
            await self._give_up(tuple(asked)[len(answered) :], error)
            raise
        return answered

    async def _give_up(self, request_ids: Iterable[int], error: BaseException) -> None:
        """Expect no answer any more. If the wait ended by one of `given_up`, cancel the requests, too."""
        for request_id in request_ids:
            self._waiting.pop(request_id, None)
            if isinstance(error, self.given_up):
                with contextlib.suppress(DaemonGone):
                    await self.send(Outgoing("2.0", method="$/cancelRequest", params={"id": request_id}))

    async def _expect(self, method: str) -> tuple[int, Waiter]:
        """Return the id of a new request, and the place for its answer."""
        waiter = self.waiter()
        with self._lock:
            self._last_id += 1
            request_id = self._last_id
            if not self.is_ended:
                self._waiting[request_id] = waiter
        if request_id not in self._waiting:
            raise await self.gone_error(method)
        return request_id, waiter

    async def _answer_to(self, method: str, waiter: Waiter, timeout_s: float) -> Raw | RpcError:
        try:
            answer = await waiter.get(timeout_s)
        except TimeoutError:
            raise TimeoutError(f"{method}: no answer within {timeout_s:g} s") from None
        if answer is None:
            raise await self.gone_error(method)
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
        frame = encode_frame(message, self._is_lsp)
        try:
            await self.write(frame)
        except (OSError, ValueError, RuntimeError):
            name = "an answer" if message.method is UNSET else message.method
            raise await self.gone_error(name) from None

    # --- ending ---------------------------------------------------------------------------------------

    @property
    def stderr(self) -> str:
        """The last `STDERR_LINES` lines of the daemon's log."""
        return "".join(tuple(self._log)) + self._begun_line.decode("utf-8", "replace")

    async def gone_error(self, doing: str) -> DaemonGone:
        """Return the error for a daemon that ended, after waiting up to 2 s for its log and its exit code.
        `doing`: the method that failed.
        """
        # The daemon has closed its stdout; the end of its log and its exit code follow shortly.
        await self.output_end("stderr", 1.0)
        code = await self.exit_code(1.0)
        ended = "closed its output" if code is None else f"ended with code {code}"
        return DaemonGone(f"{doing}: the daemon {ended}", self.stderr)

    async def close(self, timeout_s: float) -> int:
        """Stop the process: close its input, and kill it after `timeout_s`. Return its exit code."""
        self.close_input()
        if await self.exit_code(timeout_s) is None:
            with contextlib.suppress(ProcessLookupError):
                self.kill()
        code = await self.exit_code(None)
        # A process that the daemon started may still have its outputs open.
        await self.output_end("stdout", timeout_s)
        await self.output_end("stderr", timeout_s)
        return code or 0

    # --- what comes -----------------------------------------------------------------------------------

    async def read_messages(self, stdout: Pipe) -> None:
        """Handle the daemon's messages until its output ends or is not the protocol."""
        try:
            while (message := await read_incoming(stdout, self._is_lsp)) is not None:
                self._handle(message)
        except (msgspec.MsgspecError, ValueError, EOFError) as error:
            self._log.append(f"the daemon's stdout does not follow the protocol: {error}\n")
        finally:
            with self._lock:
                self.is_ended = True
                waiting = tuple(self._waiting.values())
            for waiter in waiting:
                waiter.put(None)
            self._ended()

    async def read_log(self, stderr: Pipe) -> None:
        """Keep the end of the daemon's log."""
        while data := await stderr.read(STDERR_LINE_BYTES):
            unread = self._begun_line + data
            lines = _LOG_LINE.findall(unread)
            self._begun_line = unread[sum(map(len, lines)) :]
            self._log.extend(line.decode("utf-8", "replace") for line in lines)

    def _handle(self, message: Incoming) -> None:
        match message:
            case Incoming(method=None, id=int(number)) if waiter := self._waiting.pop(number, None):
                waiter.put(message)
            case Incoming(method=None, error=ErrorObject(code=code, message=text)):
                self._log.append(
                    f"the daemon reported an error that belongs to no request: {text} ({code})\n"
                )
            case _:
                self._take(self, message)


class Sent(Struct, frozen=True):
    """Requests that a client sent."""

    requests: Sequence[Request]
    link: Connection
    asked: Asked | DaemonGone
    """The error, if the daemon ended before they were sent."""

    def is_answered(self) -> bool:
        """Return whether all answers have come. False if the daemon ended."""
        if isinstance(self.asked, DaemonGone) or not all(
            waiter.is_full() for _, waiter in self.asked.values()
        ):
            return False
        # A connection that ends says so before it stores None for what was not answered.
        return not self.link.is_ended


class DaemonClient(ABC):
    """The state of a client: its connection, its events, and what it needs to start the daemon again."""

    _connection_type: type[Connection]
    _starting: AbstractAsyncContextManager[object]
    """A lock: only one caller starts the daemon again."""

    def __init__(
        self,
        command: Sequence[str] | None,
        env: Mapping[str, str] | None,
        is_lsp: bool,
        answers: Mapping[str, Callable[[dict[str, Json]], object]] | None,
        restarts: bool,
    ) -> None:
        self._command = tuple(command or own_command())
        self._env = None if env is None else dict(env)
        self._is_lsp = is_lsp
        self._answers = answers or {}
        self._remembered = RestartState() if restarts else None
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._link: Connection | None = None

    @property
    def stderr(self) -> str:
        """The last `STDERR_LINES` lines of the daemon's log."""
        return self._running().stderr

    @property
    def pid(self) -> int:
        """The process id of the daemon."""
        return self._running().pid

    @property
    def is_ended(self) -> bool:
        """True if the daemon has ended. With `restarts`, the next request starts it again."""
        return self._running().is_ended

    @abstractmethod
    def _begin(self, work: Coroutine[object, None, None]) -> None:
        """Run `work` beside everything else."""

    @abstractmethod
    async def _value(self, answered: object) -> object:
        """Return the value of what a function of `answers` returned."""

    @abstractmethod
    def _take_event(self, event: Event) -> None:
        """Pass an event on."""

    @abstractmethod
    def _notify_ended(self) -> None:
        """Wake those who wait for events, because the daemon ended."""

    def _running(self) -> Connection:
        if self._link is None:
            raise DaemonGone("the client was not started; use `await client.start()` or `async with`")
        return self._link

    async def _start_link(self) -> Connection:
        link = self._connection_type(self._is_lsp, self._take, self._notify_ended)
        try:
            await link.spawn(self._command, self._env)
        except OSError as error:
            raise DaemonGone(f"the daemon could not be started: {error}") from error
        return link

    async def _notify(self, method: str, params: Params) -> None:
        message = Outgoing("2.0", method=method, params={} if params is None else params)
        await self._running().send(message)

    async def _request(self, method: str, params: Params, timeout_s: float) -> Raw:
        (answered,) = await self._requests([(method, params)], timeout_s)
        if isinstance(answered, RpcError):
            raise answered
        return answered

    async def _requests(self, requests: Sequence[Request], timeout_s: float) -> list[Raw | RpcError]:
        return await self._answers_to(await self._send_all(requests), timeout_s)

    async def _send_all(self, requests: Sequence[Request]) -> Sent:
        """Send requests. A daemon that died before is started again; if it dies meanwhile, `_answers_to` says
        so.
        """
        remembered, link = self._remembered, self._running()
        if remembered is not None:
            requests = [(method, remembered.with_ids(method, params)) for method, params in requests]
            link = await self._ensure_running(link)
        try:
            return Sent(requests, link, await link.send_all(requests))
        except DaemonGone as gone:
            return Sent(requests, link, gone)

    async def _answers_to(self, sent: Sent, timeout_s: float) -> list[Raw | RpcError]:
        remembered = self._remembered
        try:
            if isinstance(sent.asked, DaemonGone):
                raise sent.asked
            answered = await sent.link.answers_to(sent.asked, timeout_s)
        except DaemonGone as gone:
            if remembered is None:
                raise
            link = await self._ensure_running(sent.link, gone)
            if not all(is_repeatable(*request) for request in sent.requests):
                raise Interrupted(
                    f"{gone}; the daemon was restarted: check whether the request was carried out",
                    gone.stderr,
                ) from gone
            answered = await link.ask_all(sent.requests, timeout_s)
        for (method, params), result in zip(sent.requests, answered, strict=True):
            if remembered is not None and not isinstance(result, RpcError):
                remembered.note(method, params, result)
        return answered

    async def _ensure_running(self, link: Connection, gone: DaemonGone | None = None) -> Connection:
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
            if remembered is None or not remembered.may_restart(monotonic()):
                raise gone or await link.gone_error("the next request")
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

    def _take(self, link: Connection, message: Incoming) -> None:
        """Handle a notification or a request of the daemon."""
        match message:
            case Incoming(method="agent/event"):
                event = event_of(message.params)
                if event is not None:
                    self._take_event(event)
            case Incoming(method=str(), id=int() | str()):
                self._begin(self._answer(link, message))
            case _:
                pass

    async def _answer(self, link: Connection, message: Incoming) -> None:
        method = str(message.method)
        if method not in self._answers:
            await link.answer(message, refusal(f"this client has no function that answers {method}"))
            return
        try:
            value = self._answers[method](json_object(message.params))
            said: ErrorObject | Raw = as_raw(await self._value(value))
        except Exception as error:
            said = refusal(f"{method}: {error}", HANDLER_FAILED)
        await link.answer(message, said)
