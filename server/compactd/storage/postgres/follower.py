"""Read a session in the database while a node writes it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from compactd.protocol.errors import StorageFailed
from compactd.storage.decode_journal import Content, content_of, not_found_error
from compactd.storage.journal_records import as_appended, scan
from compactd.storage.migrate import JournalFormat, upgrade
from compactd.storage.postgres.failures import UNREACHABLE
from compactd.storage.postgres.keys import key_of, notice_of
from compactd.storage.postgres.leases import live
from compactd.storage.postgres.notices import Notices
from compactd.storage.postgres.pool import Connection, Pool
from compactd.storage.protocols import FollowerNews, corrupt

NOT_READ = "The session could not be read"

_START_BYTES = 128
"""A line is recognised by its length and its first bytes: they contain its number and its time."""

# One statement, so that all of it is from the same moment.
_READ = f"""
SELECT s.changed, s.head, CASE WHEN s.token IS NULL THEN NULL ELSE s.node END, {live("s")},
    known.first, r.record
FROM compactd.sessions AS s
LEFT JOIN compactd.records AS last ON last.tenant = s.tenant AND last.session_id = s.session_id
    AND last.seq = %(seen)s - 1
CROSS JOIN LATERAL (
    SELECT CASE WHEN s.changed = %(changed)s AND octet_length(last.record) = %(size)s
        AND substring(last.record FROM 1 FOR {_START_BYTES}) = %(start)s THEN %(seen)s ELSE 0 END AS first
) AS known
LEFT JOIN compactd.records AS r ON r.tenant = s.tenant AND r.session_id = s.session_id
    AND r.seq >= known.first
WHERE s.tenant = %(tenant)s AND s.session_id = %(key)s AND s.head > 0 ORDER BY r.seq"""


class Lines(Struct, frozen=True):
    """Lines of a session's journal, as a file would have them."""

    changed: int
    """The number of the last change that was no append."""
    head: int
    """The number of records of the session."""
    first: int
    """The number of the first line in `data`."""
    data: bytes
    writer: str | None
    """The node that has the session open for writing, or had it last, if it did not release it."""
    is_owned: bool
    """Whether that node's lease has not ended."""


class Seen(Struct, frozen=True):
    """What a reader knows of a session."""

    changed: int
    """`Lines.changed` of what was read last."""
    head: int
    """How many records were read."""
    last: bytes
    """The last line of them."""


NOTHING_SEEN = Seen(-1, 0, b"")


def read_lines(connection: Connection, tenant: str, key: str, seen: Seen = NOTHING_SEEN) -> Lines | None:
    """Return the lines that were appended since `seen` was read. If anything else has happened since, return
    all lines. Return None if the session is not stored.

    A failover may lose commits that a reader has seen, if their wait for the standby was cut short. So the
    last line is compared, too.
    """
    named = {
        "tenant": tenant,
        "key": key,
        "changed": seen.changed,
        "seen": seen.head,
        "size": len(seen.last),
        "start": seen.last[:_START_BYTES],
    }
    rows = connection.execute(_READ.encode(), named, binary=True).fetchall()
    if not rows:
        return None
    changed, head, writer, is_owned, first, _ = rows[0]
    assert isinstance(changed, int)
    assert isinstance(head, int)
    assert isinstance(first, int)
    data = b"".join(row[5] for row in rows if isinstance(row[5], bytes))
    return Lines(changed, head, first, data, writer if isinstance(writer, str) else None, is_owned is True)


def whole_content(lines: Lines, session_id: str, format_: JournalFormat) -> Content:
    """Return the records in all lines of a session. Raises the errors of `content_of`.

    A transaction leaves no torn end. So a record that cannot be read is damage, also if it is the last one.
    """
    content = content_of(lines.data, session_id, format_)
    readable = len(content.records)
    if readable != lines.head:
        raise corrupt(readable + 1, readable, 0)
    return content


class PostgresFollower:
    """A `Follower` of a session in the database. While the database cannot be reached, `poll` returns nothing
    new; what was missed comes with the first `poll` after that.
    """

    def __init__(self, pool: Pool, session_id: str, format_: JournalFormat, notices: Notices) -> None:
        self._pool = pool
        self._session_id = session_id
        self._key = key_of(session_id)
        self._notices = notices
        self._on_news: Callable[[], None] | None = None
        self._format = format_
        self._version = format_.version
        self._seen = NOTHING_SEEN
        self._size_bytes = 0
        self._writer: str | None = None

    @property
    def writer(self) -> str | None:
        """The node that had the session open for writing at the last `poll`. See `Follower.writer`."""
        return self._writer

    @property
    def size_bytes(self) -> int:
        """The size in bytes of the records read so far."""
        return self._size_bytes

    def poll(self) -> FollowerNews:
        """Return the records that were committed since the last call. See `Follower.poll`. One round trip."""
        try:
            lines = self._pool.run(
                NOT_READ,
                lambda connection: read_lines(connection, self._pool.tenant, self._key, self._seen),
                None if self._seen is NOTHING_SEEN else 0.0,
            )
        except StorageFailed as error:
            if self._seen is NOTHING_SEEN or error.data.get("reason") != UNREACHABLE:
                raise
            return FollowerNews(first_seq=self._seen.head, records=(), is_owned=None)
        if lines is None:
            self._seen = NOTHING_SEEN
            raise not_found_error(self._session_id)
        self._writer = lines.writer
        if lines.first:
            return self._read_on(lines)
        content = whole_content(lines, self._session_id, self._format)
        self._version = content.version
        self._seen, self._size_bytes = self._seen_with(lines), len(lines.data)
        return FollowerNews(first_seq=0, records=content.records, is_owned=lines.is_owned)

    def is_owned(self) -> bool:
        """Return true if a node has a live lease on the session. Raises `OSError` if the database cannot be
        asked.
        """
        asked = f"SELECT {live()} FROM compactd.sessions WHERE tenant = %s AND session_id = %s"
        try:
            row = self._pool.run(
                NOT_READ,
                lambda connection: connection.execute(asked, (self._pool.tenant, self._key)).fetchone(),
                0.0,
            )
        except StorageFailed as error:
            raise OSError(error.message) from None
        return row is not None and row[0] is True

    def listen(self, on_news: Callable[[], None]) -> bool:
        """Call `on_news` for each commit to the session. See `Follower.listen`. Returns true."""
        self._on_news = on_news
        self._notices.add(notice_of(self._pool.tenant, self._session_id), on_news)
        return True

    def close(self) -> None:
        """Stop listening."""
        if self._on_news is not None:
            self._notices.remove(notice_of(self._pool.tenant, self._session_id), self._on_news)

    def _read_on(self, lines: Lines) -> FollowerNews:
        first_seq = lines.first
        records = scan(lines.data, first_seq).records
        if first_seq + len(records) != lines.head:
            raise corrupt(first_seq + len(records) + 1, first_seq + len(records), 0)
        self._seen = self._seen_with(lines)
        self._size_bytes += len(lines.data)
        steps = self._format.steps_from(self._version)
        if steps:
            records = tuple(map(memoryview, upgrade([as_appended(record) for record in records], steps)))
        return FollowerNews(first_seq=first_seq, records=records, is_owned=lines.is_owned)

    def _seen_with(self, lines: Lines) -> Seen:
        begin = lines.data.rfind(b"\n", 0, -1) + 1
        return Seen(lines.changed, lines.head, lines.data[begin:] or self._seen.last)
