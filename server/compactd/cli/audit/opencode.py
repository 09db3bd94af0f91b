"""Follow the messages of an OpenCode session.

An assistant message with `summary: true` is the answer to a request for a summary. The messages after it
begin with that summary (anomalyco/opencode, packages/opencode/src/session/message-v2.ts, `Assistant`, and
compaction.ts, read 2026-11).
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from compactd.cli.audit.trail import Place, TrailBuilder, seconds_of
from compactd.cli.usage.requests import key_of


class _Time(Struct):
    created: int | float | None = None
    completed: int | float | None = None


class _Info(Struct):
    id: str | None = None
    role: str = ""
    summary: msgspec.Raw = msgspec.Raw()
    time: _Time | None = None


class _Message(Struct):
    info: _Info


class _Session(Struct):
    messages: list[_Message]


_session = msgspec.json.Decoder(_Session).decode


def place_messages(data: bytes, builder: TrailBuilder) -> None:
    """Place the requests of an exported session, which the reader has already added to the builder's
    usage."""
    try:
        messages = _session(data).messages
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return
    by_key = {key_of(one.info.id): one.info for one in messages if one.info.id}
    requests, builder.usage.requests = builder.usage.requests, []
    for request in requests:
        info = by_key.get(request.key)
        builder.usage.requests.append(request)
        is_summary = info is not None and bytes(info.summary) == b"true"
        at = seconds_of(info.time.created) if info is not None and info.time is not None else None
        builder.place_requests(
            Place(at=at, entry_id=info.id if info is not None else None, is_summary=is_summary)
        )
        if is_summary:
            builder.add_boundary("compaction", at=at)
