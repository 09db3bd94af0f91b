"""The interfaces of a session store: `Store`, `Journal`, `Follower`, `Index`.

A session is a sequence of records. A record is one JSON object, given as bytes that begin with `{"type":"`.
The store does not interpret it. Records are numbered from 0 in the order they were appended (`seq`). Records
are only added at the end, and only one process at a time may add records.

There are two implementations: `folder.py` with one file per session, and `postgres/` with a database that
many machines share. `choose.py` chooses one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from compactd.protocol.errors import SessionCorrupt, StorageFailed

if TYPE_CHECKING:
    # Hooks import this module, and importing the types of the wire takes milliseconds.
    from compactd.protocol.wire import Hit

Durability = Literal["disk", "os"]
"""What stored records survive. With `disk` they survive a power cut. With `os` they survive a killed process,
but not a power cut."""


LOST_LEASE = "lost_lease"
"""`reason` of a failure if another process has taken the session over. Nothing was written."""


class RecordsLost(StorageFailed):
    """Appended records could not be stored. The caller must rebuild the session's state without them."""

    def __init__(self, message: str, *, lost_from: int, is_broken: bool, reason: str | None = None) -> None:
        super().__init__(message, reason=reason)
        self.lost_from = lost_from
        """`seq` of the first record that was not stored. All later ones are lost too."""
        self.is_broken = is_broken
        """True if the journal accepts no more records and has to be opened again."""


class Stored(Struct, frozen=True, kw_only=True):
    """What a store knows about a session without reading its whole journal."""

    session_id: str
    size_bytes: int
    updated_at: float
    """The time of the last change, in Unix seconds."""
    is_locked: bool
    """True if a process, this one included, has the session open for writing."""
    working_dir: str | None = None
    """The folder in which the session was started."""


class FollowerNews(Struct, frozen=True, kw_only=True):
    """The records that a follower has read since its last `poll`."""

    first_seq: int
    """`seq` of the first of `records`. If it is smaller than the number of records read so far, the process
    that writes the session took records back or replaced them. Then `records` replace all earlier ones from
    `first_seq` on."""
    records: tuple[memoryview, ...]
    is_owned: bool | None
    """Whether a process had the session open for writing just before they were read. None if that could not
    be found out."""


class Journal(Protocol):
    """One session, open for writing by this process alone. Used from one event loop."""

    @property
    def last(self) -> int:
        """The number of the last record appended. `durable(last)` waits for all records appended so far."""
        ...

    @property
    def size_bytes(self) -> int | None:
        """The size of the stored records in bytes, or None while records are being written or after a
        failure.
        """
        ...

    @property
    def torn_bytes(self) -> int:
        """The number of bytes at the journal's end that were not a whole record when it was opened, as after
        a power cut.
        """
        ...

    @property
    def is_broken(self) -> bool:
        """True after a failure after which the journal accepts no more records and has to be opened again."""
        ...

    def listen(self, on_taken: Callable[[], None]) -> None:
        """Call `on_taken`, on the event loop, when another process has taken the session over and this one
        has noticed it. The journal is broken then.
        """
        ...

    def append(self, records: Sequence[bytes]) -> int:
        """Append `records` and return the number of the last one. O(records), never blocks.

        The records are not durable yet: await `durable` with this number. Numbers rise by one per record and
        are never reused; they are not `seq`. Raises `ValueError` for bytes that are not a record. After a
        failure, raises `RecordsLost` until `resume` is called; if the journal is broken, always.
        """
        ...

    async def durable(self, number: int) -> None:
        """Wait until the record with this number, and all records before it, have the journal's `Durability`.

        Raises `RecordsLost` if that record was not stored.
        """
        ...

    def resume(self) -> int | None:
        """Accept records again after a failure. Return `RecordsLost.lost_from`, or None if there was no
        failure.

        If several callers get the same failure, only the first one that calls this gets `lost_from`. That
        caller must rebuild the session's state without the lost records before it appends. Raises
        `RecordsLost` if the journal is broken.
        """
        ...

    async def replace(self, changes: Mapping[int, bytes]) -> None:
        """Replace the bytes of records, by their `seq`, all or none. The new bytes are on disk when this
        returns.

        Redaction uses this to remove a secret from the disk. It is the one exception to the rule that records
        are only added at the end. `changes` has the new bytes by `seq`; each `seq` must be that of an
        appended record. Raises `StorageFailed`; then nothing was changed.
        """
        ...

    async def close(self) -> None:
        """Wait until the appended records are stored, then close the journal and release its lock. May be
        called twice.

        Raises `RecordsLost` if the last records could not be stored. The journal is closed even then.
        """
        ...


class Follower(Protocol):
    """A reader of one session that another process may be writing. Its methods block."""

    @property
    def writer(self) -> str | None:
        """The name in `Calls` of the process that had the session open for writing at the last `poll`. None
        if there was none, or if the store has no `Calls`.
        """
        ...

    @property
    def size_bytes(self) -> int:
        """The size in bytes of the records read so far."""
        ...

    def poll(self) -> FollowerNews:
        """Return the complete records that were added since the last call. O(new bytes).

        Raises `SessionNotFound` after the session was deleted, `SessionCorrupt` if it is damaged.
        """
        ...

    def is_owned(self) -> bool:
        """Return true if a process has the session open for writing."""
        ...

    def listen(self, on_news: Callable[[], None]) -> bool:
        """Call `on_news`, in any thread, when there may be new records. Return false if nobody tells: then
        the caller must poll. Does not block.
        """
        ...

    def close(self) -> None:
        """Stop reading."""
        ...


class Call(Struct, frozen=True, kw_only=True):
    """A call of another process that shares the store."""

    id: str
    sender: str
    """The name of that process: where the answer goes."""
    body: bytes


class Post(Struct, frozen=True, kw_only=True):
    """A call to another process that shares the store."""

    id: str
    node: str
    """The name of that process."""
    body: bytes


class Calls(Protocol):
    """Calls between the processes that share a store. A call may be lost when the database is restarted, so
    who waits looks from time to time. Its methods block, except `new_id`, `drop` and `listen`.
    """

    @property
    def node(self) -> str:
        """The name of this process."""
        ...

    def writer_of(self, session_id: str) -> str | None:
        """Return the name of the process that has a session open for writing, or None."""
        ...

    def new_id(self) -> str:
        """Return the id for a new call."""
        ...

    def send(self, posts: Sequence[Post], answers: Sequence[tuple[Call, bytes]]) -> None:
        """Send calls to other processes, and answer theirs."""
        ...

    def tell(self, posts: Sequence[Post]) -> set[str]:
        """Send calls that need no answer, to those of their receivers that live. Return these receivers."""
        ...

    def drop(self, call: Call) -> None:
        """Note that a call was read that needs no answer. O(1)."""
        ...

    def take(self, waiting: Sequence[str]) -> tuple[list[Call], dict[str, bytes]]:
        """Return (the new calls to this process, the answers to those of the calls `waiting` that have one).
        Each is returned once.
        """
        ...

    def withdraw(self, call_ids: Sequence[str]) -> set[str]:
        """Take calls of this process back. Return those that the other process has not read."""
        ...

    def known(self, call_ids: Sequence[str]) -> set[str]:
        """Return those of these calls that are not lost."""
        ...

    def listen(self, on_news: Callable[[], None]) -> None:
        """Call `on_news` in any thread when there may be new calls or answers."""
        ...


class SearchableText(Struct, frozen=True):
    """The searchable content of a journal record: the entry id, role, time (Unix seconds) and text of a
    message.
    """

    entry_id: str
    role: str
    at: float
    text: str


ReadRecord = Callable[[memoryview], SearchableText | None]
"""A function that returns the searchable content of a journal record, or None if the record is not a
message."""


class Index(Protocol):
    """A full-text index of all stored sessions, which can be rebuilt from them. Its methods block and raise
    `OSError`.
    """

    def catch_up(self, read: ReadRecord) -> Iterator[int]:
        """Index the records that were added since the last call, one session per step. Yield the number of
        bytes indexed in each step. O(new bytes).

        The caller may stop after any step: what is indexed so far stays indexed. `read` returns the text of a
        journal record.
        """
        ...

    def find(self, query: str, limit: int) -> tuple[Hit, ...]:
        """Return at most `limit` messages that contain every word of `query`, best first.

        Words of `query` without a space between them (`a-b`) must be adjacent in the message. The last word
        of `query` may be the beginning of a word in the message.
        """
        ...


class Store(Protocol):
    """The stored sessions, by id. Methods that are not `async` block while they read the disk."""

    @property
    def index(self) -> Index:
        """The search index of the sessions in this store."""
        ...

    @property
    def calls(self) -> Calls | None:
        """The calls between the processes that share this store. None if only one process at a time may write
        a session, and others wait until it has closed it.
        """
        ...

    def create(self, session_id: str, first: bytes, durability: Durability) -> Journal:
        """Create a session and return its open journal. The first record is appended but not yet durable.

        Raises `SessionLocked`, `StorageFailed`, and `FileExistsError` if the session is already stored.
        """
        ...

    def open(self, session_id: str, *, durability: Durability) -> tuple[Journal, list[memoryview]]:
        """Open a stored session. Return its journal and its records, oldest first. Changes nothing on disk.

        The records may contain `seq`, `with` and `crc` in addition to what was appended. Raises
        `SessionNotFound`, `SessionLocked`, `SessionCorrupt`, `FormatNotSupported`, `StorageFailed`.
        """
        ...

    def read(self, session_id: str) -> tuple[Follower, list[memoryview]]:
        """Return a follower of a stored session, and its records so far. Takes no lock and changes nothing.

        Raises the errors of `open` except `SessionLocked`.
        """
        ...

    def salvage(self, session_id: str) -> list[bytes]:
        """Return all readable records of a session, oldest first, as they were appended. The session may be
        damaged.

        Raises `SessionNotFound`, `StorageFailed`.
        """
        ...

    def exists(self, session_id: str) -> bool:
        """Return true if the session is stored, damaged or not."""
        ...

    def list(self) -> list[Stored]:
        """Return every stored session whose first record can be read, last changed first."""
        ...

    async def delete(self, session_id: str) -> None:
        """Delete a session and its files. It cannot be restored. Raises `SessionNotFound`, `SessionLocked`,
        `SessionBusy`, `StorageFailed`.
        """
        ...

    async def save_info(self, session_id: str, info: bytes, *, size_bytes: int) -> None:
        """Save what `session/list` shows about a session. `size_bytes` is the size of the journal from which
        `info` was made. Raises `StorageFailed`.
        """
        ...

    def load_info(self, session_id: str) -> bytes | None:
        """Return what `save_info` saved, or None if nothing was saved or the session has changed since."""
        ...

    def file_of(self, session_id: str) -> str | None:
        """Return the path of the session's journal, to show to the user, or None if there is no file."""
        ...

    async def close(self) -> None:
        """Stop the store's threads. Call this after all journals are closed."""
        ...


def corrupt(line: int, readable_before: int, readable_after: int) -> SessionCorrupt:
    """Return the error for a session that is damaged in the middle. `line` counts from 1."""
    return SessionCorrupt(
        f"The session's journal is damaged at line {line}: {readable_before} records before it and "
        f"{readable_after} after it can be read. Nothing was changed; `compactd doctor` saves them "
        "into a new file.",
        line=line,
        readable_before=readable_before,
        readable_after=readable_after,
    )
