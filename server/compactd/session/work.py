"""The state of the work of a session, kept up to date with its messages."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from compactd.core.constraints.constraints import NO_PATH_CONSTRAINTS
from compactd.core.history.entries import EntryId, Item
from compactd.core.work.state import WorkReader
from compactd.protocol.work import Work


class SessionWork:
    """What the messages of one session say about the state of the work. It remembers how far the path was
    read. Safe to use from any thread; use it in a worker."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._start()

    def _start(self) -> None:
        self._read: list[EntryId] = []
        self._reader = WorkReader()
        self._constraints = NO_PATH_CONSTRAINTS

    def unread_tokens(self, path: Sequence[Item]) -> int:
        """Return the size of the messages of `path` that `after` would probably have to read. O(messages that
        were not read before)."""
        return sum([item.tokens for item in path[len(self._read) :]])

    def after(self, path: Sequence[Item]) -> Work:
        """Return the state of the work after `path`, the original messages from the root on.

        O(messages that were not read before + what was found). On another branch, all is read again.
        """
        with self._lock:
            names = [item.entry_id for item in path]
            if names[: len(self._read)] != self._read:
                self._start()
            new = path[len(self._read) :]
            for item in new:
                decoded = item.decoded()
                self._reader.add(decoded)
                self._constraints = self._constraints.read_more((decoded,))
            self._read = names
            return self._reader.work(self._constraints.constraints)
