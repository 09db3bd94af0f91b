"""A store of sessions in a folder: for each session a journal, a lock file, and an info file for
`session/list`.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from compactd.protocol.errors import SessionBusy, SessionLocked
from compactd.storage import files, locks, sidecar
from compactd.storage.decode_journal import content_of, id_of, not_found_error, working_dir_of
from compactd.storage.file_journal import FileJournal
from compactd.storage.follower import FileFollower
from compactd.storage.hook_files import HookFiles, HookIsBusy, is_mirror
from compactd.storage.journal_file import JournalFile
from compactd.storage.journal_records import as_appended, check_record, scan
from compactd.storage.migrate import FORMAT, JournalFormat
from compactd.storage.os_files import SYSTEM, Disk, exists
from compactd.storage.paths import file_stem, index_file
from compactd.storage.protocols import Durability, Stored
from compactd.storage.word_holders import files_of

if TYPE_CHECKING:
    from compactd.storage.search_index import FileIndex

_NOT_OPENED = "The session could not be opened"
_NOT_READ = "The session could not be read"
_NOT_CREATED = "The session could not be created"
_NOT_DELETED = "The session could not be deleted"
_WORKERS = 4
"""The number of threads that write and sync, for all sessions together. They mostly wait for the disk."""
_HEAD_BYTES = 65_536
"""The number of bytes that are read to find a journal's first record. If the record is longer, the whole file
is read."""


class FolderStore:
    """A `Store` in `home`/sessions. Creates nothing on disk before the first session is created."""

    def __init__(
        self,
        home: Path,
        format_: JournalFormat = FORMAT,
        *,
        disk: Disk = SYSTEM,
        workers: Executor | None = None,
    ) -> None:
        self._folder = home / "sessions"
        self._format = format_
        self._disk = disk
        self._index: FileIndex | None = None
        # The executor starts a thread only when there is work.
        self._workers = workers or ThreadPoolExecutor(_WORKERS, thread_name_prefix="compactd-store")

    @property
    def calls(self) -> None:
        """None: a session's files have one writer."""
        return None

    @property
    def index(self) -> FileIndex:
        """The search index of the journals in the folder, created at the first use."""
        if self._index is None:
            from compactd.storage.search_index import FileIndex

            self._index = FileIndex(self._folder)
        return self._index

    def create(self, session_id: str, first: bytes, durability: Durability) -> FileJournal:
        """Create a new session and return its open journal. See `Store.create`."""
        check_record(first)
        path = self._path(session_id)
        try:
            made = files.make_folder(self._folder, self._disk)
            lock = self._take_lock(path)
            try:
                journal = self._create_journal(path, lock, durability, made)
            except BaseException:
                lock.release()
                raise
        except FileExistsError:
            raise
        except OSError as refused:
            raise files.storage_failed(_NOT_CREATED, refused) from refused
        journal.add([first])
        return journal

    def _create_journal(
        self, path: Path, lock: locks.Lock, durability: Durability, made: tuple[Path, ...]
    ) -> FileJournal:
        fd = files.open_private(path, files.APPEND | os.O_CREAT, self._disk)
        try:
            # What an interrupted creation left is overwritten. Anything else is a stored session.
            if not scan(files.read_from(fd, 0, self._disk)).is_never_begun:
                raise FileExistsError("a session with this id is already stored")
        except BaseException:
            self._disk.close(fd)
            raise
        file = JournalFile(
            path,
            fd,
            size_bytes=0,
            sync=self._disk.sync if durability == "disk" else None,
            unsynced_folders=self._folders_to_sync(durability, made),
            disk=self._disk,
        )
        return FileJournal(file, lock, self._workers, seq=0)

    def open(self, session_id: str, *, durability: Durability) -> tuple[FileJournal, list[memoryview]]:
        """Open a stored session and return its journal and its records. See `Store.open`."""
        path = self._path(session_id)
        try:
            if not exists(path, self._disk):
                raise not_found_error(session_id)
            lock = self._take_lock(path)
            try:
                return self._open_journal(path, lock, session_id, durability)
            except FileNotFoundError:
                # The session was deleted while the lock was taken. Remove the lock file again.
                lock.release(remove=True)
                raise not_found_error(session_id) from None
            except BaseException:
                lock.release()
                raise
        except OSError as refused:
            raise files.storage_failed(_NOT_OPENED, refused) from refused

    def _open_journal(
        self, path: Path, lock: locks.Lock, session_id: str, durability: Durability
    ) -> tuple[FileJournal, list[memoryview]]:
        fd = self._disk.open(path, files.APPEND)
        try:
            data = files.read_from(fd, 0, self._disk)
            content = content_of(data, session_id, self._format)
            self._disk.remove(path.with_name(path.name + ".new"))
        except BaseException:
            self._disk.close(fd)
            raise
        is_older = content.version < self._format.version
        file = JournalFile(
            path,
            fd,
            size_bytes=content.end,
            needs_newline=content.needs_newline,
            sync=self._disk.sync if durability == "disk" else None,
            unsynced_folders=self._folders_to_sync(durability),
            upgraded=[as_appended(record) for record in content.records] if is_older else None,
            disk=self._disk,
        )
        torn_bytes = len(data) - content.end
        seq = len(content.records)
        journal = FileJournal(
            file,
            lock,
            self._workers,
            seq=seq,
            torn_bytes=torn_bytes,
            is_synced=durability != "disk",
        )
        return journal, list(content.records)

    def read(self, session_id: str) -> tuple[FileFollower, list[memoryview]]:
        """Return a follower of a stored session, and its records so far. See `Store.read`."""
        path = self._path(session_id)
        follower = FileFollower(session_id, path, path.with_suffix(".lock"), self._format, self._disk)
        try:
            return follower, list(follower.poll().records)
        except BaseException:
            follower.close()
            raise

    def salvage(self, session_id: str) -> list[bytes]:
        """Return the readable records of a session that may be damaged. See `Store.salvage`."""
        try:
            found = scan(files.read_whole(self._path(session_id), self._disk))
        except FileNotFoundError:
            raise not_found_error(session_id) from None
        except OSError as refused:
            raise files.storage_failed(_NOT_READ, refused) from refused
        after = found.damage.after if found.damage is not None else ()
        return [as_appended(record) for record in (*found.records, *after)]

    def exists(self, session_id: str) -> bool:
        """Return true if the session is stored, damaged or not."""
        path = self._path(session_id)
        try:
            if _first_record(path, self._disk) is not None:
                return True
            return not scan(files.read_whole(path, self._disk)).is_never_begun
        except FileNotFoundError:
            return False
        except OSError as refused:
            raise files.storage_failed(_NOT_READ, refused) from refused

    def list(self) -> list[Stored]:
        """Return every stored session whose first record can be read, last changed first."""
        try:
            names = self._disk.names(self._folder)
            found = [self._read_stored(self._folder / name) for name in names if name.endswith(".jsonl")]
        except OSError as refused:
            raise files.storage_failed("The sessions could not be listed", refused) from refused
        return sorted((one for one in found if one is not None), key=lambda one: one.updated_at, reverse=True)

    def _read_stored(self, path: Path) -> Stored | None:
        try:
            first = _first_record(path, self._disk)
            facts = self._disk.stat(path)
        except (FileNotFoundError, PermissionError):
            return None  # deleted meanwhile, or owned by another user
        session_id = id_of(first) if first is not None else None
        if first is None or session_id is None or file_stem(session_id) != path.stem:
            return None
        return Stored(
            session_id=session_id,
            size_bytes=facts.st_size,
            updated_at=facts.st_mtime,
            is_locked=locks.is_held(path.with_suffix(".lock"), self._disk),
            working_dir=working_dir_of(first),
        )

    async def delete(self, session_id: str) -> None:
        """Delete a session for good. See `Store.delete`."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._workers, self._delete, session_id)

    def _delete(self, session_id: str) -> None:
        path = self._path(session_id)
        try:
            if not exists(path, self._disk):
                raise not_found_error(session_id)
            lock = self._take_lock(path)
            try:
                if exists(index_file(self._folder), self._disk):
                    self.index.forget(session_id)
                self._remove_files(session_id)
            except BaseException:
                lock.release()
                raise
            lock.release(remove=True)
            self._disk.sync_folder(self._folder)
        except HookIsBusy:
            raise SessionBusy(
                "A hook of this session's agent is running. Send the request again.", holder="hook"
            ) from None
        except OSError as refused:
            raise files.storage_failed(_NOT_DELETED, refused) from refused

    def _remove_files(self, session_id: str) -> None:
        """Remove the session's files, as `HOLDERS` (`storage/word_holders.py`) says, the journal last.

        If this fails halfway, the journal still exists and the session can be deleted again. The files of a
        hook are cleaned while its lock is held.
        """
        import shutil  # takes 3 ms, which a daemon's first request need not wait for

        home = self._folder.parent
        shutil.rmtree(home / "snapshots" / file_stem(session_id), ignore_errors=True)
        hook = HookFiles(home, session_id) if is_mirror(session_id) else None
        if hook is not None and hook.is_there():
            with hook.lock():
                hook.forget()
        for path in reversed(files_of(home, session_id)):
            self._disk.remove(path)

    async def save_info(self, session_id: str, info: bytes, *, size_bytes: int) -> None:
        """Save what `session/list` shows about a session. See `Store.save_info`."""
        loop = asyncio.get_running_loop()
        path = self._path(session_id).with_suffix(".info")
        try:
            await loop.run_in_executor(self._workers, sidecar.save, path, info, size_bytes, self._disk)
        except OSError as refused:
            raise files.storage_failed("The list of sessions could not be updated", refused) from refused

    def load_info(self, session_id: str) -> bytes | None:
        """Return what `save_info` saved, or None if the session has changed since."""
        path = self._path(session_id)
        try:
            return sidecar.load(path.with_suffix(".info"), self._disk.stat(path).st_size, self._disk)
        except OSError:
            return None

    def file_of(self, session_id: str) -> str | None:
        """Return the path of the session's file. See `Store.file_of`."""
        path = self._path(session_id)
        return str(path) if exists(path, self._disk) else None

    async def close(self) -> None:
        """Stop the store's threads. Call this after all journals are closed."""
        await asyncio.to_thread(self._workers.shutdown)

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{file_stem(session_id)}.jsonl"

    def _folders_to_sync(self, durability: Durability, made: tuple[Path, ...] = ()) -> tuple[Path, ...]:
        """Return the folders to sync after a session's first write; none unless `durability` is `disk`.
        `made` are the parents of folders that were just created.
        """
        if durability != "disk":
            return ()
        # Sync the usual folders always: the process that created them may have ended before its sync.
        home = self._folder.parent
        usual = (home.parent, home, self._folder)
        return (*(folder for folder in made if folder not in usual), *usual)

    def _take_lock(self, path: Path) -> locks.Lock:
        lock = locks.take_lock(path.with_suffix(".lock"), self._disk)
        if isinstance(lock, locks.LockHeld):
            raise _locked_error(lock.pid)
        return lock


def _locked_error(pid: int | None) -> SessionLocked:
    holder = f"Process {pid}" if pid is not None else "Another process"
    return SessionLocked(
        f"{holder} has this session open for writing. It can be opened to read; to write, end that process.",
        pid=pid,
        name=None if pid is None else _name_of(pid),
    )


def _name_of(pid: int) -> str | None:
    """Return the name of a process, if the system has a file for it (Linux)."""
    try:
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    except OSError:
        return None


def _first_record(path: Path, disk: Disk) -> memoryview | None:
    """Return a journal's first record, or None if that record is not whole. Reads no more of the file than
    needed.
    """
    fd = disk.open(path, files.READ)
    try:
        head = disk.read(fd, _HEAD_BYTES)
        end = head.find(b"\n")
        if end < 0:
            head += files.read_from(fd, len(head), disk)
            end = head.find(b"\n")
    finally:
        disk.close(fd)
    records = scan(head if end < 0 else head[: end + 1]).records
    return records[0] if records else None
