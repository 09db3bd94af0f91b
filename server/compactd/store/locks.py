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

from compactd.store.files import READ, open_private

_TRIES = 100
"""How often a lock is tried that only someone who looks at it (`is_held`) holds: microseconds each."""


class Held(Struct, frozen=True):
    """Someone else has the lock."""

    pid: int | None
    """The holder's process id, if it got round to writing it down."""


class Lock:
    """A lock that is held until `release`, or until this process ends in whatever way."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd

    def release(self, *, remove: bool = False) -> None:
        """Lets go; with `remove` the file goes too, before anyone else can take it."""
        if remove and sys.platform != "win32":
            self._path.unlink(missing_ok=True)
        _unlock(self._fd)  # closing alone does not, while a child is between fork and exec
        os.close(self._fd)
        if remove and sys.platform == "win32":
            self._path.unlink(missing_ok=True)


def take(path: Path) -> Lock | Held:
    """The lock at `path`, made if it is not there, or who holds it. Does not wait.

    Raises `OSError` where the file cannot be made or the file system knows no locks.
    """
    for _ in range(_TRIES):
        fd = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            if _lock(fd):
                if _is_at(path, fd):
                    _write_pid(fd)
                    lock, fd = Lock(path, fd), -1
                    return lock
                # It was deleted between open and lock: what is locked is no longer the file at `path`.
                continue
            if not _is_only_looked_at(fd):
                return Held(_read_pid(fd))
        finally:
            if fd >= 0:
                os.close(fd)
        time.sleep(0)  # gives way to the one that looks
    return Held(None)


def is_held(path: Path) -> bool:
    """True while a process, this one included, holds the lock at `path`."""
    try:
        fd = os.open(path, READ)
    except FileNotFoundError:
        return False
    try:
        return not _look(fd)
    finally:
        os.close(fd)


def _is_at(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False


def _write_pid(fd: int) -> None:
    try:
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, b"%d\n" % os.getpid())
    except OSError:
        # Only for messages: a full disk must not keep a session from being opened.
        return


def _read_pid(fd: int) -> int | None:
    os.lseek(fd, 0, os.SEEK_SET)
    text = os.read(fd, 32).strip()
    return int(text) if text.isdigit() else None


if sys.platform == "win32":
    import msvcrt

    _BYTE = 1 << 30
    """Windows keeps others from reading a locked byte: this one is beyond the process id."""

    def _lock(fd: int) -> bool:
        os.lseek(fd, _BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock(fd: int) -> None:
        os.lseek(fd, _BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

    def _is_only_looked_at(fd: int) -> bool:
        return False

    def _look(fd: int) -> bool:
        if not _lock(fd):
            return False
        _unlock(fd)
        return True

else:
    import fcntl

    def _lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)

    def _look(fd: int) -> bool:
        """True where nobody writes. Shared, so that those who only look do not keep each other out."""
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        _unlock(fd)
        return True

    _is_only_looked_at = _look
