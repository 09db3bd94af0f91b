"""The clients of this daemon: who has which session open, who gets which event, who answers which question.

A daemon on stdio has one client, which gets every event. A shared daemon has many: a client gets the events
of the sessions that it has opened or subscribed to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.daemon.lsp.progress import CompactionEvent
from compactd.daemon.rpc.outgoing import ClientError
from compactd.daemon.rpc.request import Reply, Request
from compactd.daemon.sharing.event_log import EventLog, LoggedMessage
from compactd.protocol.errors import CompactdError, SessionLocked
from compactd.protocol.messages import (
    Event,
    EventsDropped,
    MessageAppended,
    MessageDelta,
    SessionClosed,
    ThinkingDelta,
    encode,
)
from compactd.protocol.methods import Method
from compactd.session.host import ClientFailed, ClientRef, acting

if TYPE_CHECKING:
    from compactd.daemon.rpc.connection import Connection
    from compactd.session.manager import Sessions
    from compactd.session.session import Session
    from compactd.storage.settings_reader import ClientSettings

DROPPABLE = (MessageDelta, ThinkingDelta)
"""Kinds of events that are dropped while a client does not read (docs/dev/contract.md, "Transport")."""

BEHIND_BYTES = 4 * 1024 * 1024
"""In a shared daemon: if more bytes than this wait for a client to read, it gets no deltas."""
LOST_BYTES = 2 * BEHIND_BYTES
"""In a shared daemon: if more bytes than this wait for a client to read, it gets no more events of the
session, and a notice that says so."""

GRACE_S = 10.0
"""Seconds for which a prompt whose client has left waits for another client that answers its questions."""

_log = logging.getLogger("compactd.sharing")

HOOK = "session/compacting"
"""The request that asks a client before a compaction."""


class ClientHost(Protocol):
    """The daemon as its clients see it."""

    @property
    def methods(self) -> Mapping[str, Method]:
        """All compactd methods by name."""
        ...

    @property
    def open_sessions(self) -> Mapping[str, Session]:
        """The sessions that are open in this process, by id."""
        ...

    @property
    def sessions(self) -> Sessions:
        """The sessions that are open in this process, and the store of all."""
        ...

    def call(self, method: Method, params: Struct, request: Request) -> Reply | Awaitable[Reply]:
        """Handle a call (`Service.call`)."""
        ...

    def apply_client_settings(self, client: Client, settings: Raw, *, changed: bool) -> tuple[str, ...]:
        """Apply the settings that an editor gave (`Service.configure`)."""
        ...

    def new_client_settings(self) -> ClientSettings:
        """Return the settings of a client that has given none."""
        ...

    def refresh_session(self, session_id: str) -> None:
        """Recompute the settings of an open session, because something outside it changed."""
        ...


class Seat(Struct):
    """One client's part in one session."""

    has_hook: bool = False
    """Whether the client answers `session/compacting`."""
    answers: bool = False
    """Whether the client answers `tool/execute` for prompts of clients that have left."""
    is_borrowed: bool = False
    """Whether an editor's command opened the session for its own use."""


class Place(Struct, frozen=True):
    """What a client had of a session before it asked to open it."""

    seat: Seat | None = None
    is_subscribed: bool = False


class Client:
    """One connected client. It is the `Service` of its connection: it passes calls on to the daemon, and
    notes for whom the daemon works.
    """

    def __init__(self, host: ClientHost, clients: Clients) -> None:
        self._host = host
        self._clients = clients
        self._connection: Connection | None = None
        self._settings: ClientSettings | None = None
        self._is_watched = False
        self.is_gone = False
        """True once nobody reads what is sent to the client."""
        self.names: dict[str, str] = {}
        """By session id, the name that the client gave itself. It is known after the client has left, too."""

    def connect(self, connection: Connection) -> None:
        """Set the client's connection."""
        self._connection = connection

    @property
    def connection(self) -> Connection:
        """The client's connection."""
        assert self._connection is not None
        return self._connection

    @property
    def settings(self) -> ClientSettings:
        """The settings that the client gave as an editor."""
        if self._settings is None:
            self._settings = self._host.new_client_settings()
        return self._settings

    def watch(self) -> None:
        """Start to watch the client, so that running prompts are stopped soon after it disconnects."""
        if self._connection is not None:
            self._connection.watch_client()
        if self.is_gone:
            self._clients.on_gone(self)

    # --- ClientRef --------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """False once the client cannot answer any more."""
        return self._connection is not None and not self.is_gone and not self._connection.out.is_closed

    def name_in(self, session_id: str) -> str | None:
        """Return the name that the client gave itself when it opened a session, or None."""
        return self.names.get(session_id)

    # --- Service ----------------------------------------------------------------------------------------

    @property
    def methods(self) -> Mapping[str, Method]:
        """All compactd methods by name."""
        return self._host.methods

    def call(self, method: Method, params: Struct, request: Request) -> Reply | Awaitable[Reply]:
        """Handle a call of this client."""
        acting.set(self)
        return self._host.call(method, params, request)

    def configure(self, settings: Raw, *, changed: bool) -> tuple[str, ...]:
        """Apply an editor's settings to the sessions that this client opened first."""
        return self._host.apply_client_settings(self, settings, changed=changed)

    def newest_session(self) -> str | None:
        """Return the id of the session that a command without a `session_id` means, or None."""
        opened = self._host.open_sessions
        own = [opened[session_id] for session_id in self._clients.sessions_of(self) if session_id in opened]
        found = [session for session in own if not session.is_borrowed]
        return max(found, key=lambda session: session.touched_at).id if found else None

    async def drain(self, timeout_s: float) -> None:
        """Wait, at most `timeout_s`, until compactions and prompts have ended in the sessions that no other
        client has open.
        """
        running = []
        for session in self._clients.left_alone(self):
            if session.operation is not None:
                running.append(session.operation.wait_ended())
            if session.agent_loop is not None:
                running.append(session.agent_loop.wait_ended())
        if running:
            await asyncio.wait([asyncio.ensure_future(one) for one in running], timeout=timeout_s)

    # --- messages to the client -------------------------------------------------------------------------

    def send_event(self, body: bytes, *, droppable: bool) -> bool:
        """Send an event. In a shared daemon, a client that reads too slowly gets no deltas, and later
        nothing. Return false if an event that is no delta was not sent.
        """
        out = self.connection.out
        if self._clients.is_shared and out.unsent_bytes > BEHIND_BYTES:
            if droppable:
                return True
            if out.unsent_bytes > LOST_BYTES:
                return False
        out.notify_body(body, droppable=droppable)
        return True

    async def ask(self, method: str, params: Struct, timeout_s: float) -> Raw:
        """Send a request to the client and return its answer. Raises `ClientFailed`, and `ConnectionError` if
        the client has left.
        """
        try:
            return await self.connection.out.request(method, params, timeout_s)
        except ClientError as error:
            raise ClientFailed(f"the client answered with an error: {error.error.message}") from None
        except TimeoutError:
            raise ClientFailed(f"the client gave no answer within {timeout_s:g} seconds") from None


class Clients:
    """All clients of this daemon. Use it only on the event loop's thread."""

    def __init__(self, host: ClientHost, *, is_shared: bool = False, grace_s: float = GRACE_S) -> None:
        self._host = host
        self.is_shared = is_shared
        self._grace_s = grace_s
        self.connected: list[Client] = []
        """The clients, the one that came first in front."""
        self._seats: dict[str, dict[Client, Seat]] = {}
        """By session id, the clients that have the session open, the one that opened it first in front."""
        self._subscribed: dict[str, dict[Client, None]] = {}
        """By session id, the clients that get its events."""
        self._logs: dict[str, EventLog] = {}
        self._arrivals: dict[str, dict[asyncio.Future[None], None]] = {}
        """By session id, what waits for a client that answers, oldest first."""
        self._closing: set[asyncio.Task[None]] = set()

    def add(self) -> Client:
        """Return a new client, which is not connected yet."""
        client = Client(self._host, self)
        self.connected.append(client)
        return client

    # --- who has which session open ---------------------------------------------------------------------

    def seat(self, client: ClientRef, session_id: str) -> Seat | None:
        """Return a client's part in a session; None if it has not opened the session."""
        seats = self._seats.get(session_id)
        return None if seats is None or not isinstance(client, Client) else seats.get(client)

    def sessions_of(self, client: Client) -> list[str]:
        """Return the ids of the sessions that a client has open. O(sessions)."""
        return [session_id for session_id, seats in self._seats.items() if client in seats]

    def first_of(self, session_id: str) -> Client | None:
        """Return the client that has a session open for the longest time, or None."""
        return next(iter(self._seats.get(session_id, ())), None)

    def others_in(self, session_id: str) -> list[Client]:
        """Return the clients other than the acting one that have a session open."""
        mine = acting.get()
        return [client for client in self._seats.get(session_id, ()) if client is not mine]

    def left_alone(self, client: Client) -> list[Session]:
        """Return the open sessions that only this client has open. Without a shared daemon: all."""
        opened = self._host.open_sessions
        if not self.is_shared:
            return list(opened.values())
        own = (session_id for session_id, seats in self._seats.items() if set(seats) == {client})
        return [opened[session_id] for session_id in own if session_id in opened]

    def sit_down(self, session_id: str, seat: Seat, name: str | None = None) -> Place:
        """Note that the acting client opens a session, and gets its events. Return what it had of the session
        before, for `undo_sit_down`. `name`: what it calls itself.

        Prompts of a client with the same name that has left are its own from now on.
        """
        client = acting.get()
        if not isinstance(client, Client):
            return Place()
        seats, hearing = self._seats.setdefault(session_id, {}), self._subscribed.setdefault(session_id, {})
        before = Place(seats.get(client), client in hearing)
        if name is not None:
            client.names[session_id] = name
        seats[client] = seat
        hearing[client] = None
        session = self._host.open_sessions.get(session_id)
        if session is not None:
            for turn_id, owner in session.prompters.items():
                if not owner.is_connected and self._heir(session_id, owner) is client:
                    session.prompters[turn_id] = client
        self._announce(session_id)
        return before

    def seat_importer(self, session_id: str) -> None:
        """Note that the acting client has a session open that it has just imported, unless others have."""
        if session_id in self._host.open_sessions and not self._seats.get(session_id):
            self.sit_down(session_id, Seat())

    def undo_sit_down(self, session_id: str, before: Place) -> None:
        """Undo `sit_down`, because opening the session failed or was cancelled. A session that is open and
        that no client of a shared daemon has open is closed soon.
        """
        client, is_open = acting.get(), session_id in self._host.open_sessions
        if not isinstance(client, Client):
            return
        if is_open and before.seat is not None:
            self._seats.setdefault(session_id, {})[client] = before.seat
            if not before.is_subscribed:
                self._subscribed.get(session_id, {}).pop(client, None)
            self.note_hooks(session_id)
            return
        self._subscribed.get(session_id, {}).pop(client, None)
        is_last = self.stand_up(session_id, client)
        if is_open and before.is_subscribed:
            self._subscribed.setdefault(session_id, {})[client] = None
        if is_open and is_last:
            self.close_soon(session_id)

    def stand_up(self, session_id: str, client: ClientRef | None) -> bool:
        """Note that a client closes a session. Return true if no client has it open any more."""
        seats, first = self._seats.get(session_id, {}), self.first_of(session_id)
        if isinstance(client, Client):
            seats.pop(client, None)
        if not seats:
            self._seats.pop(session_id, None)
            return True
        if isinstance(client, Client):
            self._subscribed.get(session_id, {}).pop(client, None)
        self.note_hooks(session_id)
        if self.first_of(session_id) is not first:
            # Another client's settings count from now on.
            self._host.refresh_session(session_id)
        return False

    async def close(self, session_id: str) -> None:
        """Note that the acting client closes a session, and close it if no other client has it open, or has
        asked for it meanwhile.
        """
        client = acting.get()
        await self._host.sessions.close(session_id, is_kept=lambda: not self.stand_up(session_id, client))

    def close_soon(self, session_id: str) -> None:
        """In a shared daemon: close a session, unless a client has it open, without waiting for it."""
        if self.is_shared:
            closing = asyncio.ensure_future(self._close_unused(session_id))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def require_alone(self, session_id: str) -> None:
        """Raise `SessionLocked` if another client than the acting one has a session open."""
        others = self.others_in(session_id)
        if others:
            names = sorted({name for client in others if (name := client.name_in(session_id))})
            who = f" ({', '.join(names)})" if names else ""
            raise SessionLocked(
                f"Another client has this session open{who}: close it there first.", session_id=session_id
            )

    def note_hooks(self, session_id: str) -> None:
        """Tell an open session whether a client answers `session/compacting`."""
        session = self._host.open_sessions.get(session_id)
        if session is None:
            return
        has_hook = any(seat.has_hook for seat in self._seats.get(session_id, {}).values())
        session.has_compaction_hook = has_hook
        if has_hook:
            session.drop_preparation()

    # --- clients that leave -----------------------------------------------------------------------------

    def on_gone(self, client: Client) -> None:
        """Stop the running prompts that no client reads any more, as `agent/abort` does. Call it when nobody
        reads what is sent to a client.
        """
        client.is_gone = True
        for session in self.left_alone(client):
            if session.agent_loop is not None:
                session.agent_loop.stop()

    async def remove(self, client: Client) -> None:
        """Close the sessions that only this client has open, and give its prompts to others."""
        client.is_gone = True
        for clients in self._subscribed.values():
            clients.pop(client, None)
        closing = []
        for session_id in self.sessions_of(client):
            if self.stand_up(session_id, client):
                closing.append(session_id)
        for session_id in self._seats:
            # Also in sessions that it has closed: others may have them open.
            self._hand_over(session_id, client)
        self.connected.remove(client)
        acting.set(client)
        for session_id in closing:
            await self._close_unused(session_id)

    async def _close_unused(self, session_id: str) -> None:
        """Close a session that no client has open, unless one has opened it meanwhile."""
        try:
            await self._host.sessions.close(session_id, is_kept=lambda: session_id in self._seats)
        except CompactdError as error:
            # It was closed meanwhile, or its journal cannot be written, which its client knows.
            _log.info("a session of a client that left was not closed: error %d", error.code)
        except Exception:
            _log.exception("a session of a client that left was not closed")

    def _hand_over(self, session_id: str, client: Client) -> None:
        """Give a client's prompts to one that answers for it. If there is none in time, stop them."""
        session = self._host.open_sessions.get(session_id)
        if session is None:
            return
        for turn_id, owner in session.prompters.items():
            if owner is not client:
                continue
            heir = self._heir(session_id, client)
            if heir is not None:
                session.prompters[turn_id] = heir
            else:
                asyncio.get_running_loop().call_later(self._grace_s, self._give_up, session, turn_id)

    def _heir(self, session_id: str, left: ClientRef) -> Client | None:
        """Return the client that answers for one that has left: the same program, connected again, or one
        that declared that it answers for others.
        """
        name = left.name_in(session_id)
        seated = [(one, seat) for one, seat in self._seats.get(session_id, {}).items() if one.is_connected]
        same = (one for one, _ in seated if name is not None and one.name_in(session_id) == name)
        answering = (one for one, seat in seated if seat.answers)
        return next(same, next(answering, None))

    def _give_up(self, session: Session, turn_id: str) -> None:
        """Stop a prompt if its client is still away. If the prompt still waits in the queue, look again
        later: it may begin when its client has been away for long.
        """
        owner, loop = session.prompters.get(turn_id), session.agent_loop
        if owner is None or owner.is_connected or loop is None or session.is_closed:
            return
        if loop.turn_id == turn_id:
            loop.give_up()
        else:
            asyncio.get_running_loop().call_later(self._grace_s, self._give_up, session, turn_id)

    # --- events -----------------------------------------------------------------------------------------

    def emit(self, session_id: str, seq: int, event: Event) -> None:
        """Send an event to the clients that get the session's events, and show a compaction's progress in
        their editors.
        """
        client = acting.get()
        name = None if client is None else client.name_in(session_id)
        body = event_body(session_id, seq, event, name)
        log = self._logs.get(session_id)
        if log is None:
            log = self._logs[session_id] = EventLog()
        told = None
        if isinstance(event, MessageAppended):
            told = LoggedMessage(event.entry_id, event.client, event.turn_id)
        log.add(seq, body, told)
        droppable = isinstance(event, DROPPABLE)
        for one in self._hearing(session_id):
            if not one.send_event(body, droppable=droppable):
                self._subscribed[session_id].pop(one, None)
                dropped = EventsDropped(resume_after=seq - 1)
                one.connection.out.notify_body(event_body(session_id, seq, dropped, None))
        if isinstance(event, CompactionEvent):
            self._show_compaction(session_id, event)
        if isinstance(event, SessionClosed):
            self._logs.pop(session_id, None)
            self._subscribed.pop(session_id, None)
            self._seats.pop(session_id, None)

    def _hearing(self, session_id: str) -> Sequence[Client]:
        if not self.is_shared:
            return self.connected
        return tuple(self._subscribed.get(session_id, ()))

    def _show_compaction(self, session_id: str, event: CompactionEvent) -> None:
        session = self._host.open_sessions.get(session_id)
        running = None if session is None else session.operation
        if running is None:
            return  # another process compacts
        for client in self._hearing(session_id):
            # A client that asked with a progress token shows it already.
            if not (running.is_shown and client is acting.get()):
                client.connection.editor.show_compaction(session_id, event)

    def notice(self, session_id: str, text: str) -> None:
        """Show one line in the editors that have a session open. Other clients get nothing."""
        for client in self._hearing(session_id):
            client.connection.editor.log_message(3, text)

    def subscribe(self, session: Session, since: int | None, request: Request) -> int | None:
        """Send a session's events to the acting client from now on. After the answer to `request`, send the
        events after number `since` that are still known. Return how many of these are not; None if `since` is
        of another daemon.
        """
        client, last = acting.get(), session.event_seq
        if not isinstance(client, Client):
            return 0
        self._subscribed.setdefault(session.id, {})[client] = None
        if since is None or since == last:
            return 0
        if since > last:
            return None
        log = self._logs.get(session.id)
        bodies = [] if log is None else log.since(since, lambda *told: _message_again(session, *told))

        def send() -> None:
            for body in bodies:
                client.connection.out.notify_body(body)

        request.after(send)
        return last - since - len(bodies)

    def unsubscribe(self, session_id: str) -> None:
        """Send no more events of a session to the acting client."""
        client = acting.get()
        if isinstance(client, Client):
            self._subscribed.get(session_id, {}).pop(client, None)

    # --- questions --------------------------------------------------------------------------------------

    async def ask(
        self, session_id: str, first: ClientRef | None, method: str, params: Struct, timeout_s: float
    ) -> tuple[Raw, ClientRef]:
        """See `SessionHost.ask_client`. If the client that is asked leaves, the next one is asked."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while True:
            client = self._answerer(session_id, first, method)
            if client is None:
                left_s = min(self._grace_s, until - loop.time())
                if self.is_shared and method != HOOK and await self._wait_for_arrival(session_id, left_s):
                    continue
                raise ClientFailed("the client is gone", is_gone=True)
            with suppress(ConnectionError):
                return await client.ask(method, params, max(0.0, until - loop.time())), client

    def _answerer(self, session_id: str, first: ClientRef | None, method: str) -> Client | None:
        """Return the client to ask: `first`, or another one that answers such requests."""
        if not self.is_shared:
            return next((client for client in self.connected if client.is_connected), None)
        seats = self._seats.get(session_id, {})
        connected = {client: seat for client, seat in seats.items() if client.is_connected}
        if method == HOOK:
            hooked = [client for client, seat in connected.items() if seat.has_hook]
            return next((client for client in hooked if client is first), next(iter(hooked), None))
        if first is None:
            # An earlier daemon queued the prompt.
            return next(
                (client for client, seat in connected.items() if seat.answers), next(iter(connected), None)
            )
        return first if isinstance(first, Client) and first.is_connected else self._heir(session_id, first)

    def _announce(self, session_id: str) -> None:
        for waiting in self._arrivals.get(session_id, ()):
            if not waiting.done():
                waiting.set_result(None)

    async def _wait_for_arrival(self, session_id: str, timeout_s: float) -> bool:
        """Wait until a client opens a session. Return false if none does in time."""
        arrival = asyncio.get_running_loop().create_future()
        waiting = self._arrivals.setdefault(session_id, {})
        waiting[arrival] = None
        try:
            await asyncio.wait_for(arrival, timeout_s)
        except TimeoutError:
            return False
        finally:
            waiting.pop(arrival, None)
            if not waiting:
                self._arrivals.pop(session_id, None)
        return True


class _EventHead(Struct, frozen=True, kw_only=True, omit_defaults=True):
    session_id: str
    seq: int
    client: str | UnsetType = UNSET


def event_body(session_id: str, seq: int, event: Event, client: str | None) -> bytes:
    """Return an event as the notification `agent/event`. `client`: the name of the client that caused it."""
    named = UNSET if client is None or isinstance(event, MessageAppended) else client
    head = encode(_EventHead(session_id=session_id, seq=seq, client=named))
    return b'{"jsonrpc":"2.0","method":"agent/event","params":%b,%b}' % (head[:-1], encode(event)[1:])


def _message_again(session: Session, seq: int, told: LoggedMessage) -> bytes | None:
    """Return the event about a message that the session still has."""
    item = session.state.originals.get(told.entry_id)
    if item is None:
        return None
    event = MessageAppended(
        entry_id=told.entry_id, role=item.message.role, client=told.client, turn_id=told.turn_id
    )
    return event_body(session.id, seq, event, None)
