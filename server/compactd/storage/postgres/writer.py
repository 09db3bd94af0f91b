"""What writes the batches of one session to the database. Each batch is one transaction in one round trip."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import psycopg

from compactd.protocol.errors import CompactdError
from compactd.storage.journal_records import encode_record, frame
from compactd.storage.postgres.failures import PostgresFailure, failure_of, is_in_doubt
from compactd.storage.postgres.keys import message_key
from compactd.storage.postgres.leases import Leases, new_token
from compactd.storage.postgres.pool import Attempts, Connection, Pool
from compactd.storage.postgres.schema import FORGET_WORDS, LOCK_WORDS
from compactd.storage.protocols import LOST_LEASE, Durability

# The row is locked by the UPDATE. If the token is not mine or the head is not what I expect, no row is found,
# so nothing is inserted. `synchronous_commit` is set for this transaction only.
_APPEND = """
WITH mine AS (
    UPDATE compactd.sessions SET head = head + %(count)s, bytes = bytes + %(bytes)s,
        updated_at = clock_timestamp()
    WHERE tenant = %(tenant)s AND session_id = %(key)s AND token = %(token)s AND head = %(head)s
    RETURNING 1
), added AS (
    INSERT INTO compactd.records (tenant, session_id, seq, record, message_id)
    SELECT %(tenant)s, %(key)s, %(head)s + nth - 1, line, message_id
    FROM mine, unnest(%(lines)s::bytea[], %(ids)s::text[]) WITH ORDINALITY AS given(line, message_id, nth)
    RETURNING 1
)
SELECT set_config(
        'synchronous_commit', coalesce(%(commit)s::text, current_setting('synchronous_commit')), true),
    (SELECT count(*) FROM added)
FROM mine"""

_OWNED = """
SELECT 1 FROM compactd.sessions
WHERE tenant = %(tenant)s AND session_id = %(key)s AND token = %(token)s AND head = %(head)s"""

_FENCE = """
UPDATE compactd.sessions SET token = %(new)s
WHERE tenant = %(tenant)s AND session_id = %(key)s AND token = ANY(%(mine)s) RETURNING head"""

_CUT = """
UPDATE compactd.sessions SET head = %(head)s, bytes = %(size)s, changed = nextval('compactd.changes')
WHERE tenant = %(tenant)s AND session_id = %(key)s AND token = %(token)s RETURNING 1"""
_CUT_RECORDS = """
DELETE FROM compactd.records WHERE tenant = %(tenant)s AND session_id = %(key)s AND seq >= %(head)s"""

_CLAIM_CHANGE = """
UPDATE compactd.sessions SET changed = nextval('compactd.changes'), info = NULL, info_bytes = NULL,
    updated_at = clock_timestamp()
WHERE tenant = %(tenant)s AND session_id = %(key)s AND token = %(token)s AND head = %(head)s RETURNING 1"""
_PUT = """
UPDATE compactd.records AS r SET record = given.line, message_id = given.message_id
FROM unnest(%(seqs)s::bigint[], %(lines)s::bytea[], %(ids)s::text[]) AS given(seq, line, message_id)
WHERE r.tenant = %(tenant)s AND r.session_id = %(key)s AND r.seq = given.seq"""
_SIZE = """
UPDATE compactd.sessions SET bytes = (
    SELECT coalesce(sum(octet_length(record)), 0) FROM compactd.records
    WHERE tenant = %(tenant)s AND session_id = %(key)s)
WHERE tenant = %(tenant)s AND session_id = %(key)s RETURNING bytes"""

RELEASE = """
UPDATE compactd.sessions SET token = NULL, node = NULL
WHERE tenant = %(tenant)s AND session_id = %(key)s AND token = ANY(%(mine)s)"""
_REMOVE = """
DELETE FROM compactd.sessions
WHERE tenant = %(tenant)s AND session_id = %(key)s AND token = ANY(%(mine)s) AND head = 0"""


class _LeaseLost(Exception):
    """The token in the database is not mine: another node has the session, or it was deleted."""


class SessionWriter:
    """A `BatchWriter` of one session. `token` is the token that the store put into the session's row."""

    def __init__(
        self,
        pool: Pool,
        leases: Leases,
        key: str,
        token: str,
        *,
        head: int,
        size_bytes: int,
        durability: Durability,
        announce: Callable[[], None],
    ) -> None:
        """`announce` is called after each commit."""
        self.size_bytes = size_bytes
        """The size in bytes of the acknowledged records."""
        self._pool = pool
        self._leases = leases
        self._key = key
        self._token = token
        self._mine = [token]
        """Each token that this writer may have put into the row. A reply that is lost leaves two."""
        self._head = head
        self._commit = None if durability == "disk" else "off"
        self._announce = announce
        self._in_doubt: object | None = None
        """What was sent when the connection broke, so that it may or may not be stored."""
        self._is_broken = False
        self._on_doubt: Callable[[], None] | None = None
        leases.hold(key, token)

    def write(self, first_seq: int, appended: Sequence[bytes]) -> PostgresFailure | None:
        """Store records in one transaction. Return the failure, or None. One round trip. Without records,
        find out whether another node has the session.
        """
        lines = [
            b"".join(frame(seq, record, first_seq if seq > first_seq else None))
            for seq, record in enumerate(appended, first_seq)
        ]
        if not lines:
            return self._attempt((), self._require_owned)
        ids = [message_key(record) for record in appended]
        return self._attempt(lines, lambda connection: self._append(connection, lines, ids))

    def listen(self, on_doubt: Callable[[], None]) -> None:
        """Call `on_doubt` when another node may have taken the session. See `BatchWriter.listen`."""
        self._on_doubt = on_doubt
        self._leases.hold(self._key, self._token, on_doubt)

    def replace(self, changes: Mapping[int, bytes]) -> PostgresFailure | None:
        """Replace the bytes of records in one transaction. Return the failure, or None. O(session).

        The old bytes stay in the database's files until VACUUM frees them, and in its write-ahead log and
        backups as long as these are kept.
        """
        return self._attempt(changes, lambda connection: self._put(connection, changes))

    def close(self, *, remove: bool = False) -> None:
        """Release the lease. With `remove`, remove the session's row too. Does nothing in the database if
        another node has the session. If the database cannot be reached, the lease ends by itself.
        """
        self._leases.drop(self._key, self._token)
        if self._is_broken:
            return
        with suppress(psycopg.Error, CompactdError), self._pool.connection() as connection:
            if self._in_doubt is not None:
                self._settle(connection, None)
            connection.execute((_REMOVE if remove else RELEASE).encode(), self._named(mine=self._mine))
            self._announce()

    def _attempt(self, sent: object, work: Callable[[Connection], None]) -> PostgresFailure | None:
        attempts = Attempts(self._pool.patience_s)
        while True:
            try:
                with self._pool.connection() as connection:
                    if self._in_doubt is None or not self._settle(connection, sent):
                        work(connection)
                self._announce()
                return None
            except _LeaseLost:
                return self._break(LOST_LEASE)
            except psycopg.Error as error:
                if is_in_doubt(error) and self._in_doubt is None:
                    self._in_doubt = sent
                if not attempts.may_repeat(error):
                    return failure_of(error)
            except CompactdError as error:  # the schema is of another version, or all connections are in use
                return PostgresFailure(reason=str(error.data.get("reason")), told=error.message)
            except Exception:
                self._break("unexpected")
                raise

    def _break(self, reason: str) -> PostgresFailure:
        self._is_broken = True
        self._leases.drop(self._key, self._token)
        return PostgresFailure(reason=reason, is_broken=True)

    def _require_owned(self, connection: Connection) -> None:
        if connection.execute(_OWNED.encode(), self._named()).fetchone() is None:
            raise _LeaseLost

    def _append(self, connection: Connection, lines: list[bytes], ids: list[str | None]) -> None:
        size = sum(map(len, lines))
        named = self._named(count=len(lines), bytes=size, lines=lines, ids=ids, commit=self._commit)
        if connection.execute(_APPEND.encode(), named, binary=True).fetchone() is None:
            raise _LeaseLost
        connection.check_replicated()
        self._head += len(lines)
        self.size_bytes += size

    def _put(self, connection: Connection, changes: Mapping[int, bytes]) -> None:
        named = self._named(
            seqs=list(changes),
            lines=[encode_record(seq, record) for seq, record in changes.items()],
            ids=[message_key(record) for record in changes.values()],
        )
        with connection.transaction():
            connection.execute(LOCK_WORDS, named)
            if connection.execute(_CLAIM_CHANGE, named).fetchone() is None:
                raise _LeaseLost
            connection.execute(_PUT, named)
            for statement in FORGET_WORDS:
                connection.execute(statement, named)
            row = connection.execute(_SIZE, named).fetchone()
        connection.check_replicated()
        if row is not None and isinstance(row[0], int):
            self.size_bytes = row[0]

    def _settle(self, connection: Connection, sent: object | None) -> bool:
        """Find out if what is in doubt was stored. Return true if it is `sent` itself and was stored.

        A new token makes sure that the lost statement cannot be carried out later: the change of the token
        waits until the statement has ended, or else the statement finds the wrong token. Records that were
        stored but reported as lost are removed.
        """
        token = new_token()
        self._mine.append(token)
        row = connection.execute(_FENCE.encode(), self._named(new=token, mine=self._mine)).fetchone()
        if row is None:
            raise _LeaseLost
        connection.check_replicated()
        self._leases.drop(self._key, self._token)
        self._leases.hold(self._key, token, self._on_doubt)
        self._token, self._mine = token, [token]
        doubt = self._in_doubt
        if isinstance(doubt, list):
            if row[0] == self._head + len(doubt) and doubt is sent:
                self._head += len(doubt)
                self.size_bytes += sum(map(len, doubt))
                self._in_doubt = None
                return True
            if row[0] != self._head:
                self._cut(connection)
        self._in_doubt = None
        return False

    def _cut(self, connection: Connection) -> None:
        """Remove the records after the acknowledged ones."""
        named = self._named(size=self.size_bytes)
        with connection.transaction():
            if connection.execute(_CUT, named).fetchone() is None:
                raise _LeaseLost
            connection.execute(_CUT_RECORDS, named)
        connection.check_replicated()

    def _named(self, **others: object) -> dict[str, object]:
        mine = {"tenant": self._pool.tenant, "key": self._key, "token": self._token, "head": self._head}
        return {**mine, **others}
