from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.history.entries import Item
from compactd.core.history.projection import project
from compactd.formats.messages.neutral import decode_message, read_messages
from compactd.formats.messages.neutral_out import encode_message, render_neutral
from compactd.protocol.errors import InvalidParams, LimitExceeded
from compactd.protocol.messages import (
    Document,
    Image,
    Message,
    Meta,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
)
from tests.support.conversations import LETTERS, conversations, items_of

DEEP = b"[" * 100_000 + b"]" * 100_000


def decoded(text: str) -> Message:
    return decode_message(text.encode())


# --- what is accepted -------------------------------------------------------------------------------


def test_a_string_content_is_one_text_block() -> None:
    assert decoded('{"role":"user","content":"hi"}') == Message(role="user", content=(Text(text="hi"),))


def test_every_block_type_is_read_as_itself() -> None:
    message = decoded(
        """{"role":"assistant","id":"m1","created_at":5,"stop_reason":"stop","usage":{"input": 1},
        "meta":{"kind":"k","pinned":true,"theirs":1},"content":[
        {"type":"text","text":"t"},{"type":"thinking","text":"h","signature":"s"},
        {"type":"image","url":"u","width":3},{"type":"document","data":"d","title":"T"},
        {"type":"tool_call","call_id":"a","name":"read","arguments":{"p" : 1.0}},
        {"type":"opaque","provider":"x","raw":[ 1]}]}"""
    )

    assert message == Message(
        role="assistant",
        id="m1",
        created_at=5.0,
        stop_reason="stop",
        usage=Raw(b'{"input": 1}'),
        meta=Meta(kind="k", pinned=True),
        content=(
            Text(text="t"),
            Thinking(text="h", signature="s"),
            Image(url="u", width=3),
            Document(data="d", title="T"),
            ToolCall(call_id="a", name="read", arguments=Raw(b'{"p" : 1.0}')),
            Opaque(provider="x", raw=Raw(b"[ 1]")),
        ),
    )


@pytest.mark.parametrize("content", ['""', '" \\n"', "[]", '[{"type":"text","text":""}]'])
def test_an_empty_content_is_accepted_and_kept(content: str) -> None:
    given_bytes = f'{{"role":"user","content":{content}}}'.encode()

    [(message, source)] = read_messages([Raw(given_bytes)])

    assert bytes(source) == given_bytes
    assert all(isinstance(block, Text) and not block.text.strip() for block in message.content)


@pytest.mark.parametrize("arguments", ['{"a" : 1.0e2, "a": "\\u00e9"}', '"{\\"a\\" : 1}"', "[1,  2]", "-0.0"])
def test_arguments_stay_byte_for_byte(arguments: str) -> None:
    block = f'{{"type":"tool_call","call_id":"a","name":"n","arguments":{arguments}}}'
    message = decoded(f'{{"role":"assistant","content":[{block}]}}')

    [call] = message.content
    assert isinstance(call, ToolCall)
    assert bytes(call.arguments) == arguments.encode()
    assert f'"arguments":{arguments}'.encode() in encode_message(message)


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ('"text"', "text"),
        ("null", ""),
        ('{"rows" : [1.0]}', '{"rows" : [1.0]}'),
        ("[1,  2]", "[1,  2]"),
        ('[{"no":"type"}]', '[{"no":"type"}]'),
        ("12.50", "12.50"),
        ("true", "true"),
        ("[]", ()),
        ('["a",{"type":"text","text":"b"}]', (Text(text="a"), Text(text="b"))),
        ('[{"type":"image","data":"d"}]', (Image(data="d"),)),
        ('[{"type":"rows","n" : 1}]', (Unknown(type="rows", raw=Raw(b'{"type":"rows","n" : 1}')),)),
        ('[{"type":"tool_call"}]', (Unknown(type="tool_call", raw=Raw(b'{"type":"tool_call"}')),)),
    ],
)
def test_a_tool_result_is_text_or_blocks_or_its_own_json(content: str, seen: object) -> None:
    block = f'{{"type":"tool_result","call_id":"a","content":{content}}}'
    message = decoded(f'{{"role":"tool","content":[{block}]}}')

    assert message.content == (ToolResult(call_id="a", content=seen),)


def test_a_block_of_an_unknown_type_is_kept_as_it_came() -> None:
    given_bytes = b'{"role":"user","content":[{"type":"hologram","depth" : 2.50},{"type":"text","text":"t"}]}'

    message = decode_message(given_bytes)

    unknown = Unknown(type="hologram", raw=Raw(b'{"type":"hologram","depth" : 2.50}'))
    assert message.content == (unknown, Text(text="t"))
    assert encode_message(message) == given_bytes


def test_null_for_an_optional_field_is_absent() -> None:
    message = decoded(
        """{"role":"user","id":null,"created_at":null,"usage":null,"stop_reason":null,
        "meta":{"pinned":null,"type":null,"read_files":null},"content":[
        {"type":"image","media_type":null,"data":"d","width":null},
        {"type":"tool_result","call_id":"a","content":null,"is_error":null,"name":null}]}"""
    )

    assert message == Message(
        role="user", content=(Image(data="d"), ToolResult(call_id="a", content="")), meta=Meta()
    )
    assert decoded('{"role":"user","content":"a","meta":null}').meta is None


@pytest.mark.parametrize("others", ["", ',{"type":"new"}'])
def test_null_arguments_are_none(others: str) -> None:
    call = '{"type":"tool_call","call_id":"a","name":"n","arguments":null}'
    message = decoded(f'{{"role":"assistant","content":[{call}{others}]}}')

    assert message.content[0] == ToolCall(call_id="a", name="n", arguments=Raw(b"{}"))


# --- what is refused, and where ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[]", ""),
        ('"hi"', ""),
        ('{"role":', ""),
        ('{"content":"a"}', ".role"),
        ('{"role":"developer","content":"a"}', ".role"),
        ('{"role":null,"content":"a"}', ".role"),
        ('{"role":3,"content":"a"}', ".role"),
        ('{"role":"user"}', ".content"),
        ('{"role":"user","content":null}', ".content"),
        ('{"role":"user","content":5}', ".content"),
        ('{"role":"user","content":{"type":"text"}}', ".content"),
        ('{"role":"user","content":["a"]}', ".content[0]"),
        ('{"role":"user","content":[{"text":"a"}]}', ".content[0].type"),
        ('{"role":"user","content":[{"type":7}]}', ".content[0].type"),
        ('{"role":"user","content":[{"type":"text"}]}', ".content[0].text"),
        ('{"role":"user","content":[{"type":"new"},{"type":"text","text":5}]}', ".content[1].text"),
        ('{"role":"assistant","content":[{"type":"tool_call","name":"n"}]}', ".content[0].call_id"),
        ('{"role":"user","content":"a","id":5}', ".id"),
        ('{"role":"user","content":"a","created_at":"today"}', ".created_at"),
        ('{"role":"user","content":"a","usage":5}', ".usage"),
        ('{"role":"user","content":"a","meta":[]}', ".meta"),
        ('{"role":"user","content":"a","meta":{"pinned":"yes"}}', ".meta.pinned"),
        ('{"role":"tool","content":"out"}', ".content"),
        ('{"role":"tool","content":""}', ".content"),
        ('{"role":"tool","content":[{"type":"text","text":"out"}]}', ".content[0]"),
        ('{"role":"tool","content":[{"type":"new"}]}', ".content[0]"),
        ('{"role":"user","content":[{"type":"tool_call","call_id":"a","name":"n"}]}', ".content[0]"),
        ('{"role":"system","content":[{"type":"tool_result","call_id":"a"}]}', ".content[0]"),
        ('{"role":"assistant","content":[{"type":"tool_result","call_id":"a"}]}', ".content[0]"),
        (
            '{"role":"tool","content":[{"type":"tool_result","call_id":"a","content":[{"type":"text"}]}]}',
            ".content[0].content[0].text",
        ),
    ],
)
def test_a_wrong_message_is_refused_with_the_path_of_the_bad_field(text: str, path: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        read_messages([Raw(b'{"role":"user","content":"fine"}'), Raw(text.encode())])

    assert caught.value.data == {"path": f"$.messages[1]{path}"}
    assert caught.value.message.endswith(f"at `$.messages[1]{path}`")


@pytest.mark.parametrize(
    "data",
    [
        b'{"role":"user","content":"\xff"}',
        b'{"role":"user","content":"a","theirs":"\xff"}',
        b'{"role":"user","content":[{"type":"new","x":"\xe2\x82"}]}',
    ],
)
def test_invalid_utf8_is_refused_even_where_it_would_not_be_decoded(data: bytes) -> None:
    with pytest.raises(InvalidParams, match="UTF-8"):
        decode_message(data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"role":"user","content":"a","theirs":' + DEEP + b"}",
        b'{"role":"user","content":[{"type":"new","x":' + DEEP + b"}]}",
        b'{"role":"user","content":' + DEEP + b"}",
        b'{"role":"tool","content":[{"type":"tool_result","call_id":"a","content":' + DEEP + b"}]}",
        b'{"role":"assistant","content":[{"type":"tool_call","call_id":"a","name":"n","arguments":'
        + DEEP
        + b"}]}",
    ],
)
def test_nesting_beyond_the_decoder_is_a_limit_not_a_crash(data: bytes) -> None:
    with pytest.raises(LimitExceeded):
        decode_message(data)


FIELDS = st.sampled_from(("role", "content", "type", "text", "call_id", "meta", "usage", "name", "arguments"))
VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(("user", "tool", "text"))


def nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=5)


@given(st.recursive(VALUES, nested, max_leaves=12))
def test_any_json_is_a_message_or_an_error_of_ours(value: object) -> None:
    data = json.dumps(value).encode()
    try:
        message = decode_message(data)
    except InvalidParams:
        return
    assert decode_message(encode_message(message)) == message


# --- out --------------------------------------------------------------------------------------------


@given(conversations())
def test_a_message_comes_back_from_its_bytes_as_it_was(messages: list[Message]) -> None:
    once = [decode_message(encode_message(message)) for message in messages]

    assert [decode_message(encode_message(message)) for message in once] == once
    assert [encode_message(message) for message in once] == [
        encode_message(decode_message(encode_message(message))) for message in once
    ]


def test_a_message_that_was_read_does_not_hold_on_to_its_frame() -> None:
    frame = bytearray(b'[{"role":"assistant","usage":{},"content":[{"type":"new"}]}]')
    raws = msgspec.json.decode(frame, type=list[Raw])

    read = read_messages(raws)
    del raws

    frame.clear()  # A BufferError where anything still looks at it.
    assert encode_message(read[0][0]) == bytes(read[0][1]).replace(b'"usage":{},', b"")[:-1] + b',"usage":{}}'


def test_a_neutral_rendering_is_the_clients_own_bytes_with_the_entry_id_at_the_end() -> None:
    source = b'{ "content" : "hi", "theirs":{"x" : 1.0}, "role":"user", "id":"m1" }'
    item = Item(entry_id="e7", body=decode_message(source), tokens=1, source=Raw(source))

    [rendered] = render_neutral(project([item], LETTERS))

    assert (
        bytes(rendered)
        == b'{ "content" : "hi", "theirs":{"x" : 1.0}, "role":"user", "id":"m1" ,"entry_id":"e7"}'
    )


def test_an_entry_id_that_a_client_gave_back_is_replaced() -> None:
    source = b'{"role":"user","content":"say \\"entry_id\\"","entry_id":"e2"}'
    item = Item(entry_id="e7", body=decode_message(source), tokens=1, source=Raw(source))

    [rendered] = render_neutral(project([item], LETTERS))

    assert bytes(rendered) == b'{"role":"user","content":"say \\"entry_id\\"","entry_id":"e7"}'


def test_a_summary_has_an_entry_id_and_its_meta_and_a_synthetic_result_has_none() -> None:
    summary = Message(
        role="user",
        content=(Text(text="[Conversation summary"),),
        meta=Meta(type="compaction_summary", compaction_id="c1", read_files=("a.py",)),
    )
    call = Message(role="assistant", content=(ToolCall(call_id="a", name="n"),))
    items = [
        Item(entry_id="e5", body=summary, tokens=1, kind="summary"),
        Item(entry_id="e6", body=call, tokens=1),
    ]

    rendered = [json.loads(bytes(raw)) for raw in render_neutral(project(items, LETTERS))]

    assert [message.get("entry_id") for message in rendered] == ["e5", "e6", None]
    assert rendered[0]["meta"] == {
        "type": "compaction_summary",
        "compaction_id": "c1",
        "read_files": ["a.py"],
        "modified_files": [],
    }


@given(conversations())
def test_what_is_rendered_can_be_appended_again(messages: list[Message]) -> None:
    rendered = render_neutral(project(items_of(messages), LETTERS))

    for raw, each in zip(rendered, project(items_of(messages), LETTERS).messages, strict=True):
        assert encode_message(decode_message(raw)) == encode_message(
            decode_message(encode_message(each.message))
        )
