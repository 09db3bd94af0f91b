"""Dispatch of requests: read the params, call the handler, await its result, and send exactly one answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter

from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.daemon.rpc.checked_body import CheckedBody, RequestBody, is_utf8
from compactd.daemon.rpc.fast_decode import UNREADABLE, FastDecoder
from compactd.daemon.rpc.ids import ID_STARTS
from compactd.daemon.rpc.json_depth import SHALLOW_BYTES, is_too_deep
from compactd.daemon.rpc.outgoing import ErrorObject, MessageSender, error_object
from compactd.daemon.rpc.params import ParamsReader, token_of
from compactd.daemon.rpc.pipes import PipeReader, PipeWriter
from compactd.daemon.rpc.request import Reply, Request, encode
from compactd.daemon.rpc.service import Service
from compactd.protocol.methods import Method

_RESULTS = (Struct, Raw)

_log = logging.getLogger("compactd.rpc")


class Dispatcher:
    """The running requests, and their answers. Use it only on the event loop's thread.

    If an id is used twice at the same time, both requests are answered; cancelling the id reaches the newer
    one.
    """

    def __init__(
        self,
        service: Service,
        out: MessageSender,
        writer: PipeWriter,
        began: Callable[[], None],
        cancel_s: float,
    ) -> None:
        self._service = service
        self._writer = writer
        self._methods = service.methods
        self._known = FastDecoder()
        self._decode = self._known.decode
        self._method_of = self._known.methods.get
        self._out = out
        self._answer = out.answer
        self._notify = out.notify
        self._began = began
        self._cancel_s = cancel_s
        self._params: dict[str, ParamsReader] = {}
        # The types of the results that handlers have returned so far without an awaitable.
        self._results: set[type] = set()
        self._running: dict[asyncio.Future[Reply], Request] = {}
        self._by_id: dict[bytes, Request] = {}
        self._by_token: dict[bytes, Request] = {}

    def take(self, body: RequestBody) -> bool:
        """Handle a message if it is a call of a known method (see `fast_decode.py`). Otherwise return false;
        the caller then decodes the message and uses `call`.
        """
        try:
            call = self._decode(body.text if isinstance(body, CheckedBody) else body)
        except UNREADABLE:
            return False
        method = self._method_of(type(call))
        if method is None or not _is_sound(body):
            return False
        id, raw = None, call.id
        if raw is not UNSET:
            id = encode(raw)  # faster than `bytes(raw)`
            if id[0] not in ID_STARTS:
                return False
        self._call(method, call.params, Request(id, method.name, self._notify))
        return True

    def take_many(self, reader: PipeReader, most_bytes: int, until: float) -> bool:
        """Handle the small calls of known methods (see `fast_decode.py`) that wait first in `reader`, oldest
        first. Return false if none was handled.

        Stops before any other message, after a request that becomes a task, when more than `most_bytes` of
        answers are not flushed, or at the time `until` (of `perf_counter`). Call `PipeWriter.collect` first.
        Code of other modules is repeated here, because calling it would be a third of the cost of a small
        request.
        """
        frames, writer, add = reader.frames, self._writer, self._writer.outbox.append
        decode, method_of, serve, results = self._decode, self._method_of, self._service.call, self._results
        notify, heads, taken = self._notify, self._out.heads, 0
        try:
            while frames:
                body = frames.popleft()
                if type(body) is not bytes or len(body) > SHALLOW_BYTES or not body.isascii():
                    frames.appendleft(body)
                    break
                try:
                    call = decode(body)
                except UNREADABLE:
                    frames.appendleft(body)
                    break
                method = method_of(type(call))
                if method is None or (raw := call.id) is UNSET or (id := encode(raw))[0] not in ID_STARTS:
                    frames.appendleft(body)
                    break
                taken += len(body)
                request, params = Request(id, method.name, notify), call.params
                try:
                    if getattr(params, "work_done_token", UNSET) is not UNSET:
                        request.token = token_of(params)
                    reply = serve(method, params, request)
                    is_plain = type(reply) in results and request.token is None and request.then is None
                    result = encode(reply) if is_plain else b""
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as error:  # as in `_call`
                    self.fail(request, error)
                else:
                    if not is_plain:
                        if not self._send_reply(request, reply):
                            break
                    elif head := heads.get(len(id) + len(result)):
                        answer = b"".join((head, id, b',"result":', result, b"}"))
                        add(answer)
                        writer.unflushed_bytes += len(answer)
                    else:
                        self._answer(id, result)
                if writer.unflushed_bytes > most_bytes or perf_counter() > until:
                    break
        finally:
            reader.handled_bytes += taken
        return taken > 0

    def call(self, method: Method, raw: Raw | UnsetType, request: Request) -> None:
        """Decode the params, call the method, and answer: at once, or when the awaitable that the handler
        returns is done.
        """
        try:
            reader = self._reader_of(method)
            params = reader.read(raw)
            request.unknown = reader.unknown
        except Exception as error:
            self.fail(request, error)
            return
        self._known.learn(method, reader)
        self._decode = self._known.decode
        self._call(method, params, request)

    def _call(self, method: Method, params: Struct, request: Request) -> None:
        try:
            if getattr(params, "work_done_token", UNSET) is not UNSET:
                request.token = token_of(params)
            reply = self._service.call(method, params, request)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # A panic in a Rust library is not an Exception, but the request must be answered too.
            self.fail(request, error)
            return
        self._send_reply(request, reply)

    def _send_reply(self, request: Request, reply: Reply | Awaitable[Reply]) -> bool:
        """Handle what a handler returned. If it is a result, answer with it and return true. If it is an
        awaitable, start it as a task and return false.
        """
        if not (reply is None or isinstance(reply, _RESULTS)):
            self.start(request, reply)
            return False
        self._results.add(type(reply))
        self.succeed(request, reply)
        return True

    async def invoke(self, name: str, raw: Raw, request: Request) -> bytes:
        """Call the method `name` as part of the running request `request`. Return the result as JSON."""
        method = self._methods[name]
        reader = self._reader_of(method)
        params = reader.read(raw)
        request.unknown = reader.unknown
        reply = self._service.call(method, params, request)
        if reply is None or isinstance(reply, _RESULTS):
            return encode(reply)
        return encode(await reply)

    def start(self, request: Request, work: Awaitable[Reply]) -> None:
        """Run `work` as a task, and answer the request with its result. The callback `began` lets the task's
        first step run before the next message is handled.
        """
        task = asyncio.ensure_future(work)
        request.task = task
        self._running[task] = request
        if request.id is not None:
            self._by_id[request.id] = request
        self.listen(request)
        task.add_done_callback(self._on_done)
        self._began()

    def listen(self, request: Request) -> None:
        """Allow the request to be cancelled through its progress token."""
        if request.token is not None:
            self._by_token[request.token] = request

    def check(self, name: str, raw: Raw) -> None:
        """Raise `InvalidParams` if `invoke` would refuse the params."""
        self._reader_of(self._methods[name]).read(raw)

    def succeed(self, request: Request, reply: Reply) -> None:
        """Answer with a result."""
        try:
            result = encode(reply)
        except Exception as error:
            self.fail(request, error)
            return
        if request.token is not None:
            request.end()
        id = request.id
        if id is not None and not request.is_answered:
            self._answer(id, result)
        request.is_answered = True
        if request.then is not None:
            _follow(request)

    def fail(self, request: Request, error: BaseException) -> None:
        """Answer with an error: what a client may know about the exception (`error_object`)."""
        told = error_object(error, request.name)
        if request.id is None:
            _log.info("the notification %s failed with error %d", request.name[:100], told.code)
        self.refuse(request, told)

    def refuse(self, request: Request, error: ErrorObject) -> None:
        """Answer with an error."""
        request.end()
        if not request.is_answered:
            request.is_answered = True
            if request.id is not None:
                self._out.refuse(request.id, error)
        _follow(request)

    def cancel_id(self, id: bytes) -> None:
        """Cancel the newest running request with this id. Do nothing if there is none."""
        _cancel(self._by_id.get(id))

    def cancel_token(self, token: bytes) -> bool:
        """Cancel the request whose progress has this token. Return false if there is none."""
        request = self._by_token.get(token)
        _cancel(request)
        return request is not None

    async def finish(self, drain_s: float) -> None:
        """Give running work `drain_s` seconds to end, then cancel the rest. On return every request is
        answered.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + drain_s
        if self._running and drain_s > 0:
            await asyncio.wait(set(self._running), timeout=drain_s)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(set(self._running), timeout=self._cancel_s)
        for request in self._running.values():
            self.fail(request, asyncio.CancelledError())
        left_s = max(0.0, until - loop.time())
        try:
            await asyncio.wait_for(self._service.drain(left_s), left_s + self._cancel_s)
        except Exception as error:
            error_object(error, "the end of the connection")

    def _reader_of(self, method: Method) -> ParamsReader:
        reader = self._params.get(method.name)
        if reader is None:
            reader = self._params[method.name] = ParamsReader(method.name, method.params)
        return reader

    def _on_done(self, task: asyncio.Future[Reply]) -> None:
        request = self._running.pop(task)
        if request.id is not None and self._by_id.get(request.id) is request:
            del self._by_id[request.id]
        if request.token is not None and self._by_token.get(request.token) is request:
            del self._by_token[request.token]
        try:
            reply = task.result()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self.fail(request, error)
        else:
            self.succeed(request, reply)


def _is_sound(body: RequestBody) -> bool:
    """Return true if the body is UTF-8 and not nested too deeply, which msgspec does not check."""
    if isinstance(body, CheckedBody):
        return body.is_utf8 and not body.is_too_deep
    return (len(body) <= SHALLOW_BYTES or not is_too_deep(body)) and (body.isascii() or is_utf8(body))


def _cancel(request: Request | None) -> None:
    if request is not None and request.task is not None:
        request.task.cancel()


def _follow(request: Request) -> None:
    for act in request.take_after():
        try:
            act()
        except Exception as error:
            error_object(error, f"a callback after the answer to {request.name}")
