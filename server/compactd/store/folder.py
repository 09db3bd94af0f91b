"""A store of sessions in a folder: for each one a journal, a lock beside it, and what a list shows of it."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from compactd.errors import SessionLocked
from compactd.store import files, locks, sidecar
from compactd.store.base import Durability, Stored
from compactd.store.follow import FileFollower
from compactd.store.journal import FileJournal
from compactd.store.journal_file import JournalFile
from compactd.store.migrate import FORMAT, Format
from compactd.store.paths import file_stem, index_file
from compactd.store.reading import content_of, id_of, not_found
from compactd.store.records import bare, check, scan

if TYPE_CHECKING:
    from compactd.store.index import FileIndex

_NOT_OPENED = "The session could not be opened"
_NOT_READ = "The session could not be read"
_NOT_CREATED = "The session could not be created"
_NOT_DELETED = "The session could not be deleted"
_WORKERS = 4
"""Threads that write and sync, for all sessions together: they wait for the disk, not for each other."""
_HEAD_BYTES = 65_536
"""How much is read of a journal at first to see its first record."""


class FolderStore:
    """A `Store` in `home`/sessions. Makes nothing on the disk before the first session is created."""

    def __init__(self, home: Path, format_: Format = FORMAT) -> None:
        self._folder = home / "sessions"
        self._format = format_
        self._index: FileIndex | None = None
        # Makes no thread before there is work for it.
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="compactd-store")

    @property
    def index(self) -> FileIndex:
        """Of the journals in the folder; made at the first need."""
        if self._index is None:
            from compactd.store.index import FileIndex

            self._index = FileIndex(self._folder)
        return self._index

    def create(self, session_id: str, first: bytes, durability: Durability) -> FileJournal:
        """A new session, open; see `Store.create`."""
        check(first)
        path = self._path(session_id)
        try:
            unsynced = files.make_folder(self._folder)
            lock = self._take_lock(path)
            try:
                journal = self._created(path, lock, durability, (*unsynced, self._folder))
            except BaseException:
                lock.release()
                raise
        except FileExistsError:
            raise
        except OSError as refused:
            raise files.storage_failed(_NOT_CREATED, refused) from refused
        journal.add([first])
        return journal

    def _created(
        self, path: Path, lock: locks.Lock, durability: Durability, unsynced: tuple[Path, ...]
    ) -> FileJournal:
        fd = files.open_private(path, files.APPEND | os.O_CREAT)
        try:
            # What a creation left that was cut off is written over; anything else is a session.
            if not scan(files.read_from(fd, 0)).is_never_begun:
                raise FileExistsError("the session is stored already")
        except BaseException:
            os.close(fd)
            raise
        sync = files.sync if durability == "disk" else None
        file = JournalFile(path, fd, size_bytes=0, sync=sync, unsynced_folders=unsynced if sync else ())
        return FileJournal(file, lock, self._workers, seq=0)

    def open(self, session_id: str, *, durability: Durability) -> tuple[FileJournal, list[memoryview]]:
        """A stored session, open, and its records; see `Store.open`."""
        path = self._path(session_id)
        try:
            if not path.exists():
                raise not_found(session_id)
            lock = self._take_lock(path)
            try:
                return self._opened(path, lock, session_id, durability)
            except FileNotFoundError:
                # Deleted while we took the lock, which is then our own litter.
                lock.release(remove=True)
                raise not_found(session_id) from None
            except BaseException:
                lock.release()
                raise
        except OSError as refused:
            raise files.storage_failed(_NOT_OPENED, refused) from refused

    def _opened(
        self, path: Path, lock: locks.Lock, session_id: str, durability: Durability
    ) -> tuple[FileJournal, list[memoryview]]:
        fd = os.open(path, files.APPEND)
        try:
            data = files.read_from(fd, 0)
            content = content_of(data, session_id, self._format)
            path.with_name(path.name + ".new").unlink(missing_ok=True)
        except BaseException:
            os.close(fd)
            raise
        is_older = content.version < self._format.version
        file = JournalFile(
            path,
            fd,
            size_bytes=content.end,
            needs_newline=content.needs_newline,
            sync=files.sync if durability == "disk" else None,
            unsynced_folders=(self._folder,) if durability == "disk" else (),
            upgraded=[bare(record) for record in content.records] if is_older else None,
        )
        torn_bytes = len(data) - content.end
        seq = len(content.records)
        return FileJournal(file, lock, self._workers, seq=seq, torn_bytes=torn_bytes), list(content.records)

    def read(self, session_id: str) -> tuple[FileFollower, list[memoryview]]:
        """A stored session, to follow, and its records so far; see `Store.read`."""
        path = self._path(session_id)
        follower = FileFollower(session_id, path, path.with_suffix(".lock"), self._format)
        try:
            return follower, list(follower.poll().records)
        except BaseException:
            follower.close()
            raise

    def salvage(self, session_id: str) -> list[bytes]:
        """What can be read of a session that may be damaged; see `Store.salvage`."""
        try:
            found = scan(self._path(session_id).read_bytes())
        except FileNotFoundError:
            raise not_found(session_id) from None
        except OSError as refused:
            raise files.storage_failed(_NOT_READ, refused) from refused
        after = found.damage.after if found.damage is not None else ()
        return [bare(record) for record in (*found.records, *after)]

    def exists(self, session_id: str) -> bool:
        """True where the session is stored, damaged or not."""
        path = self._path(session_id)
        try:
            return _first_record(path) is not None or not scan(path.read_bytes()).is_never_begun
        except FileNotFoundError:
            return False
        except OSError as refused:
            raise files.storage_failed(_NOT_READ, refused) from refused

    def list(self) -> list[Stored]:
        """Every stored session whose first record can be read, newest first."""
        try:
            found = [self._stored(path) for path in self._folder.glob("*.jsonl")]
        except OSError as refused:
            raise files.storage_failed("The sessions could not be listed", refused) from refused
        return sorted((one for one in found if one is not None), key=lambda one: one.updated_at, reverse=True)

    def _stored(self, path: Path) -> Stored | None:
        try:
            first = _first_record(path)
            facts = path.stat()
        except (FileNotFoundError, PermissionError):
            return None  # deleted meanwhile, or somebody else's
        session_id = id_of(first) if first is not None else None
        if session_id is None or file_stem(session_id) != path.stem:
            return None
        return Stored(
            session_id=session_id,
            size_bytes=facts.st_size,
            updated_at=facts.st_mtime,
            is_locked=locks.is_held(path.with_suffix(".lock")),
        )

    async def delete(self, session_id: str) -> None:
        """Removes a session for good; see `Store.delete`."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._workers, self._delete, session_id)

    def _delete(self, session_id: str) -> None:
        path = self._path(session_id)
        try:
            if not path.exists():
                raise not_found(session_id)
            lock = self._take_lock(path)
            try:
                if index_file(self._folder).exists():
                    self.index.forget(session_id)
                path.unlink(missing_ok=True)
                path.with_suffix(".info").unlink(missing_ok=True)
                path.with_name(path.name + ".new").unlink(missing_ok=True)
            except BaseException:
                lock.release()
                raise
            lock.release(remove=True)
            files.sync_folder(self._folder)
        except OSError as refused:
            raise files.storage_failed(_NOT_DELETED, refused) from refused

    async def save_info(self, session_id: str, info: bytes, *, size_bytes: int) -> None:
        """Keeps what a list shows of a session; see `Store.save_info`."""
        loop = asyncio.get_running_loop()
        path = self._path(session_id).with_suffix(".info")
        try:
            await loop.run_in_executor(self._workers, sidecar.save, path, info, size_bytes)
        except OSError as refused:
            raise files.storage_failed(
                "The list of sessions could not be brought up to date", refused
            ) from refused

    def load_info(self, session_id: str) -> bytes | None:
        """What `save_info` kept, if the session has not changed since."""
        path = self._path(session_id)
        try:
            return sidecar.load(path.with_suffix(".info"), path.stat().st_size)
        except OSError:
            return None

    async def close(self) -> None:
        """Lets go of the threads. Journals have to be closed before."""
        await asyncio.to_thread(self._workers.shutdown)

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{file_stem(session_id)}.jsonl"

    def _take_lock(self, path: Path) -> locks.Lock:
        lock = locks.take(path.with_suffix(".lock"))
        if isinstance(lock, locks.Held):
            raise _locked(lock.pid)
        return lock


def _locked(pid: int | None) -> SessionLocked:
    holder = f"Process {pid}" if pid is not None else "Another process"
    return SessionLocked(
        f"{holder} has this session open for writing. It can be read meanwhile; to write, end that process.",
        pid=pid,
    )


def _first_record(path: Path) -> memoryview | None:
    """The first record of a journal, without reading the rest of it; None where it is not whole."""
    fd = os.open(path, files.READ)
    try:
        head = os.read(fd, _HEAD_BYTES)
        end = head.find(b"\n")
        if end < 0:
            head += files.read_from(fd, len(head))
            end = head.find(b"\n")
    finally:
        os.close(fd)
    records = scan(head if end < 0 else head[: end + 1]).records
    return records[0] if records else None
