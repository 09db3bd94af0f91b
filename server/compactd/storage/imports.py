"""The memory of `compactd import`: which session files were imported, in what state, into which sessions.

It is the file `imports.jsonl` in the data folder, next to the sessions that it points to: it is only true for
that folder, and is copied or deleted with it. One record is appended per file that was handled, so an
interrupted import loses nothing. The last record of a path counts. It contains paths and sizes, and no text
of a conversation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.storage import files

FILE = "imports.jsonl"
_WASTE = 3
"""The file is written again, with one record per path, if it has more than this many records per path."""


class ImportRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happened to one session file."""

    path: str
    size_bytes: int
    modified_ns: int
    """The file's size and time of change when it was read."""
    session_id: str = ""
    """The session that it was imported into; empty if there is none."""
    messages: int = 0
    """The number of messages that the session had after the import."""
    stored_bytes: int = 0
    """The size of the session's journal after the import. If it still has this size, nothing was added."""
    why: str = ""
    """Why it was not imported; empty if it was."""
    is_begun: bool = False
    """Whether this record was written before an update that may not have ended."""


class ImportMemory:
    """The records of the data folder `home`, by path."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._records: dict[str, ImportRecord] = {}
        self._fd: int | None = None
        decode = msgspec.json.Decoder(ImportRecord).decode
        count = 0
        for line in _lines(self._path):
            try:
                record = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # a torn line: its file is imported again, or found to be unchanged
            self._records[record.path] = record
            count += 1
        self._is_wasteful = count > _WASTE * len(self._records)

    def get(self, path: str) -> ImportRecord | None:
        """Return the record of the file at `path`; None if it was never handled."""
        return self._records.get(path)

    def records(self) -> Iterable[ImportRecord]:
        """Return the last record of each path."""
        return self._records.values()

    def add(self, record: ImportRecord) -> None:
        """Add a record. Another process sees it when this returns. Raises `OSError`."""
        self._records[record.path] = record
        if self._fd is None:
            files.make_folder(self._path.parent)
            if self._is_wasteful:
                lines = (msgspec.json.encode(one) + b"\n" for one in self._records.values())
                files.replace_file(self._path, lines, durable=True)
            self._fd = files.open_private(self._path, files.APPEND | os.O_CREAT)
        # A line end before the record ends a line that an interrupted process left torn.
        os.write(self._fd, b"\n" + msgspec.json.encode(record) + b"\n")

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def imported_from(home: Path, session_id: str) -> list[str]:
    """Return the paths of the files from which a session was imported. O(records)."""
    return [one.path for one in ImportMemory(home).records() if one.session_id == session_id]


def _lines(path: Path) -> list[bytes]:
    try:
        return [line for line in path.read_bytes().split(b"\n") if line]
    except OSError:
        return []
