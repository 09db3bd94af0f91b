from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from msgspec import Raw
from rendered import asks, call, problems, projected, result, says, sent

from compactd.errors import FormatNotSupported
from compactd.formats.base import RENDERABLE, render
from compactd.messages import (
    Block,
    Image,
    Message,
    Text,
    Tool,
    ToolResult,
    Unknown,
)
from validators.conversations import conversations, tools


@pytest.mark.parametrize("format", RENDERABLE)
@given(messages=conversations(), offered=tools())
def test_every_view_is_valid_for_every_provider(
    format: str, messages: list[Message], offered: list[Tool]
) -> None:
    rendered = render(format, " ", offered, projected(*messages))

    assert problems(format, rendered) == []


@pytest.mark.parametrize("format", RENDERABLE)
@given(messages=conversations())
def test_every_text_that_was_projected_is_sent_once(format: str, messages: list[Message]) -> None:
    projection = projected(*messages)
    expected = {mark for each in projection.messages for mark in marks(repr_of(each.message))}

    rendered = render(format, None, [], projection)

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

    assert caught.value.data == {"supported": list(RENDERABLE)}


def test_an_assistants_picture_stands_in_the_next_user_message() -> None:
    drawn = asks(Text(text="here"), Image(data="QUJD"), call())

    openai = sent("openai", says("user", "draw"), drawn, result())
    anthropic = sent("anthropic", says("user", "draw"), drawn, result())

    assert [message["role"] for message in openai] == ["user", "assistant", "tool", "user"]
    assert [block["type"] for block in anthropic[2]["content"]] == ["tool_result", "image"]


def test_each_provider_gets_tools_in_its_shape() -> None:
    offered = [Tool(name="read", description="Reads", input_schema=Raw(b'{"type":"object","properties":{}}'))]
    schema = {"type": "object", "properties": {}}

    shapes = {format: render(format, None, offered, projected()).tools for format in RENDERABLE}

    assert {format: json.loads(bytes(raws[0])) for format, raws in shapes.items() if raws} == {
        "neutral": {"name": "read", "description": "Reads", "input_schema": schema},
        "openai": {
            "type": "function",
            "function": {"name": "read", "description": "Reads", "parameters": schema},
        },
        "anthropic": {"name": "read", "description": "Reads", "input_schema": schema},
    }
    assert render("openai", None, [], projected()).tools is None
