"""Session files as bytes: regular files that the user can read, up to a size."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from compactd.protocol.errors import InvalidParams, LimitExceeded

FILE_BYTES = 256 * 1024 * 1024
"""A larger file is refused: it is held in memory while it is read."""

_PIECE = 1 << 20
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
"""Without waiting: opening a pipe would wait for its other end."""


def bytes_of(path: Path, limit: int = FILE_BYTES) -> bytes:
    """What the file holds.

    Raises `InvalidParams` for what is no regular file, is not there, may not be read, or is a link that leads
    in a circle; `LimitExceeded` above `limit` bytes, before anything is read. Cost: O(bytes).
    """
    try:
        fd = os.open(path, _FLAGS)
    except (OSError, ValueError) as refused:
        raise InvalidParams(f"{path} cannot be read: {_why(refused)}", "$.path") from None
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            raise InvalidParams(f"{path} is no file that can be read from beginning to end", "$.path")
        if facts.st_size > limit:
            raise too_large(str(path), facts.st_size, limit)
        return _whole(fd, str(path), limit)
    except OSError as refused:
        raise InvalidParams(f"{path} cannot be read: {_why(refused)}", "$.path") from None
    finally:
        os.close(fd)


def _whole(fd: int, path: str, limit: int) -> bytes:
    """The file may grow meanwhile: no more than `limit` is held."""
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(fd, _PIECE):
        size += len(piece)
        if size > limit:
            raise too_large(path, size, limit)
        pieces.append(piece)
    return b"".join(pieces)


def too_large(path: str, size: int, limit: int = FILE_BYTES) -> LimitExceeded:
    """The refusal of a file of `size` bytes."""
    return LimitExceeded(
        f"{path} has {size:,} bytes; at most {limit:,} are read", limit_bytes=limit, size_bytes=size
    )


def _why(refused: OSError | ValueError) -> str:
    if isinstance(refused, ValueError):
        return "no file can have this name"
    return "there is no such file" if refused.errno == errno.ENOENT else os.strerror(refused.errno or 0)
