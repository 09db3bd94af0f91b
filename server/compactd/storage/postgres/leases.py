"""The lease of a node, and with it those of all sessions that it has open for writing.

The lease ends by the database's clock alone, `TTL_S` after it was last renewed. Then other nodes may take the
node's sessions. The token is what protects a session: each change of a session checks it in the same
transaction. So a node that was frozen longer than its lease changes nothing once another one has the session.
After such a time the node also looks which sessions it has lost, so that it does not go on showing them as
they were.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import LiteralString

import psycopg

from compactd.protocol.errors import CompactdError, SessionLocked
from compactd.storage.postgres.pool import Connection, Pool

TTL_S = 10
"""Seconds from a renewal to the end of a lease."""
RENEW_S = 3.0
FORGET = "1 day"
"""How long a node's row is kept at least after the end of its lease."""

_RENEW = f"""
WITH old AS (
    SELECT lease_until > clock_timestamp() AS is_live FROM compactd.nodes
    WHERE tenant = %(tenant)s AND node = %(node)s
)
INSERT INTO compactd.nodes AS n (tenant, node, owner, lease_until)
VALUES (%(tenant)s, %(node)s, %(owner)s::jsonb, clock_timestamp() + interval '{TTL_S} seconds')
ON CONFLICT (tenant, node) DO UPDATE SET lease_until = excluded.lease_until
RETURNING coalesce((SELECT is_live FROM old), false)"""
_TAKEN = """
SELECT held.key FROM unnest(%(keys)s::text[], %(tokens)s::text[]) AS held(key, token)
WHERE NOT EXISTS (
    SELECT 1 FROM compactd.sessions AS s
    WHERE s.tenant = %(tenant)s AND s.session_id = held.key AND s.token = held.token
)"""
_SWEEP = f"""
DELETE FROM compactd.nodes
WHERE tenant = %(tenant)s AND lease_until < clock_timestamp() - interval '{FORGET}'"""
_LEAVE = "DELETE FROM compactd.nodes WHERE tenant = %(tenant)s AND node = %(node)s"


def live(sessions: LiteralString = "sessions") -> LiteralString:
    """Return the SQL that is true if a node has a session open for writing and its lease has not ended.
    `sessions`: the name of the table in that statement.
    """
    return (
        f"({sessions}.token IS NOT NULL AND EXISTS (SELECT 1 FROM compactd.nodes AS n WHERE"
        f" n.tenant = {sessions}.tenant AND n.node = {sessions}.node AND n.lease_until > clock_timestamp()))"
    )


class Leases:
    """The lease of one store, and which sessions it has open for writing. May be used in any thread."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.node = secrets.token_hex(8)
        """A random name of this store."""
        owner = json.dumps({"host": socket.gethostname(), "pid": os.getpid()})
        self._named = {"tenant": pool.tenant, "node": self.node, "owner": owner}
        self._held: dict[str, tuple[str, Callable[[], None] | None]] = {}
        """By session, the token and what is called if another node may have it."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def begin(self) -> None:
        """Take the node's lease, and renew it from now on. Does nothing if that was done. Raises
        `StorageFailed`.
        """
        with self._lock:
            if self._thread is not None:
                return
            self._pool.run("The session could not be opened", self._take)
            self._thread = threading.Thread(target=self._run, name="compactd-lease", daemon=True)
            self._thread.start()

    def reserve(self, key: str, token: str) -> bool:
        """Hold a session that is about to be taken. Return false if a journal of this store has it."""
        with self._lock:
            if key in self._held:
                return False
            self._held[key] = (token, None)
            return True

    def hold(self, key: str, token: str, on_doubt: Callable[[], None] | None = None) -> None:
        """Note that a journal of this store has the session `key`. `on_doubt` is called, in the thread of the
        lease, if another node may have taken the session. O(1).
        """
        with self._lock:
            self._held[key] = (token, on_doubt)

    def drop(self, key: str, token: str) -> None:
        """Note that it has the session no longer. O(1)."""
        with self._lock:
            if key in self._held and self._held[key][0] == token:
                del self._held[key]

    def close(self) -> None:
        """End the lease."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # A connection of its own: it must not wait for one of the pool while the lease ends.
        connection: Connection | None = None
        may_be_taken = False
        while not self._stop.wait(RENEW_S):
            try:
                connection = self._connected(connection)
                is_in_time = self._renew(connection)
                may_be_taken = may_be_taken or not is_in_time
                if may_be_taken:
                    may_be_taken = self._look(connection)
            except (psycopg.Error, CompactdError):
                # The next write meets it again, and says so. The next round tries again. It may find that
                # the lease was renewed in time although it was not: this renewal may have been carried out.
                may_be_taken = True
        with suppress(psycopg.Error, CompactdError):
            connection = self._connected(connection)
            connection.execute(_LEAVE, self._named)
        if connection is not None:
            connection.close()

    def _connected(self, connection: Connection | None) -> Connection:
        return self._pool.connect() if connection is None or connection.closed else connection

    def _take(self, connection: Connection) -> None:
        connection.execute(_SWEEP.encode(), self._named)
        self._renew(connection)

    def _renew(self, connection: Connection) -> bool:
        """Return whether the lease had not ended."""
        row = connection.execute(_RENEW.encode(), self._named).fetchone()
        return row is not None and row[0] is True

    def _look(self, connection: Connection) -> bool:
        """Tell the journals whose sessions other nodes may have taken. Return whether there are any.
        O(sessions that this node writes).
        """
        with self._lock:
            held = dict(self._held)
        tokens = [token for token, _ in held.values()]
        named = {**self._named, "keys": list(held), "tokens": tokens}
        taken = [str(key) for (key,) in connection.execute(_TAKEN, named).fetchall()]
        for key in taken:
            _, on_doubt = held[key]
            if on_doubt is not None:
                on_doubt()
        return bool(taken)


def new_token() -> str:
    """Return a random token. It is used for one opening of one session."""
    return secrets.token_hex(16)


def locked_error(owner: object) -> SessionLocked:
    """Return the error for a session on which another node has a live lease."""
    known = owner if isinstance(owner, dict) else {}
    host, pid = known.get("host"), known.get("pid")
    return SessionLocked(
        f"Process {pid} on {host} has this session open for writing. To read, open it here; to write, close "
        f"it there, or wait {TTL_S} seconds after that process has ended.",
        pid=pid,
        host=host,
    )
