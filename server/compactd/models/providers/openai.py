"""OpenAI's Chat Completions (`POST /chat/completions`), which vLLM, llama.cpp, LM Studio, OpenRouter,
DeepSeek and many others speak, each with its own habits.

Rules: OpenAI's API reference, "Create chat completion" and "The chat completion chunk object"; the habits are
named where they are met (seen 2026-10).
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

_STOPS: dict[str, Stop] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",  # Mistral
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "tool_use": "tool_use",
    "content_filter": "content_filter",
    "sensitive": "content_filter",  # Zhipu
    "safety": "content_filter",
    "refusal": "refusal",
    "model_context_window_exceeded": "model_context_window_exceeded",  # Zhipu, since GLM-4.5
}

_FAILED = frozenset(("error", "network_error", "insufficient_system_resource"))
"""Ends that are failures: OpenRouter, Zhipu, DeepSeek."""


class ChatWire:
    """Chat Completions."""

    def __init__(self, output_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens") -> None:
        """OpenAI's own models want `max_completion_tokens`; most others know only `max_tokens`."""
        self._output_field = output_field

    def path(self, request: ModelRequest) -> str:
        """The model stands in the body."""
        return "/chat/completions"

    def body(self, request: ModelRequest) -> bytes:
        """The JSON to send. A system prompt that stands apart becomes the first message."""
        messages: list[object] = list(request.messages)
        if request.system is not None:
            messages.insert(0, {"role": "system", "content": request.system})
        body: dict[str, object] = {"model": request.model, "messages": messages, "stream": request.stream}
        if request.stream:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = request.tools
        if request.max_output_tokens is not None:
            body[self._output_field] = request.max_output_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.stop:
            body["stop"] = request.stop
        return msgspec.json.encode({**body, **request.extra})

    def reader(self) -> ChatReader:
        """For the answer to one request."""
        return ChatReader()


class _Call:
    """A call as its pieces come in."""

    def __init__(self, index: float | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.whole: Raw | None = None

    def add(self, delta: Fields) -> None:
        self.id = self.id or delta.text("id")
        function = delta.object("function", "custom")
        # The name comes whole; some servers repeat it in every piece.
        self.name = self.name or function.text("name")
        arguments = function.raw("arguments") or function.raw("input")
        if arguments is None:
            return
        if is_text(arguments):
            self.pieces.append(text_in(arguments))
        else:
            self.whole = arguments  # an object instead of its text: Ollama's and other imitations


class ChatReader:
    """One answer: text, reasoning, calls by their index, the last chunk's usage."""

    framing: Literal["events", "lines"] = "events"

    def __init__(self) -> None:
        self._collected = Collected()
        self._calls: list[_Call] = []
        self._stop = ""
        self._refused = False
        self._is_answer = False
        self.is_over = False

    def take(self, name: str, data: bytes) -> Iterator[StreamEvent]:
        """One chunk."""
        chunk = Fields(data)
        self._check(name, data, chunk)
        self._collected.model = chunk.text("model") or self._collected.model
        # Groq sends its report beside its own name first.
        self._collected.report(chunk.raw("usage") or chunk.object("x_groq").raw("usage"))
        for choice in chunk.objects("choices"):
            # Never more than one is asked for.
            if choice.number("index") not in (None, 0):
                continue
            self._is_answer = True
            yield from self._message(choice.object("delta", "message"))
            self._end(choice, data)

    def take_whole(self, body: bytes) -> Iterator[StreamEvent]:
        """A `chat.completion`: the same with `message` for `delta`."""
        yield from self.take("", body)
        if not self._is_answer:
            raise NotAnAnswer("sent JSON that is no chat completion: is base_url right?")
        self._stop = self._stop or "stop"

    def finish(self) -> Iterator[StreamEvent]:
        """The calls, which nothing says earlier to be complete, and the whole."""
        if not self._stop and not (self._is_answer and self.is_over):
            raise Unfinished
        yield from self._ready()
        # "[DONE]" without a reason is the end of an answer all the same.
        stop: Stop = _STOPS.get(self._stop.lower(), "unknown") if self._stop else "stop"
        yield self._collected.finished("refusal" if self._refused else stop, self._stop)

    def partial(self) -> Message | None:
        """What has come so far; calls that were begun are left out."""
        return self._collected.partial()

    def _ready(self) -> Iterator[StreamEvent]:
        calls, self._calls = self._calls, []
        for call in calls:
            if call.name or call.id:
                arguments = "".join(call.pieces) if call.whole is None else call.whole
                yield from self._collected.call(call.id, call.name, arguments)

    def _check(self, name: str, data: bytes, chunk: Fields) -> None:
        if "error" in chunk:
            raise Refused(data, chunk.object("error"))
        # vLLM and LM Studio also send the error's fields bare, or an event of that name.
        if name == "error" or chunk.text("object") == "error":
            raise Refused(data, chunk)

    def _message(self, message: Fields) -> Iterator[StreamEvent]:
        # DeepSeek, vLLM and llama.cpp say `reasoning_content`, OpenRouter and newer vLLM `reasoning`.
        yield from self._collected.thinking(message.text("reasoning_content") or message.text("reasoning"))
        yield from self._collected.text(message.text("content"))
        for part in message.objects("content"):  # Mistral's reasoning models: a list of parts
            for inner in part.objects("thinking"):
                yield from self._collected.thinking(inner.text("text"))
            yield from self._collected.text(part.text("text"))
        refusal = message.text("refusal")
        self._refused = self._refused or bool(refusal)
        yield from self._collected.text(refusal)
        for delta in message.objects("tool_calls"):
            self._call_of(delta).add(delta)
        if "function_call" in message:
            legacy = Fields(msgspec.json.encode({"function": message.raw("function_call")}))
            self._call_of(legacy).add(legacy)

    def _call_of(self, delta: Fields) -> _Call:
        """The call that a piece belongs to: by its index; a new id begins a new one.

        Gemini's and some local servers' imitations send every call with index 0, or without one.
        """
        index, call_id = delta.number("index"), delta.text("id")
        for call in reversed(self._calls):
            if index is not None and call.index != index:
                continue
            if call_id and call.id and call.id != call_id:
                continue
            if index is None and call_id and not call.id:
                continue
            return call
        self._calls.append(_Call(index))
        return self._calls[-1]

    def _end(self, choice: Fields, data: bytes) -> None:
        reason = choice.text("finish_reason")
        if reason.lower() in _FAILED:
            raise Refused(data, choice.object("error"))
        self._stop = reason or self._stop
