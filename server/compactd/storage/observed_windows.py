"""The file of observed context windows, `observed.jsonl`, with one line per window.

Every process on the machine appends to it. A line is one write of less than a page, so the lines of two
processes never mix. Lines that cannot be read are ignored, and the next `remove` drops them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from compactd.core.models.observed import Observed
from compactd.storage.files import APPEND, make_folder, open_private, replace_file, storage_failed, write_all

FILE = "observed.jsonl"

LIMIT_BYTES = 4 << 20
"""The most bytes that are read. If the file is larger, its beginning is not read."""

Stamp = tuple[int, int]
"""(size of the file in bytes, time of its last change in nanoseconds). Every write changes this pair."""


class Observations:
    """The file of observed windows at `path`, which need not exist. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def stamp(self) -> Stamp:
        """Return a value that changes with the file. A caller compares it with an earlier one to see whether
        the file was changed."""
        try:
            stat = self._path.stat()
        except OSError:
            return 0, 0
        return stat.st_size, stat.st_mtime_ns

    def read(self) -> list[Observed]:
        """Return the observations in the file, oldest first."""
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
        """Append one observation. Raises `StorageFailed`."""
        line = msgspec.json.encode(observed) + b"\n"
        try:
            make_folder(self._path.parent)
            fd = open_private(self._path, APPEND | os.O_CREAT)
            try:
                write_all(fd, (line,))
            finally:
                os.close(fd)
        except OSError as refused:
            raise storage_failed("The learned context window could not be stored", refused) from None

    def remove(self, is_meant: Callable[[Observed], bool]) -> int:
        """Remove the observations that `is_meant` selects, and return their number. Raises
        `StorageFailed`.
        """
        before = self.read()
        kept = [one for one in before if not is_meant(one)]
        if len(kept) == len(before):
            return 0
        try:
            replace_file(self._path, [msgspec.json.encode(one) + b"\n" for one in kept], durable=False)
        except OSError as refused:
            raise storage_failed("The learned context windows could not be changed", refused) from None
        return len(before) - len(kept)


_decode = msgspec.json.Decoder(Observed).decode
