"""OpenAI's Responses (`POST /responses`).

Rules: OpenAI's API reference, "Create a model response" and "Streaming events", and its guide "Reasoning
models", "Encrypted reasoning items" (seen 2026-10). Nothing is stored there: the conversation is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Raw

from compactd.models.providers.json_fields import Fields, is_text, text_in
from compactd.models.providers.protocol import ModelRequest, Stop, StreamEvent
from compactd.models.providers.response import Collected, NotAnAnswer, Refused, Unfinished
from compactd.protocol.messages import Message

OWN = "openai_responses"
"""`Opaque.provider` of the items that only this API understands: reasoning, its own tools' calls."""

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")

_INCOMPLETE: dict[str, Stop] = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ResponsesWire:
    """Responses."""

    def path(self, request: ModelRequest) -> str:
        """The model stands in the body."""
        return "/responses"

    def body(self, request: ModelRequest) -> bytes:
        """The JSON to send. Stop texts do not exist here and are left out."""
        body: dict[str, object] = {
            "model": request.model,
            "input": request.messages,
            "stream": request.stream,
            "store": False,
        }
        if reasons(request.model):
            # "Encrypted content is not supported with this model." (400, param include, gpt-4o; pydantic-ai
            # issue 2865): asked only of those that reason.
            body["include"] = ["reasoning.encrypted_content"]
        if request.system is not None:
            body["instructions"] = request.system
        if request.tools:
            body["tools"] = request.tools
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = request.max_output_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return msgspec.json.encode({**body, **request.extra})

    def reader(self) -> ResponsesReader:
        """For the answer to one request."""
        return ResponsesReader()


def reasons(model: str) -> bool:
    """Whether OpenAI's `model` reasons, by its name: the o series, and from gpt-5 on all but `-chat`."""
    name = model.rpartition("/")[2].lower()
    if name[:1] == "o" and name[1:2].isdigit():
        return True
    version = name.removeprefix("gpt-")
    return version != name and version[:1].isdigit() and int(version[:1]) >= 5 and "-chat" not in name


class ResponsesReader:
    """One answer: items, each with its text as it comes and whole at its end."""

    framing: Literal["events", "lines"] = "events"

    def __init__(self) -> None:
        self._collected = Collected()
        self._stop = ""
        self._refused = False
        self._shown: set[tuple[str, float | None]] = set()
        """Items whose text, or reasoning, came in pieces."""
        self._taken: set[tuple[str, float | None]] = set()
        """Items that were whole already."""
        self.is_over = False

    def take(self, name: str, data: bytes) -> Iterator[StreamEvent]:
        """One event. What is not named here repeats what another says, or is not for us."""
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
                    yield from self._collected.thinking("\n\n")
            case "response.output_item.done":
                raw = event.raw("item")
                if raw is not None:
                    yield from self._item(raw, event.number("output_index"))
            case "response.created" | "response.in_progress":
                self._collected.model = event.object("response").text("model") or self._collected.model
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                response = event.object("response")
                yield from self._response(response, kind.removeprefix("response."), data)
            case "error":
                raise Refused(data, event.object("error") if "error" in event else event)
            case _:
                if "error" in event and not kind.startswith("response."):
                    raise Refused(data, event.object("error"))

    def take_whole(self, body: bytes) -> Iterator[StreamEvent]:
        """A whole `response`."""
        response = Fields(body)
        if response.text("type") == "error" or ("error" in response and "output" not in response):
            raise Refused(body, response.object("error") if "error" in response else response)
        if "output" not in response:
            raise NotAnAnswer("sent JSON that is no response: is base_url right?")
        yield from self._response(response, response.text("status") or "completed", body)

    def finish(self) -> Iterator[StreamEvent]:
        """The whole."""
        if not self._stop:
            raise Unfinished
        stop: Stop = "stop" if self._stop == "completed" else _INCOMPLETE.get(self._stop, "unknown")
        yield self._collected.finished("refusal" if self._refused else stop, self._stop)

    def partial(self) -> Message | None:
        """What has come so far."""
        return self._collected.partial()

    def _piece(self, event: Fields, kind: str) -> Iterator[StreamEvent]:
        self._shown.add((kind, event.number("output_index")))
        if kind == "message":
            yield from self._collected.text(event.text("delta"))
        else:
            yield from self._collected.thinking(event.text("delta"))

    def _item(self, raw: Raw, index: float | None) -> Iterator[StreamEvent]:
        """An item that is whole. Its text is taken only where it did not come in pieces."""
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
                        yield from self._collected.text(part.text("text") or part.text("refusal"))
                self._collected.close()
            case "reasoning":
                parts = [*item.objects("summary"), *item.objects("content")]
                if is_new:
                    yield from self._collected.thinking("\n\n".join(part.text("text") for part in parts))
                # The summary is for people; the item is what goes back, word for word.
                self._collected.opaque(OWN, raw)
            case "function_call" | "custom_tool_call":
                given = item.raw("arguments") or item.raw("input") or Raw(b'""')
                arguments = text_in(given) if is_text(given) else given
                yield from self._collected.call(item.text("call_id"), item.text("name"), arguments)
            case _:
                self._collected.opaque(OWN, raw)

    def _response(self, response: Fields, status: str, data: bytes) -> Iterator[StreamEvent]:
        """The end of the answer: what was not streamed, the report, why it ended."""
        self._collected.model = response.text("model") or self._collected.model
        self._collected.report(response.raw("usage"))
        if status in ("failed", "cancelled"):
            raise Refused(data, response.object("error"))
        for index, raw in enumerate(response.items("output")):
            yield from self._item(raw, float(index))
        self._stop = "completed"
        if status == "incomplete":
            self._stop = response.object("incomplete_details").text("reason") or "incomplete"
        self.is_over = True
