"""The full-text search index (SQLite FTS5) of all stored sessions. It can be rebuilt from the journals.

It is one SQLite file next to the sessions, readable only by the owner (sqlite.org/fts5.html). A search first
brings the index up to date: of each journal, only the records that were added since the last search are read,
and a replaced journal is read again from its start. Appending a message does not write to the index. A
damaged or outdated index is built again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from compactd._runtime.yield_gil import yield_gil
from compactd.protocol.wire import Hit
from compactd.storage import files
from compactd.storage.decode_journal import id_of
from compactd.storage.journal_records import scan
from compactd.storage.paths import drop_index, index_file
from compactd.storage.protocols import ReadRecord
from compactd.storage.search_ranking import Candidate, best_hits
from compactd.storage.search_words import index_text, phrases_of

VERSION = 3
BUSY_S = 5.0
"""The most seconds to wait for another process that writes the index."""
FIRST_BYTES = 4096
"""The most bytes of a journal's first record that are compared to recognise the journal. If they change, the
journal was replaced and is indexed again."""
CANDIDATES = 400
"""The most matching messages that a search ranks: it takes the newest ones. This limits the cost of frequent
words."""
ROWS_PER_YIELD = 20
"""The number of rows after which a loop pauses, so that other threads get the GIL. SQLite releases the GIL
only for 10 to 100 µs per row."""

_SCHEMA = (
    "create table journals(number integer primary key, session text, file text unique, first integer,"
    " size integer, seq integer)",
    "create index journals_by_session on journals(session)",
    "create table entries(number integer primary key, journal integer, entry text, role text, at real,"
    " text text)",
    "create index entries_by_journal on entries(journal)",
    # The texts are in `entries`. Their lengths are not stored, because the ranking does not need them.
    "create virtual table said using fts5(text, content = entries, content_rowid = number, columnsize = 0,"
    """ tokenize = "unicode61 remove_diacritics 2 tokenchars '_'")""",
    # Appends come one at a time. Merging after every fourth (the default) costs more than searching up to
    # sixteen segments (sqlite.org/fts5.html, "The automerge configuration option").
    "insert into said(said, rank) values('automerge', 16)",
    f"pragma user_version = {VERSION}",
)


class FileIndex:
    """An `Index` of the journals in one folder."""

    def __init__(self, sessions: Path) -> None:
        self._sessions = sessions
        self._path = index_file(sessions)
        self._catching_up = threading.Lock()

    def find(self, query: str, limit: int) -> tuple[Hit, ...]:
        """Return messages that contain every word of `query`, best first. See `Index.find`.

        O(messages with the rarest word) to find the messages, and O(texts of the newest `CANDIDATES` of them)
        to rank.
        """
        phrases = phrases_of(query)
        if not phrases or not self._path.exists():
            return ()
        asked = (
            "select session, entry, role, at, entries.text from said"
            " cross join entries on entries.number = said.rowid"
            " cross join journals on journals.number = entries.journal"
            " where said match ? order by said.rowid desc limit ?"
        )
        with self._open() as database:
            found = database.execute(asked, (_expression(phrases), max(limit, CANDIDATES)))
            rows = found.fetchmany(ROWS_PER_YIELD)
            while len(rows) % ROWS_PER_YIELD == 0 and (more := found.fetchmany(ROWS_PER_YIELD)):
                yield_gil()
                rows += more
        return best_hits([Candidate(*row) for row in rows], phrases, limit)

    def catch_up(self, read: ReadRecord) -> Iterator[int]:
        """Index the records that were added to the journals, one journal per step. See `Index.catch_up`."""
        if not self._sessions.is_dir():
            return
        with self._catching_up, self._open() as database:
            sizes = dict(database.execute("select file, size from journals").fetchall())
            there: set[str] = set()
            news: list[tuple[float, str]] = []
            for nth, found in enumerate(os.scandir(self._sessions), 1):
                if nth % ROWS_PER_YIELD == 0:
                    yield_gil()
                if not found.name.endswith(".jsonl"):
                    continue
                there.add(found.name)
                with contextlib.suppress(FileNotFoundError, PermissionError):  # deleted, or another user's
                    facts = found.stat()
                    if sizes.get(found.name) != facts.st_size:
                        news.append((facts.st_mtime, found.path))
            # Oldest first, so that later rows are nearly always newer messages.
            for _, path in sorted(news):
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    with _transaction(database):
                        done = self._index_new(database, Path(path), read)
                    yield done
            for file in sizes.keys() - there:
                with _transaction(database):
                    _forget(database, "file", file)

    def forget(self, session_id: str) -> None:
        """Remove a session's rows and words from the index, and overwrite them on disk. Raises `OSError`."""
        if not self._path.exists():
            return
        with self._open() as database:
            with _transaction(database):
                if not _forget(database, "session", session_id):
                    return
                # Words of deleted rows stay in the index's pages until they are merged.
                database.execute("insert into said(said) values('optimize')")
            database.execute("pragma wal_checkpoint(truncate)")

    def _index_new(self, database: sqlite3.Connection, path: Path, read: ReadRecord) -> int:
        """Index the records that were added to one journal, and return the number of bytes of
        these records.
        """
        asked = "select number, first, size, seq from journals where file = ?"
        known = database.execute(asked, (path.name,)).fetchone()
        fd = os.open(path, files.READ)
        try:
            first = zlib.crc32(os.read(fd, FIRST_BYTES).partition(b"\n")[0])
            if known is not None and (known[1] != first or known[2] > os.fstat(fd).st_size):
                _forget(database, "file", path.name)
                known = None
            number, _, offset, seq = known or (None, first, 0, 0)
            data = files.read_from(fd, offset)
        finally:
            os.close(fd)
        found = scan(data, seq)
        if number is None:
            session_id = id_of(found.records[0]) if found.records else None
            if session_id is None:
                return 0
            added = "insert into journals(session, file, first) values(?, ?, ?)"
            number = database.execute(added, (session_id, path.name, first)).lastrowid
        for nth, record in enumerate(found.records, 1):
            if nth % ROWS_PER_YIELD == 0:
                yield_gil()
            said = read(record)
            if said is not None and said.text:
                text = index_text(said.text)
                added = "insert into entries(journal, entry, role, at, text) values(?, ?, ?, ?, ?)"
                row = database.execute(added, (number, said.entry_id, said.role, said.at, text)).lastrowid
                database.execute("insert into said(rowid, text) values(?, ?)", (row, text))
        database.execute(
            "update journals set size = ?, seq = ? where number = ?",
            (offset + found.end, seq + len(found.records), number),
        )
        return found.end

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the database for this context. If it is damaged or has another version, delete it and create a
        new one. Raises `OSError` if an operation in the context fails.
        """
        try:
            database = self._connect()
        except sqlite3.DatabaseError:
            drop_index(self._sessions)
            database = self._connect()
        try:
            yield database
        except sqlite3.OperationalError as refused:
            raise OSError(f"the search index cannot be used: {refused}") from refused
        except sqlite3.DatabaseError as damaged:
            drop_index(self._sessions)
            raise OSError(f"the search index was damaged and will be rebuilt: {damaged}") from damaged
        finally:
            database.close()

    def _connect(self) -> sqlite3.Connection:
        os.close(files.open_private(self._path, files.APPEND | os.O_CREAT))
        database = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)
        try:
            database.execute("pragma synchronous = off")  # the index can be rebuilt
            database.execute("pragma secure_delete = on")
            if _version(database) == 0:
                database.execute("pragma journal_mode = wal")
                with _transaction(database):
                    if _version(database) == 0:
                        for statement in _SCHEMA:
                            database.execute(statement)
            if _version(database) != VERSION:
                raise sqlite3.DatabaseError(f"version {_version(database)}")
        except sqlite3.Error:
            database.close()
            raise
        return database


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Run this context as a transaction: all changes in it are made, or none. Only one process at a time can
    run one.
    """
    database.execute("begin immediate")
    try:
        yield
    except BaseException:
        database.execute("rollback")
        raise
    database.execute("commit")


def _forget(database: sqlite3.Connection, column: str, value: str) -> bool:
    """Remove all rows of the journal whose column `column` (`file` or `session`) has this value. Return true
    if the index had this journal.
    """
    row = database.execute(f"select number from journals where {column} = ?", (value,)).fetchone()
    if row is None:
        return False
    words = "insert into said(said, rowid, text) select 'delete', number, text from entries where journal = ?"
    database.execute(words, row)
    database.execute("delete from entries where journal = ?", row)
    database.execute("delete from journals where number = ?", row)
    return True


def _version(database: sqlite3.Connection) -> int:
    version = database.execute("pragma user_version").fetchone()[0]
    assert isinstance(version, int)
    return version


def _expression(phrases: Sequence[Sequence[str]]) -> str:
    """Return the FTS5 expression that finds all the phrases. The last word of the query may be the beginning
    of a word in the message.
    """
    return " ".join('"' + " ".join(words) + '"' for words in phrases) + " *"
