"""A full-text index of the sessions, in the database.

The words of a message are a `tsvector` without positions. They are found here, not by PostgreSQL's parser,
because that takes `src/core/loader.py` for one word. The local index finds each part of a path. The texts of
the messages that contain all words are then checked for adjacent words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from compactd.protocol.errors import StorageFailed
from compactd.protocol.wire import Hit
from compactd.storage.decode_journal import id_of
from compactd.storage.journal_records import scan
from compactd.storage.postgres.pool import Connection, Pool
from compactd.storage.postgres.schema import FORGET_WORDS, LOCK_WORDS
from compactd.storage.protocols import ReadRecord, SearchableText
from compactd.storage.search_ranking import Candidate, best_hits
from compactd.storage.search_words import index_text, phrases_of, words_of

T = TypeVar("T")

CANDIDATES = 400
"""The most matching messages that a search ranks: it takes the newest ones."""
_WORD_CHARS = 200
"""Longer words are cut: a lexeme has at most 2,046 bytes."""
_VECTOR_BYTES = 900_000
"""The words that a message has after this many bytes of different words are not indexed: a `tsvector` has at
most 1 MB."""

_BEHIND = """
SELECT s.session_id, s.head, s.changed, coalesce(i.head, 0), i.changed FROM compactd.sessions AS s
LEFT JOIN compactd.indexed AS i ON i.tenant = s.tenant AND i.session_id = s.session_id
WHERE s.tenant = %(tenant)s AND s.head > 0 AND (i.head, i.changed) IS DISTINCT FROM (s.head, s.changed)
ORDER BY s.updated_at"""
_STATE = """
SELECT s.head, s.changed, i.head, i.changed FROM compactd.sessions AS s
LEFT JOIN compactd.indexed AS i ON i.tenant = s.tenant AND i.session_id = s.session_id
WHERE s.tenant = %(tenant)s AND s.session_id = %(key)s"""
_RECORDS = """
SELECT record FROM compactd.records
WHERE tenant = %(tenant)s AND session_id = %(key)s AND seq >= %(first)s AND seq < %(head)s ORDER BY seq"""
_ADD = """
INSERT INTO compactd.words (tenant, session_id, seq, entry_id, role, at, text, words)
VALUES (%s, %s, %s, %s, %s, %s, %s, array_to_tsvector(%s::text[]))"""
_DONE = """
INSERT INTO compactd.indexed (tenant, session_id, head, changed)
VALUES (%(tenant)s, %(key)s, %(head)s, %(changed)s)
ON CONFLICT (tenant, session_id) DO UPDATE SET head = excluded.head, changed = excluded.changed"""
_FIND = """
SELECT w.session_id, w.entry_id, w.role, w.at, w.text, r.record FROM compactd.words AS w
JOIN compactd.records AS r ON r.tenant = w.tenant AND r.session_id = w.session_id AND r.seq = 0
WHERE w.tenant = %s AND w.words @@ %s::tsquery ORDER BY w.at DESC, w.session_id, w.seq DESC
LIMIT %s OFFSET %s"""


class PostgresIndex:
    """An `Index` of one tenant's sessions."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def catch_up(self, read: ReadRecord) -> Iterator[int]:
        """Index the records that were added, one session and transaction per step. See `Index.catch_up`."""
        tenant = self._pool.tenant
        behind = self._run(
            lambda connection: connection.execute(_BEHIND, {"tenant": tenant}).fetchall(),
        )
        for key, *_ in behind:
            yield self._run(partial(self._index_new, key=str(key), read=read))

    def find(self, query: str, limit: int) -> tuple[Hit, ...]:
        """Return messages that contain every word of `query`, best first. See `Index.find`."""
        phrases = phrases_of(query)
        if not phrases:
            return ()
        found = self._run(lambda connection: self._candidates(connection, phrases, max(limit, CANDIDATES)))
        return best_hits(found, phrases, limit)

    def _candidates(
        self, connection: Connection, phrases: Sequence[Sequence[str]], count: int
    ) -> list[Candidate]:
        folded = [[fold(word) for word in words] for words in phrases]
        words = [_lexeme(word) for words in folded for word in words]
        asked = " & ".join(f"'{word}'" for word in words) + ":*"
        found: list[Candidate] = []
        offset = 0
        while len(found) < count:
            rows = connection.execute(
                _FIND, (self._pool.tenant, asked, count, offset), binary=True
            ).fetchall()
            for _, entry_id, role, at, text, first in rows:
                assert isinstance(text, str)
                assert isinstance(at, float)
                if _has_phrases(text, folded) and isinstance(first, bytes):
                    records = scan(first).records
                    session_id = id_of(records[0]) if records else None
                    if session_id is not None:
                        found.append(Candidate(session_id, str(entry_id), str(role), at, text))
            if len(rows) < count:
                break
            offset += count
        return found[:count]

    def _index_new(self, connection: Connection, key: str, read: ReadRecord) -> int:
        named: dict[str, object] = {"tenant": self._pool.tenant, "key": key}
        with connection.transaction():
            connection.execute(LOCK_WORDS, named)
            row = connection.execute(_STATE, named).fetchone()
            if row is None:
                return 0  # deleted meanwhile
            head, changed, done, done_changed = row
            first = done if done_changed == changed and isinstance(done, int) else 0
            named |= {"first": first, "head": head, "changed": changed}
            if first == 0:
                connection.execute(FORGET_WORDS[0], named)
            lines = connection.execute(_RECORDS, named, binary=True).fetchall()
            said = []
            size = 0
            for seq, (line,) in enumerate(lines, first):
                assert isinstance(line, bytes)
                size += len(line)
                text = next((read(record) for record in scan(line, seq).records), None)
                if text is not None and text.text:
                    said.append((self._pool.tenant, key, seq, *_row(text)))
            if said:
                with connection.cursor() as cursor:
                    cursor.executemany(_ADD, said)
            connection.execute(_DONE, named)
        return size

    def _run(self, work: Callable[[Connection], T]) -> T:
        try:
            return self._pool.run("The search index cannot be used", work)
        except StorageFailed as error:
            raise OSError(error.message) from None


def fold(word: str) -> str:
    """Return a word without case and accents, as the local index compares words."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.lower())
    return unicodedata.normalize("NFC", "".join(part for part in parts if not unicodedata.combining(part)))


def _row(said: SearchableText) -> tuple[str, str, float, str, list[str]]:
    text = index_text(said.text.replace("\0", " ").encode("utf-8", "replace").decode())
    words: dict[str, None] = {}
    size = 0
    for word in words_of(text):
        lexeme = _lexeme(fold(word))
        if lexeme and lexeme not in words:
            size += len(lexeme.encode()) + 8
            if size > _VECTOR_BYTES:
                break
            words[lexeme] = None
    return said.entry_id, said.role, said.at, text, list(words)


def _lexeme(word: str) -> str:
    return word[:_WORD_CHARS]


def _has_phrases(text: str, phrases: Sequence[Sequence[str]]) -> bool:
    if all(len(words) == 1 for words in phrases):
        return True
    said = " ".join(["", *(fold(word) for word in words_of(text)), ""])
    asked = [f" {' '.join(words)} " for words in phrases]
    asked[-1] = asked[-1].rstrip(" ")  # the last word may be the beginning of a word
    return all(words in said for words in asked)
