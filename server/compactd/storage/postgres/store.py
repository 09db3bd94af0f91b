"""A store of sessions in a PostgreSQL database that many nodes share."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path

from compactd.storage.decode_journal import id_of, not_found_error, working_dir_of
from compactd.storage.journal import BatchedJournal
from compactd.storage.journal_records import as_appended, check_record, scan
from compactd.storage.migrate import FORMAT, JournalFormat
from compactd.storage.paths import file_stem
from compactd.storage.postgres.calls import PostgresCalls, channel_of
from compactd.storage.postgres.follower import NOT_READ, Lines, PostgresFollower, read_lines, whole_content
from compactd.storage.postgres.index import PostgresIndex
from compactd.storage.postgres.keys import key_of, notice_of
from compactd.storage.postgres.leases import Leases, live, locked_error, new_token
from compactd.storage.postgres.notices import CHANNEL, Announcer, Notices
from compactd.storage.postgres.pool import MAX_CONNECTIONS, PATIENCE_S, Connection, Pool
from compactd.storage.postgres.schema import FORGET_WORDS, LOCK_WORDS
from compactd.storage.postgres.writer import RELEASE, SessionWriter
from compactd.storage.protocols import Durability, Stored

_NOT_OPENED = "The session could not be opened"
_NOT_CREATED = "The session could not be created"
_NOT_DELETED = "The session could not be deleted"
_NOT_LISTED = "The sessions could not be listed"
_NOT_SAVED = "The list of sessions could not be updated"

# Sent again after a lost connection: then the token is already mine.
_CREATE = f"""
INSERT INTO compactd.sessions AS s (tenant, session_id, node, token)
VALUES (%(tenant)s, %(key)s, %(node)s, %(token)s)
ON CONFLICT (tenant, session_id) DO UPDATE
    SET node = excluded.node, token = excluded.token, changed = nextval('compactd.changes')
    WHERE s.head = 0 AND (s.token = excluded.token OR NOT {live("s")})
RETURNING 1"""
_TAKE = f"""
UPDATE compactd.sessions SET node = %(node)s, token = %(token)s
WHERE tenant = %(tenant)s AND session_id = %(key)s AND head > 0
    AND (NOT {live()} OR token = %(token)s OR (%(again)s AND node = %(node)s))
RETURNING head, bytes"""
_STATE = f"""
SELECT head, {live()}, (SELECT owner FROM compactd.nodes AS n
    WHERE n.tenant = sessions.tenant AND n.node = sessions.node)
FROM compactd.sessions WHERE tenant = %(tenant)s AND session_id = %(key)s"""
_LIST = f"""
SELECT s.bytes, s.updated_at, {live("s")}, r.record FROM compactd.sessions AS s
JOIN compactd.records AS r ON r.tenant = s.tenant AND r.session_id = s.session_id AND r.seq = 0
WHERE s.tenant = %(tenant)s ORDER BY s.updated_at DESC, s.session_id"""
_DELETE = f"""
DELETE FROM compactd.sessions
WHERE tenant = %(tenant)s AND session_id = %(key)s AND NOT {live()} RETURNING 1"""
_DELETE_RECORDS = "DELETE FROM compactd.records WHERE tenant = %(tenant)s AND session_id = %(key)s"
_SAVE_INFO = """
UPDATE compactd.sessions SET info = %(info)s, info_bytes = %(size)s
WHERE tenant = %(tenant)s AND session_id = %(key)s"""
_LOAD_INFO = """
SELECT info FROM compactd.sessions
WHERE tenant = %(tenant)s AND session_id = %(key)s AND info_bytes = bytes"""


class PostgresStore:
    """A `Store` in the schema `compactd` of the database at `url`, for one tenant. Connects at the first use.

    Every row has its tenant, and row-level security hides the rows of others. Snapshots of work trees are not
    in the database: they stay in `home`, on the node that took them.
    """

    def __init__(
        self,
        url: str,
        *,
        tenant: str = "default",
        home: Path | None = None,
        format_: JournalFormat = FORMAT,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Raises `StorageFailed` if `url` cannot be read. `patience_s`: how long a lost connection is made
        again before a request fails.
        """
        self.pool = Pool(url, tenant, patience_s=patience_s)
        """The store's connections."""
        self._home = home
        self._format = format_
        self._leases = Leases(self.pool)
        self._index = PostgresIndex(self.pool)
        self._notices = Notices(self.pool, (CHANNEL, channel_of(self._leases.node)))
        self._announcer = Announcer(self.pool)
        self._calls = PostgresCalls(self.pool, self._leases.node, self._notices)
        self._workers = ThreadPoolExecutor(MAX_CONNECTIONS, thread_name_prefix="compactd-store")

    @property
    def calls(self) -> PostgresCalls:
        """The calls between this node and the others of the tenant."""
        return self._calls

    @property
    def index(self) -> PostgresIndex:
        """The full-text index of the tenant's sessions."""
        return self._index

    def create(self, session_id: str, first: bytes, durability: Durability) -> BatchedJournal:
        """Create a session and return its open journal. See `Store.create`."""
        check_record(first)
        key, token = key_of(session_id), new_token()
        named = self._named(key, token=token, node=self._leases.node)
        self._leases.begin()

        def insert(connection: Connection) -> None:
            if connection.execute(_CREATE.encode(), named).fetchone() is None:
                head = self._refuse_if_live(connection, key)
                if head:
                    raise FileExistsError("a session with this id is already stored")
                raise locked_error(None)

        self.pool.run(_NOT_CREATED, insert)
        journal = self._journal(session_id, token, durability, head=0, size_bytes=0)
        journal.add([first])
        return journal

    def open(self, session_id: str, *, durability: Durability) -> tuple[BatchedJournal, list[memoryview]]:
        """Open a stored session: take its lease, and return its journal and its records. See `Store.open`.

        Changes nothing but the lease. If this node has lost track of a lease of its own, it takes it back.
        """
        key, token = key_of(session_id), new_token()
        self._leases.begin()
        again = self._leases.reserve(key, token)
        named = self._named(key, token=token, node=self._leases.node, again=again)

        def take(connection: Connection) -> Lines:
            if connection.execute(_TAKE.encode(), named).fetchone() is None:
                self._refuse_if_live(connection, key)
                raise not_found_error(session_id)
            lines = read_lines(connection, self.pool.tenant, key)
            if lines is None:
                raise not_found_error(session_id)
            return lines

        try:
            lines = self.pool.run(_NOT_OPENED, take)
        except BaseException:
            self._leases.drop(key, token)
            raise
        try:
            content = whole_content(lines, session_id, self._format)
        except BaseException:
            self._leases.drop(key, token)
            gone = {**named, "mine": [token]}
            self.pool.run(_NOT_OPENED, lambda connection: connection.execute(RELEASE.encode(), gone))
            raise
        head = len(content.records)
        journal = self._journal(session_id, token, durability, head=head, size_bytes=len(lines.data))
        return journal, list(content.records)

    def read(self, session_id: str) -> tuple[PostgresFollower, list[memoryview]]:
        """Return a follower of a stored session, and its records so far. See `Store.read`."""
        follower = PostgresFollower(self.pool, session_id, self._format, self._notices)
        return follower, list(follower.poll().records)

    def salvage(self, session_id: str) -> list[bytes]:
        """Return the readable records of a session that may be damaged. See `Store.salvage`."""
        found = scan(self.journal_bytes(session_id))
        after = found.damage.after if found.damage is not None else ()
        return [as_appended(record) for record in (*found.records, *after)]

    def journal_bytes(self, session_id: str) -> bytes:
        """Return the session as the bytes of a journal file. O(session). Raises `SessionNotFound`,
        `StorageFailed`.
        """
        key = key_of(session_id)
        lines = self.pool.run(NOT_READ, lambda connection: read_lines(connection, self.pool.tenant, key))
        if lines is None:
            raise not_found_error(session_id)
        return lines.data

    def exists(self, session_id: str) -> bool:
        """Return true if the session is stored, damaged or not."""
        row = self._row(NOT_READ, _STATE, self._named(key_of(session_id)))
        return row is not None and row[0] != 0

    def list(self) -> list[Stored]:
        """Return every stored session of the tenant whose first record can be read, last changed first."""
        rows = self.pool.run(
            _NOT_LISTED,
            lambda connection: connection.execute(
                _LIST, {"tenant": self.pool.tenant}, binary=True
            ).fetchall(),
        )
        return [stored for stored in map(_stored, rows) if stored is not None]

    async def delete(self, session_id: str) -> None:
        """Delete a session's rows in one transaction. See `Store.delete`.

        The old rows stay in the database's files until VACUUM frees them, and in its write-ahead log and
        backups as long as these are kept.
        """
        await self._in_worker(lambda: self._delete(session_id))

    def _delete(self, session_id: str) -> None:
        named = self._named(key_of(session_id))

        attempts = 0

        def remove(connection: Connection) -> bool:
            nonlocal attempts
            attempts += 1
            with connection.transaction():
                connection.execute(LOCK_WORDS, named)
                if connection.execute(_DELETE, named).fetchone() is None:
                    self._refuse_if_live(connection, key_of(session_id))
                    return attempts > 1  # it was deleted before the connection was lost
                for statement in (_DELETE_RECORDS, *FORGET_WORDS):
                    connection.execute(statement, named)
                return True

        if not self.pool.run(_NOT_DELETED, remove):
            raise not_found_error(session_id)
        self._announcer.announce(notice_of(self.pool.tenant, session_id))
        if self._home is not None:
            shutil.rmtree(self._home / "snapshots" / file_stem(session_id), ignore_errors=True)

    async def save_info(self, session_id: str, info: bytes, *, size_bytes: int) -> None:
        """Save what `session/list` shows about a session. See `Store.save_info`."""
        named = self._named(key_of(session_id), info=info, size=size_bytes)
        await self._in_worker(
            lambda: self.pool.run(_NOT_SAVED, lambda connection: connection.execute(_SAVE_INFO, named))
        )

    def load_info(self, session_id: str) -> bytes | None:
        """Return what `save_info` saved, or None if the session has changed since."""
        row = self._row(NOT_READ, _LOAD_INFO, self._named(key_of(session_id)))
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    def file_of(self, session_id: str) -> str | None:
        """Return None: the session has no file."""
        return None

    async def close(self) -> None:
        """Stop the store's threads and close its connections. Call this after all journals are closed."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._notices.close()
        self._announcer.close()
        self._leases.close()
        self._workers.shutdown()
        self.pool.close()

    def _journal(
        self, session_id: str, token: str, durability: Durability, *, head: int, size_bytes: int
    ) -> BatchedJournal:
        writer = SessionWriter(
            self.pool,
            self._leases,
            key_of(session_id),
            token,
            head=head,
            size_bytes=size_bytes,
            durability=durability,
            announce=partial(self._announcer.announce, notice_of(self.pool.tenant, session_id)),
        )
        return BatchedJournal(writer, self._workers, seq=head)

    def _refuse_if_live(self, connection: Connection, key: str) -> int:
        """Raise `SessionLocked` if the session has a live lease. Return its number of records otherwise."""
        row = connection.execute(_STATE, self._named(key)).fetchone()
        if row is not None and row[1] is True:
            raise locked_error(row[2])
        return row[0] if row is not None and isinstance(row[0], int) else 0

    def _row(self, doing: str, asked: str, named: dict[str, object]) -> tuple[object, ...] | None:
        return self.pool.run(doing, lambda connection: connection.execute(asked.encode(), named).fetchone())

    async def _in_worker(self, work: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._workers, work)

    def _named(self, key: str, **others: object) -> dict[str, object]:
        return {"tenant": self.pool.tenant, "key": key, **others}


def _stored(row: tuple[object, ...]) -> Stored | None:
    size_bytes, updated_at, is_locked, first = row
    assert isinstance(size_bytes, int)
    assert isinstance(updated_at, datetime)
    records = scan(first).records if isinstance(first, bytes) else ()
    if not records:
        return None
    session_id = id_of(records[0])
    if session_id is None:
        return None
    return Stored(
        session_id=session_id,
        size_bytes=size_bytes,
        updated_at=updated_at.timestamp(),
        is_locked=is_locked is True,
        working_dir=working_dir_of(records[0]),
    )
