"""Everything that leaves: answers, errors, notifications, and our own requests with their responses."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.daemon.rpc.envelope import Envelope
from compactd.daemon.rpc.framing import Framer
from compactd.daemon.rpc.pipes import JOIN_BYTES, UNSENT_LIMIT_BYTES, Writer
from compactd.daemon.rpc.request import encode
from compactd.daemon.rpc.surrogates import encode_detail
from compactd.protocol.error_data import BY_CODE
from compactd.protocol.errors import Cancelled, CompactdError, Detail, LimitExceeded

INTERNAL_ERROR = -32603

_HEAD = b'Content-Length: %d\r\n\r\n{"jsonrpc":"2.0","id":'
_ANSWER_BYTES = len(b'{"jsonrpc":"2.0","id":,"result":}')
_SMALL_BYTES = 1024

_log = logging.getLogger("compactd.rpc")


class ErrorObject(Struct, frozen=True, omit_defaults=True):
    """The `error` of a response."""

    code: int
    message: str
    data: Raw | UnsetType = UNSET
    # Not `Raw | None`: msgspec reads nothing but null into that.


class ClientError(Exception):
    """The client answered a request of ours with an error."""

    def __init__(self, error: ErrorObject) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.error = error


class Refused(Exception):
    """A request was answered with this error by someone who knows what a client may be told."""

    def __init__(self, error: ErrorObject) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.error = error


class _CancelParams(Struct, frozen=True):
    id: Raw


class Outgoing:
    """Puts messages into the connection's framing and sends them in order. For the loop's thread only.

    Until the client's first message nothing of our own goes out, for the framing is not known before; if
    that is an `initialize`, not until it has its answer.
    """

    def __init__(self, writer: Writer, framer: Framer) -> None:
        self._writer = writer
        self._write = writer.write
        self.heads: dict[int, bytes] = {}
        """What stands before an id and a result of so many bytes: of small ones, as far as there were any."""
        self._framer = framer
        self._early: list[bytes] = []
        self.is_held = True
        """Whether nothing of our own goes out yet."""
        self._asked: dict[bytes, asyncio.Future[Raw]] = {}
        self._count = 0
        self._is_closed = False

    def answer(self, id: bytes, result: bytes) -> None:
        """The result of a request."""
        size = len(id) + len(result)
        if head := self.heads.get(size):
            self._write(b"".join((head, id, b',"result":', result, b"}")))
        elif size >= JOIN_BYTES:
            self._send((b'{"jsonrpc":"2.0","id":', id, b',"result":', result, b"}"))
        elif self._framer.lines:
            answer = b'{"jsonrpc":"2.0","id":%b,"result":%b}\n'
            self._write(answer % (_in_one_line(id), _in_one_line(result)))
        else:
            self._write(b"".join((self._head(size), id, b',"result":', result, b"}")))

    def _head(self, size: int) -> bytes:
        head = _HEAD % (_ANSWER_BYTES + size)
        if size < _SMALL_BYTES:
            self.heads[size] = head
        return head

    def refuse(self, id: bytes, error: ErrorObject) -> None:
        """The error of a request."""
        self._send((b'{"jsonrpc":"2.0","id":', id, b',"error":', encode(error), b"}"))

    def notify(self, method: str, params: Struct | Raw, droppable: bool = False) -> bool:
        """Sends a notification; false where it was dropped, which only a droppable one is."""
        return self.notify_body(
            b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode(method), encode(params)), droppable
        )

    def notify_body(self, body: bytes, droppable: bool = False) -> bool:
        """As `notify`, with the whole message encoded already."""
        if droppable and self._writer.unsent_bytes > UNSENT_LIMIT_BYTES:
            return False
        self._own(body)
        return True

    async def request(self, method: str, params: Struct | Raw, timeout_s: float) -> Raw:
        """Asks the client, and gives back its result.

        Raises `ClientError` for an error it answers, `TimeoutError`, and `ConnectionError` where there is
        no client any more. A question that is given up is cancelled with `$/cancelRequest`.
        """
        if self._is_closed:
            raise ConnectionError("the client is gone")
        self._count += 1
        id = b'"compactd-%d"' % self._count
        asked = asyncio.get_running_loop().create_future()
        self._asked[id] = asked
        self._own(b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (id, encode(method), encode(params)))
        try:
            return await asyncio.wait_for(asked, timeout_s)
        except (TimeoutError, asyncio.CancelledError):
            self.notify("$/cancelRequest", _CancelParams(Raw(id)))
            raise
        finally:
            del self._asked[id]

    def settle(self, response: Envelope) -> bool:
        """Hands a response to who asked; false where it is none of ours."""
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
        """What was held goes out, in its order, and from now on everything."""
        self.is_held = False
        early, self._early = self._early, []
        for body in early:
            self._send((body,))

    def close(self) -> None:
        """No response will ever come: everyone who waits for one is told."""
        self._is_closed = True
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(ConnectionError("the client is gone"))

    def send_body(self, body: bytes) -> None:
        """A whole message that someone else encoded."""
        self._own(body)

    def _own(self, body: bytes) -> None:
        if self.is_held:
            self._early.append(body)
        else:
            self._send((body,))

    def _send(self, pieces: tuple[bytes, ...]) -> None:
        if self._framer.lines:
            # A user's JSON goes out byte for byte, but a line break between its tokens would end the line.
            pieces = (*map(_in_one_line, pieces), b"\n")
        else:
            pieces = (b"Content-Length: %d\r\n\r\n" % sum(map(len, pieces)), *pieces)
        for piece in pieces:
            self._writer.write(piece)


def error_object(error: BaseException, context: str) -> ErrorObject:
    """What a client is told of an exception. A bug of ours goes to the log, and its number to the client."""
    match error:
        case CompactdError():
            return _told(error.code, error.message, error.data)
        case Refused():
            return error.error
        case asyncio.CancelledError():
            return ErrorObject(Cancelled.code, "the request was cancelled")
        case RecursionError():
            return _told(LimitExceeded.code, "the request is nested too deeply", {})
        case _:
            error_id = os.urandom(4).hex()
            _log.error("error %s in %s", error_id, context, exc_info=error)
            return _told(
                INTERNAL_ERROR,
                f"an error of compactd itself; its log (stderr) tells more under {error_id}",
                {"error_id": error_id},
            )


def _told(code: int, message: str, data: dict[str, Detail]) -> ErrorObject:
    # Pairs become one character and lone surrogates U+FFFD: a file name need not be text.
    message = message.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return ErrorObject(code, message, shaped(code, data))


def shaped(code: int, data: Mapping[str, Detail]) -> Raw | UnsetType:
    """`data` of an error in the one shape that its code has; nothing if its code has none."""
    kind = BY_CODE.get(code)
    if kind is None:
        return UNSET
    try:
        return Raw(encode_detail(msgspec.to_builtins(msgspec.convert(data, kind))))
    except msgspec.ValidationError:
        _log.exception("the data of an error %d has another shape", code)
        return Raw(encode_detail(dict(data)))


def error_of(raw: Raw) -> ErrorObject:
    """The error that someone else sent, however it looks."""
    try:
        return msgspec.json.decode(raw, type=ErrorObject)
    except msgspec.DecodeError:
        return ErrorObject(0, "an error without a code or without a message")


def _in_one_line(piece: bytes) -> bytes:
    if b"\n" in piece:
        piece = piece.replace(b"\n", b" ")
    return piece.replace(b"\r", b" ") if b"\r" in piece else piece
