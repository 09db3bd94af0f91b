"""The connection to an ACP client. It sends requests to the client and runs a task for each of
its requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import msgspec
from msgspec import UNSET, Raw

from compactd.client.events import DaemonGone, RpcError
from compactd.client.frames import ErrorObject, Json
from compactd.integrations.acp import acp_lines
from compactd.integrations.acp.acp_lines import RequestRefused, RpcMessage

PeerHandler = Callable[[str, dict[str, Json]], Awaitable[object]]


class Peer:
    """An ACP client on the other end of two pipes."""

    def __init__(self, reader: asyncio.StreamReader, out: acp_lines.Out, handler: PeerHandler) -> None:
        self._reader = reader
        self._out = out
        self._handler = handler
        self._waiting: dict[acp_lines.Id, asyncio.Future[RpcMessage]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_id = 0
        self._log = acp_lines.Log()
        self._behind: dict[asyncio.Task[None] | None, list[bytes]] = {}

    async def send(self, line: bytes) -> None:
        """Send a line that a function of `acp_lines` encoded."""
        await self._out.write(line)

    def after(self, lines: Iterable[bytes]) -> None:
        """Queue lines to be sent after the answer to the request that the current task handles."""
        self._behind.setdefault(asyncio.current_task(), []).extend(lines)

    async def ask(self, method: str, params: object) -> dict[str, Json]:
        """Send a request and return the answer. Raise `RequestRefused` if the client answers with an
        error."""
        self._last_id += 1
        waiting: asyncio.Future[RpcMessage] = asyncio.get_running_loop().create_future()
        self._waiting[self._last_id] = waiting
        await self.send(acp_lines.request_line(self._last_id, method, params))
        line = await waiting
        if line.error is not UNSET:
            failure = acp_lines.decode_object(line.error)
            raise RequestRefused(
                acp_lines.INTERNAL, str(failure.get("message", f"the editor refused the request {method}"))
            )
        return acp_lines.decode_object(line.result)

    async def serve(self) -> None:
        """Read and handle messages until the client closes its output or stops reading."""
        try:
            while data := await acp_lines.next_line(self._reader):
                line, _ = acp_lines.read_line(data)
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

    async def _handle(self, line: RpcMessage, method: str) -> None:
        params = acp_lines.decode_object(line.params)
        try:
            said: object | ErrorObject = await self._handler(method, params)
        except RequestRefused as refused:
            said = refused.failure
        except RpcError as error:
            said = ErrorObject(error.code, error.message, Raw(msgspec.json.encode(error.data)))
        except (DaemonGone, TimeoutError) as error:
            said = ErrorObject(acp_lines.INTERNAL, str(error))
        except Exception as error:
            # Every request is answered, whatever its params contain.
            self._log.write(
                f"{type(error).__name__} while handling a request of the editor; the request is answered "
                "with an error"
            )
            said = ErrorObject(acp_lines.INTERNAL, f"compactd failed: {type(error).__name__}")
        if not isinstance(line.id, int | str):
            return
        try:
            await self.send(acp_lines.answer_line(line.id, {} if said is None else said))
            for behind in self._behind.pop(asyncio.current_task(), ()):
                await self.send(behind)
        except OSError:
            return
