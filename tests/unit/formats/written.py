"""Writes session files as other programs do."""

from __future__ import annotations

import json
from typing import Any

from compactd.formats.files.session_file import SessionFile
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import Message


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def messages(file: SessionFile) -> list[Message]:
    assert [decode_message(raw) for _, raw in file.messages] == [message for message, _ in file.messages]
    return [message for message, _ in file.messages]


def claude(kind: str, uuid: str, content: object, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **more.pop("message", {})}
    return {
        "type": kind,
        "uuid": uuid,
        "sessionId": "s1",
        "cwd": "/repo",
        "timestamp": "2026-01-01T00:00:00.500Z",
        "message": message,
        **more,
    }


USE = {"type": "tool_use", "id": "a", "name": "Read", "input": {"p": 1}}
AT = 1767225600.5


HEADER = {
    "type": "session",
    "id": "s1",
    "timestamp": "2026-01-01T00:00:00Z",
    "cwd": "/repo",
    "provider": "anthropic",
    "modelId": "opus",
}


def pi(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "message", "timestamp": "2026-01-01T00:00:00.5Z", "message": message, **more}
