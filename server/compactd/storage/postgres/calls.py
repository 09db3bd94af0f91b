"""Calls between the nodes of one database: rows of a table that is not logged, and a channel for each node.

A statement whose reply is lost is sent again, so each of them may be carried out twice.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from compactd.storage.postgres.keys import key_of
from compactd.storage.postgres.leases import LIVE
from compactd.storage.postgres.notices import Listener
from compactd.storage.postgres.pool import Connection, Pool
from compactd.storage.protocols import Call

KEPT = "1 hour"
"""How long a call is kept that nobody answers or reads."""
SWEEP_S = 600.0

_NOT_ASKED = "The node that writes this session could not be asked"
_WRITER = f"""
SELECT owner->>'node' FROM compactd.sessions
WHERE tenant = %(tenant)s AND session_id = %(key)s AND {LIVE}"""
# The table survives no crash of the server, so its commits need not wait for the disk.
_SEND = """
WITH sent AS (
    INSERT INTO compactd.calls (tenant, id, sender, receiver, body)
    VALUES (%(tenant)s, %(id)s, %(sender)s, %(receiver)s, %(body)s)
    ON CONFLICT DO NOTHING
)
SELECT pg_notify(%(channel)s, ''), set_config('synchronous_commit', 'off', true)"""
_TAKE = """
WITH taken AS (
    UPDATE compactd.calls SET is_taken = true
    WHERE tenant = %(tenant)s AND receiver = %(node)s AND answer IS NULL AND id <> ALL(%(known)s)
    RETURNING number, id, sender, body
), gone AS (
    DELETE FROM compactd.calls WHERE tenant = %(tenant)s AND id = ANY(%(done)s)
)
SELECT number, id, sender, body, set_config('synchronous_commit', 'off', true) FROM taken
UNION ALL
SELECT NULL, id, NULL, answer, NULL FROM compactd.calls
WHERE tenant = %(tenant)s AND id = ANY(%(waiting)s) AND answer IS NOT NULL
ORDER BY number"""
_ANSWER = """
WITH answered AS (
    UPDATE compactd.calls SET answer = %(body)s WHERE tenant = %(tenant)s AND id = %(id)s
)
SELECT pg_notify(%(channel)s, ''), set_config('synchronous_commit', 'off', true)"""
_WITHDRAW = """
DELETE FROM compactd.calls WHERE tenant = %(tenant)s AND id = %(id)s AND NOT is_taken RETURNING 1"""
_SWEEP = f"""
DELETE FROM compactd.calls
WHERE tenant = %(tenant)s AND created_at < clock_timestamp() - interval '{KEPT}'"""


class PostgresCalls:
    """The `Calls` of one node and tenant."""

    def __init__(self, pool: Pool, node: str) -> None:
        self._pool = pool
        self.node = node
        """The name of this node."""
        self._lock = threading.Lock()
        self._known: set[str] = set()
        """The calls to this node that it has read and not answered."""
        self._done: list[str] = []
        """The calls of this node whose answers it has read."""
        self._listener: Listener | None = None
        self._swept_at = -SWEEP_S

    def writer_of(self, session_id: str) -> str | None:
        """Return the node that has a live lease on a session, or None. One round trip."""
        row = self._run(
            lambda connection: connection.execute(_WRITER, self._named(key=key_of(session_id))).fetchone()
        )
        return row[0] if row is not None and isinstance(row[0], str) else None

    def new_id(self) -> str:
        """Return a random id."""
        return secrets.token_hex(16)

    def send(self, call_id: str, node: str, body: bytes) -> None:
        """Send a call to another node. One round trip."""
        named = self._named(id=call_id, sender=self.node, receiver=node, body=body, channel=channel_of(node))
        self._run(lambda connection: connection.execute(_SEND, named, binary=True))

    def take(self, waiting: Sequence[str]) -> tuple[list[Call], dict[str, bytes]]:
        """Return (the new calls to this node in their order, the answers that came to `waiting`). One
        round trip; once in `SWEEP_S` seconds it also removes calls that nobody wants any more.
        """
        if monotonic() - self._swept_at >= SWEEP_S:
            self._run(lambda connection: connection.execute(_SWEEP, self._named()))
            self._swept_at = monotonic()
        with self._lock:
            known, done = list(self._known), list(self._done)
        named = self._named(node=self.node, known=known, done=done, waiting=list(waiting))
        rows = self._run(lambda connection: connection.execute(_TAKE, named, binary=True).fetchall())
        calls: list[Call] = []
        answers: dict[str, bytes] = {}
        for _, call_id, sender, body, _ in rows:
            assert isinstance(call_id, str)
            assert isinstance(body, bytes)
            if isinstance(sender, str):
                calls.append(Call(id=call_id, sender=sender, body=body))
            else:
                answers[call_id] = body
        with self._lock:
            self._known |= {call.id for call in calls}
            self._done = [*self._done[len(done) :], *answers]
        return calls, answers

    def answer(self, call: Call, body: bytes) -> None:
        """Answer a call. One round trip."""
        named = self._named(id=call.id, body=body, channel=channel_of(call.sender))
        self._run(lambda connection: connection.execute(_ANSWER, named, binary=True))
        with self._lock:
            self._known.discard(call.id)

    def withdraw(self, call_id: str) -> bool:
        """Take a call back that the other node has not read. Return false if it may have. One round trip."""
        row = self._run(lambda connection: connection.execute(_WITHDRAW, self._named(id=call_id)).fetchone())
        return row is not None

    def is_there(self, call_id: str) -> bool:
        """Return whether a call is still in the table. One round trip."""
        asked = "SELECT 1 FROM compactd.calls WHERE tenant = %(tenant)s AND id = %(id)s"
        return (
            self._run(lambda connection: connection.execute(asked, self._named(id=call_id)).fetchone())
            is not None
        )

    def listen(self, on_news: Callable[[], None]) -> None:
        """Call `on_news`, in a thread, when there may be calls or answers for this node. Connects there."""
        self._listener = Listener(self._pool, lambda _: on_news(), channel=channel_of(self.node))

    def close(self) -> None:
        """Stop to listen."""
        if self._listener is not None:
            self._listener.close()

    def _run(self, work: Callable[[Connection], object]) -> Any:
        return self._pool.run(_NOT_ASKED, work)

    def _named(self, **others: object) -> dict[str, object]:
        return {"tenant": self._pool.tenant, **others}


def channel_of(node: str) -> str:
    """Return the name of the channel on which a node hears of its calls."""
    return f"compactd_{node}"
