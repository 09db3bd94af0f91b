"""Notifications about commits, so that a reader need not wait for its next poll.

They are sent after the commits, for all sessions together. PostgreSQL lets only one transaction with NOTIFY
commit at a time: in the same transaction, they would have each commit wait for the one before it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence

import psycopg

from compactd.protocol.errors import CompactdError
from compactd.storage.postgres.pool import Connection, Pool

CHANNEL = "compactd"
"""The channel on which commits are announced."""
_WAIT_S = 0.5
"""How often the thread checks whether it should stop."""
_RECONNECT_S = 0.5
_TOGETHER_S = 0.05
"""Seconds for which commits are collected before they are announced."""
_ANNOUNCE = f"""
SELECT pg_notify('{CHANNEL}', payload), set_config('synchronous_commit', 'off', true)
FROM unnest(%s::text[]) AS payload"""


class Announcer:
    """Announces commits to all nodes, at most `_TOGETHER_S` seconds later. One thread, from the first commit
    on. May be used in any thread.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._payloads: set[str] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def announce(self, payload: str) -> None:
        """Announce a commit to a session. `payload`: what `keys.notice_of` returns. O(1)."""
        with self._changed:
            if not self._payloads:
                self._changed.notify()
            self._payloads.add(payload)
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, name="compactd-announcer", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Announce what was not announced yet, and stop."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        is_closed = False
        while not is_closed:
            with self._changed:
                self._changed.wait_for(lambda: self._payloads or self._is_closed)
                self._changed.wait_for(lambda: self._is_closed, timeout=_TOGETHER_S)
                payloads, self._payloads = self._payloads, set()
                is_closed = self._is_closed
            # If this fails, followers see the commits when they look by themselves.
            with contextlib.suppress(psycopg.Error, CompactdError), self._pool.connection() as connection:
                if payloads:
                    connection.execute(_ANNOUNCE.encode(), (list(payloads),))


class Listener:
    """A thread that calls `changed` for each notification of some channels, with its payload: for a commit,
    with what `keys.notice_of` returns.

    After each connection that was made, `changed(None)` says that everything may have changed: notifications
    are not kept for a listener that is not connected. `changed` is called in the listener's thread.
    """

    def __init__(
        self, pool: Pool, changed: Callable[[str | None], None], *, channels: Sequence[str] = (CHANNEL,)
    ) -> None:
        self._pool = pool
        self._changed = changed
        self._channels = channels
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="compactd-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            # A connection of its own, not one of the pool: it is in use all the time.
            with (
                contextlib.suppress(psycopg.Error, CompactdError),
                contextlib.closing(self._pool.connect()) as connection,
            ):
                for channel in self._channels:
                    connection.execute(f"LISTEN {channel}".encode())
                self._changed(None)
                self._listen(connection)
            self._stop.wait(_RECONNECT_S)

    def _listen(self, connection: Connection) -> None:
        while not self._stop.is_set():
            for notice in connection.notifies(timeout=_WAIT_S):
                self._changed(notice.payload)


class Notices:
    """Calls functions when there is news for them. One listener for all of them, from the first one on. May
    be used in any thread.
    """

    def __init__(self, pool: Pool, channels: Sequence[str]) -> None:
        self._pool = pool
        self._channels = channels
        self._wanted: dict[str, list[Callable[[], None]]] = {}
        self._lock = threading.Lock()
        self._listener: Listener | None = None

    def add(self, payload: str, on_news: Callable[[], None]) -> None:
        """Call `on_news`, in a thread, for each notification with this payload, and when some may have been
        missed.
        """
        with self._lock:
            self._wanted.setdefault(payload, []).append(on_news)
            if self._listener is None:
                self._listener = Listener(self._pool, self._tell, channels=self._channels)

    def remove(self, payload: str, on_news: Callable[[], None]) -> None:
        """Call it no longer. O(functions with this payload)."""
        with self._lock:
            wanted = self._wanted.get(payload, [])
            if on_news in wanted:
                wanted.remove(on_news)
            if not wanted:
                self._wanted.pop(payload, None)

    def close(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            self._listener.close()

    def _tell(self, payload: str | None) -> None:
        with self._lock:
            wanted = self._wanted.values() if payload is None else (self._wanted.get(payload, ()),)
            found = [on_news for each in wanted for on_news in each]
        for on_news in found:
            on_news()
