"""Write a session in the format that Opal used until 2026-02, one message per line (see `opal`)."""

from __future__ import annotations

from compactd.core.history.entries import is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.session_file import SessionFile, live_places
from compactd.formats.files.writer_parts import (
    Json,
    arguments_object,
    calls_of,
    ids_of,
    is_by_program,
    lines_of,
    model_parts,
    only_result,
    result_text,
    session_id_of,
    thinking_of,
    without_none,
)
from compactd.protocol.messages import Message


def write(file: SessionFile) -> bytes:
    """Return the session `file` in Opal's format. What a compaction removed is left out, because Opal deletes
    it. O(bytes).
    """
    ids = ids_of(file)
    provider, model = model_parts(file.model)
    about = {
        "title": file.title,
        "working_dir": file.working_dir,
        "model": {"provider": provider, "id": model} if model else None,
    }
    parent: str | None = None
    messages: list[Json] = []
    said = [message for message, _ in file.messages]
    for at in live_places(said, dict(file.first_kept), dict(file.pinned)):
        messages.append({"id": ids[at], "parent_id": parent, **_message(said[at])})
        parent = ids[at]
    header: Json = {"session_id": session_id_of(file), "current_id": parent, "metadata": without_none(about)}
    return lines_of([header, *messages])


def _message(message: Message) -> Json:
    given: Json = {
        "role": message.role,
        "content": join_text_blocks(message.content) or None,
        "is_error": False,
    }
    if message.role == "tool":
        result = only_result(message)
        return {
            "role": "tool_result",
            "content": result_text(result),
            "is_error": result.is_error,
            "call_id": result.call_id,
            "name": result.name,
        }
    thinking = "\n".join(block.text for block in thinking_of(message.content))
    if thinking:
        given["thinking"] = thinking
    calls = calls_of(message.content)
    if calls:
        given["tool_calls"] = [
            {"call_id": call.call_id, "name": call.name, "arguments": arguments_object(call)}
            for call in calls
        ]
    if is_summary(message) and message.meta is not None:
        given["metadata"] = {
            "type": "compaction_summary",
            "read_files": message.meta.read_files,
            "modified_files": message.meta.modified_files,
        }
    elif message.role == "user" and is_by_program(message):
        given["metadata"] = {"type": "program"}
    return given
