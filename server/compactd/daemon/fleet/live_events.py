"""Events of a session that its journal does not show, such as the words of an answer while they come.

The daemon that writes the session sends them to the others that have it open, and these to their clients.
"""

from __future__ import annotations

from contextlib import suppress

from compactd.daemon.fleet.mailbox import Mailbox
from compactd.daemon.fleet.messages import Follow, LiveEvent
from compactd.daemon.fleet.remote_client import RemoteClient
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import (
    CompactionEnd,
    CompactionStart,
    Event,
    EventsDropped,
    MessageAppended,
    MessageQueued,
    ModelChanged,
    PruneEnd,
    SessionChanged,
    SessionClosed,
    UsageUpdate,
    WriterChanged,
    encode,
)
from compactd.session.host import acting
from compactd.session.manager import Sessions

_SEEN_BY_FOLLOWERS = (
    CompactionEnd,
    CompactionStart,
    EventsDropped,
    MessageAppended,
    MessageQueued,
    ModelChanged,
    PruneEnd,
    SessionChanged,
    SessionClosed,
    UsageUpdate,
    WriterChanged,
)
"""Events that a daemon sends by itself about a session that it follows, and those about the daemon itself."""


class LiveEvents:
    """What goes from the daemon that writes a session to those that follow it, and comes back. Use it only on
    the event loop's thread.
    """

    def __init__(self, sessions: Sessions, mailbox: Mailbox) -> None:
        self._sessions = sessions
        self._mailbox = mailbox
        self._followers: dict[str, set[str]] = {}
        """By session, the daemons that want its events."""

    def add(self, session_id: str, node: str) -> None:
        """Send the events of a session that is open here to another daemon, too. O(1)."""
        self._followers.setdefault(session_id, set()).add(node)

    def forget_node(self, node: str) -> None:
        """Send another daemon no more events. O(sessions that others follow)."""
        for session_id, nodes in tuple(self._followers.items()):
            nodes.discard(node)
            if not nodes:
                del self._followers[session_id]

    def follow(self, session_id: str, node: str) -> None:
        """Ask the daemon that writes a session for its events."""
        if node != self._mailbox.node:
            self._mailbox.tell(node, encode(Follow(session_id=session_id)))

    def publish(self, session_id: str, event: Event) -> None:
        """Send an event to the daemons that follow the session, if this daemon writes it and they do not see
        it in the journal. O(daemons).
        """
        nodes = self._followers.get(session_id)
        if nodes is None:
            return
        if isinstance(event, SessionClosed):
            del self._followers[session_id]
        session = self._sessions.open.get(session_id)
        if session is None or session.journal is None or isinstance(event, _SEEN_BY_FOLLOWERS):
            return
        client = acting.get()
        told = LiveEvent(
            session_id=session_id,
            event=event,
            records=len(session.entries),
            client=None if client is None else client.name_in(session_id),
        )
        body = encode(told)
        for node in nodes:
            self._mailbox.tell(node, body)

    async def hear(self, sender: str, told: Follow | LiveEvent) -> None:
        """Do what another daemon asks for, or send its event to this daemon's clients."""
        if isinstance(told, LiveEvent):
            await self._send_on(sender, told)
        elif told.ends:
            self._followers.get(told.session_id, set()).discard(sender)
        elif told.session_id in self._sessions.open:
            self.add(told.session_id, sender)

    async def _send_on(self, writer: str, told: LiveEvent) -> None:
        session = self._sessions.open.get(told.session_id)
        if session is None or session.following is None:
            self._mailbox.tell(writer, encode(Follow(session_id=told.session_id, ends=True)))
            return
        with suppress(CompactdError):  # the event is true, whatever could be read
            await session.following.read_to(told.records)
        acting.set(RemoteClient(writer, "", told.client))
        session.following.send_on(told.event)
