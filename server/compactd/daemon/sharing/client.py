"""One client of this daemon: its connection, its settings, and its part in a session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec import Raw, Struct

from compactd.daemon.rpc.outgoing import ClientError
from compactd.daemon.rpc.request import Reply, Request
from compactd.protocol.methods import Method
from compactd.session.host import ClientFailed, acting

if TYPE_CHECKING:
    from compactd.daemon.rpc.connection import Connection
    from compactd.daemon.sharing.clients import Clients
    from compactd.session.manager import Sessions
    from compactd.session.session import Session
    from compactd.storage.settings_reader import ClientSettings

BEHIND_BYTES = 4 * 1024 * 1024
"""In a shared daemon: if more bytes than this wait for a client to read, it gets no deltas."""
LOST_BYTES = 2 * BEHIND_BYTES
"""In a shared daemon: if more bytes than this wait for a client to read, it gets no more events of the
session, and a notice that says so."""


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


class Membership(Struct):
    """One client's part in one session."""

    has_hook: bool = False
    """Whether the client answers `session/compacting`."""
    answers: bool = False
    """Whether the client answers `tool/execute` for prompts of clients that have left."""
    is_borrowed: bool = False
    """Whether an editor's command opened the session for its own use."""


class Client:
    """One connected client. It is the `Service` of its connection: it passes calls on to the daemon, and
    notes for whom the daemon works.
    """

    def __init__(self, host: ClientHost, clients: Clients) -> None:
        self._host = host
        self._clients = clients
        self._connection: Connection | None = None
        self._settings: ClientSettings | None = None
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

    async def ask(self, method: str, params: Struct | Raw, timeout_s: float) -> Raw:
        """Send a request to the client and return its answer. Raises `ClientFailed`, `TimeoutError`, and
        `ConnectionError` if the client has left.
        """
        try:
            return await self.connection.out.request(method, params, timeout_s)
        except ClientError as error:
            raise ClientFailed(f"the client answered with an error: {error.error.message}") from None
