"""Write a session in pi's format, version 3 (see `pi`): entries linked by `parentId`."""

from __future__ import annotations

from compactd.core.history.entries import is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.writer_parts import (
    Json,
    arguments_object,
    blocks_in,
    ids_of,
    is_by_program,
    iso,
    lines_of,
    millis,
    model_parts,
    only_result,
    session_id_of,
    usage_report,
)
from compactd.protocol.messages import Block, Image, Message, Text, Thinking, ToolCall, Usage

VERSION = 3
"""The version of pi's session files (badlogic/pi-mono, packages/coding-agent/src/core/session-manager.ts,
2026-11).
"""


def write(file: SessionFile) -> bytes:
    """Return the session `file` in pi's format. In `file`, each tool result must be a message of its own (see
    `writer_parts.split_messages`). O(bytes).
    """
    start = next((message.created_at for message, _ in file.messages if message.created_at), None)
    header = {"type": "session", "version": VERSION, "id": session_id_of(file), "timestamp": iso(start)}
    records: list[Json] = [{**header, "cwd": file.working_dir or ""}]
    ids = ids_of(file)
    parent: str | None = None
    provider, model = model_parts(file.model)
    if model:
        change = {"type": "model_change", "provider": provider, "modelId": model}
        records.append({**change, "id": "model", "parentId": None, "timestamp": iso(start)})
        parent = "model"
    if file.title:
        records.append(
            {
                "type": "session_info",
                "id": "info",
                "parentId": parent,
                "timestamp": iso(start),
                "name": file.title,
            }
        )
        parent = "info"
    kept = dict(file.first_kept)
    for at, (message, _) in enumerate(file.messages):
        entry = _entry(message, provider, model, ids[kept[at]] if at in kept else None)
        if entry is not None:
            linked = {"id": ids[at], "parentId": parent, "timestamp": iso(message.created_at)}
            records.append({"type": entry.pop("type"), **linked, **entry})
            parent = ids[at]
    return lines_of(records)


def _entry(message: Message, provider: str, model: str, kept: str | None) -> Json | None:
    if message.role == "system":
        return None
    if is_summary(message):
        summary: Json = {
            "type": "compaction",
            "summary": join_text_blocks(message.content),
            "tokensBefore": 0,
        }
        meta = message.meta
        if meta is not None and (meta.read_files or meta.modified_files):
            summary["details"] = {"readFiles": meta.read_files, "modifiedFiles": meta.modified_files}
        return {**summary, "firstKeptEntryId": kept} if kept is not None else summary
    shell = message.meta is not None and message.meta.kind == "bash_execution" and not message.meta.synthetic
    if message.role == "user" and not shell and is_by_program(message):
        content = [block for block in map(_block, message.content) if block]
        return {"type": "custom_message", "customType": "imported", "content": content, "display": True}
    said: Json = {"role": message.role, "timestamp": millis(message.created_at)}
    if message.role == "tool":
        result = only_result(message)
        said = {
            "role": "toolResult",
            "toolCallId": result.call_id,
            "toolName": result.name or "",
            "content": [block for block in map(_block, blocks_in(result)) if block],
            "isError": result.is_error,
            "timestamp": said["timestamp"],
        }
    elif shell:
        command, _, output = join_text_blocks(message.content).removeprefix("$ ").partition("\n")
        said = {**said, "role": "bashExecution", "command": command, "output": output, "exitCode": 0}
    else:
        said["content"] = [block for block in map(_block, message.content) if block]
        if message.role == "assistant":
            said |= _answer(message, provider, model)
    return {"type": "message", "message": said}


def _answer(message: Message, provider: str, model: str) -> Json:
    usage = usage_report(message)
    is_signed = any(isinstance(block, Thinking) and block.signature for block in message.content)
    api = "anthropic-messages" if is_signed else "openai-completions"
    about: Json = {"api": api, "provider": provider, "model": model}
    # pi reads the report of every answer (0.87.1, 2026-11). The reader takes zeros for a missing report.
    about["usage"] = _usage(Usage() if usage is None else usage)
    return {**about, "stopReason": message.stop_reason} if message.stop_reason else about


def _block(block: Block) -> Json | None:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Thinking(redacted=None):
            thinking: Json = {"type": "thinking", "thinking": block.text}
            return {**thinking, "thinkingSignature": block.signature} if block.signature else thinking
        case ToolCall():
            call: Json = {"type": "toolCall", "id": block.call_id, "name": block.name}
            return {**call, "arguments": arguments_object(block)}
        case Image(data=str()):
            return {"type": "image", "data": block.data, "mimeType": block.media_type}
        case _:
            return None


def _usage(usage: Usage) -> Json:
    total = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cacheRead": usage.cache_read_tokens,
        "cacheWrite": usage.cache_write_tokens,
        "totalTokens": total,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
    }
