"""Messages in a provider's shape that come without `format`: refused if something of them would be lost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.refusals import polite
from tests.support.client import Daemon
from tests.support.talk import CHARS4, Message

CALL = {"id": "q2", "type": "function", "function": {"name": "x", "arguments": "{}"}}
PICTURE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}

LOST: dict[str, tuple[str, Message]] = {
    "OpenAI's calls": ("openai", {"role": "assistant", "content": "", "tool_calls": [CALL]}),
    "OpenAI's calls beside null": ("openai", {"role": "assistant", "content": None, "tool_calls": [CALL]}),
    "OpenAI's calls beside text": ("openai", {"role": "assistant", "content": "So.", "tool_calls": [CALL]}),
    "OpenAI's older call": (
        "openai",
        {"role": "assistant", "content": "", "function_call": {"name": "x", "arguments": "{}"}},
    ),
    "OpenAI's reasoning": ("openai", {"role": "assistant", "content": "4", "reasoning_content": "2 + 2"}),
    "OpenAI's result": ("openai", {"role": "tool", "tool_call_id": "q2", "content": "done"}),
    "OpenAI's developer": ("openai", {"role": "developer", "content": "Be brief."}),
    "OpenAI's picture": (
        "openai",
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]},
    ),
    "Anthropic's call": (
        "anthropic",
        {"role": "assistant", "content": [{"type": "tool_use", "id": "q3", "name": "x", "input": {}}]},
    ),
    "Anthropic's result": (
        "anthropic",
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "q3", "content": "done"}]},
    ),
    "Anthropic's thinking": (
        "anthropic",
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]},
    ),
    "Anthropic's picture": (
        "anthropic",
        {"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "image", "source": PICTURE}]},
    ),
    "Gemini's call": (
        "gemini",
        {"role": "model", "parts": [{"functionCall": {"name": "x", "args": {}}}]},
    ),
    "a call of the Responses API": (
        "openai_responses",
        {"type": "function_call", "call_id": "q4", "name": "x", "arguments": "{}"},
    ),
    "text of the Responses API": (
        "openai_responses",
        {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
    ),
}
EACH_LOST = pytest.mark.parametrize("case", LOST)

WHOLE: dict[str, Message] = {
    "text": {"role": "user", "content": "Hello"},
    "text as a block": {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
    "no calls": {"role": "assistant", "content": "Hello", "tool_calls": [], "function_call": None},
    "no refusal": {"role": "assistant", "content": "Hello", "refusal": None, "tool_calls": None},
    "words about calls": {"role": "assistant", "content": 'It has "tool_calls" and "function_call".'},
    "arguments about calls": {
        "role": "assistant",
        "content": [{"type": "tool_call", "call_id": "a", "name": "x", "arguments": {"tool_calls": [1]}}],
    },
    "Anthropic's cache mark": {
        "role": "user",
        "content": [{"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}],
    },
    "a block that nobody knows": {"role": "user", "content": [{"type": "hologram", "source": 1}]},
    "a block that Anthropic's shape keeps as it is, too": {
        "role": "assistant",
        "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}],
    },
    "thinking whose words are hidden": {
        "role": "assistant",
        "content": [{"type": "thinking", "text": "", "signature": "s"}, {"type": "text", "text": "Hello"}],
    },
}


def opened(daemon: Daemon) -> str:
    """The id of a new session in memory."""
    return str(daemon.call("session/start", compaction=CHARS4, persist=False)["session_id"])


@EACH_LOST
@pytest.mark.parametrize("method", ["session/append", "turn/end", "tokens/count"])
def test_a_message_that_would_lose_something_is_refused_with_the_format_to_give(
    daemon: Daemon, method: str, case: str
) -> None:
    format, message = LOST[case]
    target: dict[str, Any] = {} if method == "tokens/count" else {"session_id": opened(daemon)}

    refused = daemon.refusal(method, messages=[{"role": "user", "content": "Go"}, message], **target)

    assert (refused.code, refused.data["path"]) == (-32602, "$.messages[1]")
    assert refused.data["format"] == format
    assert f'format: "{format}"' in refused.message
    polite(daemon, refused, -32602)
    if "session_id" in target:
        assert daemon.call("session/history", **target)["entries"] == [], "all or none"


@EACH_LOST
def test_with_the_format_that_is_named_it_is_taken(daemon: Daemon, case: str) -> None:
    format, message = LOST[case]
    session = opened(daemon)

    done = daemon.call("session/append", session_id=session, messages=[message], format=format)

    assert done["entry_ids"] == ["e1"]
    has_call = "call" in case and "result" not in case
    assert bool(done["pending_calls"]) == has_call


@pytest.mark.parametrize("case", WHOLE)
def test_a_message_that_loses_nothing_passes_and_is_kept_byte_for_byte(daemon: Daemon, case: str) -> None:
    session = opened(daemon)

    done = daemon.call("session/append", session_id=session, messages=[WHOLE[case]])

    [entry] = daemon.call("session/history", session_id=session)["entries"]
    assert done["entry_ids"] == ["e1"]
    assert entry["message"] == WHOLE[case]


def test_a_call_in_a_shape_that_no_format_reads_is_refused(daemon: Daemon) -> None:
    block = {"type": "tool-call", "toolCallId": "a", "toolName": "x", "input": {}}
    message = {"role": "assistant", "content": [block]}

    refused = daemon.refusal("session/append", session_id=opened(daemon), messages=[message])

    assert (refused.code, refused.data["path"]) == (-32602, "$.messages[0]")
    assert "`tool_call`" in refused.message


def test_who_says_neutral_keeps_a_block_of_any_type(daemon: Daemon) -> None:
    _, message = LOST["Anthropic's call"]
    session = opened(daemon)

    daemon.call("session/append", session_id=session, messages=[message], format="neutral")

    assert daemon.call("session/history", session_id=session)["entries"][0]["message"] == message


def test_what_one_session_gives_back_another_takes(daemon: Daemon) -> None:
    _, call = LOST["Anthropic's call"]
    _, result = LOST["Anthropic's result"]
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    answer = {"role": "assistant", "content": [search, found, {"type": "text", "text": "Done."}]}
    first, second = opened(daemon), opened(daemon)
    daemon.call("session/append", session_id=first, messages=[call, result, answer], format="anthropic")
    told = [entry["message"] for entry in daemon.call("session/history", session_id=first)["entries"]]

    daemon.call("session/append", session_id=second, messages=told)

    again = [entry["message"] for entry in daemon.call("session/history", session_id=second)["entries"]]
    assert again == told


def test_a_prompt_in_a_providers_shape_is_refused(daemon: Daemon) -> None:
    _, picture = LOST["Anthropic's picture"]
    session = opened(daemon)

    refused = daemon.refusal("agent/prompt", session_id=session, content=picture["content"])

    assert (refused.code, refused.data["path"]) == (-32602, "$.content")
    assert "Anthropic's format" in refused.message
