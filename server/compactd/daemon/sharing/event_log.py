"""Events as the notifications that clients get, and the newest ones of a session, for clients that subscribe
later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType

from compactd.core.history.entries import EntryId
from compactd.protocol.messages import Event, MessageAppended, encode

if TYPE_CHECKING:
    from compactd.session.session import Session

MAX_EVENTS = 2_000
MAX_BYTES = 256 * 1024


class LoggedMessage(Struct, frozen=True):
    """What is remembered of an old `message_appended`. The journal has the rest."""

    entry_id: EntryId
    client: str | None
    turn_id: str | UnsetType = UNSET


class _Logged(Struct, frozen=True):
    seq: int
    body: bytes
    message: LoggedMessage | None


class EventLog:
    """The newest events of one session as they were sent, and of the older ones those about new messages.

    At most `MAX_EVENTS` events and `MAX_BYTES` bytes are kept whole. An older message costs about 100 bytes.
    """

    def __init__(self) -> None:
        self._recent: deque[_Logged] = deque()
        self._size = 0
        self._older: list[tuple[int, LoggedMessage]] = []

    def add(self, seq: int, body: bytes, message: LoggedMessage | None = None) -> None:
        """Keep an event. `body`: the notification; `message`: what it says if it is `message_appended`."""
        self._recent.append(_Logged(seq, body, message))
        self._size += len(body)
        while len(self._recent) > MAX_EVENTS or self._size > MAX_BYTES:
            oldest = self._recent.popleft()
            self._size -= len(oldest.body)
            if oldest.message is not None:
                self._older.append((oldest.seq, oldest.message))

    def since(self, seq: int, rebuild: Callable[[int, LoggedMessage], bytes | None]) -> list[bytes]:
        """Return the events after number `seq`, oldest first. Of those that are not kept whole, the ones
        about messages are made again by `rebuild`; it returns None for a message that is no longer there.
        O(events).
        """
        bodies = [rebuild(at, message) for at, message in self._older if at > seq]
        return [*filter(None, bodies), *(one.body for one in self._recent if one.seq > seq)]


class _EventHead(Struct, frozen=True, kw_only=True, omit_defaults=True):
    session_id: str
    seq: int
    client: str | UnsetType = UNSET


def event_body(session_id: str, seq: int, event: Event, client: str | None) -> bytes:
    """Return an event as the notification `agent/event`. `client`: the name of the client that caused it."""
    named = UNSET if client is None or isinstance(event, MessageAppended) else client
    head = encode(_EventHead(session_id=session_id, seq=seq, client=named))
    return b'{"jsonrpc":"2.0","method":"agent/event","params":%b,%b}' % (head[:-1], encode(event)[1:])


def message_again(session: Session, seq: int, told: LoggedMessage) -> bytes | None:
    """Return the event about a message that the session still has."""
    item = session.state.originals.get(told.entry_id)
    if item is None:
        return None
    event = MessageAppended(
        entry_id=told.entry_id, role=item.message.role, client=told.client, turn_id=told.turn_id
    )
    return event_body(session.id, seq, event, None)
