"""Read the JSON-RPC messages of the program under test. `Broken` is the error for a violated protocol."""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

T = TypeVar("T")

Framing = Literal["lines", "headers"]

MAX_REPORTED_CHARS = 400


class Broken(Exception):
    """The program violated the protocol."""

    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(f"expected {expected}; seen {seen}")
        self.expected = expected
        self.seen = seen


class NotStarted(Exception):
    """The command cannot be started, or does not speak the protocol at all."""


class Fault(Struct, frozen=True):
    """The error of an answer."""

    code: int
    message: str
    data: Raw = Raw(b"null")


class _Message(Struct, frozen=True):
    id: Raw = Raw()
    method: str | None = None
    params: Raw = Raw(b"{}")
    result: Raw = Raw()
    error: Fault | None = None


class ReceivedMessage(Struct, frozen=True):
    """One message from the program."""

    at: int
    """The position of this message among all received messages."""
    body: bytes
    id: bytes
    """The id as JSON bytes. Empty for a notification."""
    method: str
    """The method of a request or notification; empty for an answer."""
    params: Raw
    result: Raw
    error: Fault | None


class Event(Struct, frozen=True):
    """The common fields of an `agent/event`."""

    session_id: str
    seq: int
    type: str
    compaction_id: str = ""
    status: str = ""
    at: int = 0
    """The event's position among all received messages. It is not a field on the wire."""


_decode = msgspec.json.Decoder(_Message).decode


def parse_message(at: int, body: bytes) -> ReceivedMessage:
    """Return the parsed message in `body`, which was received at the position `at`. Raise `Broken` if it is
    not a JSON-RPC message.
    """
    try:
        body.decode()
        message = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Broken("one JSON-RPC message in UTF-8", f"{shorten_value(body)} ({error})") from None
    return ReceivedMessage(
        at=at,
        body=body,
        id=bytes(message.id),
        method=message.method or "",
        params=message.params,
        result=message.result,
        error=message.error,
    )


def shorten_value(value: bytes | str) -> str:
    """Return `value` as text for a report. After `MAX_REPORTED_CHARS` characters it is cut, and its size is
    added.
    """
    if isinstance(value, bytes):
        value, unit, size = (
            value[: 4 * MAX_REPORTED_CHARS].decode("utf-8", "backslashreplace"),
            "bytes",
            len(value),
        )
    else:
        unit, size = "characters", len(value)
    return value if len(value) <= MAX_REPORTED_CHARS else f"{value[:MAX_REPORTED_CHARS]}… ({size:,} {unit})"


def request(id: object, method: str, params: object = None) -> bytes:
    """Return the JSON of a request. If `params` is None, the request has no params."""
    body: dict[str, object] = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        body["params"] = params
    return msgspec.json.encode(body)


def read(raw: Raw, shape: type[T]) -> T:
    """Return `raw` decoded as the type `shape`. Raise `Broken` if `raw` does not match this type."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.MsgspecError as error:
        raise Broken(
            (f"JSON with the required fields of `{shape.__name__}`"),
            f"{error} in {shorten_value(bytes(raw))}",
        ) from None
