"""Functions that read and durably write files that only the user can read, and error messages for
failures."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from compactd.protocol.errors import StorageFailed
from compactd.storage.os_files import APPEND as APPEND
from compactd.storage.os_files import CREATE_NEW as CREATE_NEW
from compactd.storage.os_files import READ as READ
from compactd.storage.os_files import SYSTEM, WRITE_TRUNCATED, Chunk, Disk

_GROUP_BYTES = 262_144
"""Small pieces are joined for one `write` call, up to this many bytes. A larger piece gets a call of its
own."""


def make_folder(path: Path, disk: Disk = SYSTEM) -> tuple[Path, ...]:
    """Create the folder `path` and its missing parents, accessible only to the owner.

    Return the parent of each new folder, outermost first. The caller must sync these, so that the new
    folders survive a power cut.
    """
    changed = []
    missing = []
    while not _is_folder(path, disk):
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        try:
            disk.make_folder(folder)
        except FileExistsError:
            continue
        changed.append(folder.parent)
    return tuple(changed)


def _is_folder(path: Path, disk: Disk) -> bool:
    try:
        return stat.S_ISDIR(disk.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def open_private(path: Path, flags: int, disk: Disk = SYSTEM) -> int:
    """Open `path` and return its descriptor. A file that `flags` create is accessible only to the owner."""
    return disk.open(path, flags)


def read_from(fd: int, offset: int, disk: Disk = SYSTEM) -> bytes:
    """Return all bytes of an open file from `offset` to its end."""
    disk.seek(fd, offset)
    first = disk.read(fd, max(disk.stat_open(fd).st_size - offset, 0) + 1)
    if not first:
        return first
    pieces = [first]
    # One read returns the whole file, unless it is larger than 2 GiB or grows meanwhile.
    while piece := disk.read(fd, 1 << 20):
        pieces.append(piece)
    return first if len(pieces) == 1 else b"".join(pieces)


def read_whole(path: Path, disk: Disk = SYSTEM) -> bytes:
    """Return all bytes of a file. Raises `FileNotFoundError`."""
    fd = disk.open(path, READ)
    try:
        return read_from(fd, 0, disk)
    finally:
        disk.close(fd)


def write_all(fd: int, chunks: Iterable[Chunk], disk: Disk = SYSTEM) -> int:
    """Write all `chunks` in order, and return the number of bytes written."""
    total = 0
    group: list[Chunk] = []
    group_bytes = 0
    for chunk in chunks:
        if group and group_bytes + len(chunk) > _GROUP_BYTES:
            total += _write(fd, group[0] if len(group) == 1 else b"".join(group), disk)
            group, group_bytes = [], 0
        group.append(chunk)
        group_bytes += len(chunk)
    return total + (_write(fd, group[0] if len(group) == 1 else b"".join(group), disk) if group else 0)


def _write(fd: int, data: Chunk, disk: Disk) -> int:
    rest = memoryview(data)
    while rest:
        rest = rest[disk.write(fd, rest) :]
    return len(data)


sync = SYSTEM.sync
sync_folder = SYSTEM.sync_folder


def replace_file(path: Path, chunks: Iterable[Chunk], *, durable: bool, disk: Disk = SYSTEM) -> None:
    """Replace the file at `path` atomically: write a new file next to it, then rename the new file to `path`.

    With `durable`, the new content is on disk before the rename. Sync the folder to make the rename durable
    too. After an error, the old file is unchanged.
    """
    beside = path.with_name(path.name + ".new")
    fd = disk.open(beside, WRITE_TRUNCATED)
    try:
        try:
            write_all(fd, chunks, disk)
            if durable:
                disk.sync(fd)
        finally:
            disk.close(fd)
        disk.rename(beside, path)
    except OSError:
        disk.remove(beside)
        raise


def replace_users_file(path: Path, data: bytes) -> None:
    """Replace a file of the user, such as the settings of an agent, completely or not at all. It keeps its
    permissions. A new file is accessible only to the owner. Raise `OSError`.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(beside, CREATE_NEW, 0o600), "wb") as file:
            file.write(data)
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o777)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def refusal_sentence(doing: str, number: int | None) -> str:
    """Return an error message for the user: what failed, why the operating system refused it, and what to do.
    It contains no path.

    `doing` says what failed, for example "The session could not be written". `number` is the error number
    (`errno`).
    """
    if number in _FULL:
        return f"{doing}: the disk is full. Free some space and send the request again."
    if number in _REFUSED:
        return f"{doing}: its folder or file is read-only. Fix the permissions and try again."
    if number in (errno.EMFILE, errno.ENFILE):
        return f"{doing}: too many files are open. Close some sessions and try again."
    reason = os.strerror(number) if number is not None else "unknown reason"
    return f"{doing}: {reason}. Earlier requests that succeeded are stored; check the disk, then try again."


def error_name(number: int | None) -> str | None:
    """Return the system's name of an error number, for example `ENOSPC`."""
    return None if number is None else errno.errorcode.get(number)


def storage_failed(doing: str, refused: OSError) -> StorageFailed:
    """Return the `StorageFailed` error for an error of the operating system. `doing` says what failed, as for
    `refusal_sentence`.
    """
    return StorageFailed(refusal_sentence(doing, refused.errno), reason=error_name(refused.errno))
