"""The bytes of a journal, as records of the version that is written today."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from compactd.protocol.errors import SessionCorrupt, SessionNotFound
from compactd.storage.migrate import Format, upgraded, version_of
from compactd.storage.protocols import corrupt
from compactd.storage.records import Scan, bare, scan


class Content(Struct, frozen=True, kw_only=True):
    """A journal that can be opened."""

    records: tuple[memoryview, ...]
    """Of today's version."""
    end: int
    """Where the last whole record ends."""
    needs_newline: bool
    version: int
    """What the file is written in."""


class _Head(Struct, frozen=True):
    id: str


class _Place(Struct, frozen=True):
    working_dir: str | None = None


_head_of = msgspec.json.Decoder(_Head).decode
_place_of = msgspec.json.Decoder(_Place).decode


def id_of(first: bytes | memoryview) -> str | None:
    """The session's id, out of its first record; None where it names none."""
    try:
        return _head_of(first).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def working_dir_of(first: bytes | memoryview) -> str | None:
    """The session's working directory, out of its first record; None if it names none."""
    try:
        return _place_of(first).working_dir
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def content_of(data: bytes, session_id: str, format_: Format) -> Content:
    """The records of `data`, a whole journal. O(bytes).

    Raises `SessionNotFound` where its creation was cut off, `FormatNotSupported` where it is of a newer
    version, `SessionCorrupt`.
    """
    found = scan(data)
    if found.is_never_begun:
        raise not_found(session_id)
    version = _version(found) if found.records else format_.version
    steps = format_.steps_from(version)  # first: a newer version may look damaged to this one
    if found.damage is not None:
        raise corrupt(found.damage.line, len(found.records), len(found.damage.after))
    records = found.records
    if id_of(records[0]) not in (session_id, None):
        raise SessionCorrupt(
            f"The journal that is stored for {session_id!r} is that of another session: was a file renamed? "
            "Nothing was changed; `compactd doctor` reads it.",
            line=1,
            readable_before=0,
            readable_after=len(records),
        )
    if steps:
        records = tuple(map(memoryview, upgraded([bare(record) for record in records], steps)))
    return Content(records=records, end=found.end, needs_newline=found.needs_newline, version=version)


def _version(found: Scan) -> int:
    try:
        return version_of(found.records[0]).v
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise corrupt(1, 0, len(found.records)) from None


def not_found(session_id: str) -> SessionNotFound:
    """The error for an id that nothing is stored under."""
    return SessionNotFound(
        f"No session {session_id!r} is stored here. Start it, or list those there are.",
        session_id=session_id,
        exists=False,
    )
