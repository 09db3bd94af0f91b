from __future__ import annotations

import json

import pytest
from msgspec import Raw

from compactd.formats.messages.base import render
from compactd.formats.messages.rendering import SafeNames
from compactd.protocol.messages import (
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    Tool,
    ToolResult,
    Unknown,
)
from tests.support.rendered import asks, call, decoded, problems, projected, result, says, sent


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


def test_openai_gets_one_text_without_its_empty_parts() -> None:
    assert sent("openai", says("user", "go", " ", "", "on")) == [{"role": "user", "content": "go\non"}]


def test_openai_gets_no_thinking_and_no_message_of_nothing_else() -> None:
    assert sent(
        "openai", asks(Thinking(text="hm", signature="s")), asks(Thinking(text="hm"), Text(text="ok"))
    ) == [{"role": "assistant", "content": "ok"}]


def test_an_endpoint_that_wants_its_models_thinking_back_gets_it_beside_what_was_said() -> None:
    messages = projected(
        says("user", "go"),
        asks(Thinking(text="hm"), Thinking(text="so"), Text(text="ok"), call("a")),
        result("a"),
        asks(call("b")),
        result("b"),
        asks(Thinking(text="well"), Text(text="done")),
        asks(Text(text="really")),
        asks(Thinking(text="nothing else")),
        models=("deepseek/deepseek-v4-pro",),
    )

    rendered = render("openai", None, [], messages, "deepseek/deepseek-v4-pro", with_reasoning=True)

    shown = decoded(rendered.messages)
    assert [message.get("reasoning_content") for message in shown] == [
        None,
        "hm\nso",
        None,
        "",
        None,
        "well",
        None,
    ]
    assert ("reasoning_content" in shown[-1], problems("openai", rendered, None)) == (False, [])


def test_what_another_model_thought_is_not_given_back_as_its_own() -> None:
    messages = projected(
        asks(Thinking(text="hm", signature="s"), call("a")),
        result("a"),
        models=("anthropic/claude-sonnet-4-5",),
    )

    rendered = render("openai", None, [], messages, "moonshotai/kimi-k2.6", with_reasoning=True)

    assert decoded(rendered.messages)[0]["reasoning_content"] == ""


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
        Document(media_type="text/plain", data="QUJD"),
        Document(media_type="application/zip", data="QUJD", title="a.zip"),
        Opaque(provider="openai", raw=Raw(b'{"type":"thinking"}')),
        Unknown(type="input_audio", raw=Raw(audio)),
        Unknown(type="file", raw=Raw(b'{"type":"file","path":"a.py"}')),
    )

    [message] = sent("openai", Message(role="user", content=content))

    assert message["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "text", "text": "[image, image/svg+xml]"},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"}},
        {"type": "text", "text": "ABC"},
        {"type": "text", "text": "[document: a.zip]"},
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


def test_a_name_that_was_made_never_meets_one_that_was_given() -> None:
    made = SafeNames(64).of("a b")
    before, after = SafeNames(64), SafeNames(64)

    assert before.of(made) == made != before.of("a b")
    assert after.of("a b") == made != after.of(made)


def test_openai_hears_of_an_error_that_said_nothing() -> None:
    assert sent("openai", asks(call()), result("a", "", is_error=True))[-1]["content"] == (
        "[error without output]"
    )


def test_openai_gets_neighbours_of_one_role_and_a_message_of_nothing_but_a_picture() -> None:
    picture = Message(role="user", content=(Image(data="QUJD"), Text(text=" ")))

    messages = sent("openai", says("user", "a"), picture, says("assistant", "b"), says("assistant", "c"))

    assert [message["role"] for message in messages] == ["user", "user", "assistant", "assistant"]
    assert [part["type"] for part in messages[1]["content"]] == ["image_url"]
