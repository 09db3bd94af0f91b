"""A server as a child process, to which many tasks send requests over one pipe."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter

import msgspec
from msgspec import Raw

from benchmarks.peers import Message

PATIENCE_S = 300.0
"""When an answer is given up. Above what any request here takes on a busy machine."""

_LOG_BYTES = 4096
_HEADER = b"Content-Length: "

_decode = msgspec.json.Decoder(Message).decode


class Gone(Exception):
    """The server has ended, so no further answers come."""


class Refused(Exception):
    """The answer is an error."""

    def __init__(self, error: Raw) -> None:
        super().__init__(bytes(error).decode("utf-8", "replace"))
        self.code: int = msgspec.json.decode(error)["code"]


class Answer(msgspec.Struct, frozen=True):
    """The answer to one request."""

    message: Message
    took_s: float
    """Seconds from the request to the read that contained the end of the answer."""

    @property
    def result(self) -> Raw:
        """Return the result. Raises `Refused` for an error."""
        if bytes(self.message.error) != b"null":
            raise Refused(self.message.error)
        return self.message.result


class _Asked(msgspec.Struct, frozen=True):
    answer: asyncio.Future[Answer]
    at: float


class Line(asyncio.SubprocessProtocol):
    """The pipes of one server. Framing: LSP's headers."""

    def __init__(self, log: int) -> None:
        self._log = log
        self._transport: asyncio.SubprocessTransport | None = None
        self._to_peer: asyncio.WriteTransport | None = None
        self._buffer = bytearray()
        self._asked: dict[int, _Asked] = {}
        self._last_id = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self.ended = asyncio.Event()
        self.told = 0
        """Notifications that came."""
        self.on_event: Callable[[Message], None] | None = None
        self.pid = 0

    @classmethod
    async def open(cls, command: Sequence[str], env: Mapping[str, str], log: Path) -> Line:
        """Start a server. Its stderr is appended to `log`."""
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        loop = asyncio.get_running_loop()
        line = cls(file)
        transport, _ = await loop.subprocess_exec(
            lambda: line,
            *command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            env=dict(env),
        )
        line._transport = transport
        pipe = transport.get_pipe_transport(0)
        if not isinstance(pipe, asyncio.WriteTransport):
            raise Gone("no pipe")
        line._to_peer = pipe
        line.pid = transport.get_pid()
        return line

    # --- asking -------------------------------------------------------------------------------------

    def ask(self, method: str, params: object = None) -> asyncio.Future[Answer]:
        """Send a request. `params` is a value, or `Raw` JSON."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if self.ended.is_set() or self._to_peer is None:
            answer.set_exception(Gone("it ended"))
            return answer
        self._last_id += 1
        body = msgspec.json.encode(
            {
                "jsonrpc": "2.0",
                "id": self._last_id,
                "method": method,
                "params": {} if params is None else params,
            }
        )
        self._asked[self._last_id] = _Asked(answer, perf_counter())
        self._to_peer.write(b"%b%d\r\n\r\n%b" % (_HEADER, len(body), body))
        return answer

    async def answered(self, method: str, params: object = None) -> Answer:
        """Return the answer to a request. Raises `Gone` if none comes any more."""
        await self._has_room.wait()
        # Not wait_for, which in Python 3.11 forgets a cancellation that comes together with the answer.
        async with asyncio.timeout(PATIENCE_S):
            return await self.ask(method, params)

    async def call(self, method: str, params: object = None) -> Raw:
        """Return the result of a request. Raises `Refused` for an error."""
        return (await self.answered(method, params)).result

    # --- its end ------------------------------------------------------------------------------------

    async def kill(self) -> None:
        """Kill the server with SIGKILL, and return when it has ended."""
        if self._transport is not None and not self.ended.is_set():
            self._transport.kill()
        await self.ended.wait()

    async def stop(self) -> None:
        """Close the server's input, and return when it has ended."""
        if self._to_peer is not None:
            self._to_peer.close()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self.ended.wait()
        except TimeoutError:
            await self.kill()

    # --- what comes -----------------------------------------------------------------------------------

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Collect the server's output, and give complete answers to those that wait."""
        at = perf_counter()
        self._buffer += data
        position = 0
        while (head := self._buffer.find(b"\r\n\r\n", position)) >= 0:
            length = int(self._buffer[position + len(_HEADER) : head])
            stop = head + 4 + length
            if stop > len(self._buffer):
                break
            with memoryview(self._buffer) as view:
                self._came(bytes(view[head + 4 : stop]), at)
            position = stop
        del self._buffer[:position]

    def _came(self, body: bytes, at: float) -> None:
        message = _decode(body)
        if message.method is not None or message.id is None:
            self.told += 1
            if self.on_event is not None:
                self.on_event(message)
            return
        asked = self._asked.pop(message.id, None)
        if asked is not None and not asked.answer.done():
            asked.answer.set_result(Answer(message, at - asked.at))

    def pause_writing(self) -> None:
        """Note that the server's input pipe is full."""
        self._has_room.clear()

    def resume_writing(self) -> None:
        """Note that the server's input pipe has room again."""
        self._has_room.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Handle the end of one of the server's pipes."""
        self._fail()

    def process_exited(self) -> None:
        """Handle the end of the server."""
        self.ended.set()
        os.close(self._log)
        self._fail()

    def _fail(self) -> None:
        asked, self._asked = self._asked, {}
        self._has_room.set()
        for one in asked.values():
            if not one.answer.done():
                one.answer.set_exception(Gone("it ended"))
                one.answer.exception()  # nobody may be waiting for it
