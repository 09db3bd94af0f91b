"""Lock files, with which only one process at a time can write a session. The system frees a lock when its
process ends.

This uses flock(2), never fcntl.lockf: a POSIX lock is dropped as soon as the process closes any descriptor of
the file (seen on Linux, 2026-03). The lock is on a separate file, so that the journal can be replaced while
it is locked. Only the lock counts: a lock file that no process has locked may stay on disk.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from msgspec import Struct

from compactd.storage.os_files import READ, SYSTEM, Disk

_TRIES = 100
"""How often to try to take a lock that only a check by `is_held` keeps busy. A check takes microseconds."""


class LockHeld(Struct, frozen=True):
    """The result of `take_lock` if another process, or this one, already has the lock."""

    pid: int | None
    """The process id that the holder wrote into the lock file, or None if the file contains none."""


class Lock:
    """A lock that is held until `release`, or until this process ends."""

    def __init__(self, path: Path, fd: int, disk: Disk = SYSTEM) -> None:
        self._path = path
        self._fd = fd
        self._disk = disk

    def release(self, *, remove: bool = False) -> None:
        """Release the lock. With `remove`, delete the lock file first, so that nobody can take the lock of a
        deleted session. The lock is released even if the file cannot be deleted.
        """
        fd, self._fd = self._fd, -1
        try:
            if remove and sys.platform != "win32":
                self._disk.remove(self._path)
        finally:
            try:
                self._disk.unlock(fd)  # closing is not enough while a child is between fork and exec
            finally:
                self._disk.close(fd)
        if remove and sys.platform == "win32":
            self._disk.remove(self._path)


def take_lock(path: Path, disk: Disk = SYSTEM) -> Lock | LockHeld:
    """Take the lock at `path`, and create the file if needed. Return `LockHeld` if the lock is taken already.
    Does not wait.

    Raises `OSError` if the file cannot be created or the file system has no locks.
    """
    for _ in range(_TRIES):
        fd = disk.open(path, os.O_RDWR | os.O_CREAT)
        try:
            if disk.lock(fd):
                if _is_at(path, fd, disk):
                    _write_pid(fd, disk)
                    lock, fd = Lock(path, fd, disk), -1
                    return lock
                # The file was deleted between open and lock, so the locked file is not the one at `path`.
                continue
            if sys.platform == "win32" or not disk.is_free(fd):
                return LockHeld(_read_pid(fd, disk))
        finally:
            if fd >= 0:
                disk.close(fd)
        time.sleep(0)  # let the thread or process that checks the lock go on
    return LockHeld(None)


def is_held(path: Path, disk: Disk = SYSTEM) -> bool:
    """Return true if a process, this one included, holds the lock at `path`."""
    try:
        fd = disk.open(path, READ)
    except FileNotFoundError:
        return False
    try:
        return not disk.is_free(fd)
    finally:
        disk.close(fd)


def _is_at(path: Path, fd: int, disk: Disk) -> bool:
    try:
        return os.path.samestat(disk.stat(path), disk.stat_open(fd))
    except FileNotFoundError:
        return False


def _write_pid(fd: int, disk: Disk) -> None:
    try:
        disk.truncate(fd, 0)
        disk.seek(fd, 0)
        disk.write(fd, b"%d\n" % os.getpid())
    except OSError:
        # The id is only for messages: a full disk must not keep a session from being opened.
        return


def _read_pid(fd: int, disk: Disk) -> int | None:
    disk.seek(fd, 0)
    text, end, _ = disk.read(fd, 32).partition(b"\n")
    return int(text) if end and text.isdigit() else None  # with a full disk it may be incomplete
