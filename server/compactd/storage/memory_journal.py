"""The journal of a session that is not to be kept (`persist: false`): it takes records and holds none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compactd.storage.records import check


class MemoryJournal:
    """A `Journal` whose records are as durable as the process: at once, and no longer."""

    def __init__(self) -> None:
        self._last = 0

    @property
    def last(self) -> int:
        """The number of the last record appended."""
        return self._last

    @property
    def size_bytes(self) -> int | None:
        """Nothing is stored."""
        return 0

    @property
    def torn_bytes(self) -> int:
        """Nothing was opened."""
        return 0

    def append(self, records: Sequence[bytes]) -> int:
        """Counts `records`; whoever appends them holds them."""
        for record in records:
            check(record)
        self._last += len(records)
        return self._last

    async def durable(self, number: int) -> None:
        """Returns at once."""

    def resume(self) -> int | None:
        """Nothing is ever amiss."""
        return None

    async def replace(self, changes: Mapping[int, bytes]) -> None:
        """Nothing to do: whoever appended the records holds them."""

    async def close(self) -> None:
        """Nothing to let go of."""
