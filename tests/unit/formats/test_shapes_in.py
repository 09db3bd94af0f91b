from __future__ import annotations

import pytest
from msgspec import Raw

from compactd.formats.messages.base import READABLE, read_messages
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import FormatNotSupported, InvalidParams, LimitExceeded
from compactd.protocol.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
)


def read(format: str, *texts: str) -> list[Message]:
    """The messages; their neutral bytes say the same."""
    read = read_messages([Raw(text.encode()) for text in texts], format)
    assert [decode_message(raw) for _, raw in read] == [message for message, _ in read]
    return [message for message, _ in read]


def message(role: Role, *blocks: Block) -> Message:
    return Message(role=role, content=blocks)


def test_a_format_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(FormatNotSupported) as caught:
        read_messages([], "cobol")

    assert caught.value.data == {"format": "cobol", "supported": list(READABLE)}


def test_no_format_is_ours() -> None:
    raw = Raw(b'{ "role":"user","content":"hi"}')

    assert read_messages([raw]) == [(message("user", Text(text="hi")), raw)]


# --- openai -----------------------------------------------------------------------------------------


def test_openai_messages_are_read_one_for_one() -> None:
    messages = read(
        "openai",
        '{"role":"developer","content":"be brief"}',
        """{"role":"user","id":"m1","name":"bob","content":[{"type":"text","text":"see"},
        {"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD","detail":"low"}},
        {"type":"image_url","image_url":{"url":"https://example.org/a.png"}},
        {"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QUJD"}},
        {"type":"input_audio","input_audio":{"data":"d"}}]}""",
        """{"role":"assistant","content":null,"refusal":null,"reasoning_content":"hm","tool_calls":[
        {"id":"a","type":"function","function":{"name":"read","arguments":"{\\"p\\" : 1}"}},
        {"id":"b","type":"custom","custom":{"name":"sh","input":"ls"}}]}""",
        '{"role":"tool","tool_call_id":"a","content":"out"}',
        '{"role":"tool","tool_call_id":"b","name":"sh","content":[{"type":"text","text":"out"}]}',
        '{"role":"assistant","refusal":"no","content":null}',
        '{"role":"assistant","content":""}',
    )

    assert messages == [
        message("system", Text(text="be brief")),
        Message(
            role="user",
            id="m1",
            content=(
                Text(text="see"),
                Image(media_type="image/png", data="QUJD"),
                Image(url="https://example.org/a.png"),
                Document(media_type="application/pdf", data="QUJD", title="a.pdf"),
                Unknown(type="input_audio", raw=Raw(b'{"type":"input_audio","input_audio":{"data":"d"}}')),
            ),
        ),
        message(
            "assistant",
            Thinking(text="hm"),
            ToolCall(call_id="a", name="read", arguments=Raw(b'"{\\"p\\" : 1}"')),
            ToolCall(call_id="b", name="sh", arguments=Raw(b'"ls"')),
        ),
        message("tool", ToolResult(call_id="a", content="out")),
        message("tool", ToolResult(call_id="b", name="sh", content=(Text(text="out"),))),
        message("assistant", Text(text="no")),
        message("assistant", Text(text="")),
    ]


def test_openais_older_function_calls_are_paired_by_name() -> None:
    messages = read(
        "openai",
        '{"role":"assistant","content":null,"function_call":{"name":"read","arguments":"{}"}}',
        '{"role":"function","name":"read","content":"out"}',
    )

    assert messages == [
        message("assistant", ToolCall(call_id="read", name="read", arguments=Raw(b'"{}"'))),
        message("tool", ToolResult(call_id="read", name="read", content="out")),
    ]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("5", ""),
        ('{"content":"a"}', ".role"),
        ('{"role":"bot","content":"a"}', ".role"),
        ('{"role":"user"}', ".content"),
        ('{"role":"user","content":5}', ".content"),
        ('{"role":"user","content":[{"text":"a"}]}', ".content[0].type"),
        ('{"role":"user","content":[{"type":"text"}]}', ".content[0].text"),
        ('{"role":"user","content":[{"type":"image_url","image_url":{}}]}', ".content[0].image_url.url"),
        ('{"role":"tool","content":"a"}', ".tool_call_id"),
        ('{"role":"assistant","tool_calls":{}}', ".tool_calls"),
        ('{"role":"assistant","tool_calls":[{"function":{"name":"n"}}]}', ".tool_calls[0].id"),
        ('{"role":"assistant","tool_calls":[{"id":"a"}]}', ".tool_calls[0].function"),
        ('{"role":"assistant","tool_calls":[{"id":"a","function":{}}]}', ".tool_calls[0].function.name"),
        ('{"role":"user","content":"a","id":7}', ".id"),
    ],
)
def test_a_wrong_openai_message_is_refused_with_its_path(text: str, path: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        read("openai", '{"role":"user","content":"fine"}', text)

    assert caught.value.data == {"path": f"$.messages[1]{path}"}


# --- anthropic --------------------------------------------------------------------------------------


def test_anthropic_messages_are_read_one_for_one() -> None:
    messages = read(
        "anthropic",
        """{"role":"user","content":[{"type":"text","text":"see","cache_control":{"type":"ephemeral"}},
        {"type":"image","source":{"type":"base64","media_type":"image/gif","data":"QUJD"}},
        {"type":"image","source":{"type":"url","url":"https://example.org/a.png"}},
        {"type":"document","title":"A","source":{"type":"text","media_type":"text/plain","data":"words"}},
        {"type":"image","source":{"type":"file","file_id":"f"}}]}""",
        """{"id":"msg_1","type":"message","role":"assistant","stop_reason":"tool_use",
        "usage":{"input_tokens": 5},"content":[{"type":"thinking","thinking":"hm","signature":"s"},
        {"type":"redacted_thinking","data":"r"},{"type":"text","text":"ok"},
        {"type":"tool_use","id":"a","name":"read","input":{"p" : 1.0}},
        {"type":"server_tool_use","id":"s","name":"web","input":{}}]}""",
        """{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"no"},
        {"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"x"}]},
        {"type":"tool_result","tool_use_id":"c"},{"type":"tool_result","tool_use_id":"d","content":[{"q":1}]},
        {"type":"text","text":"and"}]}""",
        '{"role":"user","content":"go on"}',
    )

    assert messages == [
        message(
            "user",
            Text(text="see"),
            Image(media_type="image/gif", data="QUJD"),
            Image(url="https://example.org/a.png"),
            Document(media_type="text/plain", text="words", title="A"),
            Opaque(provider="anthropic", raw=Raw(b'{"type":"image","source":{"type":"file","file_id":"f"}}')),
        ),
        Message(
            role="assistant",
            id="msg_1",
            stop_reason="tool_use",
            usage=Raw(b'{"input_tokens": 5}'),
            content=(
                Thinking(text="hm", signature="s"),
                Thinking(redacted="r"),
                Text(text="ok"),
                ToolCall(call_id="a", name="read", arguments=Raw(b'{"p" : 1.0}')),
                Unknown(
                    type="server_tool_use",
                    raw=Raw(b'{"type":"server_tool_use","id":"s","name":"web","input":{}}'),
                ),
            ),
        ),
        message(
            "user",
            ToolResult(call_id="a", content="no", is_error=True),
            ToolResult(call_id="b", content=(Text(text="x"),)),
            ToolResult(call_id="c", content=""),
            ToolResult(call_id="d", content='[{"q":1}]'),
            Text(text="and"),
        ),
        message("user", Text(text="go on")),
    ]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"role":"tool","content":"a"}', ".role"),
        ('{"role":"user"}', ".content"),
        ('{"role":"user","content":{}}', ".content"),
        ('{"role":"user","content":[{"type":"text"}]}', ".content[0].text"),
        ('{"role":"user","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]}', ".content[0]"),
        ('{"role":"assistant","content":[{"type":"tool_use","name":"n"}]}', ".content[0].id"),
        ('{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"a"}]}', ".content[0]"),
        ('{"role":"user","content":[{"type":"image"}]}', ".content[0].source"),
        ('{"role":"user","content":[{"type":"image","source":{"type":"url"}}]}', ".content[0].source.url"),
    ],
)
def test_a_wrong_anthropic_message_is_refused_with_its_path(text: str, path: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        read("anthropic", text)

    assert caught.value.data == {"path": f"$.messages[0]{path}"}


# --- gemini -----------------------------------------------------------------------------------------


def test_gemini_contents_are_read_one_for_one() -> None:
    messages = read(
        "gemini",
        """{"role":"user","parts":[{"text":"see"},{"inlineData":{"mimeType":"image/png","data":"QUJD"}},
        {"fileData":{"mimeType":"application/pdf","fileUri":"https://example.org/a.pdf"}}]}""",
        """{"role":"model","parts":[{"text":"hm","thought":true},
        {"functionCall":{"name":"read","args":{"p" : 1.0}},"thoughtSignature":"s"},
        {"functionCall":{"id":"i","name":"read"}},{"executableCode":{"code":"1"}}]}""",
        """{"role":"function","parts":[{"functionResponse":{"name":"read","response":{"output" : 1}}},
        {"functionResponse":{"id":"i","name":"read","response":{"error":"no"}}}]}""",
        '{"parts":[{"text":"go on"}]}',
    )

    assert messages == [
        message(
            "user",
            Text(text="see"),
            Image(media_type="image/png", data="QUJD"),
            Document(media_type="application/pdf", url="https://example.org/a.pdf"),
        ),
        message(
            "assistant",
            Thinking(text="hm"),
            Opaque(provider="gemini", raw=Raw(b'{"thoughtSignature":"s"}')),
            ToolCall(call_id="read", name="read", arguments=Raw(b'{"p" : 1.0}')),
            ToolCall(call_id="i", name="read"),
            Opaque(provider="gemini", raw=Raw(b'{"executableCode":{"code":"1"}}')),
        ),
        message(
            "tool",
            ToolResult(call_id="read", name="read", content='{"output" : 1}'),
            ToolResult(call_id="i", name="read", content='{"error":"no"}', is_error=True),
        ),
        message("user", Text(text="go on")),
    ]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"role":"assistant","parts":[]}', ".role"),
        ('{"role":"user"}', ".parts"),
        ('{"role":"user","parts":{}}', ".parts"),
        ('{"role":"model","parts":[{"functionCall":{}}]}', ".parts[0].functionCall.name"),
        ('{"role":"user","parts":[{"text":5}]}', ".parts[0].text"),
    ],
)
def test_a_wrong_gemini_content_is_refused_with_its_path(text: str, path: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        read("gemini", text)

    assert caught.value.data == {"path": f"$.messages[0]{path}"}


def test_a_signed_thought_of_geminis_is_kept_for_it_beside_its_text() -> None:
    part = b'{"text":"hm","thought":true,"thoughtSignature":"c2ln"}'
    response = """{"role":"user","parts":[{"functionResponse":{"name":"shoot","response":{"ok":true},
    "parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]}}]}"""

    messages = read("gemini", f'{{"role":"model","parts":[{part.decode()}]}}', response)

    shot = (Text(text='{"ok":true}'), Image(data="QUJD"))
    assert messages == [
        message("assistant", Thinking(text="hm"), Opaque(provider="gemini", raw=Raw(part))),
        message("tool", ToolResult(call_id="shoot", name="shoot", content=shot)),
    ]


# --- openai_responses -------------------------------------------------------------------------------

REASONED = (
    '{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],'
    '"encrypted_content":"gAAA"}'
)


def test_responses_items_are_read_one_for_one() -> None:
    messages = read(
        "openai_responses",
        '{"role":"developer","content":"be brief"}',
        """{"type":"message","role":"user","id":"m1","content":[{"type":"input_text","text":"see"},
        {"type":"input_image","image_url":"data:image/png;base64,QUJD"},
        {"type":"input_image","file_id":"f"},
        {"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,QUJD"},
        {"type":"input_file","file_url":"https://example.org/a.pdf"}]}""",
        REASONED,
        '{"type":"reasoning","id":"rs_2","summary":[],"content":[{"type":"reasoning_text","text":"so"}]}',
        '{"type":"function_call","call_id":"a","name":"read","arguments":"{\\"p\\" : 1}"}',
        '{"type":"custom_tool_call","call_id":"b","name":"sh","input":"ls"}',
        '{"type":"function_call_output","call_id":"a","output":"out"}',
        """{"type":"custom_tool_call_output","call_id":"b","output":[{"type":"input_text","text":"x"},
        {"type":"input_image","image_url":"https://example.org/a.png"}]}""",
        """{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok","annotations":[]},
        {"type":"refusal","refusal":"no"}]}""",
        '{"type":"web_search_call","id":"ws"}',
        '{"type":"image_generation_call","id":"ig","result":"QUJD"}',
        '{"type":"computer_call_output","call_id":"c"}',
    )

    assert messages == [
        message("system", Text(text="be brief")),
        Message(
            role="user",
            id="m1",
            content=(
                Text(text="see"),
                Image(data="QUJD"),
                Unknown(type="input_image", raw=Raw(b'{"type":"input_image","file_id":"f"}')),
                Document(data="QUJD", title="a.pdf"),
                Document(url="https://example.org/a.pdf"),
            ),
        ),
        Message(
            role="assistant",
            id="rs_1",
            content=(Thinking(text="hm"), Opaque(provider="openai_responses", raw=Raw(REASONED.encode()))),
        ),
        Message(role="assistant", id="rs_2", content=(Thinking(text="so"),)),
        message("assistant", ToolCall(call_id="a", name="read", arguments=Raw(b'"{\\"p\\" : 1}"'))),
        message("assistant", ToolCall(call_id="b", name="sh", arguments=Raw(b'"ls"'))),
        message("tool", ToolResult(call_id="a", content="out")),
        message(
            "tool",
            ToolResult(call_id="b", content=(Text(text="x"), Image(url="https://example.org/a.png"))),
        ),
        message("assistant", Text(text="ok"), Text(text="no")),
        Message(
            role="assistant",
            id="ws",
            content=(Unknown(type="web_search_call", raw=Raw(b'{"type":"web_search_call","id":"ws"}')),),
        ),
        Message(role="assistant", id="ig", content=(Image(data="QUJD"),)),
        message(
            "user",
            Unknown(
                type="computer_call_output",
                raw=Raw(b'{"type":"computer_call_output","call_id":"c"}'),
            ),
        ),
    ]


def test_a_whole_response_is_one_message() -> None:
    [whole] = read(
        "openai_responses",
        f"""{{"id":"resp_1","object":"response","created_at":1763750000,"usage":{{"input_tokens": 5}},
        "output":[{REASONED},
        {{"type":"message","id":"msg_1","role":"assistant","content":[{{"type":"output_text","text":"ok"}}]}},
        {{"type":"function_call","id":"fc_1","call_id":"a","name":"read","arguments":"{{}}"}},
        {{"type":"function_call","id":"fc_2","call_id":"b","name":"read","arguments":"{{}}"}}]}}""",
    )

    assert whole == Message(
        role="assistant",
        id="resp_1",
        created_at=1763750000,
        usage=Raw(b'{"input_tokens": 5}'),
        content=(
            Thinking(text="hm"),
            Opaque(provider="openai_responses", raw=Raw(REASONED.encode())),
            Text(text="ok"),
            ToolCall(call_id="a", name="read", arguments=Raw(b'"{}"')),
            ToolCall(call_id="b", name="read", arguments=Raw(b'"{}"')),
        ),
    )


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("5", ""),
        ('{"content":"a"}', ".role"),
        ('{"role":"tool","content":"a"}', ".role"),
        ('{"role":"user"}', ".content"),
        ('{"role":"user","content":5}', ".content"),
        ('{"role":"user","content":[{"text":"a"}]}', ".content[0].type"),
        ('{"role":"user","content":[{"type":"input_text"}]}', ".content[0].text"),
        ('{"type":7}', ".type"),
        ('{"type":"item_reference","id":"msg_1"}', ".type"),
        ('{"type":"function_call","name":"n","arguments":"{}"}', ".call_id"),
        ('{"type":"function_call","call_id":"a"}', ".name"),
        ('{"type":"function_call_output","output":"a"}', ".call_id"),
        ('{"output":[{"role":"user","content":"a"}]}', ".output[0]"),
    ],
)
def test_a_wrong_responses_item_is_refused_with_its_path(text: str, path: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        read("openai_responses", text)

    assert caught.value.data == {"path": f"$.messages[0]{path}"}


@pytest.mark.parametrize("format", READABLE)
def test_nesting_beyond_the_decoder_is_a_limit_in_every_shape(format: str) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    with pytest.raises(LimitExceeded):
        read(format, f'{{"role":"user","content":{deep},"parts":{deep}}}')
