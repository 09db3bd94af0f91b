"""Which program wrote a session file, and the session in it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from msgspec import Raw

from compactd.errors import FormatNotSupported
from compactd.formats import claude_code, compactd_file, messages_file, pi
from compactd.formats.lines import records
from compactd.formats.session_file import SessionFile, text_field

_READ = {"compactd": compactd_file.read, "claude-code": claude_code.read, "pi": pi.read}

SUPPORTED = (*_READ, *messages_file.SHAPES)
"""Names of the session file formats that can be read."""

_LOOKED_AT = 200
"""Lines that are looked at: Claude Code's files can begin with many records that hold no message."""


def detect(data: bytes) -> str | None:
    """The format of the session file `data`, one of `SUPPORTED`; none where it is not known. O(bytes)."""
    for _, record in islice(records(data, lambda _: None), _LOOKED_AT):
        name = _of_record(record)
        if name is not None:
            return name
    return messages_file.shape_of(data)


def _of_record(record: dict[str, Raw]) -> str | None:
    kind = text_field(record, "type")
    if "seq" in record and "crc" in record:
        return "compactd"
    if kind == "session" and "id" in record and "timestamp" in record:
        return "pi"
    if kind in ("user", "assistant") and "message" in record and ("uuid" in record or "sessionId" in record):
        return "claude-code"
    return None


def read(source: Path | bytes, format: str | None = "auto") -> SessionFile:
    """The session in a file, or in its bytes.

    `format` is one of `SUPPORTED`; `auto` finds it out. What could not be read is told in `warnings`. Raises
    `FormatNotSupported` where the format is not known, with the list of those that are; `InvalidParams` where
    the file does not hold what its format demands; `OSError` where it cannot be opened. Cost: O(bytes).
    """
    data = source if isinstance(source, bytes) else source.read_bytes()
    name = detect(data) if format in (None, "auto") else format
    if name in _READ:
        return _READ[name](data)
    if name in messages_file.SHAPES:
        return messages_file.read(data, name)
    what = "this file's format is not known" if name is None else f"the format {name!r} is not known"
    raise FormatNotSupported(f"{what}; those that are: {', '.join(SUPPORTED)}", supported=list(SUPPORTED))
