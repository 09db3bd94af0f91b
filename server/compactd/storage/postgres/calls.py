"""Calls between the nodes of one database: rows of a table that is not logged, and a channel for each node.

A statement whose reply is lost is sent again, so each of them may be carried out twice.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, LiteralString

from compactd.storage.postgres.keys import key_of
from compactd.storage.postgres.leases import live
from compactd.storage.postgres.notices import Notices
from compactd.storage.postgres.pool import Connection, Pool
from compactd.storage.protocols import Call, Post

KEPT = "1 hour"
"""How long a call is kept that nobody answers or reads."""
SWEEP_S = 600.0
_NEWS = "calls"
"""The payload of the notifications about calls."""

_NOT_ASKED = "The node that writes this session could not be asked"
_WRITER = f"""
SELECT node FROM compactd.sessions
WHERE tenant = %(tenant)s AND session_id = %(key)s AND {live()}"""
# The table survives no crash of the server, so its commits need not wait for the disk.
_SEND = """
WITH sent AS (
    INSERT INTO compactd.calls (tenant, id, sender, receiver, body)
    SELECT %(tenant)s, id, %(node)s, receiver, body
    FROM unnest(%(ids)s::text[], %(receivers)s::text[], %(bodies)s::bytea[])
        WITH ORDINALITY AS given(id, receiver, body, nth)
    ORDER BY nth
    ON CONFLICT DO NOTHING
), answered AS (
    UPDATE compactd.calls AS c SET answer = given.answer
    FROM unnest(%(answered)s::text[], %(answers)s::bytea[]) AS given(id, answer)
    WHERE c.tenant = %(tenant)s AND c.id = given.id
)
SELECT pg_notify(channel, 'calls'), set_config('synchronous_commit', 'off', true)
FROM unnest(%(channels)s::text[]) AS channel"""
_TELL = """
WITH alive AS (
    SELECT node FROM compactd.nodes
    WHERE tenant = %(tenant)s AND node = ANY(%(receivers)s) AND lease_until > clock_timestamp()
), sent AS (
    INSERT INTO compactd.calls (tenant, id, sender, receiver, body)
    SELECT %(tenant)s, id, %(node)s, receiver, body
    FROM unnest(%(ids)s::text[], %(receivers)s::text[], %(bodies)s::bytea[])
        WITH ORDINALITY AS given(id, receiver, body, nth) JOIN alive ON alive.node = receiver
    ORDER BY nth
    ON CONFLICT DO NOTHING
)
SELECT node, pg_notify('compactd_' || node, 'calls'), set_config('synchronous_commit', 'off', true)
FROM alive"""
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
_WITHDRAW = """
DELETE FROM compactd.calls
WHERE tenant = %(tenant)s AND id = ANY(%(ids)s) AND NOT is_taken RETURNING id"""
_KNOWN = "SELECT id FROM compactd.calls WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)"
_SWEEP = f"""
DELETE FROM compactd.calls
WHERE tenant = %(tenant)s AND created_at < clock_timestamp() - interval '{KEPT}'"""


class PostgresCalls:
    """The `Calls` of one node and tenant."""

    def __init__(self, pool: Pool, node: str, notices: Notices) -> None:
        """`notices` must listen to `channel_of(node)`."""
        self._pool = pool
        self._notices = notices
        self.node = node
        """The name of this node."""
        self._lock = threading.Lock()
        self._known: set[str] = set()
        """The calls to this node that it has read and not answered."""
        self._done: list[str] = []
        """The calls to remove: those whose answers this node has read, and those that need none."""
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

    def send(self, posts: Sequence[Post], answers: Sequence[tuple[Call, bytes]]) -> None:
        """Send calls to other nodes, and answer theirs. One round trip."""
        receivers = {post.node for post in posts} | {call.sender for call, _ in answers}
        named = self._named(
            node=self.node,
            ids=[post.id for post in posts],
            receivers=[post.node for post in posts],
            bodies=[post.body for post in posts],
            answered=[call.id for call, _ in answers],
            answers=[body for _, body in answers],
            channels=[channel_of(node) for node in receivers],
        )
        self._run(lambda connection: connection.execute(_SEND, named, binary=True))
        with self._lock:
            self._known.difference_update(call.id for call, _ in answers)

    def tell(self, posts: Sequence[Post]) -> set[str]:
        """Send calls that need no answer, to nodes whose lease has not ended. Return these nodes. One round
        trip.
        """
        named = self._named(
            node=self.node,
            ids=[post.id for post in posts],
            receivers=[post.node for post in posts],
            bodies=[post.body for post in posts],
        )
        rows = self._run(lambda connection: connection.execute(_TELL, named, binary=True).fetchall())
        return {row[0] for row in rows}

    def drop(self, call: Call) -> None:
        """Note that a call was read that needs no answer. The next `take` removes it. O(1)."""
        with self._lock:
            self._done.append(call.id)

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
            self._known.difference_update(done)
            self._known |= {call.id for call in calls}
            self._done = [*self._done[len(done) :], *answers]
        return calls, answers

    def withdraw(self, call_ids: Sequence[str]) -> set[str]:
        """Take calls back. Return those that the other nodes have not read. One round trip."""
        return self._ids(_WITHDRAW, call_ids)

    def known(self, call_ids: Sequence[str]) -> set[str]:
        """Return those of these calls that are still in the table. One round trip."""
        return self._ids(_KNOWN, call_ids)

    def listen(self, on_news: Callable[[], None]) -> None:
        """Call `on_news`, in a thread, when there may be calls or answers for this node."""
        self._notices.add(_NEWS, on_news)

    def _ids(self, statement: LiteralString, call_ids: Sequence[str]) -> set[str]:
        named = self._named(ids=list(call_ids))
        rows = self._run(lambda connection: connection.execute(statement, named).fetchall())
        return {row[0] for row in rows}

    def _run(self, work: Callable[[Connection], object]) -> Any:
        return self._pool.run(_NOT_ASKED, work)

    def _named(self, **others: object) -> dict[str, object]:
        return {"tenant": self._pool.tenant, **others}


def channel_of(node: str) -> str:
    """Return the name of the channel on which a node hears of its calls."""
    return f"compactd_{node}"
