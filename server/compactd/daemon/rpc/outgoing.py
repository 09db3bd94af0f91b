"""Outgoing messages: answers, errors, notifications, and the daemon's own requests with their responses."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.daemon.rpc.envelope import Envelope
from compactd.daemon.rpc.framing import Framer
from compactd.daemon.rpc.surrogates import encode_detail
from compactd.daemon.rpc.writer import UNSENT_LIMIT_BYTES, PipeWriter
from compactd.protocol.error_data import BY_CODE
from compactd.protocol.errors import Cancelled, CompactdError, Detail, LimitExceeded
from compactd.protocol.messages import encode

INTERNAL_ERROR = -32603

_log = logging.getLogger("compactd.rpc")


class ErrorObject(Struct, frozen=True, omit_defaults=True):
    """The `error` of a response."""

    code: int
    message: str
    data: Raw | UnsetType = UNSET
    # Not `Raw | None`, into which msgspec decodes only null.


class ClientError(Exception):
    """The client answered a request of the daemon with an error."""

    def __init__(self, error: ErrorObject) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.error = error


class AnsweredWithError(Exception):
    """An error that a request gets as its answer, unchanged. It contains only what a client may know."""

    def __init__(self, error: ErrorObject) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.error = error


class CancelParams(Struct, frozen=True):
    """The params of `$/cancelRequest`."""

    id: Raw


class MessageSender:
    """The sender of all messages to the client, in order. Use it only on the event loop's thread.

    The daemon's own messages (notifications and requests) wait until the client's first message has arrived,
    because the framing is not known before. If that message is `initialize`, they wait until it is answered.
    """

    def __init__(self, writer: PipeWriter, framer: Framer) -> None:
        self._writer = writer
        self._framer = framer
        self._early: list[bytes] = []
        self.is_held = True
        """True while the daemon's own messages wait."""
        self._asked: dict[bytes, asyncio.Future[Raw]] = {}
        self._count = 0
        self._is_closed = False

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that wait for the client to read."""
        return self._writer.unsent_bytes

    @property
    def is_closed(self) -> bool:
        """True once no answer of the client will come any more."""
        return self._is_closed

    def answer(self, id: bytes, result: bytes) -> None:
        """Send the result of a request."""
        self._send((b'{"jsonrpc":"2.0","id":', id, b',"result":', result, b"}"))

    def refuse(self, id: bytes, error: ErrorObject) -> None:
        """Send the error of a request."""
        self._send((b'{"jsonrpc":"2.0","id":', id, b',"error":', encode(error), b"}"))

    def notify(self, method: str, params: Struct | Raw, droppable: bool = False) -> bool:
        """Send a notification. Return false if it was dropped, because it is droppable and too much waits for
        the client.
        """
        return self.notify_body(
            b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode(method), encode(params)), droppable
        )

    def notify_body(self, body: bytes, droppable: bool = False) -> bool:
        """Send a notification, as `notify` does. `body` is the whole message as JSON."""
        if droppable and self._writer.unsent_bytes > UNSENT_LIMIT_BYTES:
            return False
        self.send_body(body)
        return True

    async def request(self, method: str, params: Struct | Raw, timeout_s: float) -> Raw:
        """Send a request to the client and return its result.

        Raises `ClientError` if the client answers with an error, `TimeoutError`, and `ConnectionError` if
        there is no client any more. If the answer takes too long or the caller is cancelled, the client gets
        `$/cancelRequest`.
        """
        if self._is_closed:
            raise ConnectionError("the client is gone")
        self._count += 1
        id = b'"compactd-%d"' % self._count
        asked = asyncio.get_running_loop().create_future()
        self._asked[id] = asked
        self.send_body(
            b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (id, encode(method), encode(params))
        )
        try:
            return await asyncio.wait_for(asked, timeout_s)
        except (TimeoutError, asyncio.CancelledError):
            self.notify("$/cancelRequest", CancelParams(Raw(id)))
            raise
        finally:
            del self._asked[id]

    def take_response(self, response: Envelope) -> bool:
        """Give a response to the daemon's request that waits for it. Return false if there is no such
        request.
        """
        asked = self._asked.get(bytes(response.id)) if response.id is not UNSET else None
        if asked is None:
            return False
        if asked.done():
            return True
        if response.error is not UNSET:
            asked.set_exception(ClientError(error_of(response.error)))
        elif response.result is not UNSET:
            asked.set_result(response.result)
        return True

    def open(self) -> None:
        """Send the waiting messages in order. Later messages are sent at once."""
        self.is_held = False
        early, self._early = self._early, []
        for body in early:
            self._send((body,))

    def close(self) -> None:
        """Raise `ConnectionError` in all callers of `request`, because no response will come."""
        self._is_closed = True
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(ConnectionError("the client is gone"))

    def send_body(self, body: bytes) -> None:
        """Send a notification or a request of the daemon. `body` is the whole message as JSON."""
        if self.is_held:
            self._early.append(body)
        else:
            self._send((body,))

    def _send(self, pieces: tuple[bytes, ...]) -> None:
        if self._framer.lines:
            # The user's JSON is sent byte for byte, except for line breaks, which would end the message.
            pieces = (*map(_in_one_line, pieces), b"\n")
        else:
            pieces = (b"Content-Length: %d\r\n\r\n" % sum(map(len, pieces)), *pieces)
        for piece in pieces:
            self._writer.write(piece)


def error_object(error: BaseException, context: str) -> ErrorObject:
    """Return what a client may know about an exception. A bug is logged with `context`, which says where it
    happened, and the client gets the error id in the log.
    """
    match error:
        case CompactdError():
            return _error_object(error.code, error.message, error.data)
        case AnsweredWithError():
            return error.error
        case asyncio.CancelledError():
            return ErrorObject(Cancelled.code, "the request was cancelled")
        case RecursionError():
            return _error_object(LimitExceeded.code, "the request is nested too deeply", {})
        case _:
            error_id = os.urandom(4).hex()
            _log.error("error %s in %s", error_id, context, exc_info=error)
            return _error_object(
                INTERNAL_ERROR,
                f"an internal error of compactd; its log (stderr) has the details under {error_id}",
                {"error_id": error_id},
            )


def _error_object(code: int, message: str, data: dict[str, Detail]) -> ErrorObject:
    # Join surrogate pairs and replace lone ones by U+FFFD, since file names need not be text.
    message = message.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return ErrorObject(code, message, shape_data(code, data))


def shape_data(code: int, data: Mapping[str, Detail]) -> Raw | UnsetType:
    """Return an error's `data` as JSON, checked against the type for its code (`protocol/error_data.py`).
    Return `UNSET` if errors with this code have no data.
    """
    kind = BY_CODE.get(code)
    if kind is None:
        return UNSET
    try:
        return Raw(encode_detail(msgspec.to_builtins(msgspec.convert(data, kind))))
    except msgspec.ValidationError:
        _log.exception("the data of an error %d does not fit its type in protocol/error_data.py", code)
        return Raw(encode_detail(dict(data)))


def error_of(raw: Raw) -> ErrorObject:
    """Decode the error that a client sent. If it is malformed, return an error with code 0."""
    try:
        return msgspec.json.decode(raw, type=ErrorObject)
    except msgspec.DecodeError:
        return ErrorObject(0, "the client answered with an error that has no code or no message")


def _in_one_line(piece: bytes) -> bytes:
    if b"\n" in piece:
        piece = piece.replace(b"\n", b" ")
    return piece.replace(b"\r", b" ") if b"\r" in piece else piece
