"""The windows that servers told us of, in one file of the user's: `observed.jsonl`, one a line.

Every process on the machine adds to it; a line is one write of less than a page, so that two writers never
mix. A line that cannot be read is left out, and goes with the next `forget`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from compactd.core.models.observed import Observed
from compactd.storage.files import APPEND, make_folder, open_private, storage_failed, write_all, write_beside

FILE = "observed.jsonl"

LIMIT_BYTES = 4 << 20
"""More than this is no list of models a person uses: only the end of it is read."""

Stamp = tuple[int, int]
"""(bytes, nanoseconds of the last change): another one means that somebody wrote."""


class Observations:
    """The file at `path`, which need not be there. Not safe in several threads at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def stamp(self) -> Stamp:
        """Changes whenever the file does."""
        try:
            stat = self._path.stat()
        except OSError:
            return 0, 0
        return stat.st_size, stat.st_mtime_ns

    def read(self) -> list[Observed]:
        """What stands in the file, oldest first."""
        try:
            with self._path.open("rb") as file:
                size = self._path.stat().st_size
                file.seek(max(0, size - LIMIT_BYTES))
                lines = file.read(LIMIT_BYTES).splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            try:
                found.append(_decode(line))
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
        return found

    def add(self, observed: Observed) -> None:
        """Puts one more at the end. Raises `StorageFailed`."""
        line = msgspec.json.encode(observed) + b"\n"
        try:
            make_folder(self._path.parent)
            fd = open_private(self._path, APPEND | os.O_CREAT)
            try:
                write_all(fd, (line,))
            finally:
                os.close(fd)
        except OSError as refused:
            raise storage_failed("The learned window could not be kept", refused) from None

    def remove(self, is_meant: Callable[[Observed], bool]) -> int:
        """Takes out those that are meant; how many. Raises `StorageFailed`."""
        before = self.read()
        kept = [one for one in before if not is_meant(one)]
        if len(kept) == len(before):
            return 0
        try:
            write_beside(self._path, [msgspec.json.encode(one) + b"\n" for one in kept], durable=False)
        except OSError as refused:
            raise storage_failed("The learned windows could not be changed", refused) from None
        return len(before) - len(kept)


_decode = msgspec.json.Decoder(Observed).decode
