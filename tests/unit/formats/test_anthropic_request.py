from __future__ import annotations

import pytest
from msgspec import Raw

from compactd.formats.messages.base import render
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


def test_anthropic_gets_no_thinking_behind_other_content() -> None:
    thinks = asks(Thinking(text="hm", signature="sig"), Text(text="b"))

    messages = sent("anthropic", says("user", "go"), says("assistant", "a"), thinks)

    assert messages[1]["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


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


def test_anthropic_gets_no_thinking_that_another_provider_signed() -> None:
    thinks = asks(Thinking(text="hm", signature="sig"), Thinking(redacted="r"), Text(text="a"))
    item = asks(Thinking(text="hm", signature='{"type":"reasoning"}'), Text(text="a"))

    def types(message: Message, wrote: str | None, model: str | None) -> list[str]:
        contents = sent(
            "anthropic", says("user", "go"), message, says("user", "so"), wrote=wrote, model=model
        )
        return [block["type"] for block in contents[1]["content"]]

    own = ["thinking", "redacted_thinking", "text"]
    assert types(thinks, "anthropic/claude-opus-4-5", "claude-sonnet-4-5") == own
    assert types(thinks, "minimax/m2", "minimax/m2") == types(thinks, None, "claude-opus-4-5") == own
    assert types(thinks, "minimax/m2", "anthropic/claude-opus-4-5") == ["text"]
    assert types(thinks, "openai/gpt-5", None) == types(thinks, "google/gemini-3-pro", None) == ["text"]
    assert types(item, None, None) == ["text"]


def test_anthropic_gets_thinking_that_a_client_kept_as_its_block() -> None:
    raw = b'{"type":"thinking","thinking":"hm","signature":"sig"}'

    [_, answer] = sent(
        "anthropic", says("user", "go"), asks(Opaque(provider="anthropic", raw=Raw(raw)), Text(text="a"))
    )

    assert answer["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "sig"}


def test_anthropic_gets_only_text_in_an_error_result_and_the_rest_beside_it() -> None:
    shot = (
        Text(text="no"),
        Image(data="QUJD"),
        Unknown(type="tool_reference", raw=Raw(b'{"tool_name":"n"}')),
    )

    messages = sent("anthropic", says("user", "go"), asks(call()), result("a", shot, is_error=True))

    [error, *beside] = messages[2]["content"]
    assert [block["text"] for block in error["content"]] == ["no", '{"tool_name":"n"}']
    assert beside == [
        {"type": "text", "text": "[from the result of tool call a]"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
    ]


def test_anthropic_gets_half_a_pair_of_its_own_tools_as_text_unless_it_waits_at_the_end() -> None:
    search = Unknown(
        type="server_tool_use",
        raw=Raw(b'{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}'),
    )
    paused = [says("user", "go"), asks(Text(text="let me"), search)]

    ends = sent("anthropic", *paused, model="claude-opus-4-6")
    goes_on = sent("anthropic", *paused, says("user", "so?"))

    assert ends[-1]["content"][-1]["type"] == "server_tool_use"
    assert goes_on[1]["content"][-1] == {"type": "text", "text": bytes(search.raw).decode()}


@pytest.mark.parametrize(
    ("model", "roles"),
    [
        (None, ["user", "assistant"]),
        ("anthropic/claude-sonnet-4-5-20250929", ["user", "assistant"]),
        ("claude-sonnet-4-20250514", ["user", "assistant"]),
        ("claude-3-7-sonnet-20250219", ["user", "assistant"]),
        ("anthropic/claude-opus-4-6", ["user", "assistant", "user"]),
        ("openrouter/anthropic/claude-sonnet-4.6", ["user", "assistant", "user"]),
        ("us.anthropic.claude-opus-4-7-v1:0", ["user", "assistant", "user"]),
        ("claude-fable-5", ["user", "assistant", "user"]),
    ],
)
def test_a_claude_that_takes_no_prefill_gets_a_users_message_last(
    model: str | None, roles: list[str]
) -> None:
    messages = sent("anthropic", says("user", "hi"), says("assistant", "yes"), model=model)

    assert [message["role"] for message in messages] == roles


def test_anthropic_gets_a_message_of_nothing_but_a_picture() -> None:
    [message] = sent("anthropic", Message(role="user", content=(Image(data="QUJD"), Text(text=""))))

    assert [block["type"] for block in message["content"]] == ["image"]
