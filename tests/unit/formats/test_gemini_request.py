from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

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

SIGNATURE = "c2lnbmVk"
CONTINUES = {"role": "user", "parts": [{"text": "(conversation continues)"}]}


def signed(signature: str = SIGNATURE) -> Opaque:
    return Opaque(provider="gemini", raw=Raw(json.dumps({"thoughtSignature": signature}).encode()))


def answered(response: object, call_id: str = "a", name: str = "read") -> dict[str, object]:
    return {"functionResponse": {"id": call_id, "name": name, "response": response}}


def test_gemini_gets_the_system_prompt_apart_and_a_later_system_message_in_tags() -> None:
    messages = [says("system", "first"), says("user", "hi"), says("assistant", "yes"), says("system", "note")]

    rendered = render("gemini", "be brief", [], projected(*messages, says("user", "go")))

    assert problems("gemini", rendered) == []
    assert rendered.system == "be brief\n\nfirst"
    assert decoded(rendered.messages) == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"text": "yes"}]},
        {"role": "user", "parts": [{"text": "<system-message>\nnote\n</system-message>"}, {"text": "go"}]},
    ]


def test_gemini_gives_the_user_the_first_word_and_the_last() -> None:
    assert sent("gemini", says("assistant", "hello"), says("assistant", "again")) == [
        CONTINUES,
        {"role": "model", "parts": [{"text": "hello"}, {"text": "again"}]},
        CONTINUES,
    ]


def test_gemini_gets_results_alone_in_the_order_of_their_calls_then_the_users_words() -> None:
    mixed = Message(role="user", content=(Text(text="and"), ToolResult(call_id="a", content="of a")))

    contents = sent("gemini", says("user", "go"), asks(call("a"), call("b")), result("b", "of b"), mixed)

    assert contents[2:] == [
        {"role": "user", "parts": [answered({"output": "of a"}), answered({"output": "of b"}, "b")]},
        {"role": "user", "parts": [{"text": "and"}]},
    ]


@pytest.mark.parametrize(
    ("text", "is_error", "response"),
    [
        ("out", False, '{"output":"out"}'),
        ("", False, '{"output":""}'),
        ("no", True, '{"error":"no"}'),
        (" ", True, '{"error":"[error without output]"}'),
        ('{"a" : 1.0}', False, '{"a" : 1.0}'),
        ('{"a" : 1.0}', True, '{"error":"{\\"a\\" : 1.0}"}'),
        ('{"error" : "no"}', True, '{"error" : "no"}'),
        ('{"error" : null}', False, '{"output":"{\\"error\\" : null}"}'),
        ("[1]", False, '{"output":"[1]"}'),
        ('{"torn":', False, '{"output":"{\\"torn\\":"}'),
    ],
)
def test_gemini_gets_a_result_as_an_object(text: str, is_error: bool, response: str) -> None:
    rendered = render(
        "gemini", None, [], projected(says("user", "go"), asks(call()), result("a", text, is_error=is_error))
    )

    assert problems("gemini", rendered) == []
    assert f'"response":{response}}}' in bytes(rendered.messages[2]).decode()


def test_gemini_gets_arguments_as_an_object_byte_for_byte() -> None:
    rendered = render(
        "gemini",
        None,
        [],
        projected(says("user", "go"), asks(call(arguments=b'"{\\"a\\" : 1.0}"')), result()),
    )

    assert b'"args":{"a" : 1.0}' in bytes(rendered.messages[1])


def test_gemini_gets_signatures_with_the_part_they_came_with() -> None:
    contents = sent(
        "gemini",
        says("user", "go"),
        asks(signed(), Text(text="let me"), signed("c2Vjb25k"), call()),
        result(),
        asks(signed("dGhpcmQ="), Text(text="")),
        says("user", "and"),
        asks(Text(text="b"), signed("bGFzdA==")),
        says("user", "so"),
    )

    assert contents[1]["parts"] == [
        {"text": "let me", "thoughtSignature": SIGNATURE},
        {
            "functionCall": {"id": "a", "name": "read", "args": {}},
            "thoughtSignature": "c2Vjb25k",
        },
    ]
    assert contents[3]["parts"] == [{"text": "", "thoughtSignature": "dGhpcmQ="}]
    assert contents[5]["parts"] == [{"text": "b"}, {"text": "", "thoughtSignature": "bGFzdA=="}]


def test_gemini_gets_thinking_of_its_own_with_its_signature_or_not_at_all() -> None:
    thinks = asks(Thinking(text="hm", signature=SIGNATURE), Thinking(text="hm"), Text(text="a"))

    own = sent("gemini", says("user", "go"), thinks, wrote="google/gemini-3-pro")
    unknown = sent("gemini", says("user", "go"), thinks)
    others = sent("gemini", says("user", "go"), thinks, wrote="claude-opus-4-5", model="gemini-2.5-pro")

    assert own[1]["parts"] == [
        {"text": "hm", "thought": True, "thoughtSignature": SIGNATURE},
        {"text": "a"},
    ]
    assert unknown[1]["parts"] == others[1]["parts"] == [{"text": "a"}]


def test_gemini_3_gets_a_signature_for_calls_of_this_turn_that_have_none() -> None:
    messages = [
        says("user", "one"),
        asks(call("a")),
        result("a"),
        says("user", "two"),
        asks(call("b"), call("c")),
        result("b"),
        result("c"),
        asks(signed(), call("d")),
        result("d"),
    ]

    third = sent("gemini", *messages, model="google/gemini-3-pro-preview")
    older = sent("gemini", *messages, model="gemini-2.5-pro")

    assert signatures(third) == [None, "skip_thought_signature_validator", None, SIGNATURE]
    assert signatures(older) == [None, None, None, SIGNATURE]


def signatures(contents: list[dict[str, Any]]) -> list[str | None]:
    """Return the signature of each call, in order."""
    parts = (part for content in contents for part in content["parts"])
    return [part.get("thoughtSignature") for part in parts if "functionCall" in part]


def test_gemini_gets_a_results_picture_after_the_results_and_gemini_3_in_it() -> None:
    shot = (Text(text="done"), Image(data="QUJD"), Image(url="https://example.org/a.jpg"))
    messages = [says("user", "go"), asks(call("a"), call("b")), result("a", shot), result("b")]
    inline = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
    linked = {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/a.jpg"}}

    older, third = sent("gemini", *messages), sent("gemini", *messages, model="gemini-3-flash")

    assert older[2]["parts"] == [answered({"output": "done"}), answered({"output": "out"}, "b")]
    assert older[3]["parts"] == [{"text": "[from the result of tool call a]"}, inline, linked]
    assert third[2]["parts"][0]["functionResponse"]["parts"] == [inline]
    assert third[3]["parts"][1:] == [linked]


def test_gemini_gets_pictures_and_files_it_knows_and_words_for_the_rest() -> None:
    content = (
        Image(media_type="image/webp", data="QUJD"),
        Image(url="data:image/gif;base64,QUJD"),
        Image(url="gs://bucket/a"),
        Document(data="QUJD"),
        Document(media_type="text/csv", data="YSxi"),
        Document(url="https://example.org/a.pdf"),
        Document(media_type="audio/wav", data="QUJD"),
        Unknown(type="hologram", raw=Raw(b'{"type":"hologram"}')),
        Opaque(provider="anthropic", raw=Raw(b'{"type":"image"}')),
    )

    [message] = sent("gemini", Message(role="user", content=content))

    assert message["parts"] == [
        {"inlineData": {"mimeType": "image/webp", "data": "QUJD"}},
        {"text": "[image, image/gif]"},
        {"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/a"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "QUJD"}},
        {"text": "a,b"},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.org/a.pdf"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "QUJD"}},
        {"text": '{"type":"hologram"}'},
    ]


def test_gemini_on_vertex_gets_no_ids() -> None:
    messages = [says("user", "go"), asks(call("a"), call("b")), result("b", "of b"), result("a", "of a")]

    contents = sent("gemini", *messages, model="google-vertex/gemini-2.5-pro")

    assert contents[1]["parts"] == [{"functionCall": {"name": "read", "args": {}}}] * 2
    assert [part["functionResponse"]["response"] for part in contents[2]["parts"]] == [
        {"output": "of a"},
        {"output": "of b"},
    ]


def test_gemini_gets_names_it_accepts_and_the_results_name_their_call() -> None:
    offered = [Tool(name="mcp.read"), Tool(name="1st"), Tool(name="mcp:read")]
    messages = [says("user", "go"), asks(*(call(tool.name, name=tool.name) for tool in offered))]

    rendered = render("gemini", None, offered, projected(*messages, *(result(tool.name) for tool in offered)))

    assert problems("gemini", rendered) == []
    [tools] = decoded(rendered.tools or [])
    names = [declared["name"] for declared in tools["functionDeclarations"]]
    assert names[0] == "mcp.read"
    assert [p["functionResponse"]["name"] for p in decoded(rendered.messages)[2]["parts"]] == names


def test_gemini_contents_that_were_read_go_back_as_they_came() -> None:
    contents = [
        b'{"role":"user","parts":[{"text":"go"},{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]}',
        b'{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"c2ln"},'
        b'{"functionCall":{"id":"a","name":"read","args":{"p" : 1.0}},"thoughtSignature":"c2lnbmVk"},'
        b'{"functionCall":{"id":"b","name":"read","args":{}}}]}',
        b'{"role":"user","parts":[{"functionResponse":{"id":"a","name":"read","response":{"output" : 1}}},'
        b'{"functionResponse":{"id":"b","name":"read","response":{"error":"no"}}}]}',
        b'{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"text":"done"}]}',
        b'{"role":"user","parts":[{"text":"and"}]}',
    ]

    read = [message for message, _ in read_messages([Raw(content) for content in contents], "gemini")]
    rendered = render("gemini", None, [], projected(*read))

    assert problems("gemini", rendered) == []
    assert [bytes(raw) for raw in rendered.messages] == contents
