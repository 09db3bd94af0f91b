"""Connections to the database.

psycopg_pool is not used: it connects in background threads, so that a caller learns only that it waited too
long, not why no connection can be made.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import psycopg
from psycopg import conninfo

from compactd.protocol.errors import FormatNotSupported, StorageFailed
from compactd.storage.postgres.failures import NotReplicated, is_in_doubt, is_retryable, storage_failed
from compactd.storage.postgres.schema import VERSION

T = TypeVar("T")

MAX_CONNECTIONS = 7
"""With those that renew the lease and listen to notifications, a node has at most nine."""
WAIT_S = 10.0
"""The most seconds to wait until one of the connections is free."""
PATIENCE_S = 5.0
"""How long a lost connection is made again before the caller gets an error. A restart of the server takes
seconds."""
_PAUSES_S = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
_RETRIES = 5
"""How often a statement is sent again after a serialization failure or a deadlock."""

# A stronger setting than `on`, such as `remote_apply`, is left as it is.
_SET_UP = """
SELECT set_config('compactd.tenant', %s, false), (SELECT max(version) FROM compactd.version),
    set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)"""
_WAITS_FOR_STANDBY = "SyncRepWaitForLSN"
"""The function of the server that waits until a synchronous standby has a commit."""
_DEFAULTS: dict[str, str | int] = {
    "application_name": "compactd",
    "connect_timeout": 5,
    # A peer that is gone without a word is noticed within about ten seconds, not after two hours.
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Parameters of a connection that the URL may change."""


class Connection(psycopg.Connection[tuple[object, ...]]):
    """A connection in autocommit mode that is set up for one tenant."""

    _is_unreplicated = False

    def check_replicated(self) -> None:
        """Raise `NotReplicated` if the server waits no longer until its standby has a commit that was made
        since the last call. Call it after each commit that is to be acknowledged.
        """
        if self._is_unreplicated:
            self._is_unreplicated = False
            raise NotReplicated

    def note_warning(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        """Look at a notice of the server."""
        # There is no other sign: the statement succeeds. The text of the warning depends on the language.
        if diagnostic.source_function == _WAITS_FOR_STANDBY and diagnostic.severity_nonlocalized == "WARNING":
            self._is_unreplicated = True


class Pool:
    """Connections that are set up for one tenant. May be used in any thread."""

    def __init__(
        self, url: str, tenant: str, *, patience_s: float = PATIENCE_S, size: int = MAX_CONNECTIONS
    ) -> None:
        """Connects to nothing yet. Raises `StorageFailed` if `url` cannot be read."""
        self.tenant = tenant
        self.patience_s = patience_s
        self._parameters = parameters_of(url)
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(size)
        self._is_closed = False

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection in autocommit mode. Raises `psycopg.Error`, and `StorageFailed` if all
        connections stay in use for `WAIT_S`.
        """
        if not self._free.acquire(timeout=WAIT_S):
            raise StorageFailed(
                "All connections to the database are in use. Send the request again later.",
                reason="pool_exhausted",
            )
        try:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = self.connect()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._free.release()

    def run(self, doing: str, work: Callable[[Connection], T], patience_s: float | None = None) -> T:
        """Return the result of `work`. Calls it again if the connection is lost or a commit was not
        replicated, so it must be idempotent.

        `patience_s`: how long a lost connection is made again, if not as long as usual. Raises
        `StorageFailed`, whose message begins with `doing`.
        """
        attempts = Attempts(self.patience_s if patience_s is None else patience_s)
        while True:
            try:
                with self.connection() as connection:
                    result = work(connection)
                    connection.check_replicated()
                    return result
            except psycopg.Error as error:
                if not attempts.may_repeat(error):
                    raise storage_failed(doing, error) from None

    def connect(self) -> Connection:
        """Return a new connection in autocommit mode that belongs to the caller. Raises `psycopg.Error`, and
        `FormatNotSupported` if the schema is of a newer version.
        """
        connection = Connection.connect(self._parameters, autocommit=True)
        connection.add_notice_handler(connection.note_warning)
        try:
            # The tenant is a parameter, never a part of the SQL text.
            row = connection.execute(_SET_UP, (self.tenant,)).fetchone()
            refuse_version(row[1] if row is not None else None)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close the connections that are not in use. Those in use are closed when they are given back."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _give_back(self, connection: Connection) -> None:
        if connection.closed or connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            connection.close()
            with self._lock:  # the others are probably lost too
                idle, self._idle = self._idle, []
            for other in idle:
                other.close()
            return
        with self._lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()


class Attempts:
    """Decides if a failed statement is sent again, and waits before that."""

    def __init__(self, patience_s: float) -> None:
        self._until = time.monotonic() + patience_s
        self._lost = 0
        self._retried = 0

    def may_repeat(self, error: psycopg.Error) -> bool:
        """Return true if the statement that failed with `error` should be sent again now."""
        if is_retryable(error):
            self._retried += 1
            return self._retried <= _RETRIES
        if not is_in_doubt(error):
            return False
        pause_s = _PAUSES_S[min(self._lost, len(_PAUSES_S) - 1)]
        self._lost += 1
        if time.monotonic() + pause_s > self._until:
            return False
        time.sleep(pause_s)
        return True


def parameters_of(url: str) -> str:
    """Return the parameters of a connection to a `postgresql://` URL. Raises `StorageFailed`, without text of
    the URL, if it cannot be read.
    """
    try:
        named = conninfo.conninfo_to_dict(url)
        given = {name: str(value) for name, value in named.items() if value is not None}
        return conninfo.make_conninfo("", **{**_DEFAULTS, **given})
    except (psycopg.Error, UnicodeError):
        raise StorageFailed(
            "COMPACTD_STORE is no PostgreSQL URL. Write it as postgresql://USER:PASSWORD@HOST/DATABASE, "
            "and write special characters of the password as %XX.",
            reason="invalid_url",
        ) from None


def refuse_version(version: object) -> None:
    """Raise an error unless this version of compactd can use a schema of `version`."""
    if not isinstance(version, int) or version < VERSION:
        raise StorageFailed(
            f"The database's schema has version {version or 0}, and this compactd needs {VERSION}. Run "
            "`compactd store migrate` as the owner of the schema.",
            reason="old_schema",
        )
    if version > VERSION:
        raise FormatNotSupported(
            f"A newer version of compactd has changed the database's schema (version {version}; this one "
            f"uses {VERSION}). Update compactd; nothing was changed.",
            format=version,
            supported=[VERSION],
        )
