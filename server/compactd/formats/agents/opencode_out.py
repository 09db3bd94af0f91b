"""Write a session in the form of `opencode export`, which `opencode import` reads (see `opencode`)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from compactd.core.history.entries import is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.writer_parts import (
    WRITER,
    Json,
    arguments_object,
    ids_of,
    looks_typed,
    millis,
    model_parts,
    only_result,
    picture_url,
    result_pictures,
    result_text,
    session_id_of,
    usage_report,
)
from compactd.protocol.messages import Block, Document, Image, Message, Text, Thinking, ToolCall, Usage


def write(file: SessionFile) -> bytes:
    """Return the session `file` in the form of `opencode export`. In `file`, each tool result must be a
    message of its own (see `writer_parts.split_messages`). O(bytes).
    """
    writing = _Writer(file)
    for at, (message, _) in enumerate(file.messages):
        writing.message(at, message)
    times = [message.created_at for message, _ in file.messages if message.created_at]
    info = {
        "id": writing.session_id,
        "slug": WRITER,
        "version": WRITER,
        "projectID": "global",
        "directory": file.working_dir or "",
        "title": file.title or "",
        "time": {
            "created": millis(times[0] if times else None),
            "updated": millis(times[-1] if times else None),
        },
    }
    body = msgspec.json.encode({"info": info, "messages": writing.messages})
    return msgspec.json.format(body, indent=1) + b"\n"


class _Writer:
    def __init__(self, file: SessionFile) -> None:
        self.session_id = session_id_of(file)
        self.messages: list[Json] = []
        self._file = file
        digest = sha256(self.session_id.encode()).hexdigest()[:16]
        self._ids = [
            id if id.startswith(_start(message)) else f"{_start(message)}_{at:08d}m{digest}"
            for at, (id, (message, _)) in enumerate(zip(ids_of(file), file.messages, strict=True))
        ]
        self._kept = dict(file.first_kept)
        self._provider, self._model = model_parts(file.model)
        self._asked = ""
        """The id of the newest user message, which is the parent of the answers to it."""
        self._at = 0
        """The time of the newest message in milliseconds. OpenCode sorts messages by their times (1.18.33,
        2026-11), so none is written with an earlier one.
        """
        self._open: dict[str, Json] = {}
        """Call id -> the part of the call, until the result of the call is added to it."""

    def message(self, at: int, message: Message) -> None:
        """Add one message, or add a result to its call."""
        id = self._ids[at]
        self._at = max(self._at, millis(message.created_at))
        if message.role == "tool":
            self._result(id, message)
        elif is_summary(message):
            self._summary(at, id, message)
        elif message.role == "assistant":
            parts = [one for block in message.content if (one := self._part(block)) is not None]
            self._answer(id, message, parts)
        elif message.role == "user":
            by_program = message.meta is not None and message.meta.synthetic
            parts = []
            for block in message.content:
                part = self._part(block)
                if part is not None and part["type"] == "text":
                    marked = by_program or looks_typed(message, block)
                    parts.append({**part, "synthetic": True} if marked else part)
                elif part is not None:
                    parts.append(part)
            self._user(id, message, parts)

    def _user(self, id: str, message: Message, parts: list[Json]) -> None:
        self._asked = id
        info = {
            "id": id,
            "sessionID": self.session_id,
            "role": "user",
            "time": {"created": self._at},
            "agent": "build",
            "model": {"providerID": self._provider, "modelID": self._model},
        }
        self._add(info, parts)

    def _answer(self, id: str, message: Message, parts: list[Json], **more: object) -> None:
        usage = usage_report(message)
        at = self._at
        where = self._file.working_dir or ""
        info: Json = {
            "id": id,
            "sessionID": self.session_id,
            "role": "assistant",
            "time": {"created": at, "completed": at},
            "parentID": self._asked,
            "modelID": self._model,
            "providerID": self._provider,
            "mode": "build",
            "agent": "build",
            "path": {"cwd": where, "root": where},
            "cost": 0,
            # The field is required. The reader takes zeros for a missing report.
            "tokens": _tokens(Usage() if usage is None else usage),
        }
        if message.stop_reason is not None:
            info["finish"] = message.stop_reason
        self._add({**info, **more}, parts)

    def _summary(self, at: int, id: str, message: Message) -> None:
        marker: Json = {"type": "compaction", "auto": True}
        if at in self._kept:
            marker["tail_start_id"] = self._ids[self._kept[at]]
        # OpenCode sorts messages of the same time by their ids, and the request comes before the summary.
        start, is_made, end = id.partition(f"{at:08d}m")
        self._user(f"{start}{at:08d}a{end}" if is_made else f"{id}-request", message, [marker])
        text: Json = {"type": "text", "text": join_text_blocks(message.content)}
        # Without `finish`, OpenCode takes the compaction for one that failed.
        self._answer(id, message, [text], summary=True, finish="stop")

    def _add(self, info: Mapping[str, object], parts: list[Json]) -> None:
        whole = [
            {
                "id": part.pop("id", f"prt_{info['id']}-{number}"),
                "sessionID": self.session_id,
                "messageID": info["id"],
                **part,
            }
            for number, part in enumerate(parts)
        ]
        self._open.update((str(part["callID"]), part) for part in whole if part["type"] == "tool")
        self.messages.append({"info": info, "parts": whole})

    def _part(self, block: Block) -> Json | None:
        match block:
            case Text():
                return {"type": "text", "text": block.text}
            case Thinking(redacted=None):
                # `opencode import` refuses thinking without a time (1.18.33, 2026-11).
                thinking: Json = {
                    "type": "reasoning",
                    "text": block.text,
                    "time": {"start": self._at, "end": self._at},
                }
                signed = {"metadata": {"anthropic": {"signature": block.signature}}}
                return {**thinking, **signed} if block.signature else thinking
            case ToolCall():
                state = {"status": "pending", "input": arguments_object(block)}
                return {"type": "tool", "callID": block.call_id, "tool": block.name, "state": state}
            case Image():
                return {"type": "file", "mime": block.media_type, "url": picture_url(block)}
            case Document(url=url, data=data) if url or data:
                address = f"data:{block.media_type};base64,{data}" if data else url
                part: Json = {"type": "file", "mime": block.media_type, "url": address}
                return {**part, "filename": block.title} if block.title else part
            case _:
                return None

    def _result(self, id: str, message: Message) -> None:
        result = only_result(message)
        part = self._open.pop(result.call_id, None)
        if part is None:
            return  # A result without its call cannot be represented.
        state = part["state"]
        assert isinstance(state, dict)
        at = self._at
        made: Json = {"status": "error" if result.is_error else "completed", "input": state["input"]}
        made["error" if result.is_error else "output"] = result_text(result)
        made |= {"title": "", "metadata": {}, "time": {"start": at, "end": at}}
        pictures = result_pictures(result)
        if pictures:
            made["attachments"] = [one for block in pictures if (one := self._part(block)) is not None]
        part["state"] = made
        part["id"] = id


def _start(message: Message) -> str:
    """Return how the id of a message begins in OpenCode: a tool result is a part of a message, and `opencode
    import` refuses other ids (1.18, 2026-11).
    """
    return "prt" if message.role == "tool" else "msg"


def _tokens(usage: Usage) -> Json:
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "reasoning": usage.reasoning_tokens,
        "cache": {"read": usage.cache_read_tokens, "write": usage.cache_write_tokens},
    }
