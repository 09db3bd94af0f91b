"""The blocking half of a journal: the file, as its worker thread sees it. Used by one thread at a time."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from compactd.storage import files, records
from compactd.storage.os_files import SYSTEM, Chunk, Disk
from compactd.storage.paths import drop_index

Sync = Callable[[int], None]


class Failure(Struct, frozen=True, kw_only=True):
    """What the operating system refused. The file is as it was before, unless it is broken."""

    errno: int | None
    is_broken: bool
    """True where nobody can tell any more what is on the disk."""


class JournalFile:
    """A journal's file, whose first `size_bytes` bytes are whole records.

    What stands behind them is cut off before the first write: opening alone changes nothing.
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
        """Bytes that are stored as safely as was asked for."""
        self._path = path
        self._fd = fd
        self._disk = disk
        self._needs_newline = needs_newline
        self._sync = sync
        """None where what the operating system has is safe enough."""
        self._unsynced_folders = unsynced_folders
        """Those whose entries have to be on the disk before the first record is durable."""
        self._upgraded = upgraded
        """Records of an older version as ours, to be written in its place before anything is added."""
        self._is_trimmed = False

    def write(self, first_seq: int, appended: Sequence[bytes]) -> Failure | None:
        """Adds records at the end, all or none. O(bytes) and one sync."""
        try:
            if self._upgraded is not None:
                self._rewrite(records.lines(self._upgraded))
                self._upgraded = None
            if not self._is_trimmed:
                self._disk.truncate(self._fd, self.size_bytes)
                self._is_trimmed = True
            written = files.write_all(self._fd, self._pieces(first_seq, appended), self._disk)
        except OSError as refused:
            return Failure(errno=refused.errno, is_broken=not self._cut_back())
        try:
            if self._sync is not None:
                self._sync(self._fd)
                for folder in self._unsynced_folders:
                    self._disk.sync_folder(folder)
                self._unsynced_folders = ()
        except OSError as refused:
            # A second sync may say yes to pages that the first one dropped (fsyncgate, 2018): what was
            # written is taken out of sight and never asked about again.
            self._cut_back()
            return Failure(errno=refused.errno, is_broken=True)
        self.size_bytes += written
        self._needs_newline = False
        return None

    def replace(self, changes: Mapping[int, bytes]) -> Failure | None:
        """Puts other records in the place of those with these numbers, all or none. O(file)."""
        try:
            old = self._upgraded if self._upgraded is not None else self._read()
            if old is None:
                return Failure(errno=errno.EIO, is_broken=True)
            # Both may tell of what is to go.
            for name in (".info", ".info.new"):  # the other one: of a process that was killed in between
                self._disk.remove(self._path.with_suffix(name))
            if drop_index(self._path.parent, self._disk):
                self._disk.sync_folder(self._path.parent.parent)
            self._rewrite(records.line(seq, changes.get(seq, record)) for seq, record in enumerate(old))
            self._upgraded = None
        except OSError as refused:
            return Failure(errno=refused.errno, is_broken=self._fd < 0)
        return None

    def close(self, *, remove: bool = False) -> None:
        """Lets go of the file; with `remove` it is deleted."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._disk.close(fd)
        if remove:
            self._disk.remove(self._path)

    def _pieces(self, first_seq: int, appended: Sequence[bytes]) -> Iterable[Chunk]:
        if self._needs_newline:
            yield b"\n"
        for seq, record in enumerate(appended, first_seq):
            yield from records.frame(seq, record, first_seq if seq > first_seq else None)

    def _read(self) -> list[bytes] | None:
        """The records as they were appended; None where they are not what was written."""
        found = records.scan(files.read_from(self._fd, 0, self._disk)[: self.size_bytes])
        if found.damage is not None or found.end != self.size_bytes:
            return None
        return [records.bare(record) for record in found.records]

    def _rewrite(self, lines: Iterable[bytes]) -> None:
        """Another file with these lines in this one's place. Without a file where that went wrong late."""
        if sys.platform == "win32":
            self.close()  # Windows renames nothing over an open file
        try:
            files.write_beside(self._path, lines, durable=True, disk=self._disk)
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
        """Takes what follows the stored bytes out of sight; false where even that is refused."""
        try:
            self._disk.truncate(self._fd, self.size_bytes)
        except OSError:
            return False
        return True
