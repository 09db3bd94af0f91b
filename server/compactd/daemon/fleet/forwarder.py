"""Forward a client's requests to the daemon that writes the session, and carry out those of other daemons.

All daemons of one database may have a session open. One of them has its lease and writes; the others follow
its records. A request that changes the session goes to the writer as a row of the database. If there is no
writer any more, the daemon that is asked becomes it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol, TypeGuard, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from compactd.daemon.fleet.live_events import LiveEvents
from compactd.daemon.fleet.mailbox import Mailbox
from compactd.daemon.fleet.messages import (
    Answered,
    Asked,
    Cancel,
    Forwarded,
    Progressed,
    Question,
    Told,
)
from compactd.daemon.fleet.remote_client import RemoteClient
from compactd.daemon.fleet.repeats import is_repeatable
from compactd.daemon.fleet.route import GRACE_S, PendingRequest, Route
from compactd.daemon.rpc.outgoing import INTERNAL_ERROR, AnsweredWithError, ErrorObject, error_object
from compactd.daemon.rpc.params import ParamsReader
from compactd.daemon.rpc.request import ProgressParams, ProgressReport, Reply, Request
from compactd.protocol.errors import SessionLocked, SessionNotFound, StorageFailed
from compactd.protocol.messages import Event, encode
from compactd.protocol.methods import Method
from compactd.session.host import ClientFailed, ClientRef, acting
from compactd.session.manager import Sessions, Start
from compactd.session.session import Session
from compactd.storage.protocols import LOST_LEASE, Call, Calls

T = TypeVar("T")

MAX_PROMPTS = 1_000
_CANCELLED = Answered(error=error_object(asyncio.CancelledError(), "a call of another daemon"))
_OTHER_VERSION = Answered(
    error=error_object(
        StorageFailed(
            "The daemon that writes this session has another version of compactd, which does not know this "
            "request. Run the same version on all nodes, and send the request again."
        ),
        "a call of another daemon",
    )
)

_decode = msgspec.json.Decoder(Asked | Told).decode


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


class Forwarder:
    """The requests that go from this daemon to others, and from others to this one. Use it only on the event
    loop's thread.
    """

    def __init__(self, host: FleetHost, calls: Calls) -> None:
        self._host = host
        self._mailbox = Mailbox(
            host,
            calls,
            lambda call: self._mailbox.start(self._serve(call)),
            lambda node: self._live.forget_node(node),
        )
        self._live = LiveEvents(host.sessions, self._mailbox)
        host.sessions.on_writer = self._live.follow
        self._routes: dict[str, Route] = {}
        """By session, the way of the requests that another daemon is to carry out."""
        self._prompters: OrderedDict[str, ClientRef] = OrderedDict()
        """By the id of a call with a prompt, the client that gave it: the newest `MAX_PROMPTS`."""
        self._readers: dict[str, ParamsReader] = {}
        """By method, the decoder of its params."""
        self._served: dict[str, asyncio.Task[Answered]] = {}
        """By the id of its call, the request of another daemon that is being carried out."""
        self._reports: dict[str, Callable[[float, str | None], None]] = {}
        """By the id of a call, what shows its client the progress."""

    # --- requests of this daemon's clients --------------------------------------------------------------

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

        Raises what the handler raises, here or there, and `StorageFailed` if the answer was lost and the
        request must not be sent twice.
        """
        while True:
            route = self._routes.get(session.id)
            if session.is_forwarded or (route is not None and route.is_busy):
                answer = await self._forward(session, method, params, request)
                if answer is not None:
                    return await self._reply(session.id, answer)
            try:
                return await _awaited(work())
            except StorageFailed as failed:
                if failed.data.get("reason") != LOST_LEASE or not is_repeatable(method, params):
                    raise
                await self._host.sessions.reopen(session)
            except (SessionNotFound, SessionLocked):
                # If the request waited while this daemon lost the session, it changed nothing.
                current = self._host.sessions.open.get(session.id)
                if not (session.is_reopened or (current is not None and current.is_forwarded)):
                    raise
                await self._host.sessions.start(Start(session_id=session.id))
            session = self._host.sessions.get(session.id)

    async def _forward(
        self, session: Session, method: Method, params: Struct, request: Request
    ) -> Answered | None:
        """Return another daemon's answer to a request. None if this daemon writes the session now."""
        client = acting.get()
        asked = Forwarded(
            session_id=session.id,
            method=method.name,
            params=Raw(encode(params)),
            client=None if client is None else client.name_in(session.id),
            shows_progress=request.token is not None,
        )
        sent: list[str] = []

        def note_sent(call_id: str) -> None:
            sent.append(call_id)
            if client is not None and method.name == "agent/prompt":
                self._note_prompter(client, call_id)
            if asked.shows_progress:
                self._reports[call_id] = request.progress

        repeatable = is_repeatable(method, params)
        pending = PendingRequest(encode(asked), is_repeatable=repeatable, on_sent=note_sent)
        route = self._routes.get(session.id)
        if route is None:
            opened, ended = partial(self._open, session.id), partial(self._forget_route, session.id)
            route = self._routes[session.id] = Route(self._mailbox, session.id, opened, ended)
        try:
            return await route.send(pending)
        finally:
            for call_id in sent:
                self._reports.pop(call_id, None)

    async def _reply(self, session_id: str, answer: Answered) -> Reply:
        if answer.error is not UNSET:
            raise AnsweredWithError(answer.error)
        session = self._host.sessions.open.get(session_id)
        if session is not None and session.following is not None:
            await session.following.read_to(answer.records)
        return None if answer.result is UNSET else answer.result

    def _forget_route(self, session_id: str) -> None:
        del self._routes[session_id]

    async def _open(self, session_id: str) -> bool:
        await self._host.sessions.start(Start(session_id=session_id))
        return self._host.sessions.get(session_id).journal is not None

    def _note_prompter(self, client: ClientRef, call_id: str) -> None:
        self._prompters[call_id] = client
        if len(self._prompters) > MAX_PROMPTS:
            self._prompters.popitem(last=False)

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
        call_id, waiter = self._mailbox.post(client.node, encode(question))
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        try:
            await asyncio.wait((waiter,), timeout=min(timeout_s, GRACE_S))
            if not waiter.done() and await self._mailbox.withdraw((call_id,)):
                raise ClientFailed("the client's node is gone", is_gone=True)
            answer = await asyncio.wait_for(waiter, max(0.0, until - loop.time()))
        except TimeoutError:
            raise ClientFailed(f"the client gave no answer within {timeout_s:g} seconds") from None
        finally:
            self._mailbox.forget(call_id)
        if answer.error is not UNSET:
            raise ClientFailed(answer.error.message)
        return Raw(b"null") if answer.result is UNSET else answer.result

    def publish(self, session_id: str, event: Event) -> None:
        """Send an event of a session to the daemons that follow it. See `LiveEvents.publish`."""
        self._live.publish(session_id, event)

    # --- calls of other daemons -------------------------------------------------------------------------

    async def _serve(self, call: Call) -> None:
        try:
            asked: Asked | Told = _decode(call.body)
        except msgspec.DecodeError:
            self._mailbox.answer(call, _OTHER_VERSION)
            return
        if isinstance(asked, Told):
            self._mailbox.drop(call)
            await self._hear(call.sender, asked)
        else:
            self._mailbox.answer(call, await self._answer(call, asked))

    async def _answer(self, call: Call, asked: Asked) -> Answered:
        if isinstance(asked, Cancel):
            if (served := self._served.get(asked.call)) is not None:
                served.cancel()
            return Answered()
        if isinstance(asked, Question):
            return await self._ask_own(asked)
        if asked.session_id not in self._host.sessions.open:
            return Answered(is_closed=True)
        if asked.method not in self._host.methods:
            return _OTHER_VERSION
        self._live.add(asked.session_id, call.sender)
        task = self._served[call.id] = asyncio.ensure_future(self._answer_to(call, asked))
        try:
            return await task
        except asyncio.CancelledError:
            if not task.cancelled():  # this daemon ends
                task.cancel()
                raise
            return _CANCELLED
        finally:
            del self._served[call.id]

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
        token = b"0" if asked.shows_progress else None
        request = Request(id=None, name=method.name, _notify=partial(self._report, call), token=token)
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

    def _report(self, call: Call, method: str, params: Struct | Raw, droppable: bool = False) -> bool:
        """Tell the daemon of a request's client how far the request is. The other daemon begins and ends the
        progress.
        """
        if isinstance(params, ProgressParams) and isinstance(params.value, ProgressReport):
            fraction, message = (params.value.percentage or 0) / 100, params.value.message
            told = Progressed(call=call.id, fraction=fraction, message=message)
            self._mailbox.tell(call.sender, encode(told))
        return True

    async def _hear(self, sender: str, told: Told) -> None:
        if not isinstance(told, Progressed):
            await self._live.hear(sender, told)
        elif (report := self._reports.get(told.call)) is not None:
            report(told.fraction, told.message)

    def _records(self, asked: Forwarded) -> int:
        session = self._host.sessions.open.get(asked.session_id)
        return 0 if session is None else len(session.entries)


async def _awaited(reply: Reply | Awaitable[Reply]) -> Reply:
    return reply if reply is None or isinstance(reply, Struct | Raw) else await reply
