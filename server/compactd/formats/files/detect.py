"""Detect which program wrote a session file, and read the session."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import islice
from pathlib import Path

from compactd.formats.files import messages_file
from compactd.formats.files.directory_session import gather
from compactd.formats.files.documents import document, is_complete
from compactd.formats.files.json_lines import records
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.session_formats import (
    BY_NAME,
    MAX_EXAMINED_RECORDS,
    SUPPORTED,
    of_document,
    of_list,
    of_record,
)
from compactd.formats.files.source import read_source
from compactd.formats.messages.json_parts import first_byte
from compactd.protocol.errors import CompactdError, FormatNotSupported, InvalidParams

_STARTS = {
    b"SQLite format 3\0": (
        "it is a SQLite database. If it is OpenCode's, export a session with `opencode export`"
    ),
    b"\x1f\x8b": "it is packed with gzip: unpack it first",
    b"PK\x03\x04": "it is a zip archive: unpack it first",
    b"\x28\xb5\x2f\xfd": "it is packed with zstd: unpack it first",
}
_DETS = b"\x00\xab\xcd\xef"
"""The bytes at positions 4 to 7 of an Erlang table (the cookie in stdlib's dets.hrl). Opal stores its
sessions in such tables since 2026-02."""

_AIDER = (b"# aider chat started at ", b"\n# aider chat started at ")


def detect(data: bytes) -> str | None:
    """Return the format of the session file `data`, one of `SUPPORTED`; None if it is unknown. O(bytes)."""
    start = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start not in (b"{", b"["):
        is_aider = data.startswith(_AIDER[0]) or _AIDER[1] in data
        return "aider" if is_aider else messages_file.shape_of(data)
    # A document may contain one message per line. If the first line is not an object, its lines are not
    # records.
    if _begins_with_object(data):
        name = _by_lines(data) or _by_document(data)
    else:
        name = _by_document(data) or (None if is_complete(data) else _by_lines(data))
    return name or messages_file.shape_of(data)


def _begins_with_object(data: bytes) -> bool:
    first = next(records(data[: data.find(b"\n") + 1] or data, _ignore), None)
    return first is not None


def _by_lines(data: bytes) -> str | None:
    for _, record in islice(records(data, _ignore), MAX_EXAMINED_RECORDS):
        try:
            name = of_record(record)
        except CompactdError:
            continue
        if name is not None and not (name == "opal" and "messages" in record):
            return name
    return None


def _by_document(data: bytes) -> str | None:
    try:
        found = document(data, _ignore)
        return of_document(found) if isinstance(found, dict) else of_list(found)
    except CompactdError:
        return None


def _ignore(text: str) -> None:
    """Ignore a warning, because the file is only inspected here. Its reader reports the same problem."""


def read(source: Path | bytes, format: str | None = "auto") -> SessionFile:
    """Read the session in a file, or in its bytes. O(bytes).

    `format` is one of `SUPPORTED`, or `auto` to detect it. A path may name a session that is a folder of
    files (`directory_session`). `warnings` of the result says what could not be read. Raise
    `FormatNotSupported` with the list of formats if the format is unknown; `InvalidParams` if the file cannot
    be opened or does not match its format; `LimitExceeded` if it is too large.
    """
    data = source if isinstance(source, bytes) else gather(source, read_source(source))
    name = detect(data) if format in (None, "auto") else format
    if name is None:
        raise _unknown_format(f"this file's format is not known{_guess(data)}")
    reader = reader_of(name)
    if reader is None:
        raise _unknown_format(f"the format {name!r} is not known", name)
    return reader(data)


def reader_of(name: str) -> Callable[[bytes], SessionFile] | None:
    """Return the function that reads the format `name`; None if it is unknown."""
    row = BY_NAME.get(name)
    if row is None:
        return None
    if not row.reader:
        return lambda data: messages_file.read(data, name)
    # Readers are imported on first use, because most daemons never import a session.
    reader: Callable[[bytes], SessionFile] = import_module(f"compactd.formats.{row.reader}").read
    return reader


def _guess(data: bytes) -> str:
    """Return the end of the error message for a file of an unknown format. It says what the file seems to be;
    empty if nothing is recognised.
    """
    for start, what in _STARTS.items():
        if data.startswith(start):
            return f": {what}"
    if data[4:8] == _DETS:
        return ": it is an Erlang table (DETS), in which Opal stores its sessions; only Opal can read it"
    if b"\0" in data[:8192]:
        return ": it looks binary"
    if first_byte(data[:64]) == b"<":
        return ": it looks like HTML"
    return ""


def _unknown_format(what: str, format: str | None = None) -> FormatNotSupported:
    return FormatNotSupported(
        f"{what}; known formats: {', '.join(SUPPORTED)}", format=format, supported=list(SUPPORTED)
    )


__all__ = ["InvalidParams", "detect", "read", "reader_of"]
