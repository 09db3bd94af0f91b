"""The blocking part of a journal, which reads and writes the file in a worker thread. Only one thread at a
time may use it.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from compactd.storage import files, journal_records
from compactd.storage.os_files import SYSTEM, Chunk, Disk
from compactd.storage.paths import drop_index

Sync = Callable[[int], None]


class DiskFailure(Struct, frozen=True, kw_only=True):
    """A write that the operating system refused. Earlier records are unchanged, unless `is_broken` is
    true.
    """

    errno: int | None
    is_broken: bool
    """True if the content of the file on disk is unknown. The journal must be opened again."""

    @property
    def reason(self) -> str | None:
        """The system's name of the error, for example `ENOSPC`."""
        return files.error_name(self.errno)

    def sentence(self, doing: str) -> str:
        """Return an error message for the user. `doing` says what failed."""
        return files.refusal_sentence(doing, self.errno)


class JournalFile:
    """An open journal file. Its first `size_bytes` bytes are whole records.

    Any bytes after these are cut off before the first write, not when the file is opened.
    """

    def __init__(
        self,
        path: Path,
        fd: int,
        *,
        size_bytes: int,
        needs_newline: bool = False,
        sync: Sync | None = files.sync,
        unsynced_folders: Sequence[Path] = (),
        upgraded: Sequence[bytes] | None = None,
        disk: Disk = SYSTEM,
    ) -> None:
        self.size_bytes = size_bytes
        """The number of bytes at the file's beginning that are stored with the requested durability."""
        self._path = path
        self._fd = fd
        self._disk = disk
        self._needs_newline = needs_newline
        self._sync = sync
        """The function that syncs the file, or None if no sync is needed (durability `os`)."""
        self._unsynced_folders = unsynced_folders
        """The folders to sync when the first records are written."""
        self._upgraded = upgraded
        """If the file has an older version: its records in the current version. The first write rewrites the
        file with them."""
        self._is_trimmed = False

    def write(self, first_seq: int, appended: Sequence[bytes]) -> DiskFailure | None:
        """Append the records `appended`, all or none, and sync. `first_seq` is the `seq` of the first of
        them. Return the failure, or None. O(bytes) and one sync.
        """
        try:
            if self._upgraded is not None:
                self._rewrite(journal_records.encode_journal(self._upgraded))
                self._upgraded = None
            if not self._is_trimmed:
                self._disk.truncate(self._fd, self.size_bytes)
                self._is_trimmed = True
            written = files.write_all(self._fd, self._pieces(first_seq, appended), self._disk)
        except OSError as refused:
            return DiskFailure(errno=refused.errno, is_broken=not self._cut_back())
        try:
            if self._sync is not None:
                self._sync(self._fd)
                for folder in self._unsynced_folders:
                    self._disk.sync_folder(folder)
                self._unsynced_folders = ()
        except OSError as refused:
            # After a failed sync, a second one can succeed although the first dropped pages (fsyncgate,
            # 2018). So cut off what was written, and do not sync again.
            self._cut_back()
            return DiskFailure(errno=refused.errno, is_broken=True)
        self.size_bytes += written
        self._needs_newline = False
        return None

    def replace(self, changes: Mapping[int, bytes]) -> DiskFailure | None:
        """Replace the bytes of the records in `changes`, by their `seq`, all or none. Return the failure, or
        None.

        Rewrites the file, and removes the info file and the search index, which may contain the old bytes
        too. O(file).
        """
        try:
            old = self._upgraded if self._upgraded is not None else self._read()
            if old is None:
                return DiskFailure(errno=errno.EIO, is_broken=True)
            # The info file and the index may contain the old bytes too.
            for name in (".info", ".info.new"):  # `.new` is left if a process was killed while writing it
                self._disk.remove(self._path.with_suffix(name))
            drop_index(self._path.parent, self._disk)
            # Also if there was no index: an earlier deletion may not have been synced.
            self._disk.sync_folder(self._path.parent.parent)
            self._rewrite(
                journal_records.encode_record(seq, changes.get(seq, record)) for seq, record in enumerate(old)
            )
            self._upgraded = None
        except OSError as refused:
            return DiskFailure(errno=refused.errno, is_broken=self._fd < 0)
        return None

    def close(self, *, remove: bool = False) -> None:
        """Close the file. With `remove`, delete it too."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._disk.close(fd)
        if remove:
            self._disk.remove(self._path)

    def _pieces(self, first_seq: int, appended: Sequence[bytes]) -> Iterable[Chunk]:
        if self._needs_newline:
            yield b"\n"
        for seq, record in enumerate(appended, first_seq):
            yield from journal_records.frame(seq, record, first_seq if seq > first_seq else None)

    def _read(self) -> list[bytes] | None:
        """Return the stored records as they were appended, or None if the file is damaged."""
        found = journal_records.scan(files.read_from(self._fd, 0, self._disk)[: self.size_bytes])
        if found.damage is not None or found.end != self.size_bytes:
            return None
        return [journal_records.as_appended(record) for record in found.records]

    def _rewrite(self, lines: Iterable[bytes]) -> None:
        """Replace the file by a new file with these lines, and open the new file. If syncing the folder
        fails, no file is open afterwards. Raises `OSError`.
        """
        if sys.platform == "win32":
            self.close()  # Windows cannot rename over an open file
        try:
            files.replace_file(self._path, lines, durable=True, disk=self._disk)
        except OSError:
            if sys.platform == "win32":
                self._fd = self._disk.open(self._path, files.APPEND)
            raise
        self.close()
        self._fd = self._disk.open(self._path, files.APPEND)
        self.size_bytes = self._disk.stat_open(self._fd).st_size
        self._needs_newline = False
        self._is_trimmed = True
        try:
            self._disk.sync_folder(self._path.parent)
        except OSError:
            self.close()
            raise

    def _cut_back(self) -> bool:
        """Cut off all bytes after the stored records. Return false if the system refuses that."""
        try:
            self._disk.truncate(self._fd, self.size_bytes)
        except OSError:
            return False
        return True
