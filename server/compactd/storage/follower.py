"""Read a journal while another process writes it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from compactd.storage import files, locks
from compactd.storage.decode_journal import content_of, not_found_error
from compactd.storage.journal_records import as_appended, scan
from compactd.storage.migrate import JournalFormat, upgrade
from compactd.storage.os_files import SYSTEM, Disk
from compactd.storage.protocols import FollowerNews

_SEAL_BYTES = 32
"""The number of bytes at the end of the last read record that are kept for comparison. They contain the
record's checksum. As long as the file has the same bytes there, the records up to there are unchanged."""


class FileFollower:
    """A `Follower` of a journal file. `poll` returns a record as soon as the record's line is complete, even
    if the record is not durable yet.
    """

    def __init__(
        self, session_id: str, path: Path, lock_path: Path, format_: JournalFormat, disk: Disk = SYSTEM
    ) -> None:
        self._session_id = session_id
        self._path = path
        self._lock_path = lock_path
        self._format = format_
        self._disk = disk
        self._fd = -1
        self._seen = 0
        self._end = 0
        self._seal = b""
        self._needs_newline = False
        self._version = format_.version

    @property
    def writer(self) -> None:
        """None: processes that share files send each other nothing. See `Follower.writer`."""
        return None

    @property
    def size_bytes(self) -> int:
        """The number of bytes of the records read so far."""
        return self._end

    def poll(self) -> FollowerNews:
        """Return the complete records that were added since the last call. See `Follower.poll`."""
        is_owned = None
        with suppress(OSError):
            # Before reading: a process that has released the lock has written everything.
            is_owned = self.is_owned()
        try:
            first_seq, records = self._read_on() if self._is_same() else (0, self._read_again())
            return FollowerNews(first_seq=first_seq, records=records, is_owned=is_owned)
        except FileNotFoundError:
            raise not_found_error(self._session_id) from None
        except OSError as refused:
            raise files.storage_failed("The session could not be read", refused) from refused

    def listen(self, on_news: Callable[[], None]) -> bool:
        """Return false: nothing reports changes to a file. See `Follower.listen`."""
        return False

    def is_owned(self) -> bool:
        """Return true if a process has the session open for writing."""
        return locks.is_held(self._lock_path, self._disk)

    def close(self) -> None:
        """Stop reading."""
        if self._fd >= 0:
            self._disk.close(self._fd)
            self._fd = -1

    def _is_same(self) -> bool:
        """Return true if the file still begins with the records read so far: it was not truncated, replaced
        or recreated.
        """
        at_path = self._disk.stat(self._path)
        if self._fd < 0 or not os.path.samestat(at_path, self._disk.stat_open(self._fd)):
            return False
        self._disk.seek(self._fd, self._end - len(self._seal))
        return self._disk.read(self._fd, len(self._seal)) == self._seal

    def _read_again(self) -> tuple[memoryview, ...]:
        self.close()
        self._fd = self._disk.open(self._path, files.READ)
        try:
            data = files.read_from(self._fd, 0, self._disk)
            content = content_of(data, self._session_id, self._format)
        except BaseException:
            self.close()
            raise
        self._end = 0
        self._version = content.version
        self._seen = len(content.records)
        self._note(data, content.end, content.needs_newline)
        return content.records

    def _read_on(self) -> tuple[int, tuple[memoryview, ...]]:
        data = files.read_from(self._fd, self._end, self._disk)
        if self._needs_newline and data.startswith(b"\n"):
            self._end += 1
            self._seal += b"\n"
            self._needs_newline = False
            data = data[1:]
        found = scan(data, self._seen)
        if found.damage is not None:
            # The owner may have truncated and rewritten the file during the read. Read it from the start.
            return 0, self._read_again()
        first_seq = self._seen
        self._seen += len(found.records)
        if found.records:
            self._note(data, found.end, found.needs_newline)
        steps = self._format.steps_from(self._version)
        records = found.records
        if steps:
            records = tuple(map(memoryview, upgrade([as_appended(record) for record in records], steps)))
        return first_seq, records

    def _note(self, data: bytes, end: int, needs_newline: bool) -> None:
        self._end += end
        self._needs_newline = needs_newline
        self._seal = data[max(end - _SEAL_BYTES, 0) : end]
