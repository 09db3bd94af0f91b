"""LangChain's messages in the protocol's form and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from msgspec import Raw, json

from compactd.formats.messages.neutral import decode_message
from compactd.integrations.frameworks.history import ShownMessage
from compactd.integrations.frameworks.langchain.messages import encode, history_of, shown, tool_texts
from compactd.protocol.messages import Image, Text, Thinking, ToolCall, ToolResult

CALL = {"type": "tool_call", "id": "c1", "name": "read", "args": {"path": "a.py", "lines": [1, 2]}}


def neutral(message: BaseMessage) -> Any:
    """Return the message as the daemon reads it."""
    return decode_message(json.encode(encode(message)))


def test_each_role_is_kept() -> None:
    roles = [
        neutral(each).role
        for each in (
            HumanMessage("hi"),
            AIMessage("hello"),
            SystemMessage("be good"),
            ToolMessage("out", tool_call_id="c1"),
            FunctionMessage("out", name="f"),
        )
    ]
    assert roles == ["user", "assistant", "system", "tool", "tool"]


def test_calls_and_results_keep_ids_names_and_arguments() -> None:
    (block,) = neutral(AIMessage("", tool_calls=[CALL])).content
    assert isinstance(block, ToolCall)
    assert (block.call_id, block.name, json.decode(block.arguments)) == ("c1", "read", CALL["args"])
    (result,) = neutral(ToolMessage("no such file", tool_call_id="c1", name="read", status="error")).content
    assert result == ToolResult(call_id="c1", name="read", content="no such file", is_error=True)


def test_calls_that_are_no_json_are_kept() -> None:
    bad = {"type": "invalid_tool_call", "id": "c1", "name": "read", "args": '{"path": ', "error": "no JSON"}
    (block,) = neutral(AIMessage("", invalid_tool_calls=[bad])).content
    assert isinstance(block, ToolCall)
    assert json.decode(block.arguments) == '{"path": '


def test_thinking_keeps_its_signature_and_images_their_data() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    said = AIMessage(
        [thinking, {"type": "text", "text": "so"}], response_metadata={"model_provider": "anthropic"}
    )
    assert neutral(said).content == (Thinking(text="hm", signature="sig"), Text(text="so"))
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    asked = HumanMessage([{"type": "text", "text": "what is it?"}, url])
    assert neutral(asked).content[1] == Image(media_type="image/png", data="aGk=")


def test_a_report_counts_cached_tokens_apart() -> None:
    said = AIMessage(
        "x",
        usage_metadata={
            "input_tokens": 100,
            "output_tokens": 5,
            "total_tokens": 105,
            "input_token_details": {"cache_read": 60, "cache_creation": 30},
        },
    )
    assert encode(said)["usage"] == {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 30,
    }


class Unheard(BaseMessage):
    """A class of message that compactd does not know."""

    type: str = "unheard"


@pytest.mark.parametrize(
    "message",
    [
        Unheard("Do as I say."),
        ChatMessage("Do as I say.", role="critic"),
        HumanMessage("Do as I say.", additional_kwargs={"lc_source": "summarization"}),
    ],
)
def test_only_what_a_person_said_counts_as_the_users(message: BaseMessage) -> None:
    meta = neutral(message).meta
    assert meta is not None
    assert meta.synthetic
    assert meta.author in ("unknown", "summary")


def test_messages_that_stay_are_the_hosts_own_objects() -> None:
    messages = [HumanMessage("a"), AIMessage("b"), HumanMessage("c")]
    summary = ShownMessage("user", Raw(b'"A summary."'), is_summary=True)
    view = shown([summary, 1, 2], messages)
    assert view[1] is messages[1]
    assert view[2] is messages[2]
    assert isinstance(view[0], HumanMessage)
    assert view[0].content == "A summary."


def test_a_changed_result_keeps_what_else_its_message_has() -> None:
    original = ToolMessage("long", tool_call_id="c1", name="read", id="m1", artifact={"rows": 3})
    stub = Raw(json.encode([{"type": "tool_result", "call_id": "c1", "content": "[removed]"}]))
    (message,) = shown([ShownMessage("tool", stub, index=0)], [original])
    assert isinstance(message, ToolMessage)
    assert (message.content, message.id, message.artifact) == ("[removed]", "m1", {"rows": 3})
    assert original.content == "long"


def test_a_missing_result_becomes_a_tool_message() -> None:
    made = Raw(json.encode([{"type": "tool_result", "call_id": "c9", "content": "none", "is_error": True}]))
    (message,) = shown([ShownMessage("tool", made)], [])
    assert isinstance(message, ToolMessage)
    assert (message.tool_call_id, message.status) == ("c9", "error")


BLOCKS = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, st.text(min_size=1, max_size=20)),
        st.builds(
            lambda text, signature: {
                "type": "reasoning",
                "reasoning": text,
                "extras": {"signature": signature},
            },
            st.text(max_size=20),
            st.text(min_size=1, max_size=5),
        ),
        st.builds(
            lambda number, value: {
                "type": "tool_call",
                "id": f"c{number}",
                "name": "read",
                "args": {"x": value},
            },
            st.integers(0, 99),
            st.one_of(st.text(max_size=5), st.integers(), st.lists(st.booleans(), max_size=2)),
        ),
    ),
    min_size=1,
    max_size=5,
    unique_by=repr,
)


@given(BLOCKS)
def test_an_answer_comes_back_as_it_was(blocks: list[dict[str, Any]]) -> None:
    calls = [block for block in blocks if block["type"] == "tool_call"]
    said = AIMessage([block for block in blocks if block not in calls], tool_calls=calls)
    there = encode(said)["content"]
    (back,) = shown([ShownMessage("assistant", Raw(json.encode(there)))], [])
    assert encode(back)["content"] == there
    assert isinstance(back, AIMessage)
    assert [(call["id"], call["args"]) for call in back.tool_calls] == [
        (call["id"], call["args"]) for call in said.tool_calls
    ]


@given(st.data())
def test_a_change_of_what_is_sent_changes_the_key(data: st.DataObject) -> None:
    text, other = data.draw(st.lists(st.text(max_size=5), min_size=2, max_size=2, unique=True))
    pairs = [
        (HumanMessage(text), HumanMessage(other)),
        (
            AIMessage("", tool_calls=[{**CALL, "args": {"x": text}}]),
            AIMessage("", tool_calls=[{**CALL, "args": {"x": other}}]),
        ),
        (ToolMessage(text, tool_call_id="c"), ToolMessage(other, tool_call_id="c")),
        (HumanMessage([{"type": "text", "text": text}]), HumanMessage([{"type": "text", "text": other}])),
    ]
    for one, changed in pairs:
        assert history_of([one]).keys != history_of([changed]).keys
        assert history_of([one]).keys == history_of([one.model_copy(deep=True)]).keys


def test_a_key_follows_an_edit_in_place() -> None:
    message = AIMessage("", tool_calls=[{**CALL, "args": {"x": 1}}])
    before = history_of([message]).keys
    message.tool_calls[0]["args"]["x"] = 2
    assert history_of([message]).keys != before


def test_each_text_of_a_tools_output_is_changed() -> None:
    image = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    message = ToolMessage([{"type": "text", "text": "long"}, image], tool_call_id="c1")
    assert tool_texts(message, lambda _: "short").content == [{"type": "text", "text": "short"}, image]
    assert tool_texts(message, lambda text: text) is message
