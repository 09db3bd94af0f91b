"""Answers in OpenAI's formats, which other providers speak too, from its API reference, seen 2026-10."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.loopback.script import Answer
from tests.support.loopback.writing import Json, line, pieces


class Chat:
    """OpenAI's Chat Completions, as vLLM, llama.cpp, OpenRouter and DeepSeek write them too."""

    STOPS = {"stop": "stop", "length": "length", "refusal": "stop", "content_filter": "content_filter"}

    def events(self, answer: Answer) -> Iterator[tuple[str, str]]:
        """(event name, data) of the stream."""
        yield "", self._chunk(answer, {"role": "assistant", "content": ""})
        for piece in pieces(answer.thinking, answer.chunk_chars):
            yield "", self._chunk(answer, {"reasoning_content": piece})
        for piece in pieces(answer.text, answer.chunk_chars):
            yield "", self._chunk(answer, {("refusal" if answer.stop == "refusal" else "content"): piece})
        for index, call in enumerate(answer.calls):
            function = {"name": call.name, "arguments": ""}
            start = {"index": index, "id": call.id, "type": "function", "function": function}
            yield "", self._chunk(answer, {"tool_calls": [start]})
            for piece in pieces(call.arguments, answer.chunk_chars):
                delta = {"index": index, "function": {"arguments": piece}}
                yield "", self._chunk(answer, {"tool_calls": [delta]})
        if answer.stop != "none":
            yield "", self._chunk(answer, {}, self.stop(answer))
        if answer.usage:
            yield (
                "",
                line(
                    {
                        **self._head(answer, "chat.completion.chunk"),
                        "choices": [],
                        "usage": self.usage(answer),
                    }
                ),
            )
        yield "", "[DONE]"

    def whole(self, answer: Answer) -> Json:
        message: Json = {"role": "assistant", "content": answer.text or None}
        if answer.thinking:
            message["reasoning_content"] = answer.thinking
        if answer.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in answer.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": self.stop(answer)}
        return {**self._head(answer, "chat.completion"), "choices": [choice], "usage": self.usage(answer)}

    def stop(self, answer: Answer) -> str:
        if answer.calls and answer.stop == "stop":
            return "tool_calls"
        return self.STOPS.get(answer.stop, answer.stop)

    def usage(self, answer: Answer) -> Json:
        prompt = answer.input_tokens + answer.cache_read + answer.cache_write
        return {
            "prompt_tokens": prompt,
            "completion_tokens": answer.output_tokens,
            "total_tokens": prompt + answer.output_tokens,
            "prompt_tokens_details": {
                "cached_tokens": answer.cache_read,
                "cache_write_tokens": answer.cache_write,
            },
            "completion_tokens_details": {"reasoning_tokens": answer.reasoning},
        }

    def overflow(self, requested: int, limit: int) -> tuple[int, Json]:
        message = (
            f"This model's maximum context length is {limit} tokens. However, your messages resulted in"
            f" {requested} tokens. Please reduce the length of the messages."
        )
        return 400, error(message, "invalid_request_error", "context_length_exceeded", param="messages")

    def failure(self, kind: str) -> tuple[int, Json]:
        return self.overflow(250_000, 200_000) if kind == "overflow" else openai_failure(kind)

    def error_event(self, kind: str) -> tuple[str, str]:
        return "", line(self.failure(kind)[1])

    def _head(self, answer: Answer, kind: str) -> Json:
        identified = {"id": f"chatcmpl-{number_of(answer)}", "object": kind}
        return {**identified, "created": 1_760_000_000, "model": answer.model}

    def _chunk(self, answer: Answer, delta: Json, finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return line({**self._head(answer, "chat.completion.chunk"), "choices": [choice], "usage": None})


class Responses:
    """OpenAI's Responses."""

    def events(self, answer: Answer) -> Iterator[tuple[str, str]]:
        for number, event in enumerate(self._events(answer)):
            yield event["type"], line({**event, "sequence_number": number})

    def _events(self, answer: Answer) -> Iterator[Json]:
        opened = {
            **self._head(answer),
            "status": "in_progress",
            "output": [],
        }
        yield {"type": "response.created", "response": opened}
        yield {"type": "response.in_progress", "response": opened}
        output = self._output(answer)
        for index, item in enumerate(output):
            place = {"output_index": index, "item_id": item["id"]}
            begun = {**item, "status": "in_progress"}
            if item["type"] == "function_call":
                begun["arguments"] = ""  # They come in deltas, as from the API. A client adds the two.
            yield {"type": "response.output_item.added", "output_index": index, "item": begun}
            if item["type"] == "reasoning":
                place["summary_index"] = 0
                part = {"type": "summary_text", "text": ""}
                yield {"type": "response.reasoning_summary_part.added", **place, "part": part}
                for piece in pieces(answer.thinking, answer.chunk_chars):
                    yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
                text = {"text": answer.thinking}
                yield {"type": "response.reasoning_summary_text.done", **place, **text}
            elif item["type"] == "message":
                place["content_index"] = 0
                kind = "refusal" if answer.stop == "refusal" else "output_text"
                yield {"type": "response.content_part.added", **place, "part": {"type": kind}}
                for piece in pieces(answer.text, answer.chunk_chars):
                    yield {"type": f"response.{kind}.delta", **place, "delta": piece}
                yield {"type": f"response.{kind}.done", **place, "text": answer.text}
            else:
                for piece in pieces(item["arguments"], answer.chunk_chars):
                    yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
                text = {"arguments": item["arguments"]}
                yield {"type": "response.function_call_arguments.done", **place, **text}
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        if answer.stop != "none":
            whole = self.whole(answer)
            yield {"type": f"response.{whole['status']}", "response": whole}

    def whole(self, answer: Answer) -> Json:
        reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
        reason = reasons.get(answer.stop)
        return {
            **self._head(answer),
            "status": "completed" if reason is None else "incomplete",
            "error": None,
            "incomplete_details": None if reason is None else {"reason": reason},
            "output": self._output(answer),
            "usage": self.usage(answer) if answer.usage else None,
        }

    def _head(self, answer: Answer) -> Json:
        identified = {"id": f"resp_{number_of(answer)}", "object": "response", "created_at": 1_760_000_000}
        return {**identified, "model": answer.model}

    def _output(self, answer: Answer) -> list[Json]:
        output: list[Json] = []
        of = number_of(answer)
        if answer.thinking:
            summary = [{"type": "summary_text", "text": answer.thinking}]
            output.append(
                {
                    "type": "reasoning",
                    "id": f"rs_{of}",
                    "summary": summary,
                    "encrypted_content": answer.signature,
                }
            )
        if answer.text:
            part: Json = {"type": "output_text", "text": answer.text, "annotations": []}
            if answer.stop == "refusal":
                part = {"type": "refusal", "refusal": answer.text}
            output.append(
                {
                    "type": "message",
                    "id": f"msg_{of}",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            )
        for number, call in enumerate(answer.calls):
            output.append(
                {
                    "type": "function_call",
                    "id": f"fc_{number}" if of == "1" else f"fc_{of}_{number}",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": call.arguments,
                    "status": "completed",
                    **({"namespace": call.namespace} if call.namespace else {}),
                }
            )
        return output

    def usage(self, answer: Answer) -> Json:
        prompt = answer.input_tokens + answer.cache_read + answer.cache_write
        # Only newer models report writes.
        written = {"cache_write_tokens": answer.cache_write} if answer.cache_write else {}
        return {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": answer.cache_read, **written},
            "output_tokens": answer.output_tokens,
            "output_tokens_details": {"reasoning_tokens": answer.reasoning},
            "total_tokens": prompt + answer.output_tokens,
        }

    def overflow(self, requested: int, limit: int) -> tuple[int, Json]:
        message = (
            "Your input exceeds the context window of this model. Please adjust your input and try again."
        )
        return 400, error(message, "invalid_request_error", "context_length_exceeded", param="input")

    def failure(self, kind: str) -> tuple[int, Json]:
        return self.overflow(250_000, 200_000) if kind == "overflow" else openai_failure(kind)

    def error_event(self, kind: str) -> tuple[str, str]:
        inner = self.failure(kind)[1]["error"]
        if kind == "overflow":
            # What is found out once the answer has begun fails the response.
            failed = {"id": "resp_1", "status": "failed", "error": inner, "output": [], "usage": None}
            return "response.failed", line({"type": "response.failed", "response": failed})
        return "error", line({**inner, "type": "error", "sequence_number": 9})


def number_of(answer: Answer) -> str:
    """Return what the ids of an answer have in common."""
    return answer.id.removeprefix("msg_")


def error(message: str, kind: str, code: str | None, param: str | None = None) -> Json:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def openai_failure(kind: str) -> tuple[int, Json]:
    match kind:
        case "overloaded":
            return 503, error("The server is overloaded or not ready yet.", "server_error", "server_error")
        case "rate_limit":
            text = "Rate limit reached for requests per min (RPM): Limit 3. Please try again in 20s."
            return 429, error(text, "requests", "rate_limit_exceeded")
        case "quota":
            text = "You exceeded your current quota, please check your plan and billing details."
            return 429, error(text, "insufficient_quota", "insufficient_quota")
        case "auth":
            return 401, error("Incorrect API key provided.", "invalid_request_error", "invalid_api_key")
        case _:
            return 400, error("Invalid value: 'robot'.", "invalid_request_error", "invalid_value")
