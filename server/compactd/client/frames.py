"""JSON-RPC messages as bytes on the client's side of the pipes, in either framing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


class ErrorObject(Struct, frozen=True, omit_defaults=True):
    """An error as JSON-RPC has it."""

    code: int
    message: str
    data: Raw = Raw(b"null")


class Incoming(Struct, frozen=True):
    """An answer, a request or a notification."""

    id: int | str | None = None
    method: str | None = None
    params: Raw = Raw(b"{}")
    result: Raw = Raw(b"null")
    error: ErrorObject | None = None


class Outgoing(Struct, frozen=True, omit_defaults=True):
    """A request, a notification, or an answer."""

    jsonrpc: str
    id: int | str | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: object | UnsetType = UNSET
    result: object | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET


def json_object(raw: Raw) -> dict[str, Json]:
    """`raw` as a table; empty where it is something else."""
    value: Json = msgspec.json.decode(raw)
    return value if isinstance(value, dict) else {}


decoded = msgspec.json.Decoder(Incoming).decode
"""A body as a message. Raises `msgspec.MsgspecError`."""


def framed(message: Outgoing, is_lsp: bool) -> bytes:
    """The bytes to send: behind a length, or as one line."""
    body = msgspec.json.encode(message)
    if is_lsp:
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    # A user's own JSON is sent as it is and may hold line ends, but only between its tokens.
    return body.replace(b"\n", b" ") + b"\n"


def incoming(pipe: IO[bytes], is_lsp: bool) -> Iterator[Incoming]:
    """The messages that come in, until the end. Raises `ValueError` for what is not the protocol."""
    for body in _bodies(pipe, is_lsp):
        yield decoded(body)


def _bodies(pipe: IO[bytes], is_lsp: bool) -> Iterator[bytes]:
    while True:
        line = pipe.readline()
        if not line:
            return
        if not is_lsp:
            yield line
            continue
        length: int | None = None
        while line.strip():
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
            line = pipe.readline()
        if length is None:
            raise ValueError("a header without Content-Length")
        yield pipe.read(length)
