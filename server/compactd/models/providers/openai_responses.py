"""OpenAI's Responses API (`POST /responses`).

Source: OpenAI's API reference, "Create a model response" and "Streaming events", and the guide "Reasoning
models", "Encrypted reasoning items" (seen 2026-10). OpenAI is asked to store nothing, because compactd has
the conversation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Raw

from compactd.models.providers.json_fields import Fields, is_json_string, read_text
from compactd.models.providers.provider import ModelRequest, StopReason, StreamEvent
from compactd.models.providers.response import AnswerBuilder, NotAnAnswer, ProviderRefused, Unfinished

OPAQUE_PROVIDER = "openai_responses"
"""The value of `Opaque.provider` for items that only this API understands: reasoning, and calls of its
built-in tools."""

_INCOMPLETE: dict[str, StopReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ResponsesApi:
    """The path and body of a request to the Responses API."""

    def path(self, request: ModelRequest) -> str:
        """Return the path below the base URL. It is the same for all models; the body names the model."""
        return "/responses"

    def body(self, request: ModelRequest) -> bytes:
        """Return the JSON of a request."""
        body: dict[str, object] = {
            "model": request.model,
            "input": request.messages,
            "stream": request.stream,
            "store": False,
        }
        if reasons(request.model):
            # Only for models that reason. Others answer 400, "Encrypted content is not supported with this
            # model." (gpt-4o; pydantic-ai issue 2865).
            body["include"] = ["reasoning.encrypted_content"]
        if request.system is not None:
            body["instructions"] = request.system
        if request.tools:
            body["tools"] = request.tools
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = request.max_output_tokens
        if request.cache_key is not None:
            body["prompt_cache_key"] = request.cache_key
        return msgspec.json.encode(body)

    def reader(self) -> ResponsesReader:
        """Return a new reader for one answer."""
        return ResponsesReader()


class CompactApi:
    """The path and body of a request to compact (API reference, "Compact a response", read 2026-11;
    parameters from the SDK openai 3.57.0). It has no stream, no tools, and no limit of its output."""

    def path(self, request: ModelRequest) -> str:
        """Return the path below the base URL."""
        return "/responses/compact"

    def body(self, request: ModelRequest) -> bytes:
        """Return the JSON of a request."""
        body: dict[str, object] = {"model": request.model, "input": request.messages}
        if request.system is not None:
            body["instructions"] = request.system
        if request.cache_key is not None:
            body["prompt_cache_key"] = request.cache_key
        return msgspec.json.encode(body)

    def reader(self) -> CompactReader:
        """Return a new reader for one answer."""
        return CompactReader()


class CompactReader:
    """A reader of a new context window. Its items become the opaque content of the answer, in order."""

    framing: Literal["events", "lines"] = "events"

    def __init__(self) -> None:
        self.collected = AnswerBuilder()
        self.is_over = False

    def take(self, name: str, data: bytes) -> Iterator[StreamEvent]:
        """Read one event. Only errors are sent as events. Raises `ProviderRefused`, `NoJson`."""
        event = Fields(data)
        if "error" in event:
            raise ProviderRefused(data, event.object("error"))
        yield from ()

    def take_whole(self, body: bytes) -> Iterator[StreamEvent]:
        """Read the answer. Raises `ProviderRefused`, `NoJson`, `NotAnAnswer`."""
        answer = Fields(body)
        if "error" in answer and "output" not in answer:
            raise ProviderRefused(body, answer.object("error"))
        if answer.text("object") != "response.compaction" or "output" not in answer:
            raise NotAnAnswer("sent JSON that is not a compaction: is base_url right?")
        for item in answer.items("output"):
            self.collected.opaque(OPAQUE_PROVIDER, item)
        self.collected.report(answer.raw("usage"))
        self.is_over = True
        yield from ()

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the complete answer. Raises `Unfinished`."""
        if not self.is_over:
            raise Unfinished
        yield self.collected.finish("stop", "completed")


def reasons(model: str) -> bool:
    """Return whether OpenAI's `model` reasons, judged by its name: the o series, and gpt-5 or later except
    `-chat`."""
    name = model.rpartition("/")[2].lower()
    if name[:1] == "o" and name[1:2].isdigit():
        return True
    version = name.removeprefix("gpt-")
    return version != name and version[:1].isdigit() and int(version[:1]) >= 5 and "-chat" not in name


class ResponsesReader:
    """A reader of one answer. The answer consists of items; each arrives in pieces, and then once more as
    a whole."""

    framing: Literal["events", "lines"] = "events"

    def __init__(self) -> None:
        self.collected = AnswerBuilder()
        self._stop = ""
        self._refused = False
        self._shown: set[tuple[str, float | None]] = set()
        """(type, index) of items whose text or reasoning arrived in pieces."""
        self._taken: set[tuple[str, float | None]] = set()
        """(type, index) of items that were read as a whole."""
        self.is_over = False

    def take(self, name: str, data: bytes) -> Iterator[StreamEvent]:
        """Read one event, and yield what it contains. Events that are not handled repeat others or are not
        needed. Raises `ProviderRefused`, `NoJson`."""
        event = Fields(data)
        kind = event.text("type") or name
        match kind:
            case "response.output_text.delta":
                yield from self._piece(event, "message")
            case "response.refusal.delta":
                self._refused = True
                yield from self._piece(event, "message")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield from self._piece(event, "reasoning")
            case "response.reasoning_summary_part.added":
                if event.number("summary_index"):
                    yield from self.collected.add_thinking("\n\n")
            case "response.output_item.done":
                raw = event.raw("item")
                if raw is not None:
                    yield from self._item(raw, event.number("output_index"))
            case "response.created" | "response.in_progress":
                self.collected.model = event.object("response").text("model") or self.collected.model
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                response = event.object("response")
                yield from self._response(response, kind.removeprefix("response."), data)
            case "error":
                raise ProviderRefused(data, event.object("error") if "error" in event else event)
            case _:
                if "error" in event and not kind.startswith("response."):
                    raise ProviderRefused(data, event.object("error"))

    def take_whole(self, body: bytes) -> Iterator[StreamEvent]:
        """Read a `response` that was not streamed, and yield its events. Raises `ProviderRefused`, `NoJson`,
        `NotAnAnswer`."""
        response = Fields(body)
        if response.text("type") == "error" or ("error" in response and "output" not in response):
            raise ProviderRefused(body, response.object("error") if "error" in response else response)
        if "output" not in response:
            raise NotAnAnswer("sent JSON that is not a response: is base_url right?")
        yield from self._response(response, response.text("status") or "completed", body)

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the complete answer. Raises `Unfinished`."""
        if not self._stop:
            raise Unfinished
        stop: StopReason = "stop" if self._stop == "completed" else _INCOMPLETE.get(self._stop, "unknown")
        yield self.collected.finish("refusal" if self._refused else stop, self._stop)

    def _piece(self, event: Fields, kind: str) -> Iterator[StreamEvent]:
        """Add a piece of the text or reasoning of an item."""
        self._shown.add((kind, event.number("output_index")))
        if kind == "message":
            yield from self.collected.text(event.text("delta"))
        else:
            yield from self.collected.add_thinking(event.text("delta"))

    def _item(self, raw: Raw, index: float | None) -> Iterator[StreamEvent]:
        """Read an item that is complete. Its text is used only if it did not arrive in pieces before."""
        item = Fields(raw)
        kind = item.text("type")
        place = (kind, index)
        if place in self._taken:
            return
        self._taken.add(place)
        is_new = place not in self._shown
        match kind:
            case "message":
                for part in item.objects("content"):
                    self._refused = self._refused or part.text("type") == "refusal"
                    if is_new:
                        yield from self.collected.text(part.text("text") or part.text("refusal"))
                self.collected.close()
            case "reasoning":
                parts = [*item.objects("summary"), *item.objects("content")]
                if is_new:
                    yield from self.collected.add_thinking("\n\n".join(part.text("text") for part in parts))
                # The summary is for people; the item itself is sent back unchanged.
                self.collected.opaque(OPAQUE_PROVIDER, raw)
            case "function_call" | "custom_tool_call":
                given = item.raw("arguments") or item.raw("input") or Raw(b'""')
                arguments = read_text(given) if is_json_string(given) else given
                yield from self.collected.add_call(item.text("call_id"), item.text("name"), arguments)
            case _:
                self.collected.opaque(OPAQUE_PROVIDER, raw)

    def _response(self, response: Fields, status: str, data: bytes) -> Iterator[StreamEvent]:
        """Read the response object at the end of the answer: items that were not streamed, the usage, and
        why the answer ended."""
        self.collected.model = response.text("model") or self.collected.model
        self.collected.report(response.raw("usage"))
        if status in ("failed", "cancelled"):
            raise ProviderRefused(data, response.object("error"))
        for index, raw in enumerate(response.items("output")):
            yield from self._item(raw, float(index))
        self._stop = "completed"
        if status == "incomplete":
            self._stop = response.object("incomplete_details").text("reason") or "incomplete"
        self.is_over = True
