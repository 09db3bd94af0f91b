from __future__ import annotations

import pytest
from msgspec import Raw

from compactd.core.history.projection import INTERRUPTED
from compactd.formats.messages.base import read_messages, render
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

REASONING = b'{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}'


def reasoning(raw: bytes = REASONING) -> Opaque:
    return Opaque(provider="openai_responses", raw=Raw(raw))


def said(role: str, *texts: str) -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}


def test_responses_gets_the_system_prompt_as_instructions_and_messages_as_items() -> None:
    messages = [says("user", "hi", " ", "you"), says("assistant", "yes"), says("system", "note")]

    rendered = render("openai_responses", "be brief", [], projected(*messages))

    assert problems("openai_responses", rendered) == []
    assert rendered.system == "be brief"
    assert decoded(rendered.messages) == [
        said("user", "hi", "you"),
        said("assistant", "yes"),
        said("system", "note"),
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (b'{"a" : 1.0}', '{"a" : 1.0}'),
        (b'"{\\"a\\" : 1.0}"', '{"a" : 1.0}'),
        (b'"not json"', "not json"),
        (b"null", "{}"),
    ],
)
def test_responses_gets_arguments_as_the_text_they_were(arguments: bytes, text: str) -> None:
    items = sent("openai_responses", asks(Text(text="let me"), call(arguments=arguments)), result())

    assert items == [
        said("assistant", "let me"),
        {"type": "function_call", "call_id": "a", "name": "read", "arguments": text},
        {"type": "function_call_output", "call_id": "a", "output": "out"},
    ]


def test_responses_gets_what_an_assistant_said_between_its_calls_in_its_place() -> None:
    items = sent("openai_responses", asks(call("a"), Text(text="and"), call("b")), result("a"), result("b"))

    assert [item["type"] for item in items] == [
        "function_call",
        "message",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]


def test_responses_gets_an_output_for_an_open_call() -> None:
    assert sent("openai_responses", asks(call()))[-1] == {
        "type": "function_call_output",
        "call_id": "a",
        "output": INTERRUPTED,
    }


def test_responses_gets_reasoning_as_it_came_before_what_it_led_to() -> None:
    rendered = render(
        "openai_responses",
        None,
        [],
        projected(says("user", "go"), asks(reasoning()), asks(call()), result()),
    )

    assert problems("openai_responses", rendered) == []
    assert bytes(rendered.messages[1]) == REASONING


@pytest.mark.parametrize(
    "raw",
    [
        b'{"id":"rs_1","type":"reasoning","summary":[]}',
        b'{"type":"reasoning","summary":[],"encrypted_content":"x"}',
        b'{"id":"rs_1","type":"reasoning","encrypted_content":"x"}',
        b'{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"x","content":[{"text":"t"}]}',
        b'{"id":"rs_1","type":"item_reference"}',
        b"5",
    ],
)
def test_responses_gets_no_reasoning_that_it_would_refuse(raw: bytes) -> None:
    assert sent("openai_responses", asks(reasoning(raw), Text(text="a"))) == [said("assistant", "a")]


def test_responses_gets_no_reasoning_that_led_to_nothing_and_none_twice() -> None:
    messages = [asks(reasoning()), says("user", "go")]
    twice = asks(reasoning(), Text(text="a"), reasoning(), call())

    once, alone = sent("openai_responses", twice, result()), sent("openai_responses", *messages)

    assert [item["type"] for item in once[:3]] == ["reasoning", "message", "function_call"]
    assert alone == [said("user", "go")]


def test_responses_gets_a_reasoning_item_that_is_kept_as_a_signature() -> None:
    thinks = asks(Thinking(text="hm", signature=REASONING.decode()), Text(text="a"))

    assert [item["type"] for item in sent("openai_responses", thinks)] == ["reasoning", "message"]
    assert sent("openai_responses", thinks, wrote="anthropic/claude-opus-4-5") == [said("assistant", "a")]


def test_responses_gets_openais_own_summary_back_and_nobody_else_does() -> None:
    raw = b'{"type":"compaction","id":"c","encrypted_content":"x"}'
    messages = [asks(Opaque(provider="openai", raw=Raw(raw))), says("user", "go")]

    assert sent("openai_responses", *messages)[0]["type"] == "compaction"
    assert [m["role"] for m in sent("openai", *messages)] == ["user"]
    assert [m["role"] for m in sent("anthropic", *messages)] == ["user"]


def test_responses_gets_a_results_pictures_in_its_output() -> None:
    shot = (Text(text="done"), Image(data="QUJD"))
    messages = [asks(call("a"), call("b"), call("c")), result("a", shot), result("b", (Text(text="x"),))]

    items = sent("openai_responses", *messages, result("c", " ", is_error=True))

    assert [item["output"] for item in items[3:]] == [
        [
            {"type": "input_text", "text": "done"},
            {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"},
        ],
        "x",
        " ",
    ]


def test_responses_hears_of_an_error_that_said_nothing() -> None:
    assert sent("openai_responses", asks(call()), result("a", "", is_error=True))[-1]["output"] == (
        "[error without output]"
    )
    assert sent("openai_responses", asks(call()), result("a", ""))[-1]["output"] == ""


def test_responses_gets_pictures_files_and_unknown_blocks_as_parts() -> None:
    content = (
        Image(url="https://example.org/a.png"),
        Image(media_type="image/svg+xml", data="QUJD"),
        Document(data="QUJD", title="a.pdf"),
        Document(url="https://example.org/a.pdf"),
        Document(media_type="text/plain", data="QUJD"),
        Unknown(type="input_image", raw=Raw(b'{"type":"input_image","file_id":"f"}')),
        Unknown(type="input_file", raw=Raw(b'{"type":"input_file"}')),
    )

    [item] = sent("openai_responses", Message(role="system", content=content))

    assert item == {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
            {"type": "input_text", "text": "[image, image/svg+xml]"},
            {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": "data:application/pdf;base64,QUJD",
            },
            {"type": "input_file", "file_url": "https://example.org/a.pdf"},
            {"type": "input_text", "text": "ABC"},
            {"type": "input_image", "file_id": "f"},
            {"type": "input_text", "text": '{"type":"input_file"}'},
        ],
    }


def test_responses_gets_ids_and_names_it_accepts_and_each_its_own() -> None:
    long_ids = ["x" * 70 + end for end in "ab"]
    offered = [Tool(name="mcp.read"), Tool(name="mcp_read")]
    conversation = projected(asks(*(call(i, name="mcp.read") for i in long_ids)), *map(result, long_ids))

    rendered = render("openai_responses", None, offered, conversation)

    assert problems("openai_responses", rendered) == []
    first, second = (tool["name"] for tool in decoded(rendered.tools or []))
    assert {item["name"] for item in decoded(rendered.messages)[:2]} == {first}
    assert second == "mcp_read"


def test_responses_items_that_were_read_go_back_as_they_came() -> None:
    items = [
        b'{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}',
        REASONING,
        b'{"type":"function_call","call_id":"a","name":"read","arguments":"{\\"a\\" : 1.0}"}',
        b'{"type":"function_call_output","call_id":"a","output":"out"}',
        b'{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}',
    ]

    read = [message for message, _ in read_messages([Raw(item) for item in items], "openai_responses")]
    rendered = render("openai_responses", None, [], projected(*read))

    assert [bytes(raw) for raw in rendered.messages] == items


def test_a_result_keeps_its_place_when_its_call_id_was_used_before() -> None:
    messages = [asks(call()), result(), asks(call()), result("a", "two")]

    items = sent("openai_responses", *messages)

    assert [item["call_id"] for item in items] == ["a", "a", "a-2", "a-2"]


def test_results_in_a_user_message_come_before_its_words() -> None:
    mixed = Message(role="user", content=(Text(text="and"), ToolResult(call_id="a", content="out")))

    assert [item["type"] for item in sent("openai_responses", asks(call()), mixed)] == [
        "function_call",
        "function_call_output",
        "message",
    ]
