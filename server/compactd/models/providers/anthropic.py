"""Anthropic's Messages API (`POST /v1/messages`).

Source: Anthropic's API reference, "Create a message", and the guides "Streaming messages", "Extended
thinking" and "Handling stop reasons" (seen 2026-10).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Raw

from compactd.models.providers.json_fields import Fields, object_bytes
from compactd.models.providers.provider import ModelRequest, StopReason, StreamEvent
from compactd.models.providers.response import AnswerBuilder, NotAnAnswer, ProviderRefused, Unfinished
from compactd.protocol.messages import NULL, Thinking

OUTPUT_TOKENS = 4_096
"""The output limit if the caller gives none. The API requires one, and every model accepts this."""

_STOPS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_use",
    "refusal": "refusal",
    "pause_turn": "pause",
    "model_context_window_exceeded": "model_context_window_exceeded",
    "compaction": "pause",
}
"""`StopReason` for each stop reason."""


_SUMMARY = ("content", "encrypted_content")
"""The fields of a summary that arrive in pieces."""


class MessagesApi:
    """The path and body of a request to the Messages API."""

    def path(self, request: ModelRequest) -> str:
        """Return the path below the base URL. It is the same for all models; the body names the model."""
        return "/v1/messages"

    def body(self, request: ModelRequest) -> bytes:
        """Return the JSON of a request."""
        body: dict[str, object] = {
            "model": request.model,
            "max_tokens": request.max_output_tokens or OUTPUT_TOKENS,
            "messages": request.messages,
            "stream": request.stream,
        }
        if request.system is not None:
            body["system"] = request.system
        if request.tools:
            body["tools"] = request.tools
        return msgspec.json.encode(body)

    def reader(self) -> MessagesReader:
        """Return a new reader for one answer."""
        return MessagesReader()


class CompactionApi(MessagesApi):
    """The body of a request for a summary (platform.claude.com, "Compaction on demand", read 2026-11). Its
    answer is one block of type `compaction`, or nothing. The usage is in `iterations`, because the fields at
    the top count only replies."""

    def body(self, request: ModelRequest) -> bytes:
        """Return the JSON of a request."""
        compaction = {"type": "summarize"}
        if request.compaction_prompt is not None:
            compaction["instructions"] = request.compaction_prompt
        body = super().body(request)
        return body[:-1] + b',"compaction":' + msgspec.json.encode(compaction) + b"}"

    def reader(self) -> MessagesReader:
        """Return a new reader for one answer."""
        return CompactionReader()


class MessagesReader:
    """A reader of one answer. Its content blocks arrive one after the other; its usage is merged from the
    first event and the last."""

    framing: Literal["events", "lines"] = "events"

    def __init__(self) -> None:
        self.collected = AnswerBuilder()
        self._block: Fields | None = None
        self._block_raw = Raw(b"{}")
        self._input: list[str] = []
        self._summary: dict[str, Raw | str] = {}
        self._usage: dict[str, Raw] = {}
        self._stop = ""
        self.is_over = False

    def take(self, name: str, data: bytes) -> Iterator[StreamEvent]:
        """Read one event, and yield what it contains. The event's `type` counts, not its name. `ping` and
        unknown events are ignored. Raises `ProviderRefused`, `NoJson`."""
        event = Fields(data)
        match event.text("type") or name:
            case "message_start":
                message = event.object("message")
                self.collected.model = message.text("model") or None
                self._report(message)
            case "content_block_start":
                yield from self._begin(event.raw("content_block") or Raw(b"{}"))
            case "content_block_delta":
                yield from self._delta(event.object("delta"))
            case "content_block_stop":
                yield from self._end()
            case "message_delta":
                self._stop = event.object("delta").text("stop_reason") or self._stop
                self._report(event)
            case "message_stop":
                self.is_over = True
            case "error":
                raise ProviderRefused(data, event.object("error"))
            case _:
                if "error" in event:
                    raise ProviderRefused(data, event.object("error"))

    def take_whole(self, body: bytes) -> Iterator[StreamEvent]:
        """Read a `message` that was not streamed, and yield its events. Raises `ProviderRefused`, `NoJson`,
        `NotAnAnswer`."""
        message = Fields(body)
        if message.text("type") == "error" or "error" in message:
            raise ProviderRefused(body, message.object("error"))
        if "content" not in message:
            raise NotAnAnswer("sent JSON that is not a message: is base_url right?")
        self.collected.model = message.text("model") or None
        for block in message.items("content"):
            yield from self._begin(block)
            yield from self._end()
        self._stop = message.text("stop_reason") or "end_turn"
        self._report(message)
        self.is_over = True

    def finish(self) -> Iterator[StreamEvent]:
        """Yield what is left of the last block, then the complete answer. Raises `Unfinished`."""
        if not self._stop:
            raise Unfinished
        yield from self._end()
        yield self.collected.finish(_STOPS.get(self._stop, "unknown"), self._stop)

    def _begin(self, raw: Raw) -> Iterator[StreamEvent]:
        """End the current block and begin the next one."""
        yield from self._end()
        block = Fields(raw)
        self._block, self._block_raw, self._input, self._summary = block, raw, [], {}
        match block.text("type"):
            case "text":
                yield from self.collected.text(block.text("text"))
            case "thinking":
                yield from self.collected.add_thinking(block.text("thinking"))
                self.collected.signature(block.text("signature"))

    def _delta(self, delta: Fields) -> Iterator[StreamEvent]:
        """Add a piece to the current block."""
        match delta.text("type"):
            case "text_delta":
                yield from self.collected.text(delta.text("text"))
            case "thinking_delta":
                yield from self.collected.add_thinking(delta.text("thinking"))
            case "signature_delta":
                self.collected.signature(delta.text("signature"))
            case "input_json_delta":
                self._input.append(delta.text("partial_json"))
            case "compaction_delta":
                # A summary at a threshold arrives in one piece after a block without content.
                self._summary.update({name: raw for name in _SUMMARY if (raw := delta.raw(name)) is not None})

    def _end(self) -> Iterator[StreamEvent]:
        """Finish the current block."""
        block, self._block = self._block, None
        if block is None:
            return
        match block.text("type"):
            case "text" | "thinking":
                self.collected.close()
            case "redacted_thinking":
                self.collected.put(Thinking(redacted=block.text("data")))
            case "tool_use":
                # A streamed block begins with an empty input; one that is not streamed has all of it.
                given = "".join(self._input) or block.raw("input") or ""
                yield from self.collected.add_call(block.text("id"), block.text("name"), given)
            case _:
                self.collected.opaque("anthropic", self._with_deltas())

    def _with_deltas(self) -> Raw:
        """Return the current block with the fields that arrived in pieces, as if it had not been streamed.
        Calls of tools that Anthropic runs itself (`server_tool_use`) have such an input, and a summary such a
        content."""
        given = object_bytes("".join(self._input)) if self._input else None
        late = self._summary if given is None else {**self._summary, "input": given}
        if not late:
            return self._block_raw
        fields = msgspec.json.decode(self._block_raw, type=dict[str, Raw])
        return Raw(msgspec.json.encode({**fields, **late}))

    def _report(self, holder: Fields) -> None:
        """Merge the `usage` of a message or event into the earlier usage report. New fields override earlier
        ones. The others are kept, because the last event's report may lack the input tokens."""
        raw = holder.raw("usage")
        if raw is None:
            return
        try:
            fields = msgspec.json.decode(raw, type=dict[str, Raw])
        except msgspec.MsgspecError:
            return
        self._usage.update({name: value for name, value in fields.items() if value != NULL})
        self.collected.report(self._whole_usage())

    def _whole_usage(self) -> Raw:
        return Raw(msgspec.json.encode(self._usage))


_TOKENS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class CompactionReader(MessagesReader):
    """A reader of a summary's answer. It reports what the summary took as the usage."""

    def _whole_usage(self) -> Raw:
        listed = self._usage.get("iterations")
        try:
            iterations = msgspec.json.decode(listed or b"[]", type=list[dict[str, object]])
        except msgspec.MsgspecError:
            iterations = []
        sums = dict.fromkeys(_TOKENS, 0)
        for one in iterations:
            for name in _TOKENS:
                count = one.get(name)
                sums[name] += count if isinstance(count, int) and one.get("type") == "compaction" else 0
        return Raw(msgspec.json.encode(sums)) if any(sums.values()) else super()._whole_usage()
