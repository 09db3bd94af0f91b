"""The connection to an ACP client. It sends requests to the client and runs a task for each of
its requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import msgspec
from msgspec import UNSET, Raw

from compactd.client.events import DaemonGone, RpcError
from compactd.client.frames import Json
from compactd.integrations.acp import wire
from compactd.integrations.acp.wire import Line, Refused

Handler = Callable[[str, dict[str, Json]], Awaitable[object]]


class Peer:
    """An ACP client on the other end of two pipes."""

    def __init__(self, reader: asyncio.StreamReader, out: wire.Out, handler: Handler) -> None:
        self._reader = reader
        self._out = out
        self._handler = handler
        self._waiting: dict[wire.Id, asyncio.Future[Line]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_id = 0
        self._log = wire.Log()
        self._behind: dict[asyncio.Task[None] | None, list[bytes]] = {}

    async def send(self, line: bytes) -> None:
        """Send a line that a function of `wire` encoded."""
        await self._out.write(line)

    def after(self, lines: Iterable[bytes]) -> None:
        """Queue lines to be sent after the answer to the request that the current task handles."""
        self._behind.setdefault(asyncio.current_task(), []).extend(lines)

    async def ask(self, method: str, params: object) -> dict[str, Json]:
        """Send a request and return the answer. Raise `Refused` if the client answers with an error."""
        self._last_id += 1
        waiting: asyncio.Future[Line] = asyncio.get_running_loop().create_future()
        self._waiting[self._last_id] = waiting
        await self.send(wire.request(self._last_id, method, params))
        line = await waiting
        if line.error is not UNSET:
            failure = wire.table(line.error)
            raise Refused(
                wire.INTERNAL, str(failure.get("message", f"the editor refused the request {method}"))
            )
        return wire.table(line.result)

    async def serve(self) -> None:
        """Read and handle messages until the client closes its output or stops reading."""
        try:
            while data := await wire.next_line(self._reader):
                line, _ = wire.read_line(data)
                if line is None:
                    self._log.write(
                        f"a line of {len(data):,} bytes from the editor is not a valid ACP message and is "
                        "ignored"
                    )
                    continue
                if isinstance(line.method, str):
                    task = asyncio.create_task(self._handle(line, line.method))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                elif isinstance(line.id, int | str) and line.id in self._waiting:
                    waiting = self._waiting.pop(line.id)
                    if not waiting.done():
                        waiting.set_result(line)
        finally:
            for task in tuple(self._tasks):
                task.cancel()

    async def _handle(self, line: Line, method: str) -> None:
        params = wire.table(line.params)
        try:
            said: object | wire.Failure = await self._handler(method, params)
        except Refused as refused:
            said = refused.failure
        except RpcError as error:
            said = wire.Failure(error.code, error.message, Raw(msgspec.json.encode(error.data)))
        except (DaemonGone, TimeoutError) as error:
            said = wire.Failure(wire.INTERNAL, str(error))
        except Exception as error:
            # Every request is answered, whatever its params contain.
            self._log.write(
                f"{type(error).__name__} while handling a request of the editor; the request is answered "
                "with an error"
            )
            said = wire.Failure(wire.INTERNAL, f"compactd failed: {type(error).__name__}")
        if not isinstance(line.id, int | str):
            return
        try:
            await self.send(
                wire.refusal(line.id, said)
                if isinstance(said, wire.Failure)
                else wire.answer(line.id, {} if said is None else said)
            )
            for behind in self._behind.pop(asyncio.current_task(), ()):
                await self.send(behind)
        except OSError:
            return
