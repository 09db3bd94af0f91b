"""The asyncio client of the daemon."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

import msgspec
from msgspec import Raw

from compactd.client.calls import AsyncCalls
from compactd.client.connection import Connection, DaemonClient, OutputName, Request
from compactd.client.events import CLOSE_S, HURRY_S, TIMEOUT_S, Event, Params, RpcError
from compactd.client.frames import Incoming, Json, json_object

T = TypeVar("T")

AsyncAnswers = Mapping[str, Callable[[dict[str, Json]], Awaitable[object]]]
"""Coroutine functions that answer the daemon's requests, by method (`tool/execute`, `session/compacting`).
Each function gets the params and returns the result.
"""

LINE_LIMIT = 2**20
"""The largest header line in bytes. A body has no such limit, because its header gives its length."""


class _Waiter:
    def __init__(self) -> None:
        self._answer: asyncio.Future[Incoming | None] = asyncio.get_running_loop().create_future()

    def put(self, answer: Incoming | None) -> None:
        if not self._answer.done():
            self._answer.set_result(answer)

    async def get(self, timeout_s: float) -> Incoming | None:
        async with asyncio.timeout(timeout_s):
            return await self._answer

    def is_full(self) -> bool:
        return self._answer.done()


class _Connection(Connection):
    given_up = (TimeoutError, asyncio.CancelledError)

    async def spawn(self, command: Sequence[str], env: Mapping[str, str] | None) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env, limit=LINE_LIMIT, process_group=0
        )
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        self.pid, self.kill, self._stdin = self._process.pid, self._process.kill, stdin
        self._reading = {
            "stdout": asyncio.create_task(self.read_messages(stdout)),
            "stderr": asyncio.create_task(self.read_log(stderr)),
        }

    def waiter(self) -> _Waiter:
        return _Waiter()

    async def write(self, frame: bytes) -> None:
        self._stdin.write(frame)
        await self._stdin.drain()

    def close_input(self) -> None:
        self._stdin.close()

    async def output_end(self, name: OutputName, timeout_s: float) -> None:
        await asyncio.wait([self._reading[name]], timeout=timeout_s)

    async def exit_code(self, timeout_s: float | None) -> int | None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                return await self._process.wait()
        return None


class AsyncClient(DaemonClient, AsyncCalls):
    """A client that runs its own daemon, from `start` to `close`, in one event loop."""

    _connection_type = _Connection

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
        super().__init__(command, env, True, answers, restarts)
        self._news = asyncio.Event()
        self._starting = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

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

    async def ask_all(
        self, requests: Sequence[Request], *, timeout_s: float = TIMEOUT_S
    ) -> list[Raw | RpcError]:
        """Send several requests at once, `(method, params)` each, and wait for all answers. The daemon
        carries out those of one session in this order. Return the results, undecoded; an error is returned in
        its place, not raised. `timeout_s`: how long to wait for each. Otherwise like `call`.
        """
        return await self._requests(requests, timeout_s)

    async def notify(self, method: str, params: Params = None) -> None:
        """Send a notification. Raise `DaemonGone` if the daemon ended."""
        await self._notify(method, params)

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

    # --- for the shared code --------------------------------------------------------------------------

    def _begin(self, work: Coroutine[object, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _value(self, answered: object) -> object:
        return await answered if isinstance(answered, Awaitable) else answered

    def _notify_ended(self) -> None:
        self._news.set()

    def _take_event(self, event: Event) -> None:
        self._events.append(event)
        self._news.set()
