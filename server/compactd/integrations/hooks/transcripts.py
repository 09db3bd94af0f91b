"""What is new in an agent's transcript: read from where the last run stopped, in pieces, never whole.

A transcript may lag behind what happened, end in the middle of a line, be replaced by another file, hold
lines of any length, or belong to somebody else. It is opened for reading only, and only where it is a regular
file of the user's own.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from compactd.integrations.hooks.state import Place

CHUNK: Final = 1 << 18
"""Bytes of lines that are taken in before the clock is looked at."""
MOST_LINE: Final = 1 << 24
"""Bytes; a longer line is passed over: no message that a model was shown is as large."""
_MARK: Final = 256
"""Bytes at the beginning and before the place by which a file is known again."""
_SEEK: Final = 1 << 20

if sys.platform == "win32":
    _OPEN = os.O_RDONLY | os.O_BINARY
else:
    # A named pipe would hold the agent for as long as nobody writes.
    _OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class Piece(Struct, frozen=True):
    """Whole lines."""

    data: bytes
    start: int
    """Where they begin in the file."""
    end: int


class Refused(Exception):
    """This file is not to be read; says why."""


class Transcript:
    """A transcript, open for reading."""

    def __init__(self, path: str, place: Place) -> None:
        """Raises `OSError`, `Refused`."""
        self._path = path
        self._fd = os.open(Path(path).expanduser(), _OPEN)
        try:
            found = os.fstat(self._fd)
            self.size = found.st_size
            self._check(found)
            self.is_other = place.offset > 0 and not self._is_same(place)
            """It is not the file, or not the text, that was read up to `place`."""
        except BaseException:
            os.close(self._fd)
            raise
        self._at = 0 if self.is_other else place.offset
        self._inside = place.inside and not self.is_other

    def close(self) -> None:
        os.close(self._fd)

    @property
    def is_read(self) -> bool:
        """Nothing is left that was there when it was opened."""
        return self._at >= self.size

    def place(self) -> Place:
        """Where the reading stands."""
        return Place(
            path=self._path,
            offset=self._at,
            inside=self._inside,
            head=self._mark(0, min(_MARK, self._at)),
            tail=self._mark(max(0, self._at - _MARK), self._at),
        )

    def grown(self) -> bool:
        """Looks whether more was written meanwhile."""
        size = os.fstat(self._fd).st_size
        found, self.size = size > self.size, max(size, self.size)
        return found

    def pieces(self, chunk: int = CHUNK) -> Iterator[Piece]:
        """Whole lines from the place on, in pieces of about `chunk` bytes. A last line without its end stays
        for the next time."""
        while self._at < self.size:
            if self._inside:
                self._skip()
                continue
            data = self._lines(chunk)
            if data is None:
                self._inside = True
                continue
            if not data:
                return
            start = self._at
            self._at += len(data)
            yield Piece(data, start, self._at)

    def whole(self) -> Piece | None:
        """All of it, where it is not too large: a file that is one JSON document."""
        if self.size > 2 * MOST_LINE:
            return None
        data = self._read(0, self.size)
        self._at = self.size
        return Piece(data, 0, self.size)

    def back_to(self, offset: int) -> None:
        """What stands from `offset` on is to be read again the next time."""
        self._at = min(self._at, offset)

    def last_of(self, *marks: bytes) -> list[int]:
        """Where lines begin that hold one of `marks`, the newest first, two at most. O(bytes)."""
        import mmap

        found: list[int] = []
        if not self.size:
            return found
        with mmap.mmap(self._fd, self.size, access=mmap.ACCESS_READ) as data:
            stop = self.size
            while len(found) < 2:
                at = max(data.rfind(mark, 0, stop) for mark in marks)
                if at < 0:
                    break
                stop = data.rfind(b"\n", 0, at) + 1
                found.append(stop)
        return found

    def holds(self, mark: bytes, start: int) -> bool:
        """Whether `mark` stands behind `start`. O(bytes)."""
        at = start
        while at < self.size:
            data = self._read(at, at + _SEEK)
            if not data:
                return False
            if mark in data:
                return True
            at += max(1, len(data) - len(mark))
        return False

    def _lines(self, chunk: int) -> bytes | None:
        """Whole lines at the place; empty where there is none yet, None where the line is too long."""
        wanted = chunk
        while True:
            data = self._read(self._at, min(self.size, self._at + wanted))
            end = data.rfind(b"\n") + 1
            if end:
                return data[:end]
            if wanted >= MOST_LINE:
                return None
            if len(data) < wanted:
                return b""
            wanted = min(2 * wanted, MOST_LINE)

    def _skip(self) -> None:
        """Passes over one step of a line that is too long."""
        data = self._read(self._at, min(self.size, self._at + _SEEK))
        end = data.find(b"\n") + 1
        self._inside = not end
        self._at += end or max(1, len(data))

    def _read(self, start: int, stop: int) -> bytes:
        pieces: list[bytes] = []
        at = start
        os.lseek(self._fd, start, os.SEEK_SET)
        while at < stop:
            data = os.read(self._fd, min(stop - at, _SEEK))
            if not data:
                break
            pieces.append(data)
            at += len(data)
        return b"".join(pieces)

    def _check(self, found: os.stat_result) -> None:
        import stat

        if not stat.S_ISREG(found.st_mode):
            raise Refused("the transcript is no regular file")
        if sys.platform != "win32" and found.st_uid != os.geteuid():
            raise Refused("the transcript belongs to somebody else")

    def _is_same(self, place: Place) -> bool:
        return (
            place.path == self._path
            and place.offset <= self.size
            and self._mark(0, min(_MARK, place.offset)) == place.head
            and self._mark(max(0, place.offset - _MARK), place.offset) == place.tail
        )

    def _mark(self, start: int, stop: int) -> str:
        return f"{zlib.crc32(self._read(start, stop)):08x}"
