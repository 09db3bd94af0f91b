"""Ollama's chat API (`POST /api/chat`), which streams JSON lines instead of server-sent events.

Source: Ollama's `docs/api.md`, "Generate a chat completion", and `api/types.go` (seen 2026-10). Ollama
silently cuts a prompt that is longer than `num_ctx`, so `num_ctx` is always sent if the window is known.
Messages and tools arrive here in OpenAI's chat format and are converted, because Ollama has images in a
separate field and arguments as objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Raw

from compactd.models.providers.json_fields import Fields, is_json_string, object_bytes, read_text
from compactd.models.providers.provider import ModelRequest, StopReason, StreamEvent
from compactd.models.providers.response import AnswerBuilder, NotAnAnswer, ProviderRefused, Unfinished

_STOPS: dict[str, StopReason] = {"stop": "stop", "length": "length", "load": "unknown", "unload": "unknown"}


class OllamaApi:
    """The path and body of a request to Ollama's chat API."""

    def path(self, request: ModelRequest) -> str:
        """Return the path below the base URL. It is the same for all models; the body names the model."""
        return "/api/chat"

    def body(self, request: ModelRequest) -> bytes:
        """Return the JSON of a request."""
        names: dict[str, str] = {}
        messages: list[dict[str, object]] = []
        if isinstance(request.system, str):
            messages.append({"role": "system", "content": request.system})
        messages += [_message(Fields(raw), names) for raw in request.messages]
        body: dict[str, object] = {"model": request.model, "messages": messages, "stream": request.stream}
        if request.tools:
            body["tools"] = request.tools
        options: dict[str, object] = {}
        if request.context_window is not None:
            options["num_ctx"] = request.context_window
        if request.max_output_tokens is not None:
            options["num_predict"] = request.max_output_tokens
        if options:
            body["options"] = options
        return msgspec.json.encode(body)

    def reader(self) -> OllamaReader:
        """Return a new reader for one answer."""
        return OllamaReader()


def _message(given: Fields, names: dict[str, str]) -> dict[str, object]:
    """Return one of OpenAI's chat messages in Ollama's format. `names` maps the id of each call to the
    name of its tool, because Ollama's tool results contain the name. The calls of this message are added
    to `names`."""
    role = given.text("role")
    texts = [given.text("content")] if given.text("content") else []
    images: list[str] = []
    for part in given.objects("content"):
        if "image_url" in part:
            _, comma, data = part.object("image_url").text("url").partition(";base64,")
            images += [data] if comma else []
        elif part.text("text"):
            texts.append(part.text("text"))
    message: dict[str, object] = {
        "role": "system" if role == "developer" else role,
        "content": "\n".join(texts),
    }
    if images:
        message["images"] = images
    calls = []
    for call in given.objects("tool_calls"):
        function = call.object("function")
        names[call.text("id")] = function.text("name")
        arguments = function.raw("arguments") or Raw(b"{}")
        text = read_text(arguments) if is_json_string(arguments) else bytes(arguments).decode()
        # If the model wrote invalid JSON, it is shown its own text.
        given_arguments: object = object_bytes(text)
        if given_arguments is None:
            given_arguments = {"_raw": text}
        calls.append({"function": {"name": function.text("name"), "arguments": given_arguments}})
    if calls:
        message["tool_calls"] = calls
    if role == "tool":
        message["tool_name"] = given.text("name") or names.get(given.text("tool_call_id"), "")
    return message


class OllamaReader:
    """A reader of one answer: one line per piece. The last line contains the usage."""

    framing: Literal["events", "lines"] = "lines"

    def __init__(self) -> None:
        self.collected = AnswerBuilder()
        self._stop = ""
        self.is_over = False

    def take(self, name: str, data: bytes) -> Iterator[StreamEvent]:
        """Read one line, and yield its events. Raises `ProviderRefused`, `NoJson`, `NotAnAnswer`."""
        line = Fields(data)
        if "error" in line:
            inner = line.object("error")
            raise ProviderRefused(data, inner if inner.text("message") else line)
        if "message" not in line and "done" not in line:
            raise NotAnAnswer("sent JSON that is not an Ollama answer: is base_url right?")
        self.collected.model = line.text("model") or self.collected.model
        message = line.object("message")
        yield from self.collected.add_thinking(message.text("thinking"))
        yield from self.collected.text(message.text("content"))
        for call in message.objects("tool_calls"):
            function = call.object("function")
            arguments = function.raw("arguments") or Raw(b"{}")
            given = read_text(arguments) if is_json_string(arguments) else arguments
            yield from self.collected.add_call(call.text("id"), function.text("name"), given)
        if line.is_true("done"):
            self._stop = line.text("done_reason") or "stop"
            if line.number("prompt_eval_count") is not None or line.number("eval_count") is not None:
                # Keep only the token counts as the usage report.
                names = ("prompt_eval_count", "eval_count")
                report = {each: value for each in names if (value := line.raw(each)) is not None}
                self.collected.report(Raw(msgspec.json.encode(report)))
            self.is_over = True

    def take_whole(self, body: bytes) -> Iterator[StreamEvent]:
        """Read an answer that was not streamed, which is one line. Yield its events."""
        yield from self.take("", body)

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the complete answer. Raises `Unfinished`."""
        if not self._stop:
            raise Unfinished
        yield self.collected.finish(_STOPS.get(self._stop, "unknown"), self._stop)
