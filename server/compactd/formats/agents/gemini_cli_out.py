"""Write a session in Gemini CLI's format, one record per line (see `gemini_cli`)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from compactd.core.history.entries import is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.agents.gemini_cli import SNAPSHOT
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.writer_parts import (
    Json,
    arguments_object,
    blocks_in,
    ids_of,
    iso,
    lines_of,
    model_parts,
    only_result,
    result_text,
    session_id_of,
    usage_report,
    without_none,
)
from compactd.formats.messages.gemini_parts import media_of
from compactd.protocol.messages import Block, Message, Text, Thinking, ToolCall, ToolResult, Usage


def write(file: SessionFile) -> bytes:
    """Return the session `file` in Gemini CLI's format. In `file`, each tool result must be a message of its
    own (see `writer_parts.split_messages`). O(bytes).
    """
    start = next((message.created_at for message, _ in file.messages if message.created_at), None)
    header = {
        "sessionId": session_id_of(file),
        "projectHash": sha256((file.working_dir or "").encode()).hexdigest(),
        "startTime": iso(start),
        "lastUpdated": iso(file.messages[-1][0].created_at if file.messages else start),
        "kind": "main",
        "directories": [file.working_dir] if file.working_dir else None,
        "summary": file.title,
    }
    provider, name = model_parts(file.model)
    ids, model = ids_of(file), (name if provider == "google" else file.model) or None
    kept = dict(file.first_kept)
    records: list[Json] = [without_none(header)]
    results = _results(file)
    written: list[Json] = []
    for at, (message, _) in enumerate(file.messages):
        if message.role not in ("user", "assistant"):
            continue
        record: Json = {"id": ids[at], "timestamp": iso(message.created_at)}
        if message.role == "assistant":
            record |= _answer(message, model, results.get(at, {}))
        else:
            record |= {"type": "user", "content": _parts(message.content)}
        if is_summary(message):
            record["content"] = [
                {"text": f"{SNAPSHOT}\n{join_text_blocks(message.content)}\n</state_snapshot>"}
            ]
            start_id = ids[kept[at]] if at in kept else None
            places = [place for place, one in enumerate(written) if one["id"] == start_id]
            # After a compression, all messages are written again: the summary, then those that stayed.
            written = [record, *(written[places[0] :] if places else [])]
            records.append({"$set": {"messages": written}})
            continue
        records.append(record)
        written.append(record)
    return lines_of(records)


def _results(file: SessionFile) -> dict[int, dict[str, Message]]:
    """Return position of an answer -> call id -> the message with the result of that call."""
    found: dict[int, dict[str, Message]] = {}
    asked: dict[str, int] = {}
    for at, (message, _) in enumerate(file.messages):
        asked.update((block.call_id, at) for block in message.content if isinstance(block, ToolCall))
        if message.role == "tool" and (place := asked.get(only_result(message).call_id)) is not None:
            found.setdefault(place, {}).setdefault(only_result(message).call_id, message)
    return found


def _answer(message: Message, model: str | None, results: dict[str, Message]) -> Json:
    calls = [block for block in message.content if isinstance(block, ToolCall)]
    thoughts = [
        {
            "subject": block.text.partition("\n")[0],
            "description": block.text.partition("\n")[2],
            "timestamp": iso(message.created_at),
        }
        for block in message.content
        if isinstance(block, Thinking) and block.redacted is None
    ]
    usage = usage_report(message)
    said = [block for block in message.content if not isinstance(block, ToolCall | Thinking)]
    answer: Json = {"type": "gemini", "content": _parts(said), "model": model, "thoughts": thoughts or None}
    answer["tokens"] = None if usage is None else _tokens(usage)
    answer["toolCalls"] = [_call(call, results.get(call.call_id), message) for call in calls] or None
    return without_none(answer)


def _call(call: ToolCall, answered: Message | None, message: Message) -> Json:
    made: Json = {"id": call.call_id, "name": call.name, "args": arguments_object(call)}
    if answered is None:
        return {**made, "status": "executing", "timestamp": iso(message.created_at)}
    result = only_result(answered)
    made["status"] = "error" if result.is_error else "success"
    made["result"] = _given(call, result)
    return {**made, "timestamp": iso(answered.created_at)}


def _given(call: ToolCall, result: ToolResult) -> list[object]:
    name = "error" if result.is_error else "output"
    response = {"id": call.call_id, "name": call.name, "response": {name: result_text(result)}}
    media = [one for one in map(media_of, blocks_in(result)) if one is not None]
    return [{"functionResponse": response}, *media]


def _parts(blocks: Sequence[Block]) -> list[object]:
    parts: list[object] = []
    for block in blocks:
        if isinstance(block, Text):
            parts.append({"text": block.text})
        else:
            media = media_of(block)
            parts += [] if media is None else [media]
    return parts


def _tokens(usage: Usage) -> Json:
    given = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "input": given,
        "output": max(0, usage.output_tokens - usage.reasoning_tokens),
        "cached": usage.cache_read_tokens,
        "thoughts": usage.reasoning_tokens,
        "tool": 0,
        "total": given + usage.output_tokens,
    }
