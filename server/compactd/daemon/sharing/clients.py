"""The clients of this daemon: who has which session open, who gets which event, who answers which question.

A daemon on stdio has one client, which gets every event. A shared daemon has many: a client gets the events
of the sessions that it has opened or subscribed to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Raw, Struct

from compactd.daemon.lsp.progress import CompactionEvent
from compactd.daemon.rpc.request import Request
from compactd.daemon.sharing.client import Client, ClientHost, Membership
from compactd.daemon.sharing.event_log import EventLog, LoggedMessage, event_body, message_again
from compactd.protocol.errors import CompactdError, SessionLocked
from compactd.protocol.messages import (
    Event,
    EventsDropped,
    MessageAppended,
    MessageDelta,
    SessionClosed,
    ThinkingDelta,
)
from compactd.session.host import ClientFailed, ClientRef, acting

if TYPE_CHECKING:
    from compactd.session.session import Session

DROPPABLE = (MessageDelta, ThinkingDelta)
"""Kinds of events that are dropped while a client does not read (docs/dev/contract.md, "Transport")."""

GRACE_S = 10.0
"""Seconds for which a prompt whose client has left waits for another client that answers its questions."""

_log = logging.getLogger("compactd.sharing")

HOOK = "session/compacting"
"""The request that asks a client before a compaction."""


class Previous(Struct, frozen=True):
    """What a client had of a session before it asked to open it."""

    membership: Membership | None = None
    is_subscribed: bool = False


class Clients:
    """All clients of this daemon. Use it only on the event loop's thread."""

    def __init__(self, host: ClientHost, *, is_shared: bool = False) -> None:
        self._host = host
        self.is_shared = is_shared
        self.connected: list[Client] = []
        """The clients, the one that came first in front."""
        self._members: dict[str, dict[Client, Membership]] = {}
        """By session id, the clients that have the session open, the one that opened it first in front."""
        self._left: dict[str, set[Client]] = {}
        """By session id, the clients that have closed the session while others have it open."""
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

    def membership(self, client: ClientRef, session_id: str) -> Membership | None:
        """Return a client's part in a session; None if it has not opened the session."""
        members = self._members.get(session_id)
        return None if members is None or not isinstance(client, Client) else members.get(client)

    def sessions_of(self, client: Client) -> list[str]:
        """Return the ids of the sessions that a client has open. O(sessions)."""
        return [session_id for session_id, members in self._members.items() if client in members]

    def first_of(self, session_id: str) -> Client | None:
        """Return the client that has a session open for the longest time, or None."""
        return next(iter(self._members.get(session_id, ())), None)

    def others_in(self, session_id: str) -> list[Client]:
        """Return the clients other than the acting one that have a session open."""
        mine = acting.get()
        return [client for client in self._members.get(session_id, ()) if client is not mine]

    def left_alone(self, client: Client) -> list[Session]:
        """Return the open sessions that only this client has open. Without a shared daemon: all."""
        opened = self._host.open_sessions
        if not self.is_shared:
            return list(opened.values())
        own = (session_id for session_id, members in self._members.items() if set(members) == {client})
        return [opened[session_id] for session_id in own if session_id in opened]

    def join(self, session_id: str, membership: Membership, name: str | None = None) -> Previous:
        """Note that the acting client opens a session, and gets its events. Return what it had of the session
        before, for `undo_join`. `name`: what it calls itself.

        Prompts of a client with the same name that has left are its own from now on.
        """
        client = acting.get()
        if not isinstance(client, Client):
            return Previous()
        members, hearing = (
            self._members.setdefault(session_id, {}),
            self._subscribed.setdefault(session_id, {}),
        )
        before = Previous(members.get(client), client in hearing)
        if name is not None:
            client.names[session_id] = name
        members[client] = membership
        hearing[client] = None
        self._left.get(session_id, set()).discard(client)
        session = self._host.open_sessions.get(session_id)
        if session is not None:
            for turn_id, owner in session.prompters.items():
                if not self.answers(session_id, owner) and self._successor(session_id, owner) is client:
                    session.prompters[turn_id] = client
        self._announce(session_id)
        return before

    def join_importer(self, session_id: str) -> None:
        """Note that the acting client has a session open that it has just imported, unless others have."""
        if session_id in self._host.open_sessions and not self._members.get(session_id):
            self.join(session_id, Membership())

    def undo_join(self, session_id: str, before: Previous) -> None:
        """Undo `join`, because opening the session failed or was cancelled. A session that is open and
        that no client of a shared daemon has open is closed soon.
        """
        client, is_open = acting.get(), session_id in self._host.open_sessions
        if not isinstance(client, Client):
            return
        if is_open and before.membership is not None:
            self._members.setdefault(session_id, {})[client] = before.membership
            if not before.is_subscribed:
                self._subscribed.get(session_id, {}).pop(client, None)
            self.note_hooks(session_id)
            return
        # It may read too slowly meanwhile: then it was told that it gets no more.
        is_subscribed = client in self._subscribed.get(session_id, {}) and before.is_subscribed
        self._subscribed.get(session_id, {}).pop(client, None)
        is_last = self.leave(session_id, client)
        if is_open and is_subscribed:
            self._subscribed.setdefault(session_id, {})[client] = None
        if is_open and is_last:
            self.close_soon(session_id)

    def leave(self, session_id: str, client: ClientRef | None) -> bool:
        """Note that a client closes a session. Return true if no client has it open any more."""
        members, first = self._members.get(session_id, {}), self.first_of(session_id)
        if isinstance(client, Client):
            members.pop(client, None)
        if not members:
            self._members.pop(session_id, None)
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
        client, is_kept = acting.get(), False

        def leave() -> bool:
            nonlocal is_kept
            is_kept = not self.leave(session_id, client)
            return is_kept

        await self._host.sessions.close(session_id, is_kept=leave)
        if is_kept and isinstance(client, Client):
            self._left.setdefault(session_id, set()).add(client)
            self._hand_over(session_id, client)

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
        has_hook = any(part.has_hook for part in self._members.get(session_id, {}).values())
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
        for left in self._left.values():
            left.discard(client)
        closing = []
        for session_id in self.sessions_of(client):
            if self.leave(session_id, client):
                closing.append(session_id)
        for session_id in self._members:
            # Also in sessions that it has closed: others may have them open.
            self._hand_over(session_id, client)
        self.connected.remove(client)
        acting.set(client)
        for session_id in closing:
            await self._close_unused(session_id)

    async def _close_unused(self, session_id: str) -> None:
        """Close a session that no client has open, unless one has opened it meanwhile."""
        try:
            await self._host.sessions.close(session_id, is_kept=lambda: session_id in self._members)
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
            successor = self._successor(session_id, client)
            if successor is not None:
                session.prompters[turn_id] = successor
            else:
                asyncio.get_running_loop().call_later(GRACE_S, self._give_up, session, turn_id)

    def _successor(self, session_id: str, left: ClientRef) -> Client | None:
        """Return the client that answers for one that has left: the same program, connected again, or one
        that declared that it answers for others.
        """
        name = left.name_in(session_id)
        parts = self._members.get(session_id, {}).items()
        members = [(one, part) for one, part in parts if one.is_connected]
        same = (one for one, _ in members if name is not None and one.name_in(session_id) == name)
        answering = (one for one, part in members if part.answers)
        return next(same, next(answering, None))

    def _give_up(self, session: Session, turn_id: str) -> None:
        """Stop a prompt if its client still does not answer. If the prompt waits in the queue, look again
        later: it may begin when its client has been away for long.
        """
        owner, loop = session.prompters.get(turn_id), session.agent_loop
        if owner is None or loop is None or session.is_closed or self.answers(session.id, owner):
            return
        if loop.turn_id == turn_id:
            loop.give_up()
        else:
            asyncio.get_running_loop().call_later(GRACE_S, self._give_up, session, turn_id)

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
            self._members.pop(session_id, None)
            self._left.pop(session_id, None)

    def _hearing(self, session_id: str) -> Sequence[Client]:
        hearing = self._subscribed.get(session_id)
        if hearing is None:
            # A daemon on stdio tells its client of every session.
            return () if self.is_shared else self.connected
        return tuple(hearing)

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
        bodies = [] if log is None else log.since(since, lambda *told: message_again(session, *told))

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

    def answers(self, session_id: str, client: ClientRef) -> bool:
        """Return whether a client answers questions of its own prompts: it is connected, and has not closed
        the session since it opened it or gave a prompt.
        """
        return client.is_connected and client not in self._left.get(session_id, ())

    def note_prompt(self, session_id: str, client: Client) -> None:
        """Note that a client has given a prompt."""
        self._left.get(session_id, set()).discard(client)

    async def ask(
        self, session_id: str, first: ClientRef | None, method: str, params: Struct | Raw, timeout_s: float
    ) -> tuple[Raw, ClientRef]:
        """See `SessionHost.ask_client`. If the client that is asked leaves, the next one is asked."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while True:
            client = self._answerer(session_id, first, method)
            if client is None:
                left_s = min(GRACE_S, until - loop.time())
                if self.is_shared and method != HOOK and await self._wait_for_arrival(session_id, left_s):
                    continue
                raise ClientFailed("the client is gone", is_gone=True)
            try:
                return await client.ask(method, params, max(0.0, until - loop.time())), client
            except ConnectionError:
                continue
            except TimeoutError:
                raise ClientFailed(f"the client gave no answer within {timeout_s:g} seconds") from None

    def _answerer(self, session_id: str, first: ClientRef | None, method: str) -> Client | None:
        """Return the client to ask: `first`, or another one that answers such requests."""
        if not self.is_shared:
            return next((client for client in self.connected if client.is_connected), None)
        members = self._members.get(session_id, {})
        connected = {client: part for client, part in members.items() if client.is_connected}
        if method == HOOK:
            hooked = [client for client, part in connected.items() if part.has_hook]
            return next((client for client in hooked if client is first), next(iter(hooked), None))
        if first is None:
            # An earlier daemon queued the prompt.
            answering = (client for client, part in connected.items() if part.answers)
            return next(answering, next(iter(connected), None))
        if isinstance(first, Client) and self.answers(session_id, first):
            return first
        return self._successor(session_id, first)

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
