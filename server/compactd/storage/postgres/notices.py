"""Listen to the notifications that each commit sends, so that a reader need not wait for its next poll."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import psycopg

from compactd.protocol.errors import CompactdError
from compactd.storage.postgres.pool import Connection, Pool
from compactd.storage.postgres.writer import CHANNEL

_WAIT_S = 0.5
"""How often the thread checks whether it should stop."""
_RECONNECT_S = 0.5


class Listener:
    """A thread that calls `changed` for each notification of a channel, with its payload: for each commit,
    with what `keys.notice_of` returns.

    After each connection that was made, `changed(None)` says that everything may have changed: notifications
    are not kept for a listener that is not connected. `changed` is called in the listener's thread.
    """

    def __init__(self, pool: Pool, changed: Callable[[str | None], None], *, channel: str = CHANNEL) -> None:
        self._pool = pool
        self._changed = changed
        self._channel = channel
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
                connection.execute(f"LISTEN {self._channel}".encode())
                self._changed(None)
                self._listen(connection)
            self._stop.wait(_RECONNECT_S)

    def _listen(self, connection: Connection) -> None:
        while not self._stop.is_set():
            for notice in connection.notifies(timeout=_WAIT_S):
                self._changed(notice.payload)
