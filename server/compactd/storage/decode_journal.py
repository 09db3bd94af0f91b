"""Read the bytes of a journal as records of the current version."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from compactd.protocol.errors import SessionCorrupt, SessionNotFound
from compactd.storage.journal_records import JournalScan, as_appended, scan
from compactd.storage.migrate import JournalFormat, upgrade, version_of
from compactd.storage.protocols import corrupt


class Content(Struct, frozen=True, kw_only=True):
    """The content of a journal without damage."""

    records: tuple[memoryview, ...]
    """The records, in the current version."""
    end: int
    """The offset at which the last whole record ends."""
    needs_newline: bool
    version: int
    """The version of the records in the file, which may be older."""


class _Head(Struct, frozen=True):
    id: str


class _Place(Struct, frozen=True):
    working_dir: str | None = None


_head_of = msgspec.json.Decoder(_Head).decode
_place_of = msgspec.json.Decoder(_Place).decode


def id_of(first: bytes | memoryview) -> str | None:
    """Return the session's id from its first record, or None if the record has none."""
    try:
        return _head_of(first).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def working_dir_of(first: bytes | memoryview) -> str | None:
    """Return the session's working directory from its first record, or None if the record has none."""
    try:
        return _place_of(first).working_dir
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def content_of(data: bytes, session_id: str, format_: JournalFormat) -> Content:
    """Return the records in `data`, the bytes of a whole journal, in the version of `format_`. O(bytes).

    Raises `SessionNotFound` if the journal's creation was interrupted, `FormatNotSupported` if its version is
    newer, and `SessionCorrupt` if it is damaged or belongs to another session.
    """
    found = scan(data)
    if found.is_never_begun:
        raise not_found_error(session_id)
    version = _version(found) if found.records else format_.version
    steps = format_.steps_from(version)  # check the version first: a file of a newer version may look damaged
    if found.damage is not None:
        raise corrupt(found.damage.line, len(found.records), len(found.damage.after))
    records = found.records
    if id_of(records[0]) not in (session_id, None):
        raise SessionCorrupt(
            f"The journal that is stored for {session_id!r} belongs to another session. Was a file renamed? "
            "Nothing was changed. Run `compactd doctor` to examine it.",
            line=1,
            readable_before=0,
            readable_after=len(records),
        )
    if steps:
        records = tuple(map(memoryview, upgrade([as_appended(record) for record in records], steps)))
    return Content(records=records, end=found.end, needs_newline=found.needs_newline, version=version)


def _version(found: JournalScan) -> int:
    try:
        return version_of(found.records[0]).v
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise corrupt(1, 0, len(found.records)) from None


def not_found_error(session_id: str) -> SessionNotFound:
    """Return the error for an id under which nothing is stored."""
    return SessionNotFound(
        f"No session {session_id!r} is stored here. Start it, or list the stored sessions.",
        session_id=session_id,
        exists=False,
    )
