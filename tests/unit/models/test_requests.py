"""What is sent: the exact body, path and headers of each wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from compactd.models.providers.ollama import OllamaApi
from compactd.models.providers.openai import ChatApi
from compactd.models.providers.openai_responses import ResponsesApi, reasons
from compactd.models.providers.provider import ModelRequest
from tests.support.loopback import Answer, Loopback, Wire
from tests.unit.models.asking_loopback import WIRES, hear, linked, provider_of, request_of

KEY = "sk-test-0123456789"
KEYS = {f"{name}_API_KEY": KEY for name in ("OPENAI", "ANTHROPIC", "GEMINI", "OLLAMA")}

TOOL = Raw(b'{"name": "read", "input_schema": {"type":"object"}}')

BODIES: dict[Wire, dict[str, Any]] = {
    "openai": {
        "model": "loopback-1",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [json.loads(bytes(TOOL))],
        "max_tokens": 99,
    },
    "openai_responses": {
        "model": "loopback-1",
        "input": [{"role": "user", "content": "hi"}],
        "stream": True,
        "store": False,
        "instructions": "Be brief.",
        "tools": [json.loads(bytes(TOOL))],
        "max_output_tokens": 99,
    },
    "anthropic": {
        "model": "loopback-1",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "system": "Be brief.",
        "tools": [json.loads(bytes(TOOL))],
    },
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [json.loads(bytes(TOOL))]}],
        "generationConfig": {"maxOutputTokens": 99},
    },
    "ollama": {
        "model": "loopback-1",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": True,
        "tools": [json.loads(bytes(TOOL))],
        "options": {"num_ctx": 8192, "num_predict": 99},
    },
}

PATHS = {
    "openai": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/loopback-1:streamGenerateContent?alt=sse",
    "ollama": "/api/chat",
}

KEY_HEADERS = {
    "openai": ("authorization", f"Bearer {KEY}"),
    "openai_responses": ("authorization", f"Bearer {KEY}"),
    "anthropic": ("x-api-key", KEY),
    "gemini": ("x-goog-api-key", KEY),
    "ollama": ("authorization", f"Bearer {KEY}"),
}


@pytest.mark.parametrize("wire", WIRES)
async def test_a_request_has_the_providers_own_shape(wire: Wire) -> None:
    request = request_of(
        wire,
        system="Be brief.",
        tools=(TOOL,),
        max_output_tokens=99,
        context_window=8192,
    )
    with Loopback() as server:
        async with linked() as links:
            await hear(provider_of(server, wire, links, environ=KEYS), request)

    seen = server.requests[0]
    name, value = KEY_HEADERS[wire]
    assert seen.body == BODIES[wire]
    assert seen.path == PATHS[wire]
    assert seen.headers[name] == value
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["accept-encoding"] == "identity"
    assert seen.headers.get("anthropic-version") == ("2023-06-01" if wire == "anthropic" else None)
    assert [header for header, text in seen.headers.items() if KEY in text] == [name]
    assert KEY.encode() not in seen.raw


@pytest.mark.parametrize("wire", WIRES)
async def test_a_request_names_nothing_that_was_not_asked_for(wire: Wire) -> None:
    with Loopback() as server:
        async with linked() as links:
            await hear(provider_of(server, wire, links), request_of(wire))

    seen = server.requests[0]
    most = {"model", "messages", "input", "contents", "stream", "stream_options", "store"}
    assert set(seen.body) - most == ({"max_tokens"} if wire == "anthropic" else set())
    assert not {"authorization", "x-api-key", "x-goog-api-key"} & set(seen.headers)


@pytest.mark.parametrize("wire", ["openai", "openai_responses", "anthropic", "gemini"])
async def test_what_is_ours_to_send_goes_out_byte_for_byte(wire: Wire) -> None:
    message = b'{"role":"user", "content" : "\\u00e4","x":1.0}'
    with Loopback() as server:
        async with linked() as links:
            request = ModelRequest(model="m", messages=(Raw(message),))
            await hear(provider_of(server, wire, links), request)

    assert message in server.requests[0].raw


def test_openais_own_models_are_told_their_output_limit_by_its_newer_name() -> None:
    request = request_of("openai", max_output_tokens=7)

    assert json.loads(ChatApi("max_completion_tokens").body(request))["max_completion_tokens"] == 7
    assert json.loads(ChatApi().body(request))["max_tokens"] == 7


@pytest.mark.parametrize(
    ("model", "does"),
    [
        ("o3", True),
        ("o4-mini-2025-04-16", True),
        ("openai/o1", True),
        ("gpt-5", True),
        ("gpt-5.4-pro", True),
        ("gpt-6-codex", True),
        ("gpt-5-chat-latest", False),
        ("gpt-4o", False),
        ("gpt-4.1-mini", False),
        ("omni-moderation", False),
        ("loopback-1", False),
    ],
)
def test_encrypted_reasoning_is_asked_only_of_models_that_reason(model: str, does: bool) -> None:
    request = ModelRequest(model=model, messages=())

    assert reasons(model) is does
    assert ("include" in json.loads(ResponsesApi().body(request))) is does


def test_ollamas_messages_are_openais_with_pictures_apart_and_arguments_as_objects() -> None:
    messages = (
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"n": 1.0}'}},
                {"id": "c2", "type": "function", "function": {"name": "list", "arguments": "{broken"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "text"},
        {"role": "tool", "tool_call_id": "c2", "content": "[]"},
    )
    request = ModelRequest(model="m", messages=tuple(Raw(json.dumps(each)) for each in messages))

    body = OllamaApi().body(request)

    assert b'"arguments":{"n": 1.0}' in body
    assert json.loads(body)["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is this?", "images": ["iVBORw0="]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"function": {"name": "read", "arguments": {"n": 1.0}}},
                {"function": {"name": "list", "arguments": {"_raw": "{broken"}}},
            ],
        },
        {"role": "tool", "content": "text", "tool_name": "read"},
        {"role": "tool", "content": "[]", "tool_name": "list"},
    ]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_request_above_the_servers_window_is_refused_and_one_below_is_not(wire: Wire) -> None:
    with Loopback([Answer(text="fits", count_input=True)], window=100) as server:
        async with linked() as links:
            provider = provider_of(server, wire, links)
            large = await hear(provider, request_of(wire, "x" * 404))
            small = await hear(provider, request_of(wire, "x" * 400))

    assert large.failure.failure.status == 400
    assert small.text == "fits"
    assert small.finished.usage is not None
    assert small.finished.usage.input_tokens == 100
    assert [(seen.tokens, seen.accepted) for seen in server.requests] == [(101, False), (100, True)]
    assert [seen.tokens for seen in server.accepted] == [100]
