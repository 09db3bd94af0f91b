"""OpenAI's Chat Completions API (`POST /chat/completions`), and its dialects.

vLLM, llama.cpp, LM Studio, OpenRouter, DeepSeek and many others implement it with differences. Source:
OpenAI's API reference, "Create chat completion" and "The chat completion chunk object"; differences are
noted where they are handled (seen 2026-10).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Raw

from compactd.models.providers.json_fields import Fields, is_json_string, read_text
from compactd.models.providers.provider import ModelRequest, StopReason, StreamEvent
from compactd.models.providers.response import AnswerBuilder, NotAnAnswer, ProviderRefused, Unfinished

_STOPS: dict[str, StopReason] = {
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
"""`StopReason` for each finish reason."""

_FAILED = frozenset(("error", "network_error", "insufficient_system_resource"))
"""Finish reasons that report a failure (OpenRouter, Zhipu, DeepSeek)."""


class ChatApi:
    """The path and body of a request to Chat Completions."""

    def __init__(self, output_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens") -> None:
        """Select the field for the output limit. OpenAI's own models need `max_completion_tokens`; most
        others know only `max_tokens`."""
        self._output_field = output_field

    def path(self, request: ModelRequest) -> str:
        """Return the path below the base URL. It is the same for all models; the body names the model."""
        return "/chat/completions"

    def body(self, request: ModelRequest) -> bytes:
        """Return the JSON of a request. A system prompt becomes the first message."""
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
        return msgspec.json.encode(body)

    def reader(self) -> ChatReader:
        """Return a new reader for one answer."""
        return ChatReader()


class _Call:
    """A tool call whose pieces are arriving."""

    def __init__(self, index: float | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.whole: Raw | None = None

    def add(self, delta: Fields) -> None:
        """Add one piece."""
        self.id = self.id or delta.text("id")
        function = delta.object("function", "custom")
        # The name comes whole; some servers repeat it in every piece.
        self.name = self.name or function.text("name")
        arguments = function.raw("arguments") or function.raw("input")
        if arguments is None:
            return
        if is_json_string(arguments):
            self.pieces.append(read_text(arguments))
        else:
            self.whole = arguments  # an object instead of its text: Ollama's and other imitations


class ChatReader:
    """A reader of one answer: text, reasoning, calls by their index, and the usage in the last chunk."""

    framing: Literal["events", "lines"] = "events"

    def __init__(self) -> None:
        self.collected = AnswerBuilder()
        self._calls: list[_Call] = []
        self._stop = ""
        self._refused = False
        self._is_answer = False
        self.is_over = False

    def take(self, name: str, data: bytes) -> Iterator[StreamEvent]:
        """Read one chunk, and yield the events in it. Raises `ProviderRefused`, `NoJson`."""
        chunk = Fields(data)
        self._check(name, data, chunk)
        self.collected.model = chunk.text("model") or self.collected.model
        # Groq sends its report first below `x_groq`.
        self.collected.report(chunk.raw("usage") or chunk.object("x_groq").raw("usage"))
        for choice in chunk.objects("choices"):
            # Only one choice is ever requested.
            if choice.number("index") not in (None, 0):
                continue
            self._is_answer = True
            yield from self._message(choice.object("delta", "message"))
            self._end(choice, data)

    def take_whole(self, body: bytes) -> Iterator[StreamEvent]:
        """Read an answer that was not streamed: a `chat.completion`, which has `message` where a chunk has
        `delta`. Yield its events. Raises `ProviderRefused`, `NoJson`, `NotAnAnswer`."""
        yield from self.take("", body)
        if not self._is_answer:
            raise NotAnAnswer("sent JSON that is not a chat completion: is base_url right?")
        self._stop = self._stop or "stop"

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the calls, then the complete answer. Only at the end of the stream is it known that a call
        is complete. Raises `Unfinished`."""
        if not self._stop and not (self._is_answer and self.is_over):
            raise Unfinished
        yield from self._ready()
        # "[DONE]" without a finish reason also ends an answer.
        stop: StopReason = _STOPS.get(self._stop.lower(), "unknown") if self._stop else "stop"
        yield self.collected.finish("refusal" if self._refused else stop, self._stop)

    def _ready(self) -> Iterator[StreamEvent]:
        """Yield the calls, which are complete now."""
        calls, self._calls = self._calls, []
        for call in calls:
            if call.name or call.id:
                arguments = "".join(call.pieces) if call.whole is None else call.whole
                yield from self.collected.add_call(call.id, call.name, arguments)

    def _check(self, name: str, data: bytes, chunk: Fields) -> None:
        """Raise `ProviderRefused` if the chunk reports an error."""
        if "error" in chunk:
            raise ProviderRefused(data, chunk.object("error"))
        # vLLM and LM Studio also send the error's fields bare, or an event of that name.
        if name == "error" or chunk.text("object") == "error":
            raise ProviderRefused(data, chunk)

    def _message(self, message: Fields) -> Iterator[StreamEvent]:
        # DeepSeek, vLLM and llama.cpp use `reasoning_content`, OpenRouter and newer vLLM `reasoning`.
        """Read the content of a message or of a piece of it, and yield its events."""
        yield from self.collected.add_thinking(message.text("reasoning_content") or message.text("reasoning"))
        yield from self.collected.text(message.text("content"))
        for part in message.objects("content"):  # Mistral's reasoning models: a list of parts
            for inner in part.objects("thinking"):
                yield from self.collected.add_thinking(inner.text("text"))
            yield from self.collected.text(part.text("text"))
        refusal = message.text("refusal")
        self._refused = self._refused or bool(refusal)
        yield from self.collected.text(refusal)
        for delta in message.objects("tool_calls"):
            self._call_of(delta).add(delta)
        if "function_call" in message:
            legacy = Fields(msgspec.json.encode({"function": message.raw("function_call")}))
            self._call_of(legacy).add(legacy)

    def _call_of(self, delta: Fields) -> _Call:
        """Return the call to which a piece belongs, by the piece's index. A new id begins a new call.

        The APIs of Gemini and of some local servers send every call with index 0 or without an index.
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
        """Store the finish reason. Raise `ProviderRefused` if it reports a failure."""
        reason = choice.text("finish_reason")
        if reason.lower() in _FAILED:
            raise ProviderRefused(data, choice.object("error"))
        self._stop = reason or self._stop
