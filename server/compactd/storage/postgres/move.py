"""Copy sessions between files and the database, byte for byte."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from compactd.protocol.errors import CompactdError, SessionCorrupt
from compactd.storage import files
from compactd.storage.folder import FolderStore
from compactd.storage.journal_records import as_appended, scan
from compactd.storage.os_files import SYSTEM
from compactd.storage.paths import file_stem
from compactd.storage.postgres.keys import key_of, message_key, notice_of
from compactd.storage.postgres.notices import CHANNEL
from compactd.storage.postgres.pool import Connection
from compactd.storage.postgres.store import PostgresStore

Outcome = Literal["copied", "same", "differs"]
"""`same`: the target has the session already, to the byte. `differs`: it has another session of this id. That
was not changed."""

_NOT_COPIED = "The session could not be copied"
_BEGIN = """
INSERT INTO compactd.sessions (tenant, session_id, head, bytes, updated_at)
VALUES (%(tenant)s, %(key)s, %(head)s, %(bytes)s, to_timestamp(%(at)s))
ON CONFLICT (tenant, session_id) DO NOTHING RETURNING 1"""
_FILL = """
INSERT INTO compactd.records (tenant, session_id, seq, record, message_id)
SELECT %(tenant)s, %(key)s, nth - 1, line, message_id
FROM unnest(%(lines)s::bytea[], %(ids)s::text[]) WITH ORDINALITY AS given(line, message_id, nth)"""


async def to_database(session_id: str, folder: FolderStore, store: PostgresStore) -> Outcome:
    """Copy a session from its file into the database, in one transaction. The file is not changed.

    A torn end of the file is left out, and a missing last line end is added, as the next append would do.
    O(session). Raises the errors of `Store.open`.
    """
    journal, records = folder.open(session_id, durability="os")
    try:
        return await asyncio.to_thread(_copy_file, session_id, folder, journal.size_bytes, records, store)
    finally:
        await journal.close()


async def to_file(session_id: str, store: PostgresStore, home: Path) -> Outcome:
    """Copy a session from the database into a file. The rows stay as they are. O(session).

    Raises the errors of `Store.open`, and `OSError`.
    """
    journal, _ = await asyncio.to_thread(lambda: store.open(session_id, durability="os"))
    try:
        data = await asyncio.to_thread(store.journal_bytes, session_id)
        at = next(one.updated_at for one in store.list() if one.session_id == session_id)
    finally:
        await journal.close()
    path = home / "sessions" / f"{file_stem(session_id)}.jsonl"
    folder = FolderStore(home)
    if await asyncio.to_thread(folder.exists, session_id):
        return "same" if files.read_whole(path) == data else "differs"
    files.make_folder(path.parent)
    files.replace_file(path, [data], durable=True)
    os.utime(path, (at, at))
    SYSTEM.sync_folder(path.parent)
    return "copied"


def _copy_file(
    session_id: str,
    folder: FolderStore,
    size_bytes: int | None,
    records: Sequence[memoryview],
    store: PostgresStore,
) -> Outcome:
    path = Path(folder.file_of(session_id) or "")
    data = files.read_whole(path)[:size_bytes]
    lines = [line + b"\n" for line in data.split(b"\n") if line]
    found = [scan(line, seq).records for seq, line in enumerate(lines)]
    if [list(map(bytes, one)) for one in found] != [[bytes(record)] for record in records]:
        raise SessionCorrupt(
            "The journal has a line with several records, or an older version. Run `compactd doctor`, or "
            "open the session once."
        )
    ids = [message_key(as_appended(record)) for record in records]
    return _insert(session_id, lines, ids, path.stat().st_mtime, store)


def _insert(
    session_id: str, lines: list[bytes], ids: list[str | None], at: float, store: PostgresStore
) -> Outcome:
    key = key_of(session_id)
    named = {
        "tenant": store.pool.tenant,
        "key": key,
        "head": len(lines),
        "bytes": sum(map(len, lines)),
        "at": at,
        "lines": lines,
        "ids": ids,
    }

    def insert(connection: Connection) -> bool:
        with connection.transaction():
            if connection.execute(_BEGIN, named).fetchone() is None:
                return False
            connection.execute(_FILL, named)
            connection.execute(
                "SELECT pg_notify(%s, %s)", (CHANNEL, notice_of(store.pool.tenant, session_id))
            )
            return True

    if store.pool.run(_NOT_COPIED, insert):
        return "copied"
    try:
        return "same" if store.journal_bytes(session_id) == b"".join(lines) else "differs"
    except CompactdError:
        return "differs"
