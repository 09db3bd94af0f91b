from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from msgspec import Raw

from compactd.core.projection import Projection, project
from compactd.errors import FormatNotSupported
from compactd.formats.base import RENDERABLE, Rendered, render
from compactd.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)
from validators import anthropic_messages, neutral_shape, openai_chat
from validators.conversations import conversations, count, items_of, tools


def says(role: Role, *texts: str) -> Message:
    return Message(role=role, content=tuple(Text(text=text) for text in texts))


def asks(*blocks: Block) -> Message:
    return Message(role="assistant", content=blocks)


def call(call_id: str = "a", arguments: bytes = b"{}", name: str = "read") -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments=Raw(arguments))


def result(call_id: str = "a", content: str | tuple[Block, ...] = "out", is_error: bool = False) -> Message:
    return Message(role="tool", content=(ToolResult(call_id=call_id, content=content, is_error=is_error),))


def projected(*messages: Message) -> Projection:
    return project(items_of(messages), count)


def sent(format: str, *messages: Message, system: str | None = None) -> list[dict[str, Any]]:
    """The messages as the provider gets them; its rules hold."""
    rendered = render(format, system, [], projected(*messages))
    assert problems(format, rendered) == []
    return decoded(rendered.messages)


def decoded(raws: list[Raw]) -> list[dict[str, Any]]:
    return [json.loads(bytes(raw)) for raw in raws]


def problems(format: str, rendered: Rendered) -> list[str]:
    messages = decoded(rendered.messages)
    offered = None if rendered.tools is None else decoded(rendered.tools)
    match format:
        case "openai":
            return openai_chat.problems(messages, offered)
        case "anthropic":
            return anthropic_messages.problems(messages, rendered.system, offered)
        case _:
            return neutral_shape.problems(messages)


# --- laws -------------------------------------------------------------------------------------------


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


# --- openai -----------------------------------------------------------------------------------------


def test_openai_gets_the_system_prompt_as_its_first_message() -> None:
    assert sent("openai", says("user", "hi"), says("system", "note"), system="be brief") == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {"role": "system", "content": "note"},
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (b'{"a" : 1.0}', '{"a" : 1.0}'),
        (b'"{\\"a\\" : 1.0}"', '{"a" : 1.0}'),
        (b'"not json"', "not json"),
        (b"null", "{}"),
        (b"[1]", "[1]"),
    ],
)
def test_openai_gets_arguments_as_the_text_they_were(arguments: bytes, text: str) -> None:
    messages = sent("openai", asks(Text(text="let me"), call(arguments=arguments)), result())

    assert messages == [
        {
            "role": "assistant",
            "content": "let me",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "read", "arguments": text}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "out"},
    ]


def test_openai_arguments_given_as_a_string_keep_their_bytes() -> None:
    given_string = '"{\\u0022a\\u0022:\\t1}"'
    rendered = render("openai", None, [], projected(asks(call(arguments=given_string.encode())), result()))

    [asked, _] = decoded(rendered.messages)
    assert asked["tool_calls"][0]["function"]["arguments"] == '{"a":\t1}'


def test_openai_gets_no_thinking_and_no_message_of_nothing_else() -> None:
    assert sent(
        "openai", asks(Thinking(text="hm", signature="s")), asks(Thinking(text="hm"), Text(text="ok"))
    ) == [{"role": "assistant", "content": "ok"}]


def test_openai_gets_a_results_picture_in_a_user_message_after_the_batch() -> None:
    shot = (Text(text="done"), Image(data="QUJD"))

    messages = sent("openai", asks(call("a"), call("b")), result("a", shot), result("b"), says("user", "so?"))

    assert messages[1:] == [
        {"role": "tool", "tool_call_id": "a", "content": "done"},
        {"role": "tool", "tool_call_id": "b", "content": "out"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[from the result of tool call a]"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
            ],
        },
        {"role": "user", "content": "so?"},
    ]


def test_openai_gets_the_results_of_a_user_message_before_its_text() -> None:
    mixed = Message(role="user", content=(Text(text="and"), ToolResult(call_id="a", content="out")))

    assert sent("openai", asks(call()), mixed)[1:] == [
        {"role": "tool", "tool_call_id": "a", "content": "out"},
        {"role": "user", "content": "and"},
    ]


def test_openai_gets_pictures_files_and_unknown_blocks_as_parts() -> None:
    audio = b'{"type":"input_audio","input_audio":{"data":"d","format":"wav"}}'
    content = (
        Text(text="see"),
        Image(url="https://example.org/a.png"),
        Image(media_type="image/svg+xml", data="QUJD"),
        Document(data="QUJD", title="a.pdf"),
        Unknown(type="input_audio", raw=Raw(audio)),
        Unknown(type="file", raw=Raw(b'{"type":"file","path":"a.py"}')),
    )

    [message] = sent("openai", Message(role="user", content=content))

    assert message["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "text", "text": "[image, image/svg+xml]"},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"}},
        json.loads(audio),
        {"type": "text", "text": '{"type":"file","path":"a.py"}'},
    ]


def test_openai_gets_ids_and_names_it_accepts_and_each_its_own() -> None:
    long_ids = ["x" * 70 + end for end in "ab"]
    offered = [Tool(name="mcp.read"), Tool(name="mcp_read")]
    conversation = projected(asks(*(call(i, name="mcp.read") for i in long_ids)), *map(result, long_ids))

    rendered = render("openai", None, offered, conversation)

    assert problems("openai", rendered) == []
    names = [tool["function"]["name"] for tool in decoded(rendered.tools or [])]
    asked = decoded(rendered.messages)[0]["tool_calls"]
    assert {each["function"]["name"] for each in asked} == {names[0]}
    assert names[1] == "mcp_read"
    assert len({each["id"] for each in asked}) == 2


# --- anthropic --------------------------------------------------------------------------------------


def test_anthropic_gets_the_system_prompt_apart_and_a_later_system_message_in_tags() -> None:
    messages = [says("user", "hi"), says("assistant", "yes"), says("system", "note"), says("user", "go")]

    rendered = render("anthropic", "be brief", [], projected(*messages))

    assert rendered.system == "be brief"
    assert decoded(rendered.messages)[2] == {
        "role": "user",
        "content": [
            {"type": "text", "text": "<system-message>\nnote\n</system-message>"},
            {"type": "text", "text": "go"},
        ],
    }


def test_anthropic_gets_leading_system_messages_as_part_of_the_system_prompt() -> None:
    rendered = render("anthropic", None, [], projected(says("system", "be brief"), says("user", "hi")))

    assert (rendered.system, len(rendered.messages)) == ("be brief", 1)


def test_anthropic_gets_a_user_message_before_a_leading_assistants() -> None:
    assert sent("anthropic", says("assistant", "hello "), says("assistant", "again \n")) == [
        {"role": "user", "content": [{"type": "text", "text": "(conversation continues)"}]},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "hello "}, {"type": "text", "text": "again"}],
        },
    ]


def test_anthropic_gets_results_first_and_neighbours_merged() -> None:
    mixed = Message(role="user", content=(Text(text="and"), ToolResult(call_id="b", content="of b")))

    messages = sent("anthropic", says("user", "go"), asks(call("a"), call("b")), result("a"), mixed)

    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "out"},
        {"type": "tool_result", "tool_use_id": "b", "content": "of b"},
        {"type": "text", "text": "and"},
    ]


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (b'{"a" : 1.0}', '{"a" : 1.0}'),
        (b'"{\\"a\\" : 1.0}"', '{"a" : 1.0}'),
        (b'"not json"', '{"_raw":"not json"}'),
        (b'"[1]"', '{"_raw":"[1]"}'),
        (b"[1]", '{"_raw":"[1]"}'),
        (b'"{\\"torn\\":"', '{"_raw":"{\\"torn\\":"}'),
        (b'""', "{}"),
        (b"null", "{}"),
    ],
)
def test_anthropic_gets_arguments_as_an_object(arguments: bytes, seen: str) -> None:
    rendered = render(
        "anthropic", None, [], projected(says("user", "go"), asks(call(arguments=arguments)), result())
    )

    assert f'"input":{seen}}}' in bytes(rendered.messages[1]).decode()
    assert problems("anthropic", rendered) == []


def test_anthropic_gets_thinking_word_for_word_with_its_signature_or_not_at_all() -> None:
    messages = sent(
        "anthropic",
        says("user", "go"),
        asks(Thinking(text=" hm\n", signature="sig"), Thinking(redacted="r"), Text(text="a")),
        says("user", "go"),
        asks(Thinking(text="unsigned"), Text(text="b")),
        says("user", "go"),
        asks(Thinking(text="alone", signature="sig")),
    )

    assert messages[1]["content"] == [
        {"type": "thinking", "thinking": " hm\n", "signature": "sig"},
        {"type": "redacted_thinking", "data": "r"},
        {"type": "text", "text": "a"},
    ]
    assert messages[3]["content"] == [{"type": "text", "text": "b"}]
    assert len(messages) == 5


def test_anthropic_gets_no_empty_text() -> None:
    messages = sent(
        "anthropic",
        says("user", "go", "", " "),
        asks(Text(text=""), call()),
        result("a", (Text(text=""), Text(text="x"))),
        asks(Text(text="\n"), call("b")),
        result("b", " ", is_error=True),
    )

    assert [message["content"] for message in messages] == [
        [{"type": "text", "text": "go"}],
        [{"type": "tool_use", "id": "a", "name": "read", "input": {}}],
        [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}]}],
        [{"type": "tool_use", "id": "b", "name": "read", "input": {}}],
        [
            {
                "type": "tool_result",
                "tool_use_id": "b",
                "content": "[error without output]",
                "is_error": True,
            }
        ],
    ]


def test_anthropic_gets_ids_and_names_it_accepts() -> None:
    rendered = render(
        "anthropic",
        None,
        [Tool(name="mcp.read", input_schema=Raw(b"{}"))],
        projected(says("user", "go"), asks(call("a b"), call("a_b")), result("a b"), result("a_b")),
    )

    assert problems("anthropic", rendered) == []
    [first, second] = decoded(rendered.messages)[1]["content"]
    assert first["id"] != second["id"] == "a_b"
    assert first["id"].startswith("a_b_")


def test_anthropic_gets_its_own_tools_blocks_back_untouched() -> None:
    search = b'{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q" : 1}}'
    found = b'{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}'
    blocks = (
        Unknown(type="server_tool_use", raw=Raw(search)),
        Unknown(type="web_search_tool_result", raw=Raw(found)),
        Opaque(provider="gemini", raw=Raw(b'{"thoughtSignature":"s"}')),
        Unknown(type="hologram", raw=Raw(b'{"type":"hologram"}')),
    )

    rendered = render("anthropic", None, [], projected(says("user", "go"), asks(*blocks)))

    assert problems("anthropic", rendered) == []
    hologram = b'{"type":"text","text":"{\\"type\\":\\"hologram\\"}"}'
    assert bytes(rendered.messages[1]).endswith(b"[" + b",".join((search, found, hologram)) + b"]}")


def test_anthropic_gets_pictures_and_files_it_knows_and_words_for_the_rest() -> None:
    content = (
        Image(media_type="image/jpeg", data="QUJD"),
        Image(url="data:image/gif;base64,QUJD"),
        Image(url="https://example.org/a.png"),
        Image(media_type="image/svg+xml", data="QUJD"),
        Document(data="QUJD", title="A"),
        Document(text="words"),
        Document(media_type="text/csv", data="YSxi"),
    )

    [message] = sent("anthropic", Message(role="user", content=content))

    def base64(media_type: str) -> dict[str, str]:
        return {"type": "base64", "media_type": media_type, "data": "QUJD"}

    assert message["content"] == [
        {"type": "image", "source": base64("image/jpeg")},
        {"type": "image", "source": base64("image/gif")},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "text", "text": "[image, image/svg+xml]"},
        {"type": "document", "source": base64("application/pdf"), "title": "A"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
        {"type": "text", "text": "a,b"},
    ]


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
