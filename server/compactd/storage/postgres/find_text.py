"""Find every row of a tenant that contains a text. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from compactd.storage.find_text import TextFindings, TextPlace, Unseen, byte_spellings
from compactd.storage.postgres.pool import Connection, Pool
from compactd.storage.search_words import index_text

# Binary strings are searched as such: a text may have any characters.
_RECORDS = """
SELECT r.session_id, r.record FROM compactd.records AS r
WHERE r.tenant = %(tenant)s
    AND EXISTS (SELECT 1 FROM unnest(%(wanted)s::bytea[]) AS w WHERE position(w IN r.record) > 0)
ORDER BY r.session_id, r.seq"""
_OTHERS = """
SELECT 'sessions', session_id, NULL FROM compactd.sessions AS s
WHERE tenant = %(tenant)s AND EXISTS (SELECT 1 FROM unnest(%(wanted)s::bytea[]) AS w
    WHERE position(w IN coalesce(info, '')) > 0 OR position(w IN convert_to(session_id, 'UTF8')) > 0)
UNION ALL
SELECT 'words', session_id, entry_id FROM compactd.words
WHERE tenant = %(tenant)s AND EXISTS (SELECT 1 FROM unnest(%(words)s::bytea[]) AS w
    WHERE position(w IN convert_to(text, 'UTF8')) > 0)
UNION ALL
SELECT 'calls', NULL, NULL FROM compactd.calls
WHERE tenant = %(tenant)s AND EXISTS (SELECT 1 FROM unnest(%(wanted)s::bytea[]) AS w
    WHERE position(w IN body) > 0 OR position(w IN coalesce(answer, '')) > 0)"""
_COUNT = "SELECT count(*) FROM compactd.sessions WHERE tenant = %(tenant)s"
_ENTRIES = ("message", "compaction", "prune", "reduced")


class _Record(Struct, frozen=True):
    type: str = ""
    id: str | None = None


_decode = msgspec.json.Decoder(_Record).decode


def find_in_database(pool: Pool, text: str) -> TextFindings:
    """Return every row of the tenant that contains `text`, which must not be empty. `files` of the result is
    the number of sessions. O(bytes of the tenant). Raises `StorageFailed`.
    """
    wanted = list(byte_spellings(text))
    words = [*wanted, index_text(text).encode("utf-8", "surrogatepass")]
    named: dict[str, object] = {"tenant": pool.tenant, "wanted": wanted, "words": words}

    def look(connection: Connection) -> TextFindings:
        places = [*_records(connection, named), *_others(connection, named)]
        row = connection.execute(_COUNT, named).fetchone()
        count = row[0] if row is not None and isinstance(row[0], int) else 0
        return TextFindings(places=tuple(places), unseen=(_NOT_ROWS,), files=count)

    return pool.run("The database could not be searched", look)


_NOT_ROWS = Unseen(
    path="database",
    why="only its rows were searched. Old rows stay in its files until VACUUM FULL, and in its write-ahead "
    "log and backups as long as these are kept",
)


def _records(connection: Connection, named: dict[str, object]) -> Iterator[TextPlace]:
    for session_id, line in connection.execute(_RECORDS, named, binary=True).fetchall():
        assert isinstance(line, bytes)
        try:
            record = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            record = _Record()
        yield TextPlace(
            where="journal",
            path="compactd.records",
            session_id=str(session_id),
            entry_id=record.id if record.type in _ENTRIES else None,
            record=record.type or None,
        )


def _others(connection: Connection, named: dict[str, object]) -> Iterator[TextPlace]:
    kinds = {"sessions": "list", "words": "index", "calls": "call"}
    for table, session_id, entry_id in connection.execute(_OTHERS, named).fetchall():
        yield TextPlace(
            where=kinds[str(table)],
            path=f"compactd.{table}",
            session_id=None if session_id is None else str(session_id),
            entry_id=None if entry_id is None else str(entry_id),
        )
