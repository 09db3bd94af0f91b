"""Write a session in the format of Cline's SDK, one JSON document (see `cline`)."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from compactd.core.history.entries import is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.writer_parts import (
    Json,
    arguments_object,
    ids_of,
    is_by_program,
    iso,
    millis,
    model_parts,
    only_result,
    session_id_of,
    usage_report,
    without_none,
)
from compactd.formats.messages.anthropic_blocks import user_blocks
from compactd.protocol.messages import Block, Document, Message, Text, Thinking, ToolCall, Usage


def write(file: SessionFile) -> bytes:
    """Return the session `file` in the format of Cline's SDK. In `file`, each tool result must be a message
    of its own (see `writer_parts.split_messages`). O(bytes).
    """
    ids = ids_of(file)
    last = file.messages[-1][0].created_at if file.messages else None
    about = {
        "version": 1,
        "updated_at": iso(last),
        "agent": "lead",
        "sessionId": session_id_of(file),
        "messages": [
            _message(message, ids[at], file.model)
            for at, (message, _) in enumerate(file.messages)
            if message.role != "system"
        ],
        "system_prompt": file.system_prompt,
    }
    return msgspec.json.format(msgspec.json.encode(without_none(about)), indent=1) + b"\n"


def _message(message: Message, id: str, model: str | None) -> Json:
    role = "assistant" if message.role == "assistant" else "user"
    said: Json = {"id": id, "role": role, "content": _content(message), "ts": millis(message.created_at)}
    if is_summary(message) and message.meta is not None:
        details = {
            "readFiles": message.meta.read_files,
            "modifiedFiles": message.meta.modified_files,
        }
        text = join_text_blocks(message.content)
        said["metadata"] = {"kind": "compaction_summary", "summary": text, "details": details}
    elif role == "user" and is_by_program(message):
        # Several kinds mean to Cline that no person typed a message. This is one of them.
        said["metadata"] = {"kind": "recovery_notice"}
    if message.role == "assistant":
        provider, name = model_parts(model)
        if model:
            said["modelInfo"] = {"id": name if "/" not in name else model, "provider": provider}
        usage = usage_report(message)
        if usage is not None:
            said["metrics"] = _metrics(usage)
    return said


def _content(message: Message) -> list[object]:
    if message.role == "tool":
        result = only_result(message)
        content: object = result.content
        if not isinstance(result.content, str):
            content = [one for block in result.content for one in _blocks(block)]
        given: Json = {"type": "tool_result", "tool_use_id": result.call_id, "name": result.name}
        given["content"] = content
        return [without_none({**given, "is_error": True} if result.is_error else given)]
    return [one for block in message.content for one in _blocks(block)]


def _blocks(block: Block) -> list[Json | Raw]:
    match block:
        case Text():
            return [{"type": "text", "text": block.text}]
        case Thinking(redacted=str()):
            return [{"type": "redacted_thinking", "data": block.redacted}]
        case Thinking():
            thinking: Json = {"type": "thinking", "thinking": block.text}
            return [{**thinking, "signature": block.signature} if block.signature else thinking]
        case ToolCall():
            call: Json = {"type": "tool_use", "id": block.call_id, "name": block.name}
            return [{**call, "input": arguments_object(block)}]
        case Document(text=str(), title=str()):
            return [{"type": "file", "path": block.title, "content": block.text}]
        case _:
            return user_blocks(block)


def _metrics(usage: Usage) -> Json:
    return {
        "inputTokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadTokens": usage.cache_read_tokens,
        "cacheWriteTokens": usage.cache_write_tokens,
    }
