"""Private files, durable writes, and what the operating system's refusals mean to a user.

POSIX and Windows differ here and in `locks.py`; nowhere else in the store.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from compactd.errors import StorageFailed

Chunk = bytes | memoryview

_GROUP_BYTES = 262_144
"""Small pieces are joined up to this much for one call of `write`; larger ones are written as they are."""

if sys.platform == "win32":
    _BINARY = os.O_BINARY
else:
    _BINARY = 0

READ = os.O_RDONLY | _BINARY
APPEND = os.O_RDWR | os.O_APPEND | _BINARY
CREATE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY


def make_folder(path: Path) -> tuple[Path, ...]:
    """Makes `path` and its parents where they are missing, each for the owner alone. Gives back those
    folders that got a new entry, outermost first: they have to be synced for it to survive a power cut.
    """
    changed = []
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        folder.chmod(0o700)  # mkdir leaves out what the umask says, the owner's bits too
        changed.append(folder.parent)
    return tuple(changed)


def open_private(path: Path, flags: int) -> int:
    """A descriptor of `path`, which is made for the owner alone if `flags` say so and it is not there."""
    fd = os.open(path, flags, 0o600)
    if sys.platform != "win32" and flags & os.O_CREAT and os.fstat(fd).st_mode & 0o777 != 0o600:
        os.fchmod(fd, 0o600)
    return fd


def read_from(fd: int, offset: int) -> bytes:
    """All bytes from `offset` to the end."""
    os.lseek(fd, offset, os.SEEK_SET)
    first = os.read(fd, max(os.fstat(fd).st_size - offset, 0) + 1)
    if not first:
        return first
    pieces = [first]
    # One read gives the whole of a file, but for files above 2 GiB, and for those that grow meanwhile.
    while piece := os.read(fd, 1 << 20):
        pieces.append(piece)
    return first if len(pieces) == 1 else b"".join(pieces)


def write_all(fd: int, chunks: Iterable[Chunk]) -> int:
    """Writes every byte of `chunks`, in order, and gives back how many they were."""
    total = 0
    group: list[Chunk] = []
    group_bytes = 0
    for chunk in chunks:
        if group and group_bytes + len(chunk) > _GROUP_BYTES:
            total += _write(fd, group[0] if len(group) == 1 else b"".join(group))
            group, group_bytes = [], 0
        group.append(chunk)
        group_bytes += len(chunk)
    return total + (_write(fd, group[0] if len(group) == 1 else b"".join(group)) if group else 0)


def _write(fd: int, data: Chunk) -> int:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    return len(data)


def sync(fd: int) -> None:
    """Returns when what was written to `fd` is on the disk, and the length with it."""
    if sys.platform == "darwin":
        import fcntl

        # fsync(2) of macOS leaves the data in the drive's cache; F_FULLFSYNC asks the drive to flush it.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    elif sys.platform == "win32":
        os.fsync(fd)
    else:
        os.fdatasync(fd)


def sync_folder(path: Path) -> None:
    """Returns when the names in `path` are on the disk. Windows has no such thing."""
    if sys.platform == "win32":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as refused:
        # Some file systems (FUSE, SMB) refuse to sync a folder; then there is nothing more to be had.
        if refused.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


def write_beside(path: Path, chunks: Iterable[Chunk], *, durable: bool) -> None:
    """Puts a file with these bytes at `path`, all or none: it is written beside, then renamed."""
    beside = path.with_name(path.name + ".new")
    fd = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY)
    try:
        try:
            write_all(fd, chunks)
            if durable:
                sync(fd)
        finally:
            os.close(fd)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def refusal(doing: str, number: int | None) -> str:
    """One sentence for what the operating system refused, and what to do. Names no path.

    `doing` is what could not be done, as "The session could not be written".
    """
    if number in _FULL:
        return f"{doing}: the disk is full. Free some space and send the request again."
    if number in _REFUSED:
        return f"{doing}: its folder or file is read-only. Mend the permissions and try again."
    if number in (errno.EMFILE, errno.ENFILE):
        return f"{doing}: too many files are open. Close some sessions and try again."
    reason = os.strerror(number) if number is not None else "unknown reason"
    return f"{doing}: {reason}. What was acknowledged before is safe; check the disk, then try again."


def storage_failed(doing: str, refused: OSError) -> StorageFailed:
    """The error a client is told when the operating system refused something."""
    return StorageFailed(refusal(doing, refused.errno))
