"""The leases of a node: who may write a session.

A lease ends by the database's clock alone, `TTL_S` after it was last renewed. The token is what protects a
session: each change of a session checks it in the same transaction, so a node that was frozen longer than its
lease changes nothing once another node has the session.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from contextlib import suppress

import psycopg

from compactd.protocol.errors import CompactdError, SessionLocked
from compactd.storage.postgres.pool import Connection, Pool

TTL_S = 10
"""Seconds from a renewal to the end of a lease."""
RENEW_S = 3.0

LIVE = "(token IS NOT NULL AND lease_until > clock_timestamp())"
UNTIL = f"clock_timestamp() + interval '{TTL_S} seconds'"

_RENEW = f"""
UPDATE compactd.sessions AS s SET lease_until = {UNTIL}
FROM unnest(%s::text[], %s::text[]) AS mine(session_id, token)
WHERE s.tenant = %s AND s.session_id = mine.session_id AND s.token = mine.token"""


class Leases:
    """The leases of the open journals of one store. One thread renews all of them in one statement."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.node = secrets.token_hex(8)
        """A random name of this store."""
        self.owner = json.dumps({"node": self.node, "host": socket.gethostname(), "pid": os.getpid()})
        """The owner in the rows of the sessions that this store has open."""
        self._held: dict[str, str] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def reserve(self, key: str, token: str) -> bool:
        """Hold a lease that is about to be taken. Return false if a journal of this store has the session."""
        with self._lock:
            if key in self._held:
                return False
            self._held[key] = token
            return True

    def hold(self, key: str, token: str) -> None:
        """Renew the lease of the session `key` from now on."""
        with self._lock:
            self._held[key] = token
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="compactd-leases", daemon=True)
                self._thread.start()

    def drop(self, key: str, token: str) -> None:
        """Renew this lease no longer. O(1), does not block."""
        with self._lock:
            if self._held.get(key) == token:
                del self._held[key]

    def close(self) -> None:
        """Stop the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # A connection of its own: it must not wait for one of the pool while a lease ends.
        connection: Connection | None = None
        while not self._stop.wait(RENEW_S):
            with self._lock:
                held = list(self._held.items())
            # A failure is met again by the next write, which says so. The next round tries again.
            with suppress(psycopg.Error, CompactdError):
                if connection is None or connection.closed:
                    connection = self._pool.connect()
                if held:
                    self.renew(connection, held)
        if connection is not None:
            connection.close()

    def renew(self, connection: Connection, held: list[tuple[str, str]]) -> None:
        """Renew the leases of `held`, (key, token) each."""
        keys, tokens = zip(*held, strict=True)
        connection.execute(_RENEW.encode(), (list(keys), list(tokens), self._pool.tenant))


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
