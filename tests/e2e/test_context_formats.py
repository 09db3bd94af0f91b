"""`session/context` in each provider's format, and messages that are appended in one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.talk import CHARS4, user
from tests.support.views import FORMATS, problems_of_providers

TOOL = {
    "name": "read",
    "description": "Reads",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}
ASKED = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "let me"},
        {"type": "tool_call", "call_id": "a", "name": "read", "arguments": '{"path" : "a.py"}'},
    ],
}
SHOT = {
    "role": "tool",
    "content": [
        {
            "type": "tool_result",
            "call_id": "a",
            "content": [
                {"type": "text", "text": "done"},
                {"type": "image", "media_type": "image/png", "data": "QUJD"},
            ],
        }
    ],
}


def start(daemon: Daemon, **params: Any) -> str:
    return str(daemon.call("session/start", compaction=CHARS4, **params)["session_id"])


def context(daemon: Daemon, session: str, format: str) -> dict[str, Any]:
    return dict(daemon.call("session/context", session_id=session, format=format))


def test_each_format_has_the_system_prompt_the_messages_and_the_tools_in_its_place(daemon: Daemon) -> None:
    session = start(daemon, system_prompt="be brief", tools=[TOOL])
    daemon.call("session/append", session_id=session, messages=[user(5), ASKED, SHOT, user(6, 1)])

    seen = {format: context(daemon, session, format) for format in FORMATS}

    assert problems_of_providers(daemon, session) == {}
    assert {format: one.get("system") for format, one in seen.items()} == {
        "neutral": "be brief",
        "openai": None,
        "openai_responses": "be brief",
        "anthropic": "be brief",
        "gemini": "be brief",
    }
    assert len({(one["tokens"], one["epoch"]) for one in seen.values()}) == 1
    assert [item.get("role", item["type"]) for item in seen["openai_responses"]["messages"]] == [
        "user",
        "assistant",
        "function_call",
        "function_call_output",
        "user",
    ]
    assert [one["role"] for one in seen["gemini"]["messages"]] == ["user", "model", "user", "user"]
    assert seen["openai_responses"]["messages"][2]["arguments"] == '{"path" : "a.py"}'
    assert seen["openai_responses"]["tools"][0]["name"] == "read"
    assert seen["gemini"]["tools"][0]["functionDeclarations"][0]["name"] == "read"


@pytest.mark.parametrize("format", [format for format in FORMATS if format != "neutral"])
def test_arguments_keep_their_bytes_in_every_format(daemon: Daemon, format: str) -> None:
    session = start(daemon)
    daemon.call("session/append", session_id=session, messages=[user(5), ASKED, SHOT])

    asked = daemon.ask("session/context", session_id=session, format=format)

    body = daemon.answer(asked).body
    arguments = b'{"path" : "a.py"}'
    as_string = json.dumps(arguments.decode()).encode()
    assert (as_string if format.startswith("openai") else b":" + arguments) in body


def test_thinking_is_not_sent_to_a_model_of_another_maker(daemon: Daemon) -> None:
    session = start(daemon, model="anthropic/claude-opus-4-5")
    # The marks for the prompt cache move with the end of the request.
    daemon.call("session/configure", session_id=session, compaction={"cache": "off"})
    thinking = {"type": "thinking", "text": "hm", "signature": "c2ln"}
    answer = {"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]}
    daemon.call("session/append", session_id=session, messages=[user(5), answer, user(6, 1)])
    before = context(daemon, session, "anthropic")
    daemon.call("session/start", session_id=session, model="google/gemini-3-pro")
    daemon.call("session/append", session_id=session, messages=[answer, user(7, 2)])

    after, gemini = context(daemon, session, "anthropic"), context(daemon, session, "gemini")

    types = [[block["type"] for block in message["content"]] for message in after["messages"]]
    assert before["messages"] == after["messages"][:3]
    assert types == [["text"], ["thinking", "text"], ["text"], ["text"], ["text"]]
    assert [part.get("thoughtSignature") for one in gemini["messages"] for part in one["parts"]] == [
        None,
        None,
        None,
        "c2ln",
        None,
        None,
    ]


def test_thinking_knows_its_maker_after_the_daemon_was_killed(spawn: Any) -> None:
    daemon = spawn()
    session = start(daemon, model="openai/gpt-5")
    thinking = {"type": "thinking", "text": "hm", "signature": "c2ln"}
    answer = {"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]}
    daemon.call("session/append", session_id=session, messages=[user(5), answer, user(6, 1)])
    daemon.kill()
    daemon = spawn()
    daemon.call("session/start", session_id=session, model="anthropic/claude-opus-4-5")

    messages = context(daemon, session, "anthropic")["messages"]

    assert [block["type"] for block in messages[1]["content"]] == ["text"]


def test_a_whole_response_of_openais_is_one_message_and_goes_back_as_it_came(daemon: Daemon) -> None:
    reasoning = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    calls = [
        {"type": "function_call", "id": f"fc_{name}", "call_id": name, "name": "read", "arguments": "{}"}
        for name in "ab"
    ]
    response = {"id": "resp_1", "object": "response", "output": [reasoning, *calls]}
    outputs = [{"type": "function_call_output", "call_id": name, "output": name} for name in "ba"]
    session = start(daemon)
    asked = {"role": "user", "content": "go"}

    appended = daemon.call(
        "session/append", session_id=session, messages=[asked, response], format="openai_responses"
    )
    daemon.call("session/append", session_id=session, messages=outputs, format="openai_responses")

    assert (len(appended["entry_ids"]), appended["pending_calls"]) == (2, ["a", "b"])
    assert problems_of_providers(daemon, session) == {}
    seen = context(daemon, session, "openai_responses")
    assert seen["repairs"] == []
    assert seen["messages"][1] == reasoning
    assert [item["call_id"] for item in seen["messages"][2:]] == ["a", "b", "b", "a"]


def test_a_compacted_session_is_valid_in_every_format(daemon: Daemon) -> None:
    session = start(daemon, tools=[TOOL])
    words = {"role": "assistant", "content": "word " * 400}
    messages = [message for n in range(6) for message in (user(50, n), words)]
    daemon.call("session/append", session_id=session, messages=messages)

    done = daemon.call("session/compact", session_id=session, keep_messages=1)

    assert done["compacted"] is True
    assert problems_of_providers(daemon, session) == {}
    first = context(daemon, session, "gemini")["messages"][0]
    assert (first["role"], first["parts"][0]["text"]) == ("user", done["summary"])
