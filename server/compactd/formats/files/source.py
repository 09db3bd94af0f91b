"""Read the bytes of session files: only regular files, up to a size."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from compactd.protocol.errors import InvalidParams, LimitExceeded

FILE_BYTES = 256 * 1024 * 1024
"""The most bytes of a file. A larger file is refused, because a file is kept in memory while it is read."""

_PIECE = 1 << 20
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
"""The flags with which a file is opened. They include non-blocking mode, because opening a named pipe would
wait for its other end.
"""


def read_source(path: Path, limit: int = FILE_BYTES) -> bytes:
    """Return the contents of a file. O(bytes).

    Raise `InvalidParams` if it is not a regular file, does not exist, may not be read, or is a circular link.
    Raise `LimitExceeded`, without reading it, if it is larger than `limit` bytes.
    """
    try:
        fd = os.open(path, _FLAGS)
    except (OSError, ValueError) as refused:
        raise InvalidParams(f"{path} cannot be read: {_why(refused)}", "$.path") from None
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            raise InvalidParams(f"{path} is not a regular file", "$.path")
        if facts.st_size > limit:
            raise too_large(str(path), facts.st_size, limit)
        return _read_whole(fd, str(path), limit)
    except OSError as refused:
        raise InvalidParams(f"{path} cannot be read: {_why(refused)}", "$.path") from None
    finally:
        os.close(fd)


def _read_whole(fd: int, path: str, limit: int) -> bytes:
    """Return the contents of the open file `fd`. Raise `LimitExceeded` if it grows beyond `limit` bytes while
    it is read.
    """
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(fd, _PIECE):
        size += len(piece)
        if size > limit:
            raise too_large(path, size, limit)
        pieces.append(piece)
    return b"".join(pieces)


def too_large(path: str, size: int, limit: int = FILE_BYTES) -> LimitExceeded:
    """Return the error for a file of `size` bytes, of which at most `limit` may be read."""
    return LimitExceeded(
        f"{path} has {size:,} bytes; at most {limit:,} are read", limit_bytes=limit, size_bytes=size
    )


def _why(refused: OSError | ValueError) -> str:
    if isinstance(refused, ValueError):
        return "this is not a valid file name"
    return "there is no such file" if refused.errno == errno.ENOENT else os.strerror(refused.errno or 0)
