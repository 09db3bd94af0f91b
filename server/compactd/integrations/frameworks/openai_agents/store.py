"""Where the items of a session are kept, unchanged: a SQLite database in compactd's data folder, or another
session of the SDK's.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from agents.memory import Session

from compactd.integrations.frameworks.openai_agents.items import Item
from compactd.storage.paths import data_folder

T = TypeVar("T")

NAME = "openai-agents.sqlite3"
BUSY_S = 30.0
"""Seconds to wait for another process that writes."""

_TABLE = (
    "create table if not exists items ("
    "seq integer primary key autoincrement, session text not null, item text not null)"
)
_INDEX = "create index if not exists items_of_session on items (session, seq)"


@dataclass(frozen=True, slots=True)
class Stored:
    """The items of a session at one time."""

    texts: list[str]
    """Each as JSON."""
    last: int = 0
    """The newest item's number; no later item gets it again."""
    source: object = None
    """Which file this was read from."""

    def items(self) -> list[Item]:
        """Return the items, as new objects. O(their text)."""
        return [json.loads(text) for text in self.texts]


NOTHING = Stored([])


class Store(Protocol):
    """Keeps the items of one session. `None` as a limit means all."""

    async def all(self, known: Stored) -> Stored:
        """Return all items. What `known` has is not read again if it is still the same."""

    async def latest(self, limit: int) -> list[Item]:
        """Return the newest items, oldest first; all if `limit` is negative."""

    async def add(self, items: Sequence[Item], known: Stored, then: Callable[[Stored], None]) -> None:
        """Store items: they are on disk when this returns. Then call `then` in a thread, with all items as
        `all` returns them.
        """

    async def pop(self) -> Item | None:
        """Remove the newest item and return it."""

    async def clear(self) -> None:
        """Remove all items."""


@dataclass(frozen=True)
class FileStore:
    """Items in a database, which several sessions, threads and processes may use at once. The object has only
    its
    name: so it can be copied, pickled, and used after a fork.
    """

    session_id: str
    path: str | None = None
    """The database's file. None: `openai-agents.sqlite3` in compactd's data folder."""

    @property
    def _path(self) -> Path:
        return Path(self.path).absolute() if self.path else data_folder(os.environ) / NAME

    async def all(self, known: Stored) -> Stored:
        """See `Store`. O(items that are new)."""
        return await asyncio.to_thread(self.read_all, known)

    async def latest(self, limit: int) -> list[Item]:
        """See `Store`."""
        return await asyncio.to_thread(self._latest, limit)

    async def add(self, items: Sequence[Item], known: Stored, then: Callable[[Stored], None]) -> None:
        """See `Store`. Raise `TypeError` for an item that JSON cannot hold, and store none then."""
        texts = [json.dumps(item, default=_fields) for item in items]
        await _finished(lambda: then(self._add(texts, known)))

    async def pop(self) -> Item | None:
        """See `Store`."""
        return await _finished(self._pop)

    async def clear(self) -> None:
        """See `Store`."""
        await _finished(self._clear)

    def read_all(self, known: Stored) -> Stored:
        """Like `all`, for callers that may block."""
        with self._database() as database:
            return self._read(database, known)

    def _read(self, database: sqlite3.Connection, known: Stored) -> Stored:
        source = _file(self._path)
        kept = database.execute(
            "select count(*) from items where session = ? and seq <= ?", (self.session_id, known.last)
        ).fetchone()[0]
        if kept != len(known.texts) or source != known.source:
            known = NOTHING
        rows = database.execute(
            "select seq, item from items where session = ? and seq > ? order by seq",
            (self.session_id, known.last),
        ).fetchall()
        if not rows:
            return known
        return Stored([*known.texts, *(text for _, text in rows)], rows[-1][0], source)

    def _latest(self, limit: int) -> list[Item]:
        with self._database() as database:
            rows = database.execute(
                "select item from items where session = ? order by seq desc limit ?", (self.session_id, limit)
            ).fetchall()
        return [json.loads(text) for (text,) in reversed(rows)]

    def _add(self, texts: Sequence[str], known: Stored) -> Stored:
        with self._database(is_writing=True) as database:
            database.executemany(
                "insert into items (session, item) values (?, ?)", [(self.session_id, text) for text in texts]
            )
            return self._read(database, known)

    def _pop(self) -> Item | None:
        with self._database(is_writing=True) as database:
            row = database.execute(
                "select seq, item from items where session = ? order by seq desc limit 1", (self.session_id,)
            ).fetchone()
            if row is None:
                return None
            database.execute("delete from items where seq = ?", (row[0],))
        return json.loads(row[1])

    def _clear(self) -> None:
        with self._database(is_writing=True) as database:
            database.execute("delete from items where session = ?", (self.session_id,))

    @contextmanager
    def _database(self, *, is_writing: bool = False) -> Iterator[sqlite3.Connection]:
        with _opened(self._path) as database:
            database.execute("begin immediate" if is_writing else "begin")
            try:
                yield database
            except BaseException:
                database.execute("rollback")
                raise
            database.execute("commit")


class _Database:
    """A connection that the threads of this process use one after the other."""

    def __init__(self, path: Path) -> None:
        """Open the database at `path`; make it if there is none."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Conversations are private.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self.file = _file(path)
        self.lock = threading.Lock()
        self.connection = sqlite3.connect(path, BUSY_S, isolation_level=None, check_same_thread=False)
        self.connection.execute("pragma secure_delete = on")
        self.connection.execute("pragma synchronous = full")
        if self.connection.execute("pragma user_version").fetchone()[0] == 0:
            self._create()

    def _create(self) -> None:
        self.connection.execute("pragma journal_mode = wal")
        self.connection.execute("begin immediate")
        self.connection.execute(_TABLE)
        self.connection.execute(_INDEX)
        self.connection.execute("pragma user_version = 1")
        self.connection.execute("commit")


_databases: dict[Path, _Database] = {}
_parents: list[dict[Path, _Database]] = []
"""Connections of the process that this one was forked from. Closing them here would harm that process."""
_lock = threading.Lock()


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield the connection to a database, for this thread alone."""
    with _lock:
        database = _databases.get(path)
        if database is None or database.file != _file(path):  # a new one, after somebody deleted the file
            database = _databases[path] = _Database(path)
    with database.lock:
        yield database.connection


def _file(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one at the same path; None if there is none."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _forget_parents() -> None:
    """After a fork, in the child: SQLite forbids the use of the parent's connections."""
    global _lock, _databases
    _lock = threading.Lock()
    _parents.append(_databases)
    _databases = {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents)


@dataclass(frozen=True)
class SessionStore:
    """Items in another session of the SDK's, such as `SQLAlchemySession` or `EncryptedSession`."""

    session: Session

    async def all(self, known: Stored) -> Stored:
        """See `Store`. O(all items)."""
        items = await self.session.get_items()
        return Stored([json.dumps(item, default=_fields) for item in items], len(items))

    async def latest(self, limit: int) -> list[Item]:
        """See `Store`."""
        return list(await self.session.get_items(limit=limit))

    async def add(self, items: Sequence[Item], known: Stored, then: Callable[[Stored], None]) -> None:
        """See `Store`."""
        await self.session.add_items(list(items))
        stored = await self.all(known)
        await _finished(lambda: then(stored))

    async def pop(self) -> Item | None:
        """See `Store`."""
        return await self.session.pop_item()

    async def clear(self) -> None:
        """See `Store`."""
        await self.session.clear_session()

    def __deepcopy__(self, memo: dict[int, Any]) -> SessionStore:
        """Return the store itself: it is a connection to the items, which are not copied either."""
        return self


async def _finished(work: Callable[[], T]) -> T:
    """Do `work` in a thread, and wait for its end even if the task is cancelled: its caller must know whether
    the items are stored.
    """
    return await finished(asyncio.to_thread(work))


async def finished(work: Awaitable[T]) -> T:
    """Wait for the end of `work`, even if the task is cancelled meanwhile; then raise the cancellation."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()


def _fields(value: object) -> Any:
    """Return the fields of one of the SDK's pydantic models."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(
            f"an item contains a value of the type {type(value).__name__}, which JSON cannot hold"
        )
    return dump(exclude_unset=True)
