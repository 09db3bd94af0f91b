"""Encode and decode JSON-RPC messages on the client's side, in both framings: with a length header as in LSP,
or one message per line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

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


def read_incoming(pipe: IO[bytes], is_lsp: bool) -> Iterator[Incoming]:
    """Yield the messages that the daemon writes, until the pipe ends. Raise `ValueError` or
    `msgspec.MsgspecError` for bytes that are no message.
    """
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
            raise ValueError("a header has no Content-Length")
        yield pipe.read(length)
