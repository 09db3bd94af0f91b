"""The Agent Client Protocol's lines, and the updates that tell a client of its context.

One JSON-RPC message a line on stdin and stdout (agentclientprotocol.com, "Transports", read 2026-11). A
message is decoded as far as it is looked at; the rest stays the bytes it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
import threading
from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.client.frames import Json

MOST_LINE = 64 << 20
"""Bytes. A longer line ends the connection: it would be held whole."""
NULL = Raw(b"null")

Id = int | str


class Failure(Struct, frozen=True, omit_defaults=True):
    """An error as JSON-RPC has it."""

    code: int
    message: str
    data: Raw = NULL


class Line(Struct, frozen=True, omit_defaults=True):
    """A request, a notification or an answer."""

    id: Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Written(Struct, frozen=True, omit_defaults=True):
    jsonrpc: str
    id: Id | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: object | UnsetType = UNSET
    result: object | UnsetType = UNSET
    error: Failure | UnsetType = UNSET


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(code, message)


INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
INTERNAL = -32603


def line_of(data: bytes) -> Line | None:
    """The message; None for what is none."""
    try:
        return msgspec.json.decode(data, type=Line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def request(request_id: Id, method: str, params: object) -> bytes:
    return _encoded(_Written("2.0", id=request_id, method=method, params=params))


def notification(method: str, params: object) -> bytes:
    return _encoded(_Written("2.0", method=method, params=params))


def answer(request_id: Id, result: object) -> bytes:
    return _encoded(_Written("2.0", id=request_id, result=result))


def refusal(request_id: Id, failure: Failure) -> bytes:
    return _encoded(_Written("2.0", id=request_id, error=failure))


def _encoded(message: _Written) -> bytes:
    # Raw JSON of others may hold line ends, but only between its tokens.
    return msgspec.json.encode(message).replace(b"\n", b" ") + b"\n"


def table(raw: Raw | UnsetType) -> dict[str, Json]:
    """A JSON object as a table; empty where it is something else."""
    if not isinstance(raw, Raw):
        return {}
    try:
        value: Json = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def update(session_id: str, kind: str, fields: Mapping[str, object]) -> bytes:
    """A `session/update`."""
    return notification(
        "session/update", {"sessionId": session_id, "update": {"sessionUpdate": kind, **fields}}
    )


def said(session_id: str, text: str, kind: str = "agent_message_chunk") -> bytes:
    """A piece of what the agent, or the user, says."""
    return update(session_id, kind, {"content": {"type": "text", "text": text}})


def usage(session_id: str, used: int, size: int) -> bytes:
    """How full the context is. Tokens."""
    return update(session_id, "usage_update", {"used": used, "size": size})


def compaction(session_id: str, compaction_id: str, status: str, **fields: object) -> bytes:
    """For clients that take it (`clientCapabilities.session.compaction`; stable since 2026-10-09)."""
    return update(
        session_id, "compaction_update", {"compactionId": compaction_id, "status": status, **fields}
    )


def takes_compactions(initialize: Mapping[str, Json]) -> bool:
    """Whether the client that sent these params is told of compactions."""
    capabilities = initialize.get("clientCapabilities")
    session = capabilities.get("session") if isinstance(capabilities, dict) else None
    return isinstance(session, dict) and isinstance(session.get("compaction"), dict)


class Out:
    """A pipe that lines are written to, whole and in order."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._turn = asyncio.Lock()

    async def write(self, line: bytes) -> None:
        """Returns when the pipe has it. Raises `OSError` where nobody reads it any more."""
        async with self._turn:
            await asyncio.to_thread(self._write, line)

    def _write(self, line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[os.write(self._fd, view) :]


async def standard_streams() -> tuple[asyncio.StreamReader, Out]:
    """Our stdin and stdout. What is printed from here on goes to stderr."""
    out = os.dup(1)
    os.dup2(2, 1)
    reader = asyncio.StreamReader(limit=MOST_LINE)
    loop = asyncio.get_running_loop()
    kind = os.fstat(0).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    else:
        # A file, /dev/null or a terminal cannot be waited for everywhere.
        threading.Thread(target=_feed, args=(reader, loop), daemon=True).start()
    return reader, Out(out)


def _feed(reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    # The loop may be closed while this waits.
    with contextlib.suppress(OSError, RuntimeError):
        while data := os.read(0, 65_536):
            loop.call_soon_threadsafe(reader.feed_data, data)
        loop.call_soon_threadsafe(reader.feed_eof)


async def next_line(reader: asyncio.StreamReader) -> bytes:
    """The next line with its end; empty at the end of the input, and for a line that is too long."""
    try:
        return await reader.readline()
    except ValueError:
        sys.stderr.write(f"compactd acp: a line of more than {MOST_LINE >> 20} MiB ends the connection\n")
        return b""
