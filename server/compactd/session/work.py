"""The state of the work of a session, kept up to date with its messages."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from time import monotonic

from compactd.core.constraints.constraints import NO_PATH_CONSTRAINTS
from compactd.core.history.entries import EntryId, Item
from compactd.core.work.state import WorkReader, WorkState


class SessionWork:
    """What the messages of one session say about the state of the work. It remembers how far the path was
    read. Safe to use from any thread; use it in a worker."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._start()

    def _start(self) -> None:
        self._read: list[EntryId] = []
        self._reading = _Reading()

    def unread_tokens(self, path: Sequence[Item]) -> int:
        """Return the size of the messages of `path` that `after` would probably have to read. O(messages that
        were not read before)."""
        return sum([item.tokens for item in path[len(self._read) :]])

    def after(self, path: Sequence[Item]) -> WorkState:
        """Return the state of the work after `path`, the original messages from the root on.

        O(messages that were not read before + what was found). On another branch, all is read again. If more
        than `path` was read before, `path` is read again and forgotten.
        """
        with self._lock:
            names = [item.entry_id for item in path]
            if len(names) < len(self._read) and names == self._read[: len(names)]:
                return _Reading(path).state()
            self._read_to(path, names)
            return self._reading.state()

    def read_ahead(self, path: Sequence[Item], until: float) -> bool:
        """Read messages of `path` until `monotonic()` is `until`. Return whether all were read."""
        with self._lock:
            size = len(self._read)
            if size > len(path) or (size and path[size - 1].entry_id != self._read[-1]):
                return True  # another branch; `after` reads it if somebody asks
            for item in path[size:]:
                self._reading.add(item)
                self._read.append(item.entry_id)
                if monotonic() > until:
                    return False
            return True

    def _read_to(self, path: Sequence[Item], names: list[EntryId]) -> None:
        if names[: len(self._read)] != self._read:
            self._start()
        for item in path[len(self._read) :]:
            self._reading.add(item)
        self._read = names


class _Reading:
    """What was read of one path: the state of the work and the user's constraints."""

    def __init__(self, path: Sequence[Item] = ()) -> None:
        self._reader = WorkReader()
        self._constraints = NO_PATH_CONSTRAINTS
        for item in path:
            self.add(item)

    def add(self, item: Item) -> None:
        """Read the next message. O(its length)."""
        decoded = item.decoded()
        self._reader.add(decoded)
        self._constraints = self._constraints.read_more((decoded,))

    def state(self) -> WorkState:
        """Return the state after all messages. O(what was found)."""
        return self._reader.state(self._constraints.constraints)
