"""Wraps a provider's error sentence as SDKs, gateways, streams and printed exceptions do."""

# ruff: noqa: E501 - printed text must stay on one line

from __future__ import annotations

import json
from collections.abc import Callable

Wrapper = Callable[[str], str]


def _body(text: str) -> str:
    return json.dumps(
        {"error": {"message": text, "type": "invalid_request_error", "param": None}}, ensure_ascii=False
    )


def _ascii(text: str) -> str:
    return json.dumps(
        {"type": "error", "error": {"type": "invalid_request_error", "message": text}, "request_id": "req_01"}
    )


def _sse(text: str) -> str:
    failed = {
        "type": "response.failed",
        "sequence_number": 3,
        "response": {
            "id": "resp_1",
            "object": "response",
            "created_at": 1760000000,
            "status": "failed",
            "error": {"code": "invalid_prompt", "message": text},
            "incomplete_details": None,
            "max_output_tokens": None,
            "output": [],
        },
    }
    return f"event: response.failed\ndata: {json.dumps(failed)}\n\n"


def _echoed(text: str) -> str:
    return json.dumps(
        {
            "detail": [
                {
                    "type": "value_error",
                    "loc": ["body", "messages"],
                    "msg": text,
                    "input": {
                        "messages": [{"role": "user", "content": "prompt is too long: 9 tokens > 8 maximum"}]
                    },
                }
            ]
        }
    )


def _twice(text: str) -> str:
    raw = json.dumps({"error": {"message": text, "type": "Bad Request", "code": 400}})
    return json.dumps(
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {"raw": raw, "provider_name": "Novita"},
            }
        }
    )


def _inspected(text: str) -> str:
    return f"BadRequestError: Bad Request\n{{\n  status: 400,\n  error: {{\n    message: {text!r},\n    param: null\n  }}\n}}"


def _ruby(text: str) -> str:
    return (
        'Faraday::BadRequestError: the server responded with status 400 {"error"=>{"message"=>'
        + json.dumps(text)
        + ', "code"=>nil}}'
    )


WRAPPERS: dict[str, Wrapper] = {
    "nothing": lambda text: text,
    "body": _body,
    "escaped body": _ascii,
    "pretty body": lambda text: json.dumps({"error": {"message": text, "code": None}}, indent=2),
    "flat body": lambda text: json.dumps({"code": "InvalidParameter", "message": text, "request_id": "0a-1"}),
    "error as string": lambda text: json.dumps({"error": text}),
    "detail": lambda text: json.dumps({"detail": text}),
    "detail list with an echo": _echoed,
    "errors list": lambda text: json.dumps({"errors": [{"message": text, "extensions": {"code": "BAD_USER_INPUT"}}]}),
    "google list": lambda text: json.dumps([{"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}}]),
    "openai python": lambda text: "Error code: 400 - " + repr({"error": {"message": text, "type": "invalid_request_error", "param": None, "code": None}}),
    "litellm": lambda text: "litellm.BadRequestError: OpenAIException - " + text,
    "litellm with bytes": lambda text: f"litellm.BadRequestError: AnthropicException - {_ascii(text).encode()!r}",
    "langchain": lambda text: "openai.BadRequestError: Error code: 400 - " + repr({"error": {"message": text}}) + "\nFor troubleshooting, visit: https://python.langchain.com/docs/troubleshooting/errors/X",
    "status before": lambda text: f"400 {text}",
    "api error": lambda text: f"API Error: 400 {_ascii(text)}",
    "boto": lambda text: f"An error occurred (ValidationException) when calling the ConverseStream operation: {text}",
    "bedrock": lambda text: f"ValidationException: The model returned the following errors: {text}",
    "node inspect": _inspected,
    "ruby": _ruby,
    "go": lambda text: f'POST "https://api.test/v1/chat/completions": 400 Bad Request {_body(text)}',
    "go error": lambda text: f"error, status code: 400, status: 400 Bad Request, message: {text}",
    "ai sdk": lambda text: f"AI_APICallError: {text}",
    "rust": lambda text: f"Request failed with status 400 Bad Request: {_body(text)}",
    "openrouter": _twice,
    "a string in a string": lambda text: json.dumps(_body(text)),
    "stream": _sse,
    "stream of a chunk": lambda text: "data: " + json.dumps({"error": {"message": text}}) + "\n\ndata: [DONE]\n\n",
    "html": lambda text: f"<html><head><title>400 Bad Request</title></head><body><h1>Bad Request</h1><p>{text}</p></body></html>"
    if not set(text) & set("<>")
    else text,
    "relay": lambda text: json.dumps({"error": {"message": f"Error from upstream: {_body(text)}", "type": "upstream_error"}}),
    "retried": lambda text: f"Failed to get response from the AI model; retried 5 times (total retry wait time: 5.84 seconds) Last error: CAPIError: 400 {text}",
    "cut off": lambda text: _body(text)[:-2],
}  # fmt: skip
