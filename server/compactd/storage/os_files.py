"""What the store asks of an operating system: one small seam, so that a test can be the disk.

POSIX and Windows differ here; nowhere else in the store but where a file is replaced.
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
    """Windows keeps others from reading a locked byte: this one is beyond the process id."""
else:
    import fcntl

    BINARY = 0

READ = os.O_RDONLY | BINARY
APPEND = os.O_RDWR | os.O_APPEND | BINARY
CREATE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY
WRITE_ANEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | BINARY


class Disk(Protocol):
    """Files, by descriptor and by path. Everything blocks, and raises `OSError` where it is refused."""

    def open(self, path: Path, flags: int) -> int:
        """A descriptor; a file that `flags` make is for the owner alone."""
        ...

    def close(self, fd: int) -> None:
        """Lets go of it, and of its lock."""
        ...

    def read(self, fd: int, size_bytes: int) -> bytes:
        """At most so many bytes; none at the end."""
        ...

    def write(self, fd: int, data: Chunk) -> int:
        """How many bytes of `data` were taken, at least one."""
        ...

    def seek(self, fd: int, offset: int) -> None:
        """Goes to a place, counted from the start."""
        ...

    def truncate(self, fd: int, size_bytes: int) -> None:
        """Cuts the file to this size."""
        ...

    def stat_open(self, fd: int) -> os.stat_result:
        """Facts of an open file."""
        ...

    def stat(self, path: Path) -> os.stat_result:
        """Facts of a file or folder. Raises `FileNotFoundError`."""
        ...

    def sync(self, fd: int) -> None:
        """Returns when what was written to `fd` is on the disk, and the length with it."""
        ...

    def sync_folder(self, path: Path) -> None:
        """Returns when the names in `path` are on the disk. Windows has no such thing."""
        ...

    def make_folder(self, path: Path) -> None:
        """Makes one folder, for the owner alone. Raises `FileExistsError`."""
        ...

    def names(self, folder: Path) -> list[str]:
        """What is in a folder, in any order; nothing where it is not there."""
        ...

    def remove(self, path: Path) -> bool:
        """Removes a file; false where there was none."""
        ...

    def rename(self, old: Path, new: Path) -> None:
        """Gives a file another name, in the place of what had it: at once, or not at all."""
        ...

    def lock(self, fd: int) -> bool:
        """Takes the lock of an open file, for this descriptor alone; false where another has it."""
        ...

    def unlock(self, fd: int) -> None:
        """Gives the lock back."""
        ...

    def is_free(self, fd: int) -> bool:
        """Whether nobody has the lock to write. Those who look do not keep each other out (POSIX)."""
        ...


class SystemDisk:
    """The operating system's own files."""

    def open(self, path: Path, flags: int) -> int:
        """See `Disk.open`."""
        fd = os.open(path, flags, 0o600)
        # What the umask leaves out, the owner's bits too.
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
            return  # a folder above ours that we may not read: there is nothing more to be had
        try:
            os.fsync(fd)
        except OSError as refused:
            # Some file systems (FUSE, SMB) refuse to sync a folder; then there is nothing more to be had.
            if refused.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(fd)

    def make_folder(self, path: Path) -> None:
        """See `Disk.make_folder`."""
        path.mkdir(mode=0o700)
        path.chmod(0o700)  # mkdir leaves out what the umask says, the owner's bits too

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
    """Whether something is at `path`. Raises `OSError` where that may not be known."""
    try:
        disk.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
