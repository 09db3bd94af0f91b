"""Forward a client's requests to the daemon that writes the session, and carry out those of other daemons.

All daemons of one database may have a session open. One of them has its lease and writes; the others follow
its records. A request that changes the session goes to the writer as a row of the database. If there is no
writer any more, the daemon that is asked becomes it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeGuard, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from compactd.daemon.fleet.messages import Answered, Asked, Forwarded, Question
from compactd.daemon.rpc.outgoing import INTERNAL_ERROR, AnsweredWithError, ErrorObject, error_object
from compactd.daemon.rpc.params import ParamsReader
from compactd.daemon.rpc.request import Reply, Request
from compactd.protocol.errors import CompactdError, StorageFailed
from compactd.protocol.messages import encode
from compactd.protocol.methods import Method
from compactd.session.host import ClientFailed, ClientRef, acting
from compactd.session.manager import Sessions, Start
from compactd.session.session import Session
from compactd.storage.protocols import LOST_LEASE, Call, Calls

T = TypeVar("T")

MAX_PROMPTS = 1_000
LOOK_S = 1.0
"""Seconds between two looks for the answer, and whether the writer still lives, while an answer is waited
for.
"""
GRACE_S = 10.0
"""Seconds in which another daemon must have read a question to its client."""
RETRY_S = 0.05
"""Seconds until the writer of a session is looked for again."""

_decode = msgspec.json.Decoder(Asked).decode
_decode_answer = msgspec.json.Decoder(Answered).decode
_log = logging.getLogger("compactd.fleet")


class FleetHost(Protocol):
    """The daemon as its forwarder sees it."""

    @property
    def methods(self) -> Mapping[str, Method]:
        """All compactd methods by name."""
        ...

    @property
    def sessions(self) -> Sessions:
        """The sessions that are open in this process, and the store of all."""
        ...

    async def in_worker(self, work: Callable[[], T]) -> T:
        """Run `work` in a worker thread and return its result."""
        ...

    def call(self, method: Method, params: Struct, request: Request) -> Reply | Awaitable[Reply]:
        """Return the result of a request, or an awaitable of the result."""
        ...

    async def ask_client(
        self, session_id: str, first: ClientRef | None, method: str, params: Struct | Raw, timeout_s: float
    ) -> tuple[Raw, ClientRef]:
        """Send a request to a client and return its answer. Raises `ClientFailed`."""
        ...


class RemoteClient:
    """A client of another daemon: a `ClientRef`."""

    is_connected = True
    """Whether it is connected is known at its daemon only, which says so when it is asked."""

    def __init__(self, node: str, call_id: str, name: str | None) -> None:
        self.node = node
        self.call_id = call_id
        self._name = name

    def name_in(self, session_id: str) -> str | None:
        """Return the name that the client gave itself, or None."""
        return self._name


class WriterGone(Exception):
    """The daemon that was asked has lost the session's lease. `may_have_begun`: it had read the request."""

    def __init__(self, *, may_have_begun: bool) -> None:
        super().__init__("the daemon that wrote the session is gone")
        self.may_have_begun = may_have_begun


class Forwarder:
    """The calls between this daemon and the others. Use it only on the event loop's thread."""

    def __init__(self, host: FleetHost, calls: Calls) -> None:
        self._host = host
        self._calls = calls
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, asyncio.Future[Answered]] = {}
        """By the id of a call that was sent, who waits for its answer."""
        self._prompters: OrderedDict[str, ClientRef] = OrderedDict()
        """By the id of a call with a prompt, the client that gave it: the newest `MAX_PROMPTS`."""
        self._readers: dict[str, ParamsReader] = {}
        """By method, the decoder of its params."""
        self._serving: set[asyncio.Task[object]] = set()
        self._is_reading = self._has_news = False
        calls.listen(self._wake)

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(self.note_news)

    # --- requests of this daemon's clients --------------------------------------------------------------

    async def forward(self, session: Session, method: Method, params: Struct, request: Request) -> Reply:
        """Have a request to a followed session carried out by the daemon that writes it, or here if there is
        none. Raises what the handler raises there, and `StorageFailed` if the answer was lost and the request
        must not be sent twice.
        """
        client = acting.get()
        name = None if client is None else client.name_in(session.id)
        body = encode(
            Forwarded(session_id=session.id, method=method.name, params=Raw(encode(params)), client=name)
        )
        while True:
            writer = await self._host.in_worker(partial(self._calls.writer_of, session.id))
            if writer is None or writer == self._calls.node:
                await self._host.sessions.start(Start(session_id=session.id))
                current = self._host.sessions.get(session.id)
                if current.journal is not None:
                    return await _awaited(self._host.call(method, params, request))
                session = current
                await asyncio.sleep(RETRY_S)
                continue
            try:
                prompter = client if method.name == "agent/prompt" else None
                answer = await self._ask(writer, session.id, body, prompter)
            except WriterGone as gone:
                if gone.may_have_begun and method.repeat == "no":
                    raise StorageFailed(
                        "The daemon that wrote this session has ended, perhaps after it carried the request "
                        "out. Read agent/state, and send the request again if needed."
                    ) from None
                continue
            if answer.is_closed:
                await asyncio.sleep(RETRY_S)
                continue
            if answer.error is not UNSET:
                raise AnsweredWithError(answer.error)
            if session.following is not None:
                await session.following.read_to(answer.records)
            return None if answer.result is UNSET else answer.result

    async def carry_out(
        self,
        work: Callable[[], Reply | Awaitable[Reply]],
        session: Session,
        method: Method,
        params: Struct,
        request: Request,
    ) -> Reply:
        """Carry a request out with `work` if this daemon writes the session. If another one does, or has
        taken the session over meanwhile, have it carried out there.
        """
        if session.is_forwarded:
            return await self.forward(session, method, params, request)
        try:
            return await _awaited(work())
        except StorageFailed as failed:
            if failed.data.get("reason") != LOST_LEASE or method.repeat == "no":
                raise
        await self._host.sessions.start(Start(session_id=session.id))
        return await self.forward(self._host.sessions.get(session.id), method, params, request)

    def is_remote(self, client: ClientRef | None) -> TypeGuard[RemoteClient]:
        """Return whether a client is another daemon's."""
        return isinstance(client, RemoteClient)

    async def ask(
        self, client: RemoteClient, session_id: str, method: str, params: Struct | Raw, timeout_s: float
    ) -> Raw:
        """Send a request to a client of another daemon, and return its answer. Raises `ClientFailed`."""
        question = Question(
            session_id=session_id,
            prompt_call=client.call_id,
            method=method,
            params=Raw(encode(params)),
            timeout_s=timeout_s,
        )
        call_id, waiter = await self._send(client.node, encode(question))
        until = self._loop.time() + timeout_s
        try:
            await asyncio.wait((waiter,), timeout=min(timeout_s, GRACE_S))
            if not waiter.done() and await self._host.in_worker(partial(self._calls.withdraw, call_id)):
                raise ClientFailed("the client's node is gone", is_gone=True)
            answer = await asyncio.wait_for(waiter, max(0.0, until - self._loop.time()))
        except TimeoutError:
            raise ClientFailed(f"the client gave no answer within {timeout_s:g} seconds") from None
        finally:
            self._waiting.pop(call_id, None)
        if answer.error is not UNSET:
            raise ClientFailed(answer.error.message)
        return Raw(b"null") if answer.result is UNSET else answer.result

    async def _ask(self, writer: str, session_id: str, body: bytes, prompter: ClientRef | None) -> Answered:
        call_id, waiter = await self._send(writer, body)
        if prompter is not None:
            self._prompters[call_id] = prompter
            if len(self._prompters) > MAX_PROMPTS:
                self._prompters.popitem(last=False)
        try:
            while True:
                done, _ = await asyncio.wait((waiter,), timeout=LOOK_S)
                if done:
                    return waiter.result()
                self.note_news()  # a notification may have been lost
                is_writer = await self._host.in_worker(partial(self._calls.writer_of, session_id)) == writer
                if is_writer and await self._host.in_worker(partial(self._calls.is_there, call_id)):
                    continue
                is_withdrawn = await self._host.in_worker(partial(self._calls.withdraw, call_id))
                if waiter.done():
                    return waiter.result()
                raise WriterGone(may_have_begun=not is_withdrawn)
        except asyncio.CancelledError:
            # What the writer has begun goes on there.
            self._start(self._host.in_worker(partial(self._calls.withdraw, call_id)))
            raise
        finally:
            self._waiting.pop(call_id, None)

    async def _send(self, node: str, body: bytes) -> tuple[str, asyncio.Future[Answered]]:
        waiter: asyncio.Future[Answered] = self._loop.create_future()
        call_id = self._calls.new_id()
        self._waiting[call_id] = waiter  # the answer may come before `send` returns
        await self._host.in_worker(partial(self._calls.send, call_id, node, body))
        return call_id, waiter

    # --- calls of other daemons -------------------------------------------------------------------------

    def note_news(self) -> None:
        """Read the calls and answers for this daemon. Called when there are any, or when some may have been
        missed.
        """
        self._has_news = True
        if not self._is_reading:
            self._is_reading = True
            self._start(self._read())

    def _start(self, work: Coroutine[object, object, object]) -> None:
        task = asyncio.ensure_future(work)
        self._serving.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[object]) -> None:
        self._serving.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a call between daemons failed", exc_info=error)

    async def _read(self) -> None:
        try:
            while self._has_news:
                self._has_news = False
                waiting = tuple(self._waiting)
                calls, answers = await self._host.in_worker(partial(self._calls.take, waiting))
                for call_id, body in answers.items():
                    waiter = self._waiting.get(call_id)
                    if waiter is not None and not waiter.done():
                        waiter.set_result(_decode_answer(body))
                for call in calls:
                    self._start(self._serve(call))
        except CompactdError as error:
            _log.warning("calls of other daemons could not be read: %s", error.message)
            self._loop.call_later(LOOK_S, self.note_news)
        finally:
            self._is_reading = False

    async def _serve(self, call: Call) -> None:
        asked: Asked = _decode(call.body)
        if isinstance(asked, Question):
            answer = await self._ask_own(asked)
        elif asked.session_id in self._host.sessions.open:
            answer = await self._answer_to(call, asked)
        else:
            answer = Answered(is_closed=True)
        body = encode(answer)
        while True:
            try:
                return await self._host.in_worker(partial(self._calls.answer, call, body))
            except CompactdError as error:
                _log.warning("a call of another daemon could not be answered yet: %s", error.message)
                await asyncio.sleep(LOOK_S)

    async def _answer_to(self, call: Call, asked: Forwarded) -> Answered:
        """Carry out a request, and return its answer, whatever goes wrong."""
        try:
            result = await self._result_of(call, asked)
        except Exception as error:
            return Answered(error=error_object(error, asked.method), records=self._records(asked))
        return Answered(result=Raw(result), records=self._records(asked))

    async def _result_of(self, call: Call, asked: Forwarded) -> bytes:
        method = self._host.methods[asked.method]
        reader = self._readers.get(method.name)
        if reader is None:
            reader = self._readers[method.name] = ParamsReader(method.name, method.params)
        params = reader.read(asked.params)
        acting.set(RemoteClient(call.sender, call.id, asked.client))
        request = Request(id=None, name=method.name, _notify=lambda *_, **__: True)
        try:
            return encode(await _awaited(self._host.call(method, params, request)))
        finally:
            request.is_answered = True
            for act in request.take_after():
                act()

    async def _ask_own(self, asked: Question) -> Answered:
        client = self._prompters.get(asked.prompt_call)
        try:
            if client is None:
                raise ClientFailed("the client is gone", is_gone=True)
            raw, _ = await self._host.ask_client(
                asked.session_id, client, asked.method, asked.params, asked.timeout_s
            )
        except ClientFailed as failed:
            return Answered(error=ErrorObject(INTERNAL_ERROR, failed.message))
        return Answered(result=raw)

    def _records(self, asked: Forwarded) -> int:
        session = self._host.sessions.open.get(asked.session_id)
        return 0 if session is None else len(session.entries)


async def _awaited(reply: Reply | Awaitable[Reply]) -> Reply:
    return reply if reply is None or isinstance(reply, Struct | Raw) else await reply
