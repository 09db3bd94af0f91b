"""The file operations that the store needs from the operating system. Tests can replace them.

All differences between POSIX and Windows are in this module, except for replacing an open file
(`journal_file.py`).
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Protocol

Chunk = bytes | memoryview

if sys.platform == "win32":
    import msvcrt

    BINARY = os.O_BINARY
    _BYTE = 1 << 30
    """The offset of the byte to lock. Windows keeps others from reading a locked byte, so it is far after the
    process id in the file."""
else:
    import fcntl

    BINARY = 0

READ = os.O_RDONLY | BINARY
APPEND = os.O_RDWR | os.O_APPEND | BINARY
CREATE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY
WRITE_TRUNCATED = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | BINARY


class Disk(Protocol):
    """File operations, by descriptor and by path. Every method blocks, and raises `OSError` if the system
    refuses the operation.
    """

    def open(self, path: Path, flags: int) -> int:
        """Open a file and return its descriptor. A file that `flags` create is accessible only to the
        owner.
        """
        ...

    def close(self, fd: int) -> None:
        """Close the file, which also releases its lock."""
        ...

    def read(self, fd: int, size_bytes: int) -> bytes:
        """Return at most this many bytes; none at the end of the file."""
        ...

    def write(self, fd: int, data: Chunk) -> int:
        """Write `data`, and return how many bytes were written: at least one."""
        ...

    def seek(self, fd: int, offset: int) -> None:
        """Set the position for the next read or write, counted from the start of the file."""
        ...

    def truncate(self, fd: int, size_bytes: int) -> None:
        """Cut the file to this size."""
        ...

    def stat_open(self, fd: int) -> os.stat_result:
        """Return the stat result of an open file."""
        ...

    def stat(self, path: Path) -> os.stat_result:
        """Return the stat result of a file or folder. Raises `FileNotFoundError`."""
        ...

    def sync(self, fd: int) -> None:
        """Wait until the data written to `fd`, and the file's length, are on disk."""
        ...

    def sync_folder(self, path: Path) -> None:
        """Wait until the names of the files in the folder `path` are on disk. Does nothing on Windows."""
        ...

    def make_folder(self, path: Path) -> None:
        """Create one folder, accessible only to the owner. Raises `FileExistsError`."""
        ...

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, in any order; none if it does not exist."""
        ...

    def remove(self, path: Path) -> bool:
        """Delete a file. Return false if there was none."""
        ...

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file atomically, replacing any file with the new name."""
        ...

    def lock(self, fd: int) -> bool:
        """Lock an open file for this descriptor, without waiting. Return false if another descriptor has the
        lock.
        """
        ...

    def unlock(self, fd: int) -> None:
        """Release the lock that `lock` took."""
        ...

    def is_free(self, fd: int) -> bool:
        """Return true if nobody holds the lock of an open file. On POSIX, simultaneous checks do not block
        each other.
        """
        ...


class SystemDisk:
    """The operating system's files."""

    def open(self, path: Path, flags: int) -> int:
        """See `Disk.open`."""
        fd = os.open(path, flags, 0o600)
        # The umask may have removed even the owner's permissions.
        if sys.platform != "win32" and flags & os.O_CREAT and os.fstat(fd).st_mode & 0o777 != 0o600:
            os.fchmod(fd, 0o600)
        return fd

    def close(self, fd: int) -> None:
        """See `Disk.close`."""
        os.close(fd)

    def read(self, fd: int, size_bytes: int) -> bytes:
        """See `Disk.read`."""
        return os.read(fd, size_bytes)

    def write(self, fd: int, data: Chunk) -> int:
        """See `Disk.write`."""
        return os.write(fd, data)

    def seek(self, fd: int, offset: int) -> None:
        """See `Disk.seek`."""
        os.lseek(fd, offset, os.SEEK_SET)

    def truncate(self, fd: int, size_bytes: int) -> None:
        """See `Disk.truncate`."""
        os.ftruncate(fd, size_bytes)

    def stat_open(self, fd: int) -> os.stat_result:
        """See `Disk.stat_open`."""
        return os.fstat(fd)

    def stat(self, path: Path) -> os.stat_result:
        """See `Disk.stat`."""
        return path.stat()

    def sync(self, fd: int) -> None:
        """See `Disk.sync`."""
        if sys.platform == "darwin":
            # fsync(2) of macOS leaves the data in the drive's cache; F_FULLFSYNC asks the drive to flush it.
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        elif sys.platform == "win32":
            os.fsync(fd)
        else:
            os.fdatasync(fd)

    def sync_folder(self, path: Path) -> None:
        """See `Disk.sync_folder`."""
        if sys.platform == "win32":
            return
        try:
            fd = os.open(path, os.O_RDONLY)
        except PermissionError:
            return  # a folder above the data folder that this user may not read; it cannot be synced
        try:
            os.fsync(fd)
        except OSError as refused:
            # Some file systems (FUSE, SMB) cannot sync a folder.
            if refused.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(fd)

    def make_folder(self, path: Path) -> None:
        """See `Disk.make_folder`."""
        path.mkdir(mode=0o700)
        path.chmod(0o700)  # the umask may have removed even the owner's permissions

    def names(self, folder: Path) -> list[str]:
        """See `Disk.names`."""
        try:
            return [found.name for found in folder.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def remove(self, path: Path) -> bool:
        """See `Disk.remove`."""
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        return True

    def rename(self, old: Path, new: Path) -> None:
        """See `Disk.rename`."""
        old.replace(new)

    if sys.platform == "win32":

        def lock(self, fd: int) -> bool:
            """See `Disk.lock`."""
            os.lseek(fd, _BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            except PermissionError:
                return False
            return True

        def unlock(self, fd: int) -> None:
            """See `Disk.unlock`."""
            os.lseek(fd, _BYTE, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

        def is_free(self, fd: int) -> bool:
            """See `Disk.is_free`."""
            if not self.lock(fd):
                return False
            self.unlock(fd)
            return True

    else:

        def lock(self, fd: int) -> bool:
            """See `Disk.lock`."""
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        def unlock(self, fd: int) -> None:
            """See `Disk.unlock`."""
            fcntl.flock(fd, fcntl.LOCK_UN)

        def is_free(self, fd: int) -> bool:
            """See `Disk.is_free`."""
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            fcntl.flock(fd, fcntl.LOCK_UN)
            return True


SYSTEM = SystemDisk()


def exists(path: Path, disk: Disk = SYSTEM) -> bool:
    """Return true if something exists at `path`. Raises `OSError` if that cannot be determined."""
    try:
        disk.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
