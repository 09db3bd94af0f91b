"""Renders a session as a few lines that a person can compare."""

from __future__ import annotations

import json
from pathlib import Path

from compactd.formats.files.session_file import SessionFile
from compactd.protocol.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

FIXTURES = Path(__file__).resolve().parents[2] / "support" / "fixtures" / "sessions"


def outline(file: SessionFile) -> list[str]:
    return [_line(message) for message, _ in file.messages]


def _line(message: Message) -> str:
    marks = []
    if message.meta is not None and message.meta.type == "compaction_summary":
        marks.append("summary")
    if message.meta is not None and message.meta.synthetic:
        marks.append("synthetic")
    who = message.role + "".join(f" {mark}" for mark in marks)
    return f"{who}: " + " | ".join(_block(block) for block in message.content)


def _block(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case Thinking():
            return f"({block.text}{' signed' if block.signature else ''})"
        case ToolCall():
            raw = json.loads(bytes(block.arguments))
            return f"{block.name}#{block.call_id} {json.dumps(raw)}"
        case ToolResult():
            inner = (
                block.content if isinstance(block.content, str) else " + ".join(map(_block, block.content))
            )
            return f"{block.name}#{block.call_id}{' failed' if block.is_error else ''}: {inner}"
        case Image():
            return f"[{block.media_type} {block.url or len(block.data or '')}]"
        case Document():
            return f"[document {block.title}]"
        case Opaque():
            return f"[{block.provider}]"
        case _:
            return "[?]"
