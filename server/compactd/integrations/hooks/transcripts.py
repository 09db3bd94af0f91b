"""Read what is new in an agent's transcript, in pieces, from where the last run stopped.

A transcript may lag behind, end in the middle of a line, be replaced by another file, contain lines of any
length, or belong to somebody else. It is opened only for reading, and only if it is a regular file of the
user.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from compactd.integrations.hooks.hook_state import ReadPosition

CHUNK: Final = 1 << 18
"""How many bytes are read before the clock is checked again."""
MAX_TRANSCRIPT_LINE: Final = 1 << 24
"""The most bytes of a line. A longer line is skipped: no message to a model is that large."""
_MARK: Final = 256
"""How many bytes at the beginning of a file, and before the read position, are compared to recognise the
file.
"""
_SEEK: Final = 1 << 20

if sys.platform == "win32":
    _OPEN = os.O_RDONLY | os.O_BINARY
else:
    # Opening a named pipe without O_NONBLOCK would block the agent until somebody writes.
    _OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class TranscriptPiece(Struct, frozen=True):
    """Whole lines of a file."""

    data: bytes
    start: int
    """Where the lines begin in the file."""
    end: int


class TranscriptRefused(Exception):
    """This file must not be read. The message says why."""


class Transcript:
    """A transcript, open for reading."""

    def __init__(self, path: str, place: ReadPosition) -> None:
        """Open the file `path` at the read position `place`. Raise `OSError`, and `TranscriptRefused` for a
        file that must not be read.
        """
        self._path = path
        self._fd = os.open(Path(path).expanduser(), _OPEN)
        try:
            found = os.fstat(self._fd)
            self.size = found.st_size
            self._check(found)
            self.is_other = place.offset > 0 and not self._is_same(place)
            """Whether the file was replaced, or its text before the read position was changed, since the last
            run.
            """
        except BaseException:
            os.close(self._fd)
            raise
        self._at = 0 if self.is_other else place.offset
        self._inside = place.inside and not self.is_other

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    @property
    def is_read(self) -> bool:
        """Whether everything that the file contained when it was opened has been read."""
        return self._at >= self.size

    def place(self) -> ReadPosition:
        """Return the read position."""
        return ReadPosition(
            path=self._path,
            offset=self._at,
            inside=self._inside,
            head=self._mark(0, min(_MARK, self._at)),
            tail=self._mark(max(0, self._at - _MARK), self._at),
        )

    def has_grown(self) -> bool:
        """Return whether the file has grown since it was opened or since the last call."""
        size = os.fstat(self._fd).st_size
        found, self.size = size > self.size, max(size, self.size)
        return found

    def pieces(self, chunk: int = CHUNK) -> Iterator[TranscriptPiece]:
        """Yield whole lines from the read position on, in pieces of about `chunk` bytes.

        A last line without a line end is left for the next run.
        """
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
            yield TranscriptPiece(data, start, self._at)

    def whole(self) -> TranscriptPiece | None:
        """Return the whole file, for files that are one JSON document; None if it is too large."""
        if self.size > 2 * MAX_TRANSCRIPT_LINE:
            return None
        data = self._read(0, self.size)
        self._at = self.size
        return TranscriptPiece(data, 0, self.size)

    def rewind_to(self, offset: int) -> None:
        """Move the read position back to `offset`, so that the next run reads from there."""
        self._at = min(self._at, offset)

    def find_last_lines(self, *marks: bytes) -> list[int]:
        """Return the offsets of the last two lines that contain one of `marks`, last first. O(bytes)."""
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

    def contains(self, mark: bytes, start: int) -> bool:
        """Return whether `mark` occurs after `start`. O(bytes)."""
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
        """Return whole lines from the read position on, about `chunk` bytes; empty if the line there is not
        complete yet, None if it is too long.
        """
        wanted = chunk
        while True:
            data = self._read(self._at, min(self.size, self._at + wanted))
            end = data.rfind(b"\n") + 1
            if end:
                return data[:end]
            if wanted >= MAX_TRANSCRIPT_LINE:
                return None
            if len(data) < wanted:
                return b""
            wanted = min(2 * wanted, MAX_TRANSCRIPT_LINE)

    def _skip(self) -> None:
        """Skip a part of a line that is too long."""
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
            raise TranscriptRefused("the transcript is not a regular file")
        if sys.platform != "win32" and found.st_uid != os.geteuid():
            raise TranscriptRefused("the transcript belongs to another user")

    def _is_same(self, place: ReadPosition) -> bool:
        return (
            place.path == self._path
            and place.offset <= self.size
            and self._mark(0, min(_MARK, place.offset)) == place.head
            and self._mark(max(0, place.offset - _MARK), place.offset) == place.tail
        )

    def _mark(self, start: int, stop: int) -> str:
        return f"{zlib.crc32(self._read(start, stop)):08x}"
