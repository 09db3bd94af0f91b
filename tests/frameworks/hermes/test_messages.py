"""Hermes' messages as compactd gets them, and views as Hermes gets them."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.integrations.frameworks.hermes import CompactdEngine
from compactd.integrations.frameworks.hermes.messages import (
    BRIDGE,
    SUMMARY_KEY,
    Message,
    encode,
    history_of,
    key_of,
)
from compactd.integrations.frameworks.hermes.shown import messages_of, shown
from compactd.integrations.frameworks.history import ShownMessage

PIXEL = "iVBORw0KGgo="
CALL = {
    "id": "call_1",
    "call_id": "call_1",
    "response_item_id": "fc_1",
    "type": "function",
    "function": {"name": "read", "arguments": '{"path": "a.py"}'},
}
ANSWER = {
    "role": "assistant",
    "content": "I look.",
    "reasoning": "Where is it?",
    "finish_reason": "tool_calls",
    "tool_calls": [CALL],
}


def view(role: str, content: object, **options: Any) -> ShownMessage:
    return ShownMessage(role, msgspec.Raw(json.dumps(content).encode()), **options)


def test_an_answer_keeps_its_thinking_its_text_and_its_calls() -> None:
    assert encode(ANSWER) == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "text": "Where is it?"},
            {"type": "text", "text": "I look."},
            {"type": "tool_call", "call_id": "call_1", "name": "read", "arguments": {"path": "a.py"}},
        ],
        "stop_reason": "tool_calls",
    }


def test_a_result_names_its_tool_and_its_call() -> None:
    result = {"role": "tool", "name": "read", "tool_call_id": "call_1", "content": "x = 1"}
    block = {"type": "tool_result", "call_id": "call_1", "content": "x = 1", "name": "read"}
    assert encode(result) == {"role": "tool", "content": [block]}


def test_images_and_unknown_parts() -> None:
    parts = [
        {"type": "text", "text": "Look."},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "video", "seconds": 3},
    ]
    assert encode({"role": "user", "content": parts})["content"] == [
        {"type": "text", "text": "Look."},
        {"type": "image", "media_type": "image/png", "data": PIXEL},
        {"type": "image", "url": "https://example.org/a.png"},
        {"type": "opaque", "provider": "hermes", "raw": {"type": "video", "seconds": 3}},
    ]


@pytest.mark.parametrize(
    ("message", "author"),
    [
        ({"content": "[CONTEXT SUMMARY]:\nUser: delete all"}, "summary"),
        ({"content": "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns …"}, "summary"),
        ({"content": "said before", "_compressed_summary": True}, "summary"),
        ({"content": "[System: Your previous response was truncated]"}, "notification"),
        ({"content": "[IMPORTANT: Background process 3 ended]"}, "notification"),
        ({"content": "Go on.", "_empty_recovery_synthetic": True}, "notification"),
    ],
)
def test_what_hermes_wrote_is_no_word_of_the_users(message: Message, author: str) -> None:
    assert encode({"role": "user", **message})["meta"] == {"author": author, "synthetic": True}


def test_a_role_that_nobody_knows_is_no_word_of_the_users() -> None:
    neutral = encode({"role": "narrator", "content": "Delete all."})
    assert neutral["meta"] == {"author": "unknown", "synthetic": True}
    assert "meta" not in encode({"role": "user", "content": "Delete all."})


def test_reports_belong_to_the_last_answers() -> None:
    messages: list[Message] = [{"role": "user", "content": "a"}, ANSWER, copy.deepcopy(ANSWER)]
    history = history_of(messages, [{"input_tokens": 7}])
    assert "usage" not in history.encode(1)
    assert history.encode(2)["usage"] == {"input_tokens": 7}
    more = history_of(messages, [{"input_tokens": number} for number in range(5)])
    assert [more.encode(at)["usage"]["input_tokens"] for at in (1, 2)] == [3, 4]


def test_a_report_has_the_cached_input_apart() -> None:
    engine = CompactdEngine()
    engine.update_from_response(
        {
            "prompt_tokens": 1_000,
            "completion_tokens": 20,
            "total_tokens": 1_020,
            "input_tokens": 100,
            "output_tokens": 20,
            "cache_read_tokens": 600,
            "cache_write_tokens": 300,
            "reasoning_tokens": 5,
        }
    )
    assert engine._usages == [
        {
            "input_tokens": 100,
            "output_tokens": 20,
            "cache_read_input_tokens": 600,
            "cache_creation_input_tokens": 300,
        }
    ]
    assert engine.get_status()["last_prompt_tokens"] == 1_000
    # Hermes reports nothing, or an older Hermes reports less.
    engine.update_from_response({})
    engine.update_from_response({"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10})
    assert engine._usages[1:] == [
        {
            "input_tokens": 9,
            "output_tokens": 1,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
        }
    ]


def test_hermes_estimate_is_corrected_by_what_the_provider_counted() -> None:
    engine = CompactdEngine()
    engine.update_model("m", 10_000)
    assert (engine.should_compress(7_900), engine.should_compress(8_000)) == (False, True)
    assert not engine.should_compress(5_000)
    engine.update_from_response({"prompt_tokens": 7_500})
    assert not engine.should_compress(7_500)
    assert engine.should_compress(5_400)
    engine.update_model("m", 20_000)
    assert not engine.should_compress(5_400)


def test_a_view_that_is_whole_is_what_hermes_has() -> None:
    stored = {"role": "user", "content": "Hello.", "_db_persisted": True, "api_content": "Hello. (memory)"}
    placed = shown([0, 1], [stored, ANSWER])
    assert messages_of(placed) == [
        {"role": "user", "content": "Hello.", "api_content": "Hello. (memory)"},
        ANSWER,
    ]
    assert [key_of(message) for message, _ in placed] == [key_of(stored), key_of(ANSWER)]


def test_a_summary_does_not_touch_a_message_of_the_users() -> None:
    summary = view("user", "[Conversation summary …", is_summary=True)
    user: Message = {"role": "user", "content": "Go on."}
    for items, roles in (
        ([summary, 0, 1], ["user", "assistant", "user", "assistant"]),
        ([0, summary, 1], ["user", "assistant", "user", "assistant"]),
        ([summary, 1], ["user", "assistant"]),
    ):
        messages = messages_of(shown(items, [user, ANSWER]))
        assert [message["role"] for message in messages] == roles
        assert sum(message["content"] == BRIDGE for message in messages) == len(roles) - len(items)
        assert [message["content"] for message in messages if message.get(SUMMARY_KEY)] == [
            "[CONTEXT SUMMARY]:\n[Conversation summary …"
        ]


def test_a_shortened_result_and_shortened_arguments() -> None:
    result: Message = {"role": "tool", "tool_call_id": "call_1", "content": "long " * 99, "api_content": "x"}
    block = {"type": "tool_result", "call_id": "call_1", "content": "long … clipped"}
    call = {"type": "tool_call", "call_id": "call_1", "name": "read", "arguments": {"path": "…"}}
    answered, returned = messages_of(
        shown([view("assistant", [call], index=0), view("tool", [block], index=1)], [ANSWER, result])
    )
    assert returned == {"role": "tool", "tool_call_id": "call_1", "content": "long … clipped"}
    assert answered["tool_calls"] == [{**CALL, "function": {"name": "read", "arguments": '{"path": "…"}'}}]
    assert (answered["content"], answered["reasoning"]) == ("", "Where is it?")


def test_an_image_stays_in_a_changed_message() -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}, "extra": 1}
    message: Message = {"role": "user", "content": [{"type": "text", "text": "long " * 99}, image]}
    blocks = [
        {"type": "text", "text": "long … clipped"},
        {"type": "image", "media_type": "image/png", "data": PIXEL},
    ]
    (changed,) = messages_of(shown([view("user", blocks, index=0)], [message]))
    assert changed["content"] == [{"type": "text", "text": "long … clipped"}, image]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool", "system", "", None, 3])},
        optional={
            "content": anything,
            "tool_calls": st.none() | st.lists(anything, max_size=2),
            "tool_call_id": anything,
            "reasoning": anything,
            "reasoning_details": st.none() | st.lists(anything, max_size=2),
        },
    )
)
def test_whatever_a_message_is_it_can_be_sent(message: Message) -> None:
    history = history_of([message])
    assert hash(history.keys[0]) == hash(key_of(copy.deepcopy(message)))
    neutral = history.encode(0)
    assert neutral["role"] in ("user", "assistant", "tool", "system")
    json.dumps(neutral)
