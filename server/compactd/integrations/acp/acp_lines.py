"""Read and write messages of the Agent Client Protocol (ACP).

The protocol sends one JSON-RPC message per line on stdin and stdout (agentclientprotocol.com, "Transports",
read 2026-11). Only the needed parts of a message are decoded; the rest keeps its bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
import threading
from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.client.frames import ErrorObject, Json, Outgoing, encode_frame
from compactd.formats.files.json_lines import repair_surrogates
from compactd.storage import files

T = TypeVar("T")

MAX_LINE_BYTES = 64 << 20
"""The most bytes of a line. A longer line ends the connection, because a line is kept in memory
as a whole.
"""
MAX_LOGGED = 100
"""The most lines that one `Log` writes."""

UNREADABLE = (ValueError, RecursionError)
"""The exceptions that decoding another program's JSON can raise. The errors of msgspec and of encodings are
kinds of `ValueError`.
"""

Id = int | str


class RpcMessage(Struct, frozen=True, omit_defaults=True):
    """A request, a notification or an answer."""

    id: Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class RequestRefused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.failure = ErrorObject(code, message)


INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
INTERNAL = -32603


def decode_as(data: Raw | bytes | UnsetType | None, kind: type[T]) -> T | None:
    """Decode JSON of another program as `kind`. Return None if there is none, if it is something else, or if
    it cannot be read.
    """
    if data is None or isinstance(data, UnsetType):
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except UNREADABLE:
        return None


def read_line(data: bytes) -> tuple[RpcMessage | None, bytes]:
    """Return (the message in a line, the bytes of the line that were decoded).

    Invalid UTF-8 and escaped halves of surrogate pairs are read as U+FFFD. If the line is not a message even
    after that, return None and the original line. O(bytes).
    """
    if data.isascii() or _is_utf8(data):
        line = decode_as(data, RpcMessage)
        if line is not None or b"\\u" not in data:
            return line, data
    readable = repair_surrogates(data.decode("utf-8", "replace").encode())
    line = decode_as(readable, RpcMessage)
    return (None, data) if line is None else (line, readable)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def request_line(request_id: Id, method: str, params: object) -> bytes:
    """Return a request as one line of JSON."""
    return encode_frame(Outgoing("2.0", id=request_id, method=method, params=params), is_lsp=False)


def answer_line(request_id: Id, answer: object) -> bytes:
    """Return an answer as one line of JSON. `answer`: the result, or an error."""
    if isinstance(answer, ErrorObject):
        return encode_frame(Outgoing("2.0", id=request_id, error=answer), is_lsp=False)
    return encode_frame(Outgoing("2.0", id=request_id, result=answer), is_lsp=False)


def decode_object(raw: Raw | UnsetType) -> dict[str, Json]:
    """Decode a JSON object; empty if it is something else or cannot be read."""
    return decode_as(raw, dict) or {}


def fields(raw: Raw | UnsetType) -> dict[str, Raw]:
    """Return the fields of a JSON object undecoded; empty if it is something else or cannot be read."""
    return decode_as(raw, dict[str, Raw]) or {}


def replace_params(data: bytes, params: Mapping[str, object]) -> bytes:
    """Return the line with some params replaced. Everything else stays unchanged.

    Raise one of `UNREADABLE` if the line has no params object.
    """
    whole = msgspec.json.decode(data, type=dict[str, Raw])
    given = msgspec.json.decode(whole["params"], type=dict[str, Raw])
    whole["params"] = Raw(msgspec.json.encode({**given, **params}))
    return msgspec.json.encode(whole).replace(b"\n", b" ") + b"\n"


def update_line(session_id: str, kind: str, fields: Mapping[str, object]) -> bytes:
    """Return a `session/update` notification of this kind as one line of JSON."""
    params = {"sessionId": session_id, "update": {"sessionUpdate": kind, **fields}}
    return encode_frame(Outgoing("2.0", method="session/update", params=params), is_lsp=False)


def text_update(session_id: str, text: str, kind: str = "agent_message_chunk") -> bytes:
    """Return a `session/update` with a piece of the agent's text as one line of JSON. With the `kind`
    `user_message_chunk`, it is the user's text."""
    return update_line(session_id, kind, {"content": {"type": "text", "text": text}})


def usage_lines(session_id: str, used: int | None, size: int | None) -> tuple[bytes, ...]:
    """Return a `session/update` that says how full the context is (`used` of `size` tokens), as one line of
    JSON; nothing if the size of the window is unknown.
    """
    return (update_line(session_id, "usage_update", {"used": used or 0, "size": size}),) if size else ()


def compaction_line(session_id: str, compaction_id: str, status: str, **fields: object) -> bytes:
    """Return the state of a compaction as one line of JSON. Only clients with
    `clientCapabilities.session.compaction` understand it (stable since 2026-10-09).
    """
    return update_line(
        session_id, "compaction_update", {"compactionId": compaction_id, "status": status, **fields}
    )


def accepts_compactions(initialize: Mapping[str, Json]) -> bool:
    """Return whether the client that sent these params of `initialize` accepts reports of compactions."""
    capabilities = initialize.get("clientCapabilities")
    session = capabilities.get("session") if isinstance(capabilities, dict) else None
    return isinstance(session, dict) and isinstance(session.get("compaction"), dict)


class Log:
    """A log on stderr. Its lines say what went wrong with which kind of line of the protocol, but never what
    that line contains.
    """

    def __init__(self) -> None:
        self._left = MAX_LOGGED

    def write(self, text: str) -> None:
        """Write one line, unless `MAX_LOGGED` lines were written already."""
        if self._left:
            self._left -= 1
            end = "" if self._left else " (further lines of this kind are not logged)"
            sys.stderr.write(f"compactd acp: {text}{end}\n")


class Out:
    """A pipe to which lines are written completely and in order."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._turn = asyncio.Lock()

    async def write(self, line: bytes) -> None:
        """Write a line. Return when the pipe has accepted it. Raise `OSError` if nobody reads the pipe any
        more.
        """
        async with self._turn:
            await asyncio.to_thread(files.write_all, self._fd, (line,))


async def standard_streams() -> tuple[asyncio.StreamReader, Out]:
    """Return stdin and stdout. Afterwards, everything that this process prints goes to stderr."""
    out = os.dup(1)
    os.dup2(2, 1)
    reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    loop = asyncio.get_running_loop()
    kind = os.fstat(0).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    else:
        # Files, /dev/null and terminals cannot be awaited on every platform, so a thread reads them.
        threading.Thread(target=_feed, args=(reader, loop), daemon=True).start()
    return reader, Out(out)


def _feed(reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    # The loop may be closed while this thread waits.
    with contextlib.suppress(OSError, RuntimeError):
        while data := os.read(0, 65_536):
            loop.call_soon_threadsafe(reader.feed_data, data)
        loop.call_soon_threadsafe(reader.feed_eof)


async def next_line(reader: asyncio.StreamReader) -> bytes:
    """Return the next line with its end; empty at the end of the input and for a line that is too long."""
    try:
        return await reader.readline()
    except ValueError:
        sys.stderr.write(
            f"compactd acp: a received line is longer than {MAX_LINE_BYTES >> 20} MiB; the connection that "
            "it came from is closed\n"
        )
        return b""
