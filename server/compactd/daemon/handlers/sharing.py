"""Handlers of what clients of one daemon need from each other."""

from __future__ import annotations

from compactd.daemon.handlers.base import HandlerGroup
from compactd.daemon.rpc.request import Request
from compactd.protocol import wire


class SharingHandlers(HandlerGroup):
    """Handlers of the methods about events and about the daemon's end."""

    def session_subscribe(self, params: wire.SubscribeParams, request: Request) -> wire.SubscribeResult:
        """Send the session's events to the client from now on."""
        session = self._sessions.get(params.session_id)
        missed = self._daemon.clients.subscribe(session, params.since_seq, request)
        return wire.SubscribeResult(seq=session.event_seq, missed=missed)

    def session_unsubscribe(self, params: wire.SessionParams, request: Request) -> wire.Nothing:
        """Send no more events of the session to the client."""
        self._daemon.clients.unsubscribe(self._sessions.get(params.session_id).id)
        return wire.Nothing()

    def daemon_retire(self, params: wire.Nothing, request: Request) -> wire.RetireResult:
        """Take no further clients, and end when the last one has left."""
        self._daemon.on_retire()
        return wire.RetireResult(clients=len(self._daemon.clients.connected))
