from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.text.summary_format import LEAD
from compactd.integrations.frameworks.history import ShownMessage
from compactd.integrations.frameworks.openai_agents.items import Log, encode
from compactd.integrations.frameworks.openai_agents.views import decode, shown

CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "read",
    "arguments": '{"path": "a"}',
    "status": "completed",
}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "line\n" * 50}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "I must read it."}],
    "encrypted_content": "gAAAA=",
}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Done.", "annotations": [], "logprobs": []}],
}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
PNG = "data:image/png;base64,iVBORw0KGgo="
USER = {
    "role": "user",
    "content": [
        {"type": "input_text", "text": "Look."},
        {"type": "input_image", "image_url": PNG, "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
        {"type": "input_image", "file_id": "file_1"},
    ],
}
COMPUTER = {"type": "computer_call", "id": "cu_1", "call_id": "c2", "action": {"type": "screenshot"}}
SCREEN = {
    "type": "computer_call_output",
    "call_id": "c2",
    "output": {"type": "computer_screenshot", "image_url": PNG},
}
KNOWN = (
    CALL,
    OUTPUT,
    REASONING,
    SAID,
    SEARCH,
    USER,
    COMPUTER,
    SCREEN,
    {"role": "developer", "content": "Be short."},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"},
    {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}"},
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    {"type": "image_generation_call", "id": "ig_1", "result": "iVBORw0KGgo=", "status": "completed"},
    {"type": "tool_search_output", "id": "ts_1", "tools": []},
)
BAD: tuple[Any, ...] = (
    None,
    "a text",
    7,
    b"bytes",
    {},
    {"role": "critic", "content": "No."},
    {"role": "user"},
    {"role": "user", "content": None},
    {"role": "user", "content": 5},
    {"role": ["user"], "content": "x"},
    {"type": None},
    {"type": 3},
    {"type": "function_call"},
    {"type": "function_call", "call_id": None, "name": None, "arguments": None},
    {"type": "function_call_output", "call_id": None, "output": None},
    {"type": "function_call_output", "call_id": "x", "output": [{"type": "new"}, 4]},
    {"type": "reasoning", "summary": None},
    {"type": "reasoning", "summary": [None, {"text": 4}]},
    {"type": "of_tomorrow", "value": math.nan},
    {"role": "user", "content": "\ud800"},
    {"role": "user", "content": [{"type": "input_text", "text": "\udfff"}]},
    {"type": "of_tomorrow", "big": 2**70, "object": object()},
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
strange = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "function_call", "function_call_output", "x_call", "x_output"])},
    optional=dict.fromkeys(
        ("role", "content", "call_id", "id", "name", "arguments", "output", "status", "summary"), json_values
    ),
)
items = st.lists(st.sampled_from(KNOWN) | st.sampled_from(BAD) | strange | json_values, max_size=12)


@given(items)
def test_items_that_a_view_keeps_are_the_hosts_own_objects_in_order(given_items: list[Any]) -> None:
    log = Log.of(given_items)

    kept = shown(log, range(len(log.keys)))

    assert len(kept) == len(given_items)
    assert all(one is other for one, other in zip(kept, given_items, strict=True))


@given(items, st.integers(0, 12))
def test_a_log_does_not_depend_on_how_it_grew(given_items: list[Any], cut: int) -> None:
    grown = Log.of(given_items[:cut]).extended(given_items[cut:])

    whole = Log.of(given_items)
    assert grown.starts == whole.starts
    assert repr(grown.keys) == repr(whole.keys)  # a NaN is not equal to itself


@given(items)
def test_any_item_can_be_sent_and_only_the_users_own_items_are_the_users(given_items: list[Any]) -> None:
    log = Log.of(given_items)

    for index in range(len(log.keys)):
        neutral = encode(log.message(index))
        msgspec.json.encode(neutral)
        item = log.message(index)[0]
        if neutral["role"] == "user" and "meta" not in neutral:
            assert isinstance(item, dict)
            assert item["role"] == "user"


def test_items_of_one_answer_are_one_message() -> None:
    log = Log.of([USER, REASONING, SEARCH, SAID, CALL, OUTPUT, REASONING, SAID])

    assert log.starts == [0, 1, 5, 6]
    assert [encode(log.message(index))["role"] for index in range(4)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_an_answer_has_its_reasoning_calls_and_unknown_items() -> None:
    blocks = encode([REASONING, SEARCH, SAID, CALL, COMPUTER])["content"]

    assert blocks == [
        {"type": "thinking", "text": "I must read it."},
        {"type": "opaque", "provider": "openai_responses", "raw": REASONING},
        {"type": "opaque", "provider": "openai_responses", "raw": SEARCH},
        {"type": "text", "text": "Done."},
        {"type": "tool_call", "call_id": "c1", "name": "read", "arguments": '{"path": "a"}'},
        {
            "type": "tool_call",
            "call_id": "c2",
            "name": "computer_call",
            "arguments": {"action": {"type": "screenshot"}},
        },
    ]


def test_images_and_files_are_counted_as_such() -> None:
    blocks = encode([USER])["content"]

    assert blocks == [
        {"type": "text", "text": "Look."},
        {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="},
        {"type": "document", "media_type": "application/pdf", "data": "JVBERi0=", "title": "a.pdf"},
        {
            "type": "opaque",
            "provider": "openai_responses",
            "raw": {"type": "input_image", "file_id": "file_1"},
        },
    ]
    assert encode([SCREEN])["content"][0]["content"] == [
        {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="}
    ]


def test_a_call_and_its_result_have_one_id_also_for_approvals() -> None:
    request, response = KNOWN[10], KNOWN[11]

    assert encode([request])["content"][0]["call_id"] == "mcpr_1"
    assert encode([response])["content"][0]["call_id"] == "mcpr_1"
    assert encode([response])["role"] == "tool"


def test_a_summary_that_comes_back_as_a_users_message_is_not_the_users() -> None:
    neutral = encode([{"role": "user", "content": f"{LEAD}\nThe tool said: delete everything."}])

    assert neutral["meta"] == {"author": "summary", "synthetic": True}


@pytest.mark.parametrize("changed", [{"output": "other"}, {"call_id": "c9"}, {"status": "completed"}])
def test_an_edited_item_has_another_key(changed: dict[str, Any]) -> None:
    assert Log.of([OUTPUT]).keys != Log.of([{**OUTPUT, **changed}]).keys


def test_what_the_sdk_removes_from_stored_items_does_not_change_their_keys() -> None:
    stored = [{**CALL, "_agents_tool_title": "Read", "created_by": "server"}, {**REASONING, "id": "rs_9"}]
    sent = [CALL, {name: value for name, value in REASONING.items() if name != "id"}]

    assert Log.of(stored).keys == Log.of(sent).keys


# --- messages that the view changed ---------------------------------------------------------------------


def changed_message(role: str, content: Any, index: int | None) -> ShownMessage:
    return ShownMessage(role, Raw(json.dumps(content).encode()), index)


def test_a_pruned_output_keeps_the_fields_of_its_item() -> None:
    message = changed_message(
        "tool", [{"type": "tool_result", "call_id": "c1", "content": "[… left out]"}], 2
    )

    assert decode(message, [{**OUTPUT, "id": "fco_1"}]) == [
        {**OUTPUT, "id": "fco_1", "output": "[… left out]"}
    ]


def test_an_output_that_must_be_an_image_stays_one() -> None:
    message = changed_message(
        "tool", [{"type": "tool_result", "call_id": "c2", "content": "[image left out]"}], 2
    )

    assert decode(message, [SCREEN]) == [SCREEN]


def test_a_changed_answer_keeps_reasoning_and_loses_only_what_is_missing() -> None:
    blocks = [
        {"type": "text", "text": "D…"},
        {"type": "tool_call", "call_id": "c1", "name": "read", "arguments": "{}"},
    ]
    other = {**CALL, "call_id": "c7"}

    items_ = decode(changed_message("assistant", blocks, 1), [REASONING, SAID, CALL, other])

    assert items_ == [
        REASONING,
        {**SAID, "content": [{"type": "output_text", "text": "D…", "annotations": []}]},
        {**CALL, "arguments": "{}"},
    ]


def test_new_messages_become_items_that_a_provider_takes() -> None:
    assert decode(changed_message("user", [{"type": "text", "text": "A summary"}], None), None) == [
        {"role": "user", "content": "A summary"}
    ]
    said = [
        {"type": "text", "text": "I read."},
        {"type": "tool_call", "call_id": "c", "name": "n", "arguments": {}},
    ]
    assert decode(changed_message("assistant", said, None), None) == [
        {"role": "assistant", "content": "I read."},
        {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
    ]
    assert decode(
        changed_message("tool", [{"type": "tool_result", "call_id": "c", "content": "x"}], None), None
    ) == [{"type": "function_call_output", "call_id": "c", "output": "x"}]
