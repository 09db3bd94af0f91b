"""Dispatch of requests: read the params, call the handler, await its result, and send exactly one answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from msgspec import Raw, Struct, UnsetType

from compactd.daemon.rpc.outgoing import ErrorObject, MessageSender, error_object
from compactd.daemon.rpc.params import ParamsReader, token_of
from compactd.daemon.rpc.request import Reply, Request
from compactd.daemon.rpc.service import Service
from compactd.protocol.messages import encode
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
        began: Callable[[], None],
        cancel_s: float,
    ) -> None:
        self._service = service
        self._methods = service.methods
        self._out = out
        self._began = began
        self._cancel_s = cancel_s
        self._params: dict[str, ParamsReader] = {}
        self._running: dict[asyncio.Future[Reply], Request] = {}
        self._by_id: dict[bytes, Request] = {}
        self._by_token: dict[bytes, Request] = {}

    def call(self, method: Method, raw: Raw | UnsetType, request: Request) -> None:
        """Decode the params, call the method, and answer: at once, or when the awaitable that the handler
        returns is done.
        """
        try:
            reader = self._reader_of(method)
            params = reader.read(raw)
            request.unknown = reader.unknown
            request.token = token_of(params)
            reply = self._service.call(method, params, request)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # A panic in a Rust library is not an Exception, but the request must be answered too.
            self.fail(request, error)
            return
        if reply is None or isinstance(reply, _RESULTS):
            self.succeed(request, reply)
        else:
            self.start(request, reply)

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
            self._out.answer(id, result)
        request.is_answered = True
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


def _cancel(request: Request | None) -> None:
    if request is not None and request.task is not None:
        request.task.cancel()


def _follow(request: Request) -> None:
    for act in request.take_after():
        try:
            act()
        except Exception as error:
            error_object(error, f"a callback after the answer to {request.name}")
