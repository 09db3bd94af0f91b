"""Read sessions that are a folder of files, and join the files to the one document that a reader expects.

Until it moved to a database in 2026, OpenCode kept `storage/session/<project>/<session>.json`,
`storage/message/<session>/<message>.json` and `storage/part/<message>/<part>.json` (anomalyco/opencode,
`packages/opencode/src/storage/storage.ts`, read 2026-11). OpenHands' SDK keeps
`events/event-<number>-<id>.json` (OpenHands/software-agent-sdk,
`openhands-sdk/openhands/sdk/conversation/event_store.py`, read 2026-11).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Raw

from compactd.core.text.lazy_patterns import LazyPattern
from compactd.formats.files.source import FILE_BYTES, read_source, too_large
from compactd.formats.messages.json_parts import fields, first_byte
from compactd.formats.messages.lenient_json import Given, text_in
from compactd.protocol.errors import CompactdError

_NAME = LazyPattern(r"[A-Za-z0-9_-]{1,200}")
_EVENT = LazyPattern(r"event-\d+(?:-.*)?\.json")
_HEAD_BYTES = 1 << 20
"""The maximum size of OpenCode's file `<session>.json`. A larger file is not examined as one."""


def gather(path: Path, data: bytes) -> bytes:
    """Return the whole session that the file `path` belongs to. If the session is a folder, join all its
    files to one document; otherwise return `data`, the contents of `path`.

    Raise `LimitExceeded` if the files are too large together. O(bytes of all files).
    """
    if _EVENT.fullmatch(path.name) and path.parent.name == "events":
        return b"[%b]" % b",".join(_files(path.parent, _EVENT))
    if len(data) > _HEAD_BYTES or first_byte(data) != b"{":
        return data
    try:
        about = fields(data, "$", "a session")
    except CompactdError:
        return data
    storage, id = path.parent.parent.parent, text_in(about, "id")
    is_session = "projectID" in about and "time" in about and _NAME.fullmatch(id) is not None
    if not is_session or path.parent.parent.name != "session":
        return data
    messages = [
        {"info": Raw(info), "parts": [Raw(part) for part in _parts(storage, info)]}
        for info in _files(storage / "message" / id, None)
    ]
    return msgspec.json.encode({"info": Raw(data), "messages": messages})


def _parts(storage: Path, info: bytes) -> Iterator[bytes]:
    about: Given = fields(info, "$", "a message")
    id = text_in(about, "id")
    return _files(storage / "part" / id, None) if _NAME.fullmatch(id) else iter(())


def _files(folder: Path, pattern: LazyPattern | None) -> Iterator[bytes]:
    """Yield the JSON objects in a folder's files, in the order of their names. Other files are skipped."""
    if not folder.is_dir():
        return
    left = FILE_BYTES
    for path in sorted(folder.iterdir()):
        if path.suffix != ".json" or (pattern is not None and not pattern.fullmatch(path.name)):
            continue
        try:
            data = read_source(path, left).strip()
            fields(data, "$", "a file")
        except CompactdError:
            if left <= 0:
                raise too_large(str(folder), FILE_BYTES) from None
            continue
        left -= len(data)
        yield data
