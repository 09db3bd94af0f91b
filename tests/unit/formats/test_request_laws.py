from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from compactd.formats.messages.base import RENDERABLE, render
from compactd.protocol.errors import FormatNotSupported
from compactd.protocol.messages import Block, Image, Message, Text, Thinking, Tool, ToolResult, Unknown
from tests.support.conversations import MODELS, conversations, tools
from tests.support.rendered import asks, call, problems, projected, result, says, sent

SCHEMA = b'{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}'


@pytest.mark.parametrize("format", RENDERABLE)
@given(
    messages=conversations(),
    offered=tools(),
    wrote=st.lists(st.sampled_from(MODELS), min_size=1, max_size=3),
    model=st.sampled_from(MODELS),
)
def test_every_view_is_valid_for_every_provider(
    format: str, messages: list[Message], offered: list[Tool], wrote: list[str | None], model: str | None
) -> None:
    rendered = render(format, " ", offered, projected(*messages, models=wrote), model)

    assert problems(format, rendered, model) == []


@pytest.mark.parametrize("format", RENDERABLE)
@given(messages=conversations(), model=st.sampled_from(MODELS))
def test_every_text_that_was_projected_is_sent_once(
    format: str, messages: list[Message], model: str | None
) -> None:
    projection = projected(*messages)
    expected = {mark for each in projection.messages for mark in marks(repr_of(each.message))}

    rendered = render(format, None, [], projection, model)

    whole = (rendered.system or "") + "".join(bytes(raw).decode() for raw in rendered.messages)
    assert sorted(marks(whole)) == sorted(expected)


def marks(text: str) -> list[str]:
    return re.findall(r"<\d+>", text)


def repr_of(message: Message) -> str:
    return "".join(_repr_of(block) for block in message.content)


def _repr_of(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case ToolResult(content=str(text)):
            return text
        case ToolResult(content=blocks):
            return "".join(_repr_of(inner) for inner in blocks)
        case Unknown():
            return bytes(block.raw).decode()
        case _:
            return ""


@given(conversations())
def test_the_same_view_gives_the_same_bytes(messages: list[Message]) -> None:
    for format in RENDERABLE:
        once = render(format, "s", [], projected(*messages))
        assert render(format, "s", [], projected(*messages)) == once


def test_a_format_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(FormatNotSupported) as caught:
        render("cobol", None, [], projected())

    assert caught.value.data == {"format": "cobol", "supported": list(RENDERABLE)}


@given(
    messages=conversations(),
    wrote=st.lists(st.sampled_from(MODELS[1:]), min_size=1, max_size=3),
    model=st.sampled_from(MODELS[1:]),
)
def test_thinking_of_another_maker_is_never_sent(
    messages: list[Message], wrote: list[str | None], model: str | None
) -> None:
    makers = {"anthropic": "claude", "gemini": "gemini", "openai_responses": "gpt"}
    signed = [
        replace(message, content=tuple(_signed(block, f"c2ln{at:04d}") for block in message.content))
        for at, message in enumerate(messages)
    ]
    by = {
        block.signature: wrote[number % len(wrote)]
        for number, message in enumerate(signed, start=1)
        for block in message.content
        if isinstance(block, Thinking)
    }

    for format, maker in makers.items():
        rendered = render(format, None, [], projected(*signed, models=wrote), model)
        whole = b"".join(bytes(raw) for raw in rendered.messages).decode()
        made = {by[signature] for signature in re.findall(r"c2ln\d{4}", whole)}
        assert all(maker in (each or "") or each == model for each in made)


def _signed(block: Block, signature: str) -> Block:
    return Thinking(text="hm", signature=signature) if isinstance(block, Thinking) else block


def test_an_assistants_picture_stands_in_the_next_user_message() -> None:
    drawn = asks(Text(text="here"), Image(data="QUJD"), call())

    openai = sent("openai", says("user", "draw"), drawn, result())
    responses = sent("openai_responses", says("user", "draw"), drawn, result())
    anthropic = sent("anthropic", says("user", "draw"), drawn, result())
    gemini = sent("gemini", says("user", "draw"), drawn, result())

    assert [message["role"] for message in openai] == ["user", "assistant", "tool", "user"]
    assert [item.get("role", item["type"]) for item in responses] == [
        "user",
        "assistant",
        "function_call",
        "function_call_output",
        "user",
    ]
    assert [block["type"] for block in anthropic[2]["content"]] == ["tool_result", "image"]
    assert [list(content["parts"][0]) for content in gemini[2:]] == [["functionResponse"], ["inlineData"]]


def test_each_provider_gets_tools_in_its_shape() -> None:
    offered = [Tool(name="read", description="Reads", input_schema=Raw(SCHEMA))]
    schema = json.loads(SCHEMA)

    shapes = {format: render(format, None, offered, projected()).tools for format in RENDERABLE}

    assert {format: json.loads(bytes(raws[0])) for format, raws in shapes.items() if raws} == {
        "neutral": {"name": "read", "description": "Reads", "input_schema": schema},
        "openai": {
            "type": "function",
            "function": {"name": "read", "description": "Reads", "parameters": schema},
        },
        "openai_responses": {
            "type": "function",
            "name": "read",
            "description": "Reads",
            "parameters": schema,
            "strict": False,
        },
        "anthropic": {"name": "read", "description": "Reads", "input_schema": schema},
        "gemini": {
            "functionDeclarations": [{"name": "read", "description": "Reads", "parameters": schema}],
        },
    }
    assert render("openai", None, [], projected()).tools is None


@pytest.mark.parametrize("format", [format for format in RENDERABLE if format != "neutral"])
def test_a_name_that_a_provider_refuses_is_told_with_the_one_it_got(format: str) -> None:
    offered = [Tool(name="read"), Tool(name="mcp/read")]

    rendered = render(format, None, offered, projected())

    [(made, name)] = rendered.names.items()
    assert name == "mcp/read"
    assert f'"name":"{made}"' in b"".join(bytes(raw) for raw in rendered.tools or []).decode()


@pytest.mark.parametrize("blank", ["", " \n"])
@pytest.mark.parametrize("format", RENDERABLE)
def test_a_picture_does_not_come_between_two_results_one_of_which_a_blank_text_stands_beside(
    format: str, blank: str
) -> None:
    drawn = asks(call("a"), call("b"), Image(data="QUJD"))
    first = Message(role="user", content=(Text(text=blank), result("a").content[0]))

    rendered = render(format, None, [], projected(says("user", "draw"), drawn, first, result("b")), None)

    assert problems(format, rendered, None) == []
    assert b"QUJD" in b"".join(bytes(raw) for raw in rendered.messages)
