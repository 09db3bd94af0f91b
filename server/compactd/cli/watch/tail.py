"""Read what is new in a file that another process appends to, shortens, replaces or has not created yet."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from compactd.formats.files.source import FILE_BYTES
from compactd.storage.files import read_from

GUARD_BYTES = 256
"""How many bytes are compared with what was read earlier, at the beginning of the file and just before the
read position. If any of them differ, the file was rewritten.
"""

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


class TailNews(Struct, frozen=True, kw_only=True):
    """What a file contains that was not read from it before."""

    data: bytes
    """The bytes after those that were read last; the whole file if `is_anew`."""
    is_anew: bool
    """True if the file is new, or was replaced, shortened or rewritten, so that what was read from it before
    no longer counts.
    """


class FileGone(Struct, frozen=True):
    """There is no file that can be read."""

    reason: str


class _FileLook(NamedTuple):
    device: int
    inode: int
    size: int
    mtime_ns: int


class Tail:
    """One file that another process writes. Each call of `look` returns what is new in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: _FileLook | None = None
        self._offset = 0
        self._head = b""
        self._before = b""

    def look(self) -> TailNews | FileGone | None:
        """Return what is new since the last call, or why there is no file; None if nothing is new. Costs
        O(new bytes), or one `stat` if nothing is new.
        """
        try:
            seen = _look_of(self.path.stat())
            if seen == self._seen:
                return None
            return self._read()
        except (OSError, ValueError) as refused:
            self._forget()
            if isinstance(refused, FileNotFoundError):
                return FileGone("there is no such file")
            return FileGone(
                (refused.strerror if isinstance(refused, OSError) else "") or "the file cannot be read"
            )

    def reread(self) -> TailNews | FileGone | None:
        """Forget what was read so far, and return the whole file as if it were new."""
        self._forget()
        return self.look()

    def _forget(self) -> None:
        self._seen, self._offset, self._head, self._before = None, 0, b"", b""

    def _read(self) -> TailNews | FileGone | None:
        fd = os.open(self.path, _FLAGS)
        try:
            facts = os.fstat(fd)
            seen = _look_of(facts)
            if not stat.S_ISREG(facts.st_mode):
                return FileGone("this is not a regular file")
            if seen.size > FILE_BYTES:
                return FileGone(f"it has {seen.size:,} bytes; at most {FILE_BYTES:,} are read")
            is_anew = self._is_replaced(fd, seen)
            if is_anew:
                self._offset, self._head, self._before = 0, b"", b""
            data = read_from(fd, self._offset)
            self._seen = seen
            if not data and not is_anew:
                return None
            self._remember(data)
            return TailNews(data=data, is_anew=is_anew)
        finally:
            os.close(fd)

    def _is_replaced(self, fd: int, seen: _FileLook) -> bool:
        known = self._seen
        if known is None or seen[:2] != known[:2] or seen.size < self._offset:
            return True
        if os.pread(fd, len(self._head), 0) != self._head:
            return True
        return os.pread(fd, len(self._before), self._offset - len(self._before)) != self._before

    def _remember(self, data: bytes) -> None:
        if self._offset < GUARD_BYTES:
            self._head = (self._head[: self._offset] + data)[:GUARD_BYTES]
        self._offset += len(data)
        self._before = (
            (self._before + data)[-GUARD_BYTES:] if len(data) < GUARD_BYTES else data[-GUARD_BYTES:]
        )


def _look_of(facts: os.stat_result) -> _FileLook:
    return _FileLook(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)
