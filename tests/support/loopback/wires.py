"""Answers in the formats of Anthropic, Gemini and Ollama, from their API references, seen 2026-10."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.loopback.script import Answer
from tests.support.loopback.writing import Json, line, numbers_in, pieces


class Messages:
    """Anthropic's Messages."""

    STOPS = {
        "stop": "end_turn",
        "length": "max_tokens",
        "refusal": "refusal",
        "context_window": "model_context_window_exceeded",
    }

    def events(self, answer: Answer) -> Iterator[tuple[str, str]]:
        for event in self._events(answer):
            yield event["type"], line(event)

    def _events(self, answer: Answer) -> Iterator[Json]:
        usage = self.usage(answer)
        message = {
            "id": answer.id,
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage, "output_tokens": 1} if answer.usage else {},
        }
        yield {"type": "message_start", "message": message}
        yield {"type": "ping"}
        for index, block in enumerate(self._content(answer)):
            place = {"index": index}
            match block["type"]:
                case "thinking":
                    begun = {"type": "thinking", "thinking": "", "signature": ""}
                    yield {"type": "content_block_start", **place, "content_block": begun}
                    for piece in pieces(answer.thinking, answer.chunk_chars):
                        delta = {"type": "thinking_delta", "thinking": piece}
                        yield {"type": "content_block_delta", **place, "delta": delta}
                    delta = {"type": "signature_delta", "signature": answer.signature}
                    yield {"type": "content_block_delta", **place, "delta": delta}
                case "text":
                    yield {
                        "type": "content_block_start", **place, "content_block": {"type": "text", "text": ""},
                    }  # fmt: skip
                    for piece in pieces(answer.text, answer.chunk_chars):
                        delta = {"type": "text_delta", "text": piece}
                        yield {"type": "content_block_delta", **place, "delta": delta}
                case _:
                    begun = {**block, "input": {}}
                    call = next(call for call in answer.calls if call.id == block["id"])
                    yield {"type": "content_block_start", **place, "content_block": begun}
                    for piece in ("", *pieces(call.arguments, answer.chunk_chars)):
                        delta = {"type": "input_json_delta", "partial_json": piece}
                        yield {"type": "content_block_delta", **place, "delta": delta}
            yield {"type": "content_block_stop", **place}
        if answer.stop != "none":
            end = {"stop_reason": self.stop(answer), "stop_sequence": None}
            report = {"output_tokens": answer.output_tokens} if answer.usage else {}
            yield {"type": "message_delta", "delta": end, "usage": report}
            yield {"type": "message_stop"}

    def whole(self, answer: Answer) -> Json:
        return {
            "id": answer.id,
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": self._content(answer),
            "stop_reason": self.stop(answer),
            "stop_sequence": None,
            "usage": self.usage(answer),
        }

    def _content(self, answer: Answer) -> list[Json]:
        content: list[Json] = []
        if answer.thinking:
            content.append({"type": "thinking", "thinking": answer.thinking, "signature": answer.signature})
        if answer.text:
            content.append({"type": "text", "text": answer.text})
        content += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": numbers_in(call.arguments)}
            for call in answer.calls
        ]
        return content

    def stop(self, answer: Answer) -> str:
        if answer.calls and answer.stop == "stop":
            return "tool_use"
        return self.STOPS.get(answer.stop, answer.stop)

    def usage(self, answer: Answer) -> Json:
        parts = {
            "ephemeral_5m_input_tokens": answer.cache_write - answer.cache_write_1h,
            "ephemeral_1h_input_tokens": answer.cache_write_1h,
        }
        return {
            "input_tokens": answer.input_tokens,
            "cache_creation_input_tokens": answer.cache_write,
            **({"cache_creation": parts} if answer.cache_write_1h else {}),
            "cache_read_input_tokens": answer.cache_read,
            "output_tokens": answer.output_tokens,
        }

    def overflow(self, requested: int, limit: int) -> tuple[int, Json]:
        return 400, self._error(
            "invalid_request_error", f"prompt is too long: {requested} tokens > {limit} maximum"
        )

    def failure(self, kind: str) -> tuple[int, Json]:
        match kind:
            case "overflow":
                return self.overflow(250_000, 200_000)
            case "overloaded":
                return 529, self._error("overloaded_error", "Overloaded")
            case "rate_limit":
                text = "This request would exceed your rate limit of 50,000 input tokens per minute."
                return 429, self._error("rate_limit_error", text)
            case "quota":
                text = "Your credit balance is too low to access the Anthropic API."
                return 400, self._error("invalid_request_error", text)
            case "auth":
                return 401, self._error("authentication_error", "invalid x-api-key")
            case _:
                return 400, self._error("invalid_request_error", "messages.0.role: Input should be 'user'")

    def error_event(self, kind: str) -> tuple[str, str]:
        return "error", line(self.failure(kind)[1])

    def _error(self, kind: str, message: str) -> Json:
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


class Generate:
    """Gemini's generateContent."""

    STOPS = {
        "stop": "STOP",
        "length": "MAX_TOKENS",
        "refusal": "SAFETY",
        "content_filter": "PROHIBITED_CONTENT",
    }

    def events(self, answer: Answer) -> Iterator[tuple[str, str]]:
        chunks = [{"text": piece, "thought": True} for piece in pieces(answer.thinking, answer.chunk_chars)]
        chunks += [{"text": piece} for piece in pieces(answer.text, answer.chunk_chars)]
        chunks += self._calls(answer)
        if not chunks:
            chunks.append({"text": ""})
        for at, part in enumerate(chunks):
            is_last = at == len(chunks) - 1
            yield "", line(self._response([part], answer, self.stop(answer) if is_last else None))

    def whole(self, answer: Answer) -> Json:
        parts: list[Json] = []
        if answer.thinking:
            parts.append({"text": answer.thinking, "thought": True})
        if answer.text:
            parts.append({"text": answer.text})
        return self._response([*parts, *self._calls(answer)], answer, self.stop(answer))

    def _calls(self, answer: Answer) -> list[Json]:
        calls: list[Json] = []
        for number, call in enumerate(answer.calls):
            # No id, as Gemini up to 2.5; the signature on the first call of a step, as Gemini 3.
            part: Json = {"functionCall": {"name": call.name, "args": numbers_in(call.arguments)}}
            if number == 0 and answer.thinking:
                part["thoughtSignature"] = answer.signature
            calls.append(part)
        return calls

    def stop(self, answer: Answer) -> str | None:
        return None if answer.stop == "none" else self.STOPS.get(answer.stop, answer.stop)

    def usage(self, answer: Answer) -> Json:
        prompt = answer.input_tokens + answer.cache_read
        visible = answer.output_tokens - answer.reasoning
        return {
            "promptTokenCount": prompt,
            "candidatesTokenCount": visible,
            "thoughtsTokenCount": answer.reasoning,
            "cachedContentTokenCount": answer.cache_read,
            "totalTokenCount": prompt + answer.output_tokens,
        }

    def _response(self, parts: list[Json], answer: Answer, stop: str | None) -> Json:
        candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if stop is not None:
            candidate["finishReason"] = stop
        response: Json = {"candidates": [candidate], "modelVersion": "loopback-1", "responseId": "r1"}
        if answer.usage:
            response["usageMetadata"] = self.usage(answer)
        return response

    def overflow(self, requested: int, limit: int) -> tuple[int, Json]:
        text = f"The input token count ({requested}) exceeds the maximum number of tokens allowed ({limit})."
        return 400, self._error(400, text, "INVALID_ARGUMENT")

    def failure(self, kind: str) -> tuple[int, Json]:
        match kind:
            case "overflow":
                return self.overflow(250_000, 200_000)
            case "overloaded":
                text = "The model is overloaded. Please try again later."
                return 503, self._error(503, text, "UNAVAILABLE")
            case "rate_limit":
                text = "Resource has been exhausted (e.g. check quota). Please retry in 34.074824224s."
                body = self._error(429, text, "RESOURCE_EXHAUSTED")
                body["error"]["details"] = [
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
                ]
                return 429, body
            case "quota":
                text = "Your prepayment credits are depleted. Please go to AI Studio to manage your billing."
                return 429, self._error(429, text, "RESOURCE_EXHAUSTED")
            case "auth":
                return 403, self._error(403, "The caller does not have permission", "PERMISSION_DENIED")
            case _:
                return 400, self._error(400, "Please use a valid role: user, model.", "INVALID_ARGUMENT")

    def error_event(self, kind: str) -> tuple[str, str]:
        return "", line(self.failure(kind)[1])

    def _error(self, code: int, message: str, status: str) -> Json:
        return {"error": {"code": code, "message": message, "status": status}}


class OllamaChat:
    """Ollama's own chat: JSON lines."""

    def events(self, answer: Answer) -> Iterator[tuple[str, str]]:
        for piece in pieces(answer.thinking, answer.chunk_chars):
            yield "", line(self._line({"content": "", "thinking": piece}))
        for piece in pieces(answer.text, answer.chunk_chars):
            yield "", line(self._line({"content": piece}))
        if answer.calls:
            yield "", line(self._line({"content": "", "tool_calls": self._calls(answer)}))
        if answer.stop != "none":
            yield "", line({**self._line({"content": ""}), **self._end(answer)})

    def whole(self, answer: Answer) -> Json:
        message: Json = {"content": answer.text}
        if answer.thinking:
            message["thinking"] = answer.thinking
        if answer.calls:
            message["tool_calls"] = self._calls(answer)
        return {**self._line(message), **self._end(answer)}

    def _calls(self, answer: Answer) -> list[Json]:
        return [
            {"function": {"name": call.name, "arguments": numbers_in(call.arguments)}}
            for call in answer.calls
        ]

    def _end(self, answer: Answer) -> Json:
        counts = {
            "prompt_eval_count": answer.input_tokens + answer.cache_read,
            "eval_count": answer.output_tokens,
        }
        end = {"done": True, "done_reason": answer.stop, "total_duration": 5_000_000}
        return {**end, **counts} if answer.usage else end

    def _line(self, message: Json) -> Json:
        return {
            "model": "loopback-1",
            "created_at": "2026-10-01T00:00:00Z",
            "message": {"role": "assistant", **message},
            "done": False,
        }

    def overflow(self, requested: int, limit: int) -> tuple[int, Json]:
        text = f"request ({requested} tokens) exceeds the available context size ({limit} tokens)"
        return 400, {"error": text}

    def failure(self, kind: str) -> tuple[int, Json]:
        match kind:
            case "overflow":
                return self.overflow(250_000, 200_000)
            case "overloaded":
                return 503, {"error": "server busy, please try again.  maximum pending requests exceeded"}
            case "rate_limit":
                return 429, {"error": "too many requests, please retry in 20s"}
            case "quota":
                return 429, {"error": "you've reached your weekly usage limit, please upgrade to continue"}
            case "auth":
                return 401, {"error": "unauthorized"}
            case _:
                return 400, {"error": "invalid message role: robot"}

    def error_event(self, kind: str) -> tuple[str, str]:
        # What is said once an answer has begun: the runner died.
        if kind == "overloaded":
            return "", line({"error": "an error was encountered while running the model: unexpected EOF"})
        return "", line(self.failure(kind)[1])
