"""Write a session in klaude-code's format (see `klaude`)."""

from __future__ import annotations

from compactd.core.history.entries import is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.writer_parts import (
    Json,
    is_by_program,
    iso,
    lines_of,
    model_parts,
    only_result,
    picture_url,
    result_pictures,
    result_text,
    usage_report,
    without_none,
)
from compactd.formats.messages.rendering import arguments_text
from compactd.protocol.messages import Block, Image, Message, Text, Thinking, ToolCall, Usage


def write(file: SessionFile) -> bytes:
    """Return the session `file` in klaude-code's format. In `file`, each tool result must be a message of its
    own (see `writer_parts.split_messages`). O(bytes).
    """
    records: list[Json] = []
    if file.system_prompt:
        text = {"type": "text", "text": file.system_prompt}
        records.append(_record("SystemMessage", {"role": "system", "parts": [text]}))
    shift, kept = len(records), dict(file.first_kept)
    for at, (message, _) in enumerate(file.messages):
        records.append(_event(message, file.model, kept.get(at, at + 1) + shift))
    return lines_of(records)


def _record(kind: str, data: Json) -> Json:
    return {"type": kind, "data": data}


def _event(message: Message, model: str | None, first_kept: int) -> Json:
    about: Json = {"id": message.id, "created_at": iso(message.created_at)}
    meta = message.meta
    if is_summary(message) and meta is not None:
        summary = {
            "summary": join_text_blocks(message.content),
            "first_kept_index": first_kept,
            "details": {"read_files": meta.read_files, "modified_files": meta.modified_files},
            "created_at": iso(message.created_at),
        }
        return _record("CompactionEntry", summary)
    if message.role == "tool":
        result = only_result(message)
        given: Json = {
            **about,
            "role": "tool",
            "call_id": result.call_id,
            "tool_name": result.name or "",
            "status": "error" if result.is_error else "success",
            "output_text": result_text(result),
            "parts": _parts(result_pictures(result)),
        }
        return _record("ToolResultMessage", given)
    said: Json = {**about, "role": message.role, "parts": _parts(message.content)}
    if message.role == "assistant":
        usage = usage_report(message)
        said["usage"] = None if usage is None else _usage(usage, model)
        said["stop_reason"] = message.stop_reason
        return _record("AssistantMessage", without_none(said))
    if message.role == "system":
        return _record("SystemMessage", said)
    shell = meta is not None and meta.kind == "bash_execution" and not meta.synthetic
    if not shell and is_by_program(message):
        return _record("DeveloperMessage", {**said, "role": "developer"})
    return _record("UserMessage", {**said, "source": "bash_mode"} if shell else said)


def _parts(blocks: tuple[Block, ...] | list[Image]) -> list[Json]:
    parts: list[Json] = []
    for block in blocks:
        match block:
            case Text():
                parts.append({"type": "text", "text": block.text})
            case Thinking(redacted=None):
                if block.text:
                    parts.append({"type": "thinking_text", "text": block.text})
                if block.signature:
                    parts.append({"type": "thinking_signature", "signature": block.signature})
            case ToolCall():
                call: Json = {"type": "tool_call", "call_id": block.call_id, "tool_name": block.name}
                parts.append({**call, "arguments_json": arguments_text(block.arguments)})
            case Image():
                parts.append({"type": "image_url", "url": picture_url(block)})
            case _:
                pass
    return parts


def _usage(usage: Usage, model: str | None) -> Json:
    provider, name = model_parts(model)
    return without_none(
        {
            "input_tokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "output_tokens": usage.output_tokens,
            "context_limit": usage.context_window,
            "model_name": name,
            "provider": provider or None,
        }
    )
