"""Requests on their way: params read, handler called, result awaited, exactly one answer given."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from msgspec import Raw, Struct, UnsetType

from compactd.rpc.outgoing import ErrorObject, Outgoing, error_object
from compactd.rpc.params import ParamsReader, token_of
from compactd.rpc.request import Request, encode
from compactd.rpc.table import Method, Reply, Service

_log = logging.getLogger("compactd.rpc")


class Calls:
    """What is being worked on, and what is answered when it is done. For the loop's thread only.

    An id that is in use twice is answered twice; cancelling it reaches the newest of the two.
    """

    def __init__(self, service: Service, out: Outgoing, began: Callable[[], None], cancel_s: float) -> None:
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
        """Calls a method; answers now, or when what it gave back is done."""
        try:
            params = self._reader_of(method).read(raw)
            request.token = token_of(params)
            reply = self._service.call(method, params, request)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in a Rust library is no Exception, and is to be answered too
            self.fail(request, error)
            return
        if reply is None or isinstance(reply, (Struct, Raw)):
            self.succeed(request, reply)
        else:
            self.start(request, reply)

    async def invoke(self, name: str, raw: Raw, request: Request) -> bytes:
        """The encoded result of a method, called from inside a request for something else."""
        method = self._methods[name]
        reply = self._service.call(method, self._reader_of(method).read(raw), request)
        if reply is None or isinstance(reply, (Struct, Raw)):
            return encode(reply)
        return encode(await reply)

    def start(self, request: Request, work: Awaitable[Reply]) -> None:
        """Lets work go on beside everything else. `began` is called: its first step is still to come."""
        task = asyncio.ensure_future(work)
        request.task = task
        self._running[task] = request
        if request.id is not None:
            self._by_id[request.id] = request
        self.show_progress(request)
        task.add_done_callback(self._on_done)
        self._began()

    def show_progress(self, request: Request) -> None:
        """Begins the progress of a request that has a token, and lets that token cancel it."""
        if request.token is not None:
            self._by_token[request.token] = request
            request.begin()

    def succeed(self, request: Request, reply: Reply) -> None:
        """Answers with a result."""
        try:
            result = encode(reply)
        except Exception as error:
            self.fail(request, error)
            return
        request.end()
        if request.id is not None and not request.is_answered:
            request.is_answered = True
            self._out.answer(request.id, result)
        _follow(request)

    def fail(self, request: Request, error: BaseException) -> None:
        """Answers with what a client may know of an exception."""
        told = error_object(error, request.name)
        if request.id is None:
            _log.info("the notification %s failed with %d", request.name[:100], told.code)
        self.refuse(request, told)

    def refuse(self, request: Request, error: ErrorObject) -> None:
        """Answers with an error."""
        request.end()
        if request.id is not None and not request.is_answered:
            request.is_answered = True
            self._out.refuse(request.id, error)
        _follow(request)

    def cancel_id(self, id: bytes) -> None:
        """Cancels the newest request with this id. One that is done, or never was, is no error."""
        _cancel(self._by_id.get(id))

    def cancel_token(self, token: bytes) -> bool:
        """Cancels the request whose progress has this token; false where there is none."""
        request = self._by_token.get(token)
        _cancel(request)
        return request is not None

    async def finish(self, drain_s: float) -> None:
        """Gives all that runs so much time to end, then cancels it. When it returns, all is answered."""
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
            await asyncio.wait_for(self._service.drained(left_s), left_s + self._cancel_s)
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
            error_object(error, f"what follows {request.name}")
