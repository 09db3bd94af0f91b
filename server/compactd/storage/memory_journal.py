"""The journal of a session that is not stored (`persist: false`). It keeps no records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compactd.storage.journal_records import check_record


class MemoryJournal:
    """A `Journal` without a file. It only counts records, and all count as durable at once."""

    def __init__(self) -> None:
        self._last = 0

    @property
    def last(self) -> int:
        """The number of the last record appended."""
        return self._last

    @property
    def size_bytes(self) -> int | None:
        """Always 0: nothing is stored."""
        return 0

    @property
    def torn_bytes(self) -> int:
        """Always 0: no file was opened."""
        return 0

    def append(self, records: Sequence[bytes]) -> int:
        """Give `records` the next sequence numbers, and return the last of them. The journal stores nothing:
        the caller keeps the records."""
        for record in records:
            check_record(record)
        self._last += len(records)
        return self._last

    async def durable(self, number: int) -> None:
        """Return at once."""

    def resume(self) -> int | None:
        """Return None: there are no failures."""
        return None

    async def replace(self, changes: Mapping[int, bytes]) -> None:
        """Do nothing: the caller keeps the records."""

    async def close(self) -> None:
        """Do nothing."""
