"""Sessions that are a folder of files: gathered into the one document that their readers take.

OpenCode, until it moved to a database in 2026, kept `storage/session/<project>/<session>.json`,
`storage/message/<session>/<message>.json` and `storage/part/<message>/<part>.json` (anomalyco/opencode,
`packages/opencode/src/storage/storage.ts`, read 2026-11); OpenHands' SDK keeps
`events/event-<number>-<id>.json` (OpenHands/software-agent-sdk,
`openhands-sdk/openhands/sdk/conversation/event_store.py`, read 2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Raw

from compactd.formats.files.source import FILE_BYTES, bytes_of, too_large
from compactd.formats.messages.lenient_json import Given, text_in
from compactd.formats.messages.parts import fields, first_byte
from compactd.protocol.errors import CompactdError

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
_EVENT = re.compile(r"event-\d+(?:-.*)?\.json")
_HEAD_BYTES = 1 << 20
"""A session's own file, or an event's, is no larger where it is one of several."""


def gathered(path: Path, data: bytes) -> bytes:
    """What the session at `path` holds, whose file has `data`: all its files as one document, or `data`.

    Raises `LimitExceeded` where they are too large together. Cost: O(bytes of all).
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


def _files(folder: Path, pattern: re.Pattern[str] | None) -> Iterator[bytes]:
    """The JSON objects in a folder's files, by their names; other files are left out."""
    if not folder.is_dir():
        return
    left = FILE_BYTES
    for path in sorted(folder.iterdir()):
        if path.suffix != ".json" or (pattern is not None and not pattern.fullmatch(path.name)):
            continue
        try:
            data = bytes_of(path, left).strip()
            fields(data, "$", "a file")
        except CompactdError:
            if left <= 0:
                raise too_large(str(folder), FILE_BYTES) from None
            continue
        left -= len(data)
        yield data
