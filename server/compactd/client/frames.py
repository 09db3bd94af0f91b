"""Encode and decode JSON-RPC messages on the client's side, in both framings: with a length header as in LSP,
or one message per line.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


class ErrorObject(Struct, frozen=True, omit_defaults=True):
    """An error object of JSON-RPC."""

    code: int
    message: str
    data: Raw = Raw(b"null")


class Incoming(Struct, frozen=True):
    """An answer, a request or a notification from the daemon."""

    id: int | str | None = None
    method: str | None = None
    params: Raw = Raw(b"{}")
    result: Raw = Raw(b"null")
    error: ErrorObject | None = None


class Outgoing(Struct, frozen=True, omit_defaults=True):
    """A request, a notification or an answer to the daemon."""

    jsonrpc: str
    id: int | str | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: object | UnsetType = UNSET
    result: object | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET


def json_object(raw: Raw) -> dict[str, Json]:
    """Decode a JSON object. Return an empty dict if the JSON is not an object."""
    value: Json = msgspec.json.decode(raw)
    return value if isinstance(value, dict) else {}


decoded = msgspec.json.Decoder(Incoming).decode
"""The function that decodes the body of a frame. It raises `msgspec.MsgspecError` for any other body."""


def encode_frame(message: Outgoing, is_lsp: bool) -> bytes:
    """Return the bytes of a message: with a length header if `is_lsp`, otherwise as one line."""
    body = msgspec.json.encode(message)
    if is_lsp:
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    # JSON from the caller is not encoded again, so it may contain line breaks, but only between its tokens.
    return body.replace(b"\n", b" ") + b"\n"


class Pipe(Protocol):
    """An output of the daemon. `asyncio.StreamReader` is one."""

    async def read(self, n: int, /) -> bytes:
        """Read at most `n` bytes; none at the end."""
        ...

    async def readline(self) -> bytes:
        """Read a line with its end; nothing at the end of the output."""
        ...

    async def readexactly(self, n: int, /) -> bytes:
        """Read `n` bytes."""
        ...


async def read_incoming(pipe: Pipe, is_lsp: bool) -> Incoming | None:
    """Read the next message that the daemon writes; None at the end of the pipe. Raise `ValueError`,
    `EOFError` or `msgspec.MsgspecError` for bytes that are no message.
    """
    length: int | None = None
    while line := await pipe.readline():
        if not is_lsp:
            return decoded(line)
        if not line.strip():
            if length is None:
                raise ValueError("a header has no Content-Length")
            return decoded(await pipe.readexactly(length))
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    return None
