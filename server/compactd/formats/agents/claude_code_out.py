"""Write a session in Claude Code's format, so that `claude --resume` finds its messages (see `claude_code`).

Each block of an answer is a separate record, as Claude Code writes it. A compaction is a `compact_boundary`
and the user record with its summary, which starts a new chain of parents.
"""

from __future__ import annotations

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
    lines_of,
    model_parts,
    only_result,
    session_id_of,
    usage_report,
    without_none,
)
from compactd.formats.messages.anthropic_blocks import user_blocks
from compactd.formats.messages.provenance import ANTHROPIC
from compactd.protocol.messages import Block, Message, Opaque, Text, Thinking, ToolCall, ToolResult, Usage

VERSION = "2.1.0"
"""The version of Claude Code whose record format is written."""


def write(file: SessionFile) -> bytes:
    """Return the session `file` in Claude Code's format. In `file`, each tool result must be a message of its
    own (see `writer_parts.split_messages`). O(bytes).
    """
    writing = _Writer(file)
    for at, (message, _) in enumerate(file.messages):
        writing.message(at, message)
    if file.title:
        writing.records.append({"type": "summary", "summary": file.title, "leafUuid": writing.parent})
    return lines_of(writing.records)


class _Writer:
    def __init__(self, file: SessionFile) -> None:
        self._file = file
        self._ids = ids_of(file)
        self._session_id = session_id_of(file)
        self._model = model_parts(file.model)[1] or None
        self._kept = {at: set(range(first, at)) for at, first in file.first_kept}
        for at, places in file.pinned:
            self._kept.setdefault(at, set()).update(places)
        self._written: list[list[str]] = []
        """The ids of the records of each message so far."""
        self.records: list[Json] = []
        self.parent: str | None = None

    def message(self, at: int, message: Message) -> None:
        """Add the records of one message."""
        id = self._ids[at]
        self._written.append([])
        if message.role == "assistant":
            self._answer(id, message)
        elif message.role == "tool":
            self._record("user", id, message, {"role": "user", "content": [_result(only_result(message))]})
        elif message.role == "user":
            self._user(at, id, message)

    def _user(self, at: int, id: str, message: Message) -> None:
        more: Json = {}
        content: object = _content(message.content)
        if is_summary(message):
            boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
            self.parent = None
            about = {**self._common_fields(message), **self._stays(at, id)}
            self.records.append({**boundary, "uuid": f"{id}-boundary", **about})
            more["isCompactSummary"] = True
            content = join_text_blocks(message.content)
        elif is_by_program(message):
            more["isMeta"] = True
        self._record("user", id, message, {"role": "user", "content": content}, **more)

    def _stays(self, at: int, id: str) -> Json:
        """Return what the record of a compaction says about the older messages that stay: their ids, and that
        they follow the summary `id` (2.1.197 to 2.1.330, seen 2026-11).
        """
        uuids = [uuid for place in sorted(self._kept.get(at, ())) for uuid in self._written[place]]
        if not uuids:
            return {}
        ends = {"headUuid": uuids[0], "anchorUuid": id, "tailUuid": uuids[-1]}
        named = {"anchorUuid": id, "uuids": uuids, "allUuids": uuids}
        return {"compactMetadata": {"preservedSegment": ends, "preservedMessages": named}}

    def _answer(self, id: str, message: Message) -> None:
        blocks = [block for block in map(_block, message.content) if block is not None]
        usage = usage_report(message)
        for number, block in enumerate(blocks):
            said = {
                "id": f"msg_{id}",
                "type": "message",
                "role": "assistant",
                "model": self._model,
                "content": [block],
                "stop_reason": message.stop_reason,
                "usage": None if usage is None else _usage(usage),
            }
            self._record(
                "assistant", id if number == 0 else f"{id}-{number + 1}", message, without_none(said)
            )

    def _common_fields(self, message: Message) -> Json:
        return {
            "isSidechain": False,
            "userType": "external",
            "cwd": self._file.working_dir or "",
            "sessionId": self._session_id,
            "version": VERSION,
            "timestamp": iso(message.created_at),
        }

    def _record(self, kind: str, id: str, message: Message, said: Json, **more: object) -> None:
        about = {"parentUuid": self.parent, **self._common_fields(message)}
        self.records.append({**about, "type": kind, "message": said, "uuid": id, **more})
        self.parent = id
        self._written[-1].append(id)


def _content(blocks: tuple[Block, ...]) -> object:
    if len(blocks) == 1 and isinstance(blocks[0], Text):
        return blocks[0].text
    return [one for block in blocks for one in _result_content(block)]


def _result_content(block: Block) -> list[object]:
    if isinstance(block, Text):
        return [{"type": "text", "text": block.text}]
    return list[object](user_blocks(block))


def _block(block: Block) -> Json | Raw | None:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Thinking(redacted=str()):
            return {"type": "redacted_thinking", "data": block.redacted}
        case Thinking():
            thinking: Json = {"type": "thinking", "thinking": block.text}
            return {**thinking, "signature": block.signature} if block.signature is not None else thinking
        case ToolCall():
            return {
                "type": "tool_use",
                "id": block.call_id,
                "name": block.name,
                "input": arguments_object(block),
            }
        case Opaque(provider=provider) if provider == ANTHROPIC:
            return block.raw
        case _:
            return None


def _result(result: ToolResult) -> Json:
    content: object = result.content
    if not isinstance(result.content, str):
        content = [one for block in result.content for one in _result_content(block)]
    given: Json = {"tool_use_id": result.call_id, "type": "tool_result", "content": content}
    return {**given, "is_error": True} if result.is_error else given


def _usage(usage: Usage) -> Json:
    for_an_hour = usage.cache_write_1h_tokens
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_tokens - for_an_hour,
            "ephemeral_1h_input_tokens": for_an_hour,
        },
    }
