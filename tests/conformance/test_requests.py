"""The conformance suite's own check of requests: which ones each provider would refuse."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from compactd_conformance.requests import calls_without_result, results_without_call, steps_of, wrong_roles
from compactd_conformance.shapes import Context

Request = list[dict[str, object]]

ASKED = {"role": "user", "content": "go"}
FUNCTION = {"type": "function", "function": {"name": "run", "arguments": "{}"}}

WHOLE: dict[str, Request] = {
    "neutral": [
        ASKED,
        {
            "role": "assistant",
            "content": [{"type": "tool_call", "call_id": c, "name": "run", "arguments": {}} for c in "ab"],
        },
        {"role": "tool", "content": [{"type": "tool_result", "call_id": c, "content": c} for c in "ba"]},
        {"role": "assistant", "content": "done"},
    ],
    "openai": [
        ASKED,
        {"role": "assistant", "content": None, "tool_calls": [{"id": c, **FUNCTION} for c in "ab"]},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "tool", "tool_call_id": "a", "content": "a"},
        {"role": "assistant", "content": "done"},
    ],
    "openai_responses": [
        ASKED,
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "run", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "run", "arguments": "{}"},
        {"role": "assistant", "content": "I look."},
        {"type": "function_call_output", "call_id": "b", "output": "b"},
        {"type": "function_call_output", "call_id": "a", "output": "a"},
        {"role": "assistant", "content": "done"},
    ],
    "anthropic": [
        ASKED,
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": c, "name": "run", "input": {}} for c in "ab"],
        },
        {
            "role": "user",
            "content": [
                *({"type": "tool_result", "tool_use_id": c, "content": c} for c in "ba"),
                {"type": "text", "text": "and now?"},
            ],
        },
        {"role": "assistant", "content": "done"},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {"name": n, "args": {}}} for n in ("run", "read")]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": n, "response": {}}} for n in ("run", "read")],
        },
        {"role": "model", "parts": [{"text": "done"}]},
    ],
}
"""A request with two calls at once, as each provider takes it."""


def raw(request: Request) -> tuple[Raw, ...]:
    return tuple(Raw(json.dumps(message).encode()) for message in request)


def places(format: str, word: str) -> list[int]:
    """Return the indices of the messages that contain calls or results."""
    return [at for at, message in enumerate(WHOLE[format]) if word in json.dumps(message)]


CALLS = {
    "neutral": "tool_call",
    "openai": "tool_calls",
    "openai_responses": '"function_call"',
    "anthropic": '"tool_use"',
    "gemini": "functionCall",
}
RESULTS = {
    "neutral": "tool_result",
    "openai": "tool_call_id",
    "openai_responses": "function_call_output",
    "anthropic": "tool_result",
    "gemini": "functionResponse",
}


@pytest.mark.parametrize("format", WHOLE)
def test_a_whole_request_has_nothing_wrong(format: str) -> None:
    steps = steps_of(format, raw(WHOLE[format]))
    context = Context(messages=raw(WHOLE[format]), tokens=1, epoch=1, repairs=())

    assert calls_without_result(steps) == ()
    assert results_without_call(steps) == ()
    assert wrong_roles(format, context) == ()


@pytest.mark.parametrize("format", WHOLE)
def test_a_result_that_is_missing_is_found(format: str) -> None:
    first = places(format, RESULTS[format])[0]
    cut = [message for at, message in enumerate(WHOLE[format]) if at != first]

    steps = steps_of(format, raw(cut))

    assert calls_without_result(steps) != ()
    assert results_without_call(steps) == ()


@pytest.mark.parametrize("format", WHOLE)
def test_a_call_that_is_missing_is_found(format: str) -> None:
    first = places(format, CALLS[format])[0]
    cut = [message for at, message in enumerate(WHOLE[format]) if at != first]

    assert results_without_call(steps_of(format, raw(cut))) != ()


@pytest.mark.parametrize("format", WHOLE)
def test_a_conversation_that_ends_with_its_calls_lacks_their_results(format: str) -> None:
    last = places(format, CALLS[format])[-1]

    assert len(calls_without_result(steps_of(format, raw(WHOLE[format][: last + 1])))) == 2


@pytest.mark.parametrize("format", WHOLE)
def test_a_person_who_speaks_before_the_result_parts_the_pair(format: str) -> None:
    last = places(format, CALLS[format])[-1]
    between = [*WHOLE[format][: last + 1], WHOLE[format][0], *WHOLE[format][last + 1 :]]

    assert len(calls_without_result(steps_of(format, raw(between)))) == 2


@pytest.mark.parametrize(
    ("format", "wrong"),
    [
        ("neutral", [{"role": "judge", "content": "no"}]),
        ("neutral", [{"role": "user", "content": " "}]),
        ("openai", [{"role": "assistant", "content": None}]),
        ("openai", [{"role": "user", "content": ""}]),
        ("openai_responses", [{"role": "tool", "content": "x"}]),
        ("anthropic", [{"role": "assistant", "content": "I begin."}]),
        ("anthropic", [ASKED, {"role": "system", "content": "x"}]),
        ("anthropic", [ASKED, {"role": "assistant", "content": []}]),
        ("gemini", [{"role": "model", "parts": [{"text": "I begin."}]}]),
        ("gemini", [{"role": "user", "parts": []}]),
        ("gemini", [WHOLE["gemini"][0], WHOLE["gemini"][3], WHOLE["gemini"][3]]),
    ],
)
def test_roles_and_messages_that_a_provider_refuses_are_found(format: str, wrong: Request) -> None:
    context = Context(messages=raw(wrong), tokens=1, epoch=1, repairs=())

    assert len(wrong_roles(format, context)) == 1
