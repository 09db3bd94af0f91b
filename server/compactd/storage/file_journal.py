"""A session's journal in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor

from compactd.storage.journal import BatchedJournal
from compactd.storage.journal_file import DiskFailure, JournalFile
from compactd.storage.locks import Lock


class _LockedFile:
    """A journal file and the lock that protects it: a `BatchWriter`."""

    def __init__(self, file: JournalFile, lock: Lock) -> None:
        self._file = file
        self._lock = lock

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    def write(self, first_seq: int, appended: Sequence[bytes]) -> DiskFailure | None:
        return self._file.write(first_seq, appended)

    def listen(self, on_doubt: Callable[[], None]) -> None:
        """Do nothing: nobody takes a lock away."""

    def replace(self, changes: Mapping[int, bytes]) -> DiskFailure | None:
        return self._file.replace(changes)

    def close(self, *, remove: bool = False) -> None:
        try:
            self._file.close(remove=remove)
        finally:
            self._lock.release(remove=remove)


class FileJournal(BatchedJournal):
    """A `Journal` that is stored in a file."""

    def __init__(
        self,
        file: JournalFile,
        lock: Lock,
        workers: Executor,
        *,
        seq: int,
        torn_bytes: int = 0,
        is_synced: bool = True,
    ) -> None:
        super().__init__(
            _LockedFile(file, lock), workers, seq=seq, torn_bytes=torn_bytes, is_synced=is_synced
        )
