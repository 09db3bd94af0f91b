"""The state of the work of a session, kept up to date with its messages."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from time import monotonic

from compactd.core.constraints.constraints import NO_PATH_CONSTRAINTS, MessageLimits, limits_in
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

    @property
    def last_read(self) -> EntryId | None:
        """The last message that was read; None if none was."""
        return self._read[-1] if self._read else None

    def read_ahead(self, items: Sequence[Item], after: EntryId | None, until: float) -> bool:
        """Read `items`, the messages of the path after the message `after`, until `monotonic()` is `until`.
        Return whether all were read. With `after` None, `items` is the whole path, and reading begins
        again."""
        with self._lock:
            if after is None:
                self._start()
            elif after != self.last_read:
                return True  # somebody else read on
            for item in items:
                self._reading.add(item)
                self._read.append(item.entry_id)
                if monotonic() > until and item is not items[-1]:
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
        self._limits: dict[EntryId, MessageLimits] = {}
        self._unsettled: list[Item] = []
        """The messages with limits that `_constraints` does not know yet. To find out which limits are in
        force, all of them are compared, so this is done only when somebody asks."""
        for item in path:
            self.add(item)

    def add(self, item: Item) -> None:
        """Read the next message. O(its length)."""
        decoded = item.decoded()
        self._reader.add(decoded)
        limits = limits_in(decoded)
        if limits:
            self._limits[item.entry_id] = limits
            self._unsettled.append(item)

    def state(self) -> WorkState:
        """Return the state after all messages. O(what was found)."""
        if self._unsettled:
            self._constraints = self._constraints.read_more(self._unsettled, self._limits)
            self._unsettled = []
            self._limits = {}
        return self._reader.state(self._constraints.constraints)
