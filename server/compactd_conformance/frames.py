"""JSON-RPC messages as they come, and what is wrong with them."""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

T = TypeVar("T")

Framing = Literal["lines", "headers"]

SHOWN_CHARS = 400


class Broken(Exception):
    """The program did not do what the protocol says."""

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


class Got(Struct, frozen=True):
    """One message of the program."""

    at: int
    """Its position among all that came."""
    body: bytes
    id: bytes
    """As it came; empty where there is none."""
    method: str
    """Empty where it is an answer."""
    params: Raw
    result: Raw
    error: Fault | None


class Event(Struct, frozen=True):
    """An `agent/event` as every one is."""

    session_id: str
    seq: int
    type: str
    compaction_id: str = ""
    status: str = ""
    at: int = 0
    """Its position among all that came; not on the wire."""


_decode = msgspec.json.Decoder(_Message).decode


def taken(at: int, body: bytes) -> Got:
    """`body` as the message that came at this position. Raises `Broken` where it is none."""
    try:
        body.decode()
        message = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Broken("one JSON-RPC message in UTF-8", f"{shown(body)} ({error})") from None
    return Got(
        at=at,
        body=body,
        id=bytes(message.id),
        method=message.method or "",
        params=message.params,
        result=message.result,
        error=message.error,
    )


def shown(value: bytes | str) -> str:
    """`value` short enough for a report."""
    if isinstance(value, bytes):
        value, unit, size = value[: 4 * SHOWN_CHARS].decode("utf-8", "backslashreplace"), "bytes", len(value)
    else:
        unit, size = "characters", len(value)
    return value if len(value) <= SHOWN_CHARS else f"{value[:SHOWN_CHARS]}… ({size:,} {unit})"


def request(id: object, method: str, params: object = None) -> bytes:
    """The body of a request; without params where they are None."""
    body: dict[str, object] = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        body["params"] = params
    return msgspec.json.encode(body)


def read(raw: Raw, shape: type[T]) -> T:
    """`raw` as `shape`. Raises `Broken` where it is something else."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.MsgspecError as error:
        raise Broken(f"the fields of `{shape.__name__}`", f"{error} in {shown(bytes(raw))}") from None
