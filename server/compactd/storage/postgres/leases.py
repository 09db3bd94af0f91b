"""The lease of a node, and with it those of all sessions that it has open for writing.

The lease ends by the database's clock alone, `TTL_S` after it was last renewed. Then other nodes may take the
node's sessions. The token is what protects a session: each change of a session checks it in the same
transaction. So a node that was frozen longer than its lease changes nothing once another one has the session.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
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
INSERT INTO compactd.nodes AS n (tenant, node, owner, lease_until)
VALUES (%(tenant)s, %(node)s, %(owner)s::jsonb, clock_timestamp() + interval '{TTL_S} seconds')
ON CONFLICT (tenant, node) DO UPDATE SET lease_until = excluded.lease_until"""
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
        self._held: dict[str, str] = {}
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
            self._held[key] = token
            return True

    def hold(self, key: str, token: str) -> None:
        """Note that a journal of this store has the session `key`. O(1)."""
        with self._lock:
            self._held[key] = token

    def drop(self, key: str, token: str) -> None:
        """Note that it has the session no longer. O(1)."""
        with self._lock:
            if self._held.get(key) == token:
                del self._held[key]

    def close(self) -> None:
        """End the lease."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # A connection of its own: it must not wait for one of the pool while the lease ends.
        connection: Connection | None = None
        while True:
            is_last = self._stop.wait(RENEW_S)
            # A failure is met again by the next write, which says so. The next round tries again.
            with suppress(psycopg.Error, CompactdError):
                if connection is None or connection.closed:
                    connection = self._pool.connect()
                if is_last:
                    connection.execute(_LEAVE, self._named)
                else:
                    self._renew(connection)
            if is_last:
                break
        if connection is not None:
            connection.close()

    def _take(self, connection: Connection) -> None:
        connection.execute(_SWEEP.encode(), self._named)
        self._renew(connection)

    def _renew(self, connection: Connection) -> None:
        connection.execute(_RENEW.encode(), self._named)


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
