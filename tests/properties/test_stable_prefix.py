"""Within an epoch, each request begins with the bytes of the request before, whatever happened in between. A
provider then reads that beginning from its prompt cache."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.client import Daemon
from tests.support.examples import examples
from tests.support.talk import CHARS4

FORMATS = ("openai", "openai_responses", "anthropic", "gemini")
TOOLS = [
    {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {}}}
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(str.strip)
TURNS = st.tuples(st.just("turn"), st.lists(st.integers(0, 3), max_size=3), TEXTS)
BETWEEN = st.tuples(
    st.sampled_from(("settings", "title", "pin", "state", "search", "context", "dry_run")),
    st.integers(0, 9),
    TEXTS,
)


def turn(number: int, rounds: list[int], text: str) -> list[dict[str, Any]]:
    """The answer of the turn before, a prompt, and rounds of tool calls with their results. A model is asked
    after each turn."""
    messages: list[dict[str, Any]] = [{"role": "assistant", "content": f"done {text}"}] if number else []
    messages.append({"role": "user", "content": f"{number} {text}"})
    for at, calls in enumerate(rounds):
        ids = [f"call_{number}_{at}_{call}" for call in range(calls)]
        blocks = [
            {"type": "tool_call", "call_id": one, "name": "read", "arguments": {"b": 1.50, "a": text}}
            for one in ids
        ]
        messages.append({"role": "assistant", "content": [{"type": "text", "text": f"{at} {text}"}, *blocks]})
        if ids:
            results = [{"type": "tool_result", "call_id": one, "content": f"{one}: {text}"} for one in ids]
            messages.append({"role": "user", "content": results})
        else:
            messages.append({"role": "user", "content": f"and then {text}"})
    return messages


def between(daemon: Daemon, session_id: str, what: str, number: int, text: str) -> None:
    """Do something that does not change the view."""
    match what:
        case "settings":
            daemon.call("session/configure", session_id=session_id, compaction={"keep_messages": number + 1})
        case "title":
            daemon.call("session/configure", session_id=session_id, title=text)
        case "pin":
            daemon.call("session/pin", session_id=session_id, entry_ids=["e1"], pinned=number % 2 == 0)
        case "state":
            daemon.call("agent/state", session_id=session_id, work=True)
        case "search":
            daemon.call("session/search", session_id=session_id, query=text)
        case "context":
            daemon.call("session/context", session_id=session_id, format=FORMATS[number % len(FORMATS)])
        case _:
            daemon.call("session/compact", session_id=session_id, keep_messages=1, dry_run=True)


def bytes_of(context: dict[str, Any]) -> str:
    """The request as one text: system prompt, tools, and the blocks of the messages one after the other."""
    head = json.dumps([context.get("system"), context.get("tools")])
    parts = [head]
    for message in context["messages"]:
        role = message.get("role", message.get("type"))
        content = message.get("content", message.get("parts", message))
        blocks = content if isinstance(content, list) else [content]
        others = {name: value for name, value in message.items() if name not in ("role", "content", "parts")}
        parts += [json.dumps([role, block], ensure_ascii=False) for block in blocks]
        parts += [json.dumps(others, ensure_ascii=False)] if others and content is not message else []
    return "\n".join(parts)


# OpenAI's marks do not move, so they are part of what is compared.
@pytest.mark.parametrize(
    ("format", "model", "cache"),
    [
        *[pytest.param(format, "anthropic/claude-sonnet-4-5", "off", id=format) for format in FORMATS],
        pytest.param("openai_responses", "openai/gpt-5.6", "auto", id="openai-marks"),
    ],
)
@given(steps=st.lists(st.one_of(TURNS, BETWEEN), min_size=3, max_size=10))
@settings(
    max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_request_begins_with_the_request_before(
    daemon: Daemon, format: str, model: str, cache: str, steps: list[tuple[str, Any, str]]
) -> None:
    started = daemon.call(
        "session/start",
        persist=False,
        model=model,
        system_prompt="Be exact.",
        tools=TOOLS,
        compaction={**CHARS4, "cache": cache},
    )
    session_id = started["session_id"]
    before, epoch = "", started.get("epoch")
    for number, (what, detail, text) in enumerate([("turn", [1], "first"), *steps]):
        if what == "turn":
            daemon.call("session/append", session_id=session_id, messages=turn(number, detail, text))
        else:
            between(daemon, session_id, what, detail, text)
        context = daemon.call("session/context", session_id=session_id, format=format)
        now = bytes_of(context)
        assert context["epoch"] != epoch or now.startswith(before)
        before, epoch = now, context["epoch"]
    daemon.call("session/close", session_id=session_id)
