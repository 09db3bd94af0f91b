"""Gemini's API (`POST /v1beta/models/MODEL:streamGenerateContent?alt=sse`).

Source: Google's API reference, "Generating content", and the guides "Thinking", "Thought signatures" and
"Function calling" (seen 2026-10). The thought signature of a text or a call becomes an `Opaque` block right
before it. `formats/messages/gemini.py` does the same when it reads messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Raw

from compactd.models.providers.json_fields import Fields, NoJson, read_list, read_text
from compactd.models.providers.provider import ModelRequest, StopReason, StreamEvent
from compactd.models.providers.response import AnswerBuilder, NotAnAnswer, ProviderRefused, Unfinished
from compactd.protocol.messages import Text

_STOPS: dict[str, StopReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "MODEL_ARMOR": "content_filter",
}
"""`StopReason` for each finish reason. Other reasons (`MALFORMED_FUNCTION_CALL`, `UNEXPECTED_TOOL_CALL`,
`OTHER` …) are `unknown`; the answer is then empty."""


class GenerateApi:
    """The path and body of a request to `generateContent`, streamed or not."""

    def path(self, request: ModelRequest) -> str:
        """Return the path below the base URL. It names the model and says whether the answer is streamed."""
        from urllib.parse import quote

        model = (
            request.model
            if request.model.startswith(("models/", "tunedModels/"))
            else f"models/{request.model}"
        )
        method = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
        return f"/v1beta/{quote(model, safe='/')}:{method}"

    def body(self, request: ModelRequest) -> bytes:
        """Return the JSON of a request."""
        body: dict[str, object] = {"contents": request.messages}
        if isinstance(request.system, str):
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        elif request.system is not None:
            body["systemInstruction"] = request.system
        if request.tools:
            body["tools"] = _tools(request.tools)
        if request.max_output_tokens is not None:
            body["generationConfig"] = {"maxOutputTokens": request.max_output_tokens}
        return msgspec.json.encode(body)

    def reader(self) -> GenerateReader:
        """Return a new reader for one answer."""
        return GenerateReader()


def _tools(tools: tuple[Raw, ...]) -> list[Raw | dict[str, list[Raw]]]:
    """Return the tools as the API requires them: one tool contains all function declarations."""
    declarations = [tool for tool in tools if "name" in Fields(tool)]
    others: list[Raw | dict[str, list[Raw]]] = [tool for tool in tools if "name" not in Fields(tool)]
    return [{"functionDeclarations": declarations}, *others] if declarations else others


class GenerateReader:
    """A reader of one answer, which arrives as parts. Each chunk contains the usage so far."""

    framing: Literal["events", "lines"] = "events"

    def __init__(self) -> None:
        self.collected = AnswerBuilder()
        self._stop = ""
        self._blocked = ""
        self._is_answer = False
        self.is_over = False

    def take(self, name: str, data: bytes) -> Iterator[StreamEvent]:
        """Read one chunk, a `GenerateContentResponse`, and yield its events. Raises `ProviderRefused`,
        `NoJson`."""
        chunk = Fields(data)
        if "error" in chunk:
            raise ProviderRefused(data, chunk.object("error"))
        self.collected.model = chunk.text("modelVersion") or self.collected.model
        self.collected.report(chunk.raw("usageMetadata"))
        # The prompt itself was blocked: there is no candidate.
        self._blocked = chunk.object("promptFeedback").text("blockReason") or self._blocked
        for candidate in chunk.objects("candidates")[:1]:
            self._is_answer = True
            for part in candidate.object("content").items("parts"):
                yield from self._part(part)
            self._stop = candidate.text("finishReason") or self._stop

    def take_whole(self, body: bytes) -> Iterator[StreamEvent]:
        """Read one response, or the list of chunks that the API sends without `alt=sse`. Yield its events.
        Raises `ProviderRefused`, `NoJson`, `NotAnAnswer`."""
        if body.lstrip()[:1] == b"[":
            chunks = read_list(body)
            if not chunks:
                raise NoJson
            for chunk in chunks:
                yield from self.take("", bytes(chunk))
        else:
            yield from self.take("", body)
        if not self._is_answer and not self._blocked:
            raise NotAnAnswer("sent JSON that is not a Gemini answer: is base_url right?")

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the complete answer. Raises `Unfinished`."""
        if self._stop:
            yield self.collected.finish(_STOPS.get(self._stop, "unknown"), self._stop)
        elif self._blocked:
            yield self.collected.finish("content_filter", self._blocked)
        else:
            raise Unfinished

    def _part(self, raw: Raw) -> Iterator[StreamEvent]:
        """Read one part of the content, and yield its events."""
        part = Fields(raw)
        signature = part.raw("thoughtSignature") or part.raw("thought_signature")
        if part.is_true("thought") and "text" in part:
            yield from self.collected.add_thinking(part.text("text"))
            if signature is not None:
                self.collected.signature(read_text(signature))
                self.collected.close()
            return
        if signature is not None:
            mark = msgspec.json.encode({"thoughtSignature": signature})
            self.collected.opaque("gemini", Raw(mark))
        if "text" in part:
            text = part.text("text")
            if signature is not None and not text:
                # The last part of an answer can have only a signature. Keep it, to send it back.
                self.collected.put(Text(text=""))
            yield from self.collected.text(text)
        elif "functionCall" in part or "function_call" in part:
            call = part.object("functionCall", "function_call")
            arguments = call.raw("args") or Raw(b"{}")
            yield from self.collected.add_call(call.text("id"), call.text("name"), arguments)
        elif signature is None:
            self.collected.opaque("gemini", raw)
