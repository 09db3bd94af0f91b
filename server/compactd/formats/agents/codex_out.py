"""Write a session in Codex CLI's format, so that `codex resume` finds its messages (see `codex`)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from compactd import __version__
from compactd.core.history.entries import is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.writer_parts import (
    WRITER,
    Json,
    ids_of,
    iso,
    lines_of,
    model_parts,
    only_result,
    picture_url,
    session_id_of,
    usage_report,
    without_none,
)
from compactd.formats.messages.json_parts import first_byte
from compactd.formats.messages.provenance import RESPONSES
from compactd.formats.messages.rendering import arguments_text
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
    Usage,
)


def write(file: SessionFile) -> bytes:
    """Return the session `file` in Codex CLI's format. In `file`, each tool result must be a message of its
    own (see `writer_parts.split_messages`). O(bytes).
    """
    writing = _Writer(file)
    for at, (message, _) in enumerate(file.messages):
        writing.message(at, message)
    return lines_of(writing.records)


class _Writer:
    def __init__(self, file: SessionFile) -> None:
        self._file = file
        self._ids = ids_of(file)
        self._id: str | None = None
        start = next((message.created_at for message, _ in file.messages if message.created_at), None)
        provider, model = model_parts(file.model)
        meta = {
            "id": session_id_of(file),
            "timestamp": iso(start),
            "cwd": file.working_dir or "",
            "originator": WRITER,
            "cli_version": __version__,
            "source": "cli",
            "model_provider": provider or None,
            "base_instructions": {"text": file.system_prompt} if file.system_prompt else None,
        }
        self.records: list[Json] = [
            {"timestamp": iso(start), "type": "session_meta", "payload": without_none(meta)}
        ]
        if model:
            turn = {
                "cwd": file.working_dir or "",
                "approval_policy": "on-request",
                "sandbox_policy": {"type": "read-only"},
                "model": model,
                "summary": "auto",
            }
            self.records.append({"timestamp": iso(start), "type": "turn_context", "payload": turn})

    def message(self, at: int, message: Message) -> None:
        """Add the records of one message."""
        self._id = self._ids[at] if message.role == "assistant" or message.id is not None else None
        if is_summary(message):
            self._add_compaction(at, message)
        elif message.role == "assistant":
            self._answer(message)
        elif message.role == "tool":
            self._record("response_item", _output(only_result(message)), message)
        else:
            self._record("response_item", _words(message), message)

    def _answer(self, message: Message) -> None:
        said: list[Block] = []
        opaque: list[Raw] = []
        calls: list[Json] = []
        for block in message.content:
            match block:
                case Thinking(redacted=None):
                    summary = [{"type": "summary_text", "text": block.text}]
                    self._record("response_item", {"type": "reasoning", "summary": summary}, message)
                case Opaque(provider=provider) if provider == RESPONSES:
                    opaque.append(block.raw)
                case ToolCall():
                    calls.append(_call(block))
                case _:
                    said.append(block)
        for item in opaque:
            self._record("response_item", item, message)
        if said:
            words = msgspec.structs.replace(message, content=tuple(said))
            self._record("response_item", _words(words), message)
        for call in calls:
            self._record("response_item", call, message)
        usage = usage_report(message)
        if usage is not None:
            self._record("event_msg", _token_count(usage), message)

    def _add_compaction(self, at: int, message: Message) -> None:
        kept = [i for place, places in self._file.pinned if place == at for i in places]
        start = dict(self._file.first_kept).get(at, at)
        history = [self._file.messages[i][0] for i in (*kept, *range(start, at))]
        items = [item for one in history for item in _items(one)]
        text = join_text_blocks(message.content)
        payload = {"message": text, "replacement_history": [*items, _words(message)]}
        self._record("compacted", payload, message)

    def _record(self, kind: str, payload: Mapping[str, object] | Raw, message: Message) -> None:
        record: Json = {"timestamp": iso(message.created_at), "type": kind, "payload": payload}
        if kind == "response_item" and self._id is not None:
            # This field says which records belong to one message. Codex ignores the field.
            record["message_id"] = self._id
        self.records.append(record)


def _items(message: Message) -> list[Json]:
    """Return a message as items of the history after a compaction."""
    if message.role == "tool":
        return [_output(only_result(message))]
    words = [_words(message)] if join_text_blocks(message.content) else []
    return [*words, *(_call(block) for block in message.content if isinstance(block, ToolCall))]


def _output(result: ToolResult) -> Json:
    output: object = result.content
    if not isinstance(result.content, str):
        output = [one for block in result.content for one in _part(block, "input")]
    elif result.is_error:
        # Codex sent tool results to the model in this form until 2025-11. No other form says that a call
        # failed.
        failed = {"output": result.content, "metadata": {"exit_code": 1, "duration_seconds": 0}}
        output = msgspec.json.encode(failed).decode()
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _words(message: Message) -> Json:
    is_answer = message.role == "assistant"
    role = "developer" if message.meta is not None and message.meta.kind == "developer" else message.role
    kind = "output" if is_answer else "input"
    content = [one for block in message.content for one in _part(block, kind)]
    return {"type": "message", "role": role, "content": content}


def _part(block: Block, kind: str) -> list[Json]:
    match block:
        case Text():
            return [{"type": f"{kind}_text", "text": block.text}]
        case Image():
            return [{"type": "input_image", "image_url": picture_url(block)}]
        case Document(url=str()):
            return [{"type": "input_file", "file_url": block.url, **_title(block)}]
        case Document(data=str()):
            data = f"data:{block.media_type};base64,{block.data}"
            return [{"type": "input_file", "file_data": data, **_title(block)}]
        case Document():
            return [{"type": f"{kind}_text", "text": block.text or ""}]
        case _:
            return []


def _title(document: Document) -> Json:
    return {"filename": document.title} if document.title else {}


def _call(call: ToolCall) -> Json:
    text = arguments_text(call.arguments)
    if first_byte(call.arguments) == b'"' and text[:1] != "{":
        return {"type": "custom_tool_call", "call_id": call.call_id, "name": call.name, "input": text}
    return {"type": "function_call", "name": call.name, "arguments": text, "call_id": call.call_id}


def _token_count(usage: Usage) -> Json:
    given = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    last = {
        "input_tokens": given,
        "cached_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_output_tokens": usage.reasoning_tokens,
        "total_tokens": given + usage.output_tokens,
    }
    info = {"total_token_usage": last, "last_token_usage": last, "model_context_window": usage.context_window}
    return {"type": "token_count", "info": info}
