"""Write a session as events of OpenHands' SDK, one JSON list (see `openhands`)."""

from __future__ import annotations

import msgspec

from compactd.core.history.entries import is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.writer_parts import (
    Json,
    blocks_in,
    calls_of,
    ids_of,
    is_by_program,
    iso,
    only_result,
    picture_url,
    without_none,
)
from compactd.formats.messages.rendering import arguments_text
from compactd.protocol.messages import Block, Image, Message, Text, Thinking


def write(file: SessionFile) -> bytes:
    """Return the session `file` as events of OpenHands' SDK. In `file`, each tool result must be a message of
    its own (see `writer_parts.split_messages`). O(bytes).
    """
    writing = _Writer(file)
    for at, (message, _) in enumerate(file.messages):
        writing.message(at, message)
    return b"[\n" + b",\n".join(msgspec.json.encode(event) for event in writing.events) + b"\n]\n"


class _Writer:
    def __init__(self, file: SessionFile) -> None:
        self.events: list[Json] = []
        self._ids = ids_of(file)
        self._file = file
        self._actions: dict[str, str] = {}
        """Call id -> the id of its action event."""
        self._of: list[list[str]] = []
        """The ids of the events of each message so far, by the message's position."""
        if file.system_prompt:
            prompt = {"type": "text", "text": file.system_prompt}
            event = {"kind": "SystemPromptEvent", "id": "system", "source": "agent", "system_prompt": prompt}
            self.events.append({**event, "tools": []})

    def message(self, at: int, message: Message) -> None:
        """Add the events of one message."""
        id, start = self._ids[at], len(self.events)
        if is_summary(message):
            forgotten = [one for place in self._removed_places(at) for one in self._of[place]]
            more = {"forgotten_event_ids": forgotten, "summary": join_text_blocks(message.content)}
            self._event("Condensation", id, message, "environment", **more, llm_response_id=id)
        elif message.role == "assistant":
            self._answer(id, message)
        elif message.role == "tool":
            self._result(id, message)
        else:
            said = {"role": message.role, "content": _content(message.content)}
            source = "environment" if message.role == "system" or is_by_program(message) else "user"
            self._event("MessageEvent", id, message, source, llm_message=said)
        self._of.append([str(event["id"]) for event in self.events[start:]])

    def _removed_places(self, at: int) -> list[int]:
        """Return the positions of the messages that are not in the view after the summary at
        position `at`.
        """
        kept = {i for place, places in self._file.pinned if place == at for i in places}
        tail = dict(self._file.first_kept).get(at, at)
        return [place for place in range(tail) if place not in kept]

    def _answer(self, id: str, message: Message) -> None:
        calls = calls_of(message.content)
        words = [block for block in message.content if isinstance(block, Text | Image)]
        blocks = [_thinking(block) for block in message.content if isinstance(block, Thinking)]
        if not calls:
            said: Json = {"role": "assistant", "content": _content(words)}
            if blocks:
                said["thinking_blocks"] = blocks
            self._event("MessageEvent", id, message, "agent", llm_message=said)
            return
        for number, call in enumerate(calls):
            action_id = id if number == 0 else f"{id}-{number + 1}"
            self._actions[call.call_id] = action_id
            made = {"id": call.call_id, "name": call.name, "arguments": arguments_text(call.arguments)}
            self._event(
                "ActionEvent",
                action_id,
                message,
                "agent",
                thought=_content(words) if number == 0 else [],
                thinking_blocks=blocks if number == 0 else [],
                tool_name=call.name,
                tool_call_id=call.call_id,
                tool_call={**made, "origin": "completion"},
                llm_response_id=f"response-{id}",
            )

    def _result(self, id: str, message: Message) -> None:
        result = only_result(message)
        self._event(
            "ObservationEvent",
            id,
            message,
            "environment",
            tool_name=result.name or "",
            tool_call_id=result.call_id,
            action_id=self._actions.get(result.call_id, ""),
            observation={
                "kind": "Observation",
                "content": _content(blocks_in(result)),
                "is_error": result.is_error,
            },
        )

    def _event(self, kind: str, id: str, message: Message, source: str, **more: object) -> None:
        about = {"id": id, "timestamp": iso(message.created_at), "source": source}
        self.events.append({"kind": kind, **about, **more})


def _content(blocks: list[Text | Image] | tuple[Block, ...]) -> list[Json]:
    parts: list[Json] = []
    for block in blocks:
        if isinstance(block, Text):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, Image):
            parts.append({"type": "image", "image_urls": [picture_url(block)]})
    return parts


def _thinking(block: Thinking) -> Json:
    if block.redacted is not None:
        return {"type": "redacted_thinking", "data": block.redacted}
    return without_none({"type": "thinking", "thinking": block.text, "signature": block.signature})
