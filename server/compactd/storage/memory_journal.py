"""The journal of a session that is not stored (`persist: false`). It keeps no records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compactd.storage.journal_records import check_record


class MemoryJournal:
    """A `Journal` without a file. It only counts records, and all count as durable at once."""

    def __init__(self) -> None:
        self.last = 0
        """The number of the last record appended."""
        self.size_bytes: int | None = 0
        """Always 0: nothing is stored."""
        self.torn_bytes = 0
        """Always 0: no file was opened."""

    @property
    def is_broken(self) -> bool:
        """False: there are no failures."""
        return False

    def listen(self, on_taken: Callable[[], None]) -> None:
        """Do nothing: no other process knows the session."""

    def append(self, records: Sequence[bytes]) -> int:
        """Give `records` the next sequence numbers, and return the last of them. The journal stores nothing:
        the caller keeps the records."""
        for record in records:
            check_record(record)
        self.last += len(records)
        return self.last

    async def durable(self, number: int) -> None:
        """Return at once."""

    def resume(self) -> int | None:
        """Return None: there are no failures."""
        return None

    async def replace(self, changes: Mapping[int, bytes]) -> None:
        """Do nothing: the caller keeps the records."""

    async def close(self) -> None:
        """Do nothing."""
