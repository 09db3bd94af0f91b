"""Read events of OpenHands' SDK, version 1. `openhands.py` describes the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Raw

from compactd.core.authors.authors import SKILL, UNKNOWN
from compactd.core.history.entries import is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.session_file import SessionBuilder, is_true, text_field, unix_seconds
from compactd.formats.messages.json_parts import first_byte, string
from compactd.formats.messages.lenient_json import Given, list_in, object_in, objects_in, text_in
from compactd.formats.messages.neutral_out import encode_message
from compactd.formats.messages.rendering import image_of_url
from compactd.protocol.messages import (
    NULL,
    Block,
    BlockMeta,
    Meta,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

MAX_STEPS = 5_000_000
"""The most messages that are visited for all condensations of a file together, which takes one or two
seconds. 1,000 condensations with views of 2,000 messages visit 2,000,000.
"""

_SILENT = (
    "CondensationRequest",
    "ConversationStateUpdateEvent",
    "ConversationErrorEvent",
    "PauseEvent",
    "TokenEvent",
    "StreamingDeltaEvent",
    "InterruptEvent",
    "LLMCompletionLogEvent",
)


class OpenHandsReader:
    """A session that is being read event by event."""

    def __init__(self, session: SessionBuilder) -> None:
        self.session = session
        self.starts: dict[str, int] = {}
        """Event id -> the position of the message that it became or joined."""
        self._response = ""
        """The id of the model's response that the newest answer is part of."""
        self._answer: list[Block] = []
        """The blocks of the answer at position `_answer_at`. More blocks may follow, so the answer is encoded
        only in `finish`.
        """
        self._answer_at: int | None = None
        self._newest_summary: int | None = None
        self._steps = 0
        """The number of messages that were visited for all condensations."""

    def event(self, event: Given) -> None:
        """Read the next event."""
        kind, id = text_in(event, "kind"), text_field(event, "id")
        at = unix_seconds(text_field(event, "timestamp"))
        match kind:
            case "SystemPromptEvent":
                self.session.system_prompt = text_in(object_in(event, "system_prompt"), "text") or None
            case "MessageEvent":
                self._message(event, id, at)
            case "ActionEvent":
                self._action(event, id, at)
            case "ObservationEvent":
                given = object_in(event, "observation")
                content = blocks_of(given.get("content", given.get("output", NULL)))
                content += blocks_of(event.get("extended_content", NULL))
                self.result(event, plain(content), is_true(given, "is_error"), at)
            case "UserRejectObservation":
                text = f"Action rejected: {text_in(event, 'rejection_reason')}"
                self.result(event, text, True, at)
            case "AgentErrorEvent":
                self.result(event, text_in(event, "error"), True, at)
            case "Condensation":
                forgotten = [string(raw, "$.id") for raw in list_in(event, "forgotten_event_ids")]
                self.add_compaction(text_in(event, "summary"), forgotten, id, at)
            case "CondensationSummaryEvent":
                self._summary(text_in(event, "summary"), id, at)
            case _ if kind not in _SILENT:
                self.session.count_skipped(f"event of the unknown kind {kind!r}")

    def start(self, id: str | None) -> None:
        """Record that the next message comes from the event `id`."""
        if id is not None:
            self.starts[id] = len(self.session.messages)

    def _message(self, event: Given, id: str | None, at: float | None) -> None:
        given = object_in(event, "llm_message")
        self._response = ""
        self.start(id)
        blocks = blocks_of(given.get("content", NULL))
        if text_in(given, "role") == "assistant":
            self.session.add("assistant", (*_thinking(given), *blocks), id=id, created_at=at)
            return
        role = text_in(given, "role")
        source = text_in(event, "source")
        meta = None
        if source == "environment":
            meta = Meta(synthetic=True)
        elif role != "system" and (source != "user" or text_in(event, "sender")):
            meta = Meta(author=UNKNOWN)
        blocks += [
            Text(text=block.text, meta=BlockMeta(author=SKILL)) if isinstance(block, Text) else block
            for block in blocks_of(event.get("extended_content", NULL))
        ]
        self.session.add("system" if role == "system" else "user", blocks, id=id, created_at=at, meta=meta)

    def _action(self, event: Given, id: str | None, at: float | None) -> None:
        given = object_in(event, "tool_call")
        function = object_in(given, "function") or given
        arguments = function.get("arguments", event.get("action", Raw(b"{}")))
        call = ToolCall(
            call_id=text_in(event, "tool_call_id") or text_in(given, "id"),
            name=text_in(event, "tool_name") or text_in(function, "name"),
            arguments=arguments,
        )
        said = blocks_of(event.get("thought", NULL))
        self.add_answer(text_in(event, "llm_response_id"), [*_thinking(event), *said, call], id, at)

    def add_answer(self, response: str, blocks: Sequence[Block], id: str | None, at: float | None) -> None:
        """Add blocks of the model's response with the id `response`: to the newest answer if that is part of
        the same response, otherwise as a new answer.
        """
        messages = self.session.messages
        joins = response and response == self._response and messages and messages[-1][0].role == "assistant"
        self._response = response
        if not joins:
            self.start(id)
            self.session.add("assistant", blocks, id=id, created_at=at)
            return
        place = len(messages) - 1
        if self._answer_at != place:
            self.finish()
            self._answer_at = place
            self._answer = list(messages[place][0].content)
        if id is not None:
            self.starts[id] = place
        self._answer.extend(blocks)

    def finish(self) -> None:
        """Store the blocks that `add_answer` added to the newest answer in its message."""
        if self._answer_at is not None:
            messages, place = self.session.messages, self._answer_at
            whole = msgspec.structs.replace(messages[place][0], content=tuple(self._answer))
            messages[place] = (whole, Raw(encode_message(whole)))
            self._answer_at = None

    def result(
        self, event: Given, content: str | tuple[Block, ...], is_error: bool, at: float | None
    ) -> None:
        """Add `content` as the result of the tool call that `event` names."""
        id = text_field(event, "id")
        self.start(id)
        result = ToolResult(
            call_id=text_in(event, "tool_call_id"),
            name=text_field(event, "tool_name"),
            content=content,
            is_error=is_error,
        )
        self.session.add("tool", (result,), id=id, created_at=at)

    def add_compaction(
        self, summary: str, forgotten: Sequence[str], id: str | None, at: float | None
    ) -> None:
        """Add a compaction that removes the events with the ids `forgotten` from the view."""
        session, place = self.session, len(self.session.messages)
        gone = {self.starts[one] for one in forgotten if one in self.starts}
        tail = max(gone, default=place - 1) + 1
        if tail < place:
            session.first_kept[place] = tail
        if kept := self._kept_places(tail, gone):
            session.pinned[place] = kept
        self._summary(summary or "[Older events were forgotten, without a summary.]", id, at)
        self._response = ""

    def _kept_places(self, tail: int, gone: set[int]) -> tuple[int, ...]:
        """Return the positions of the messages before `tail` that were in the view and that the compaction
        left there. `gone`: the positions of the messages that it removed.
        """
        if self._steps > MAX_STEPS:
            return ()
        view = list(self._view())
        self._steps += len(view)
        if self._steps > MAX_STEPS:
            self.session.warn(
                f"too many condensations in the file. From number {self.session.compactions + 1} on, messages"
                " that a condensation kept between forgotten ones are in the history, but not in the context"
            )
        return tuple(at for at in view if at < tail and at not in gone)

    def _summary(self, text: str, id: str | None, at: float | None) -> None:
        self._newest_summary = len(self.session.messages)
        self.session.summary(text, id=id, created_at=at)

    def _view(self) -> Iterator[int]:
        """Yield the positions of the messages in the view, without a summary, in order. O(view)."""
        last = self._newest_summary
        if last is None:
            yield from range(len(self.session.messages))
            return
        start = self.session.first_kept.get(last, last + 1)
        yield from (at for at in self.session.pinned.get(last, ()) if at < start)
        messages = self.session.messages
        yield from (at for at in range(start, len(messages)) if not is_summary(messages[at][0]))


def plain(blocks: list[Block]) -> str | tuple[Block, ...]:
    """Return a result's content: one text if all blocks are text, otherwise the blocks."""
    if all(isinstance(block, Text) for block in blocks):
        return join_text_blocks(blocks)
    return tuple(blocks)


def blocks_of(raw: Raw) -> list[Block]:
    """Return the blocks of a message's content in LiteLLM's form, in which images are given by their URLs."""
    if first_byte(raw) == b'"':
        return [Text(text=string(raw, "$.content"))]
    if first_byte(raw) != b"[":
        return []
    blocks: list[Block] = []
    for given in objects_in({"content": raw}, "content"):
        match text_in(given, "type"):
            case "text":
                blocks.append(Text(text=text_in(given, "text")))
            case "image" if "image_urls" in given:
                blocks += [image_of_url(string(one, "$.image_urls")) for one in list_in(given, "image_urls")]
            case "image_url":
                blocks.append(image_of_url(text_in(object_in(given, "image_url"), "url")))
            case _:
                blocks.append(Opaque(provider="openhands", raw=Raw(msgspec.json.encode(given))))
    return blocks


def _thinking(given: Given) -> list[Block]:
    blocks: list[Block] = []
    for one in objects_in(given, "thinking_blocks"):
        if text_in(one, "type") == "redacted_thinking":
            blocks.append(Thinking(redacted=text_in(one, "data")))
        else:
            blocks.append(Thinking(text=text_in(one, "thinking"), signature=text_field(one, "signature")))
    reasoning = text_in(given, "reasoning_content")
    return blocks or ([Thinking(text=reasoning)] if reasoning else [])
