"""What a store of sessions promises, whoever keeps it.

A session is a sequence of records. A record is one JSON object, given as bytes that begin with
`{"type":"`; what it means is not the store's business. Records are numbered from 0 in the order they
were appended (`seq`), only ever added at the end, and one process at a time may add.

The one store there is keeps a file a session (`folder.py`). A database shared by several machines can
stand behind the same protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from compactd.protocol.errors import SessionCorrupt, StorageFailed

Durability = Literal["disk", "os"]
"""`disk`: survives a power cut. `os`: survives a killed process, not a power cut."""


class RecordsLost(StorageFailed):
    """Records that were appended could not be kept. Fold the session again without them."""

    def __init__(self, message: str, *, lost_from: int, is_broken: bool, reason: str | None = None) -> None:
        super().__init__(message, reason=reason)
        self.lost_from = lost_from
        """`seq` of the first record that was not kept; every later one is lost too."""
        self.is_broken = is_broken
        """True where the journal takes no more records and has to be opened again."""


class Stored(Struct, frozen=True, kw_only=True):
    """One session of a store, as far as it is known without reading it."""

    session_id: str
    size_bytes: int
    updated_at: float
    """Unix seconds."""
    is_locked: bool
    """True where a process has it open for writing, this one included."""
    working_dir: str | None = None
    """The folder that it began in."""


class News(Struct, frozen=True, kw_only=True):
    """What a follower sees that it did not see before."""

    first_seq: int
    """Where `records` begin. Smaller than the number of records seen so far only where the owner took
    some back or replaced them: then `records` stand in place of all from here on."""
    records: tuple[memoryview, ...]


class Journal(Protocol):
    """One session, open for writing by this process alone. Used from one event loop."""

    @property
    def last(self) -> int:
        """The number of the last record appended; `durable(last)` waits for everything so far."""
        ...

    @property
    def size_bytes(self) -> int | None:
        """What the stored records take, in bytes; None while some are on their way or in doubt."""
        ...

    @property
    def torn_bytes(self) -> int:
        """Bytes at the end that were no whole record when this was opened: the trace of a power cut."""
        ...

    def append(self, records: Sequence[bytes]) -> int:
        """Puts `records` at the end and gives back a number to wait for. O(records), never blocks.

        Nothing is durable yet: await `durable`. Numbers rise by one a record and are never used twice.
        Raises `RecordsLost` after a failure, until `resume` was called, and for good once it is broken;
        `ValueError` for bytes that are no record.
        """
        ...

    async def durable(self, number: int) -> None:
        """Returns when the record with this number, and all before it, are as safe as was asked for.

        Raises `RecordsLost` where that record was not kept; its `seq` is at or after `lost_from`.
        """
        ...

    def resume(self) -> int | None:
        """Takes records again after a failure. Gives back `lost_from`, or None where nothing is amiss.

        Of several that are told of the same failure the first one gets the number, and folds the
        session again without the lost records before it appends anything. Raises `RecordsLost` where
        the journal is broken.
        """
        ...

    async def replace(self, changes: Mapping[int, bytes]) -> None:
        """Puts other bytes in the place of the records with these `seq`s, all or none, durably.

        For a secret that must leave the disk; the one exception to "only ever added". Every record
        named must have been appended. Raises `StorageFailed`: then nothing was changed.
        """
        ...

    async def close(self) -> None:
        """Waits for what was appended, then lets go of the session. May be called twice.

        Raises `RecordsLost` where the last records could not be kept; it is closed all the same.
        """
        ...


class Follower(Protocol):
    """One session, read beside whoever writes it. Blocks for as long as a read takes."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the records read so far."""
        ...

    def poll(self) -> News:
        """The whole records that came since. O(new bytes).

        Raises `SessionNotFound` once it was deleted, `SessionCorrupt` where it is damaged.
        """
        ...

    def is_owned(self) -> bool:
        """True while some process has the session open for writing."""
        ...

    def close(self) -> None:
        """Stops reading."""
        ...


class Said(Struct, frozen=True):
    """What a record says that can be searched."""

    entry_id: str
    role: str
    at: float
    text: str


class IndexHit(Struct, frozen=True):
    """A message that an index found."""

    session_id: str
    entry_id: str
    role: str
    at: float
    snippet: str


ReadRecord = Callable[[memoryview], Said | None]
"""What a record of a journal says; None where it is no message."""


class Index(Protocol):
    """What was said in every stored session, by its words. Derived; blocks. Raises `OSError`."""

    def catch_up(self, read: ReadRecord) -> Iterator[int]:
        """Reads what is new, one session a step; gives the bytes of each. O(new bytes).

        Stop taking steps to stop: what was done stays done.
        """
        ...

    def find(self, query: str, limit: int) -> tuple[IndexHit, ...]:
        """Messages that hold every word of `query`, the best first, at most `limit`.

        What was written without a blank stands together; the last word may be the beginning of one.
        """
        ...


class Store(Protocol):
    """Sessions by their id. What is not `async` blocks for as long as the disk takes to read."""

    @property
    def index(self) -> Index:
        """Of the sessions that are stored here."""
        ...

    def create(self, session_id: str, first: bytes, durability: Durability) -> Journal:
        """A new session, open, with its first record appended but not yet durable.

        Raises `SessionLocked`, `StorageFailed`; `FileExistsError` where it is stored already.
        """
        ...

    def open(self, session_id: str, *, durability: Durability) -> tuple[Journal, list[memoryview]]:
        """A stored session, open, and its records, oldest first. Nothing on disk is changed.

        A record may hold `seq` and `crc` besides what was appended. Raises `SessionNotFound`,
        `SessionLocked`, `SessionCorrupt`, `FormatNotSupported`, `StorageFailed`.
        """
        ...

    def read(self, session_id: str) -> tuple[Follower, list[memoryview]]:
        """A stored session, to follow, and its records so far. Takes no lock, changes nothing.

        Raises as `open`, but for `SessionLocked`.
        """
        ...

    def salvage(self, session_id: str) -> list[bytes]:
        """What can be read of a session that may be damaged, oldest first, as it was appended.

        Raises `SessionNotFound`, `StorageFailed`.
        """
        ...

    def exists(self, session_id: str) -> bool:
        """True where the session is stored, damaged or not."""
        ...

    def list(self) -> list[Stored]:
        """Every stored session whose first record can be read, newest first."""
        ...

    async def delete(self, session_id: str) -> None:
        """Removes a session for good. Raises `SessionNotFound`, `SessionLocked`, `StorageFailed`."""
        ...

    async def save_info(self, session_id: str, info: bytes, *, size_bytes: int) -> None:
        """Keeps what a list shows of a session, derived from its first `size_bytes` bytes.

        Raises `StorageFailed`.
        """
        ...

    def load_info(self, session_id: str) -> bytes | None:
        """What `save_info` kept; None where the session has changed since, or nothing was kept."""
        ...

    def file_of(self, session_id: str) -> str | None:
        """The path of the session's file, for a person; None if there is no such file."""
        ...

    async def close(self) -> None:
        """Lets go of the threads. Journals have to be closed before."""
        ...


def corrupt(line: int, readable_before: int, readable_after: int) -> SessionCorrupt:
    """The error for a session that is damaged in the middle. `line` counts from 1."""
    return SessionCorrupt(
        f"The session's journal is damaged at line {line}: {readable_before} records before it and "
        f"{readable_after} after it can be read. Nothing was changed; `compactd doctor` saves them "
        "into a new file.",
        line=line,
        readable_before=readable_before,
        readable_after=readable_after,
    )
