"""Wrappers around the store that record what it was given and what it acknowledged.

They are the reference model of the simulation and know nothing of files. A record is acknowledged when
`durable` has returned for it. Afterwards it must come back at its index, byte for byte, until it is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from compactd.storage.folder import FolderStore
from compactd.storage.journal_records import as_appended
from compactd.storage.protocols import Durability, Journal, RecordsLost
from compactd.storage.search_index import FileIndex
from tests.faults.simulation.machine import Machine


def must(holds: bool, why: str) -> None:
    """Raise `AssertionError` with the text `why` if `holds` is false."""
    if not holds:
        raise AssertionError(why)


class Kept:
    """What the reference knows about the records of one session."""

    def __init__(self, durability: Durability) -> None:
        self.durability: Durability = durability
        self.acknowledged: list[bytes] = []
        self.tried: dict[int, set[bytes]] = {}
        """For each index, all records that were ever written there. One of them may come back, or none."""
        self.doubtful: dict[int, bytes] = {}
        """For each index that is being replaced, the new record, which may come back instead of the old
        one."""
        self.is_certain = True
        """False after a power cut, if the durability promised only to survive a kill."""
        self.before: Kept | None = None
        """The previous session of this name, if its deletion was not acknowledged. A power cut may bring it
        back until the first record of the new session is synced."""

    def is_of(self, found: Sequence[bytes]) -> bool:
        """Return whether these records belong to this session, and not to the previous one of its name."""
        try:
            self.compare(found)
        except AssertionError:
            return False
        return True

    def compare(self, found: Sequence[bytes]) -> None:
        """Raise `AssertionError` if these records may not come back after what happened to the session."""
        if not self.is_certain:
            return
        known = len(self.acknowledged)
        assert len(found) >= known, f"{known} records were acknowledged, {len(found)} came back"
        for at, record in enumerate(found):
            allowed = {self.acknowledged[at]} if at < known else set(self.tried.get(at, ()))
            if at in self.doubtful:
                allowed.add(self.doubtful[at])
            assert record in allowed, f"record {at} of {known} acknowledged is {record!r}"


class Reference:
    """All sessions that were acknowledged to a client."""

    def __init__(self) -> None:
        self.sessions: dict[str, Kept] = {}
        self.maybe: set[str] = set()
        """Ids of sessions that were being created or deleted when the process died."""
        self.secrets: list[bytes] = []
        """Words whose redaction or deletion was acknowledged."""


class WatchedJournal:
    """A `Journal` that records in `Kept` what was appended and acknowledged."""

    def __init__(self, inner: Journal, kept: Kept, records: Sequence[bytes]) -> None:
        self._inner = inner
        self._kept = kept
        self._records = list(records)
        self._numbers = {inner.last: len(self._records)}
        self._is_replacing = False

    @property
    def last(self) -> int:
        """See `Journal.last`."""
        return self._inner.last

    @property
    def size_bytes(self) -> int | None:
        """See `Journal.size_bytes`."""
        return self._inner.size_bytes

    @property
    def torn_bytes(self) -> int:
        """See `Journal.torn_bytes`."""
        return self._inner.torn_bytes

    @property
    def is_broken(self) -> bool:
        """See `Journal.is_broken`."""
        return self._inner.is_broken

    def listen(self, on_taken: Callable[[], None]) -> None:
        """See `Journal.listen`."""
        self._inner.listen(on_taken)

    def append(self, records: Sequence[bytes]) -> int:
        """See `Journal.append`."""
        number = self._inner.append(records)
        for record in records:
            self._kept.tried.setdefault(len(self._records), set()).add(record)
            self._records.append(record)
        self._numbers[number] = len(self._records)
        return number

    async def durable(self, number: int) -> None:
        """See `Journal.durable`."""
        count = self._numbers[number]
        records = self._records[:count]
        await self._inner.durable(number)
        assert self._records[:count] == records or self._kept.doubtful
        if count > len(self._kept.acknowledged):
            self._kept.acknowledged[:] = self._records[:count]
        if self._kept.durability == "disk":
            # The file is synced: records that were cut off after this point cannot come back any more.
            self._kept.before = None
            self._kept.tried = {
                at: those for at, those in self._kept.tried.items() if at < len(self._records)
            }
        if not self._is_replacing:
            self._kept.doubtful = {}

    def resume(self) -> int | None:
        """See `Journal.resume`."""
        lost_from = self._inner.resume()
        if lost_from is not None:
            del self._records[lost_from:]
        return lost_from

    async def replace(self, changes: Mapping[int, bytes]) -> None:
        """See `Journal.replace`."""
        kept = self._kept
        for at, record in changes.items():
            kept.tried.setdefault(at, set()).add(record)
        kept.doubtful = dict(changes)
        self._is_replacing = True
        await self._inner.replace(changes)
        self._is_replacing = False
        for at, record in changes.items():
            self._records[at] = record
        # The file with the replaced records was written as a whole and synced.
        kept.acknowledged[:] = self._records[: max(len(kept.acknowledged), max(changes, default=-1) + 1)]
        kept.tried = {at: set() if at in changes else those for at, those in kept.tried.items()}
        for at, record in changes.items():
            kept.tried[at] = {record}
        kept.doubtful = {}

    async def close(self) -> None:
        """See `Journal.close`."""
        try:
            await self._inner.close()
        except RecordsLost as lost:
            must(lost.lost_from >= len(self._kept.acknowledged), "acknowledged, and lost in closing")
            raise


class WatchedStore:
    """A `Store` that records in `Reference` what was created, deleted and acknowledged."""

    def __init__(self, home: Path, machine: Machine, reference: Reference) -> None:
        self._inner = FolderStore(home, disk=machine)
        self._reference = reference
        self.list = self._inner.list
        self.exists = self._inner.exists
        self.read = self._inner.read
        self.salvage = self._inner.salvage
        self.save_info = self._inner.save_info
        self.load_info = self._inner.load_info
        self.file_of = self._inner.file_of

    @property
    def calls(self) -> None:
        """See `Store.calls`."""
        return None

    @property
    def index(self) -> FileIndex:
        """See `Store.index`."""
        return self._inner.index

    def create(self, session_id: str, first: bytes, durability: Durability) -> Journal:
        """See `Store.create`."""
        # What is there may be half of a creation or deletion that was never answered.
        known = self._reference.sessions.get(session_id)
        assert known is None or not known.acknowledged or session_id in self._reference.maybe, (
            "a session that is there was made anew"
        )
        self._reference.maybe.add(session_id)
        kept = Kept(durability)
        kept.tried[0] = {first}
        kept.before = known
        inner = self._inner.create(session_id, first, durability)
        self._reference.sessions[session_id] = kept
        return WatchedJournal(inner, kept, [first])

    def open(self, session_id: str, *, durability: Durability) -> tuple[Journal, list[memoryview]]:
        """See `Store.open`."""
        inner, found = self._inner.open(session_id, durability=durability)
        records = [as_appended(record) for record in found]
        kept = self._reference.sessions.setdefault(session_id, Kept(durability))
        while kept.before is not None and not kept.is_of(records):
            kept = self._reference.sessions[session_id] = kept.before
        kept.compare(records)
        # The records that came back are the current ones. They are durable when the next record is.
        for at, record in enumerate(records):
            kept.tried[at] = {record}
        # A replacement that got no answer may be seen and yet be lost with the power, until the next sync.
        sides = {
            at: (kept.acknowledged[at], new)
            for at, new in kept.doubtful.items()
            if at < len(kept.acknowledged)
        }
        kept.doubtful = {at: old if records[at] == new else new for at, (old, new) in sides.items()}
        kept.acknowledged[:] = records[: len(kept.acknowledged)]
        kept.is_certain = True
        return WatchedJournal(inner, kept, records), found

    async def delete(self, session_id: str) -> None:
        """See `Store.delete`."""
        self._reference.maybe.add(session_id)
        await self._inner.delete(session_id)
        self._reference.sessions.pop(session_id, None)
        self._reference.maybe.discard(session_id)

    async def close(self) -> None:
        """See `Store.close`."""
        await self._inner.close()
