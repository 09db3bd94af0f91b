"""One writer a session: a lock on a file beside the journal, freed by the system when its holder dies.

flock(2), never fcntl.lockf: a POSIX lock is dropped as soon as the process closes any descriptor of the
file (seen on Linux, 2026-03). The lock is on a side file, so that a journal
can be replaced by another file under it. A lock file without a holder means nothing.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from msgspec import Struct

from compactd.storage.os_files import READ, SYSTEM, Disk

_TRIES = 100
"""How often a lock is tried that only someone who looks at it (`is_held`) holds: microseconds each."""


class Held(Struct, frozen=True):
    """Someone else has the lock."""

    pid: int | None
    """The holder's process id, if it got round to writing it down."""


class Lock:
    """A lock that is held until `release`, or until this process ends in whatever way."""

    def __init__(self, path: Path, fd: int, disk: Disk = SYSTEM) -> None:
        self._path = path
        self._fd = fd
        self._disk = disk

    def release(self, *, remove: bool = False) -> None:
        """Lets go, whatever is refused; with `remove` the file goes too, before anyone else can take it."""
        fd, self._fd = self._fd, -1
        try:
            if remove and sys.platform != "win32":
                self._disk.remove(self._path)
        finally:
            try:
                self._disk.unlock(fd)  # closing alone does not, while a child is between fork and exec
            finally:
                self._disk.close(fd)
        if remove and sys.platform == "win32":
            self._disk.remove(self._path)


def take(path: Path, disk: Disk = SYSTEM) -> Lock | Held:
    """The lock at `path`, made if it is not there, or who holds it. Does not wait.

    Raises `OSError` where the file cannot be made or the file system knows no locks.
    """
    for _ in range(_TRIES):
        fd = disk.open(path, os.O_RDWR | os.O_CREAT)
        try:
            if disk.lock(fd):
                if _is_at(path, fd, disk):
                    _write_pid(fd, disk)
                    lock, fd = Lock(path, fd, disk), -1
                    return lock
                # It was deleted between open and lock: what is locked is no longer the file at `path`.
                continue
            if sys.platform == "win32" or not disk.is_free(fd):
                return Held(_read_pid(fd, disk))
        finally:
            if fd >= 0:
                disk.close(fd)
        time.sleep(0)  # gives way to the one that looks
    return Held(None)


def is_held(path: Path, disk: Disk = SYSTEM) -> bool:
    """True while a process, this one included, holds the lock at `path`."""
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
        # Only for messages: a full disk must not keep a session from being opened.
        return


def _read_pid(fd: int, disk: Disk) -> int | None:
    disk.seek(fd, 0)
    text, end, _ = disk.read(fd, 32).partition(b"\n")
    return int(text) if end and text.isdigit() else None  # the disk may be full: then it is not whole
