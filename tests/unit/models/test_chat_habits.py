"""What servers with a Chat Completions API do that no reference mentions, fed to the reader as bytes."""

from __future__ import annotations

import pytest
from msgspec import Raw

from compactd.models.providers.json_fields import NoJson
from compactd.models.providers.openai import ChatReader
from compactd.models.providers.provider import TextChunk, ThinkingChunk
from compactd.models.providers.response import ProviderRefused
from compactd.protocol.messages import Text, Thinking, ToolCall, Usage
from tests.unit.models.asking_loopback import read


def delta(**fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": fields}]}


def stop(reason: str = "stop") -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def piece(index: int | None, call_id: str | None, name: str | None, arguments: object) -> dict[str, object]:
    function = {"name": name, "arguments": arguments}
    call = {"index": index, "id": call_id, "function": function}
    return delta(tool_calls=[{key: value for key, value in call.items() if value is not None}])


# --- chat completions -------------------------------------------------------------------------------------


def test_calls_that_all_have_index_0_are_told_apart_by_their_ids() -> None:
    # Gemini's OpenAI imitation.
    _, end = read(
        ChatReader(), piece(0, "a", "read", '{"p":1}'), piece(0, "b", "read", '{"p":2}'), stop("tool_calls")
    )

    assert end.message.content == (
        ToolCall(call_id="a", name="read", arguments=Raw(b'{"p":1}')),
        ToolCall(call_id="b", name="read", arguments=Raw(b'{"p":2}')),
    )


def test_pieces_of_a_call_without_index_belong_to_the_last_one() -> None:
    _, end = read(
        ChatReader(), piece(None, "a", "read", '{"p"'), piece(None, None, None, ":1}"), stop("tool_calls")
    )

    assert end.message.content == (ToolCall(call_id="a", name="read", arguments=Raw(b'{"p":1}')),)


def test_calls_that_take_turns_are_put_together_by_index() -> None:
    _, end = read(
        ChatReader(),
        piece(0, "a", "read", ""),
        piece(1, "b", "list", ""),
        piece(0, None, None, '{"p":'),
        piece(1, None, None, "{}"),
        piece(0, None, None, "1}"),
        stop("tool_calls"),
    )

    assert [bytes(call.arguments) for call in end.message.content if isinstance(call, ToolCall)] == [
        b'{"p":1}',
        b"{}",
    ]


def test_a_name_that_comes_with_every_piece_is_one_name() -> None:
    _, end = read(ChatReader(), piece(0, "a", "read", '{"p"'), piece(0, "a", "read", ":1}"), stop())

    assert end.message.content == (ToolCall(call_id="a", name="read", arguments=Raw(b'{"p":1}')),)
    # "stop" although there are calls: vLLM and others.
    assert end.stop_reason == "tool_use"


def test_arguments_that_are_an_object_are_taken_as_they_are() -> None:
    _, end = read(ChatReader(), piece(0, "a", "read", {"p": 1.5}), stop())

    assert end.message.content == (ToolCall(call_id="a", name="read", arguments=Raw(b'{"p": 1.5}')),)


def test_the_older_function_call_is_a_call() -> None:
    _, end = read(
        ChatReader(),
        delta(function_call={"name": "read", "arguments": '{"p"'}),
        delta(function_call={"arguments": ":1}"}),
        stop("function_call"),
    )

    (call,) = end.message.content
    assert isinstance(call, ToolCall)
    assert (call.name, bytes(call.arguments), end.stop_reason) == ("read", b'{"p":1}', "tool_use")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_has_two_names(field: str) -> None:
    seen, end = read(ChatReader(), delta(**{field: "hm"}), delta(content="yes"), stop())

    assert seen[:2] == [ThinkingChunk("hm"), TextChunk("yes")]
    assert end.message.content == (Thinking(text="hm"), Text(text="yes"))


def test_mistrals_parts_are_thinking_and_text() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "yes"},
    ]

    _, end = read(ChatReader(), delta(content=parts), stop())

    assert end.message.content == (Thinking(text="hm"), Text(text="yes"))


def test_a_report_in_every_chunk_is_the_last_one() -> None:
    first = {**delta(content="a"), "usage": {"prompt_tokens": 5, "completion_tokens": 1}}
    last = {**stop(), "usage": {"prompt_tokens": 5, "completion_tokens": 2}}

    _, end = read(ChatReader(), first, last)

    assert end.usage == Usage(input_tokens=5, output_tokens=2)


def test_groqs_report_stands_under_its_name() -> None:
    _, end = read(ChatReader(), {**stop(), "x_groq": {"usage": {"prompt_tokens": 5, "completion_tokens": 2}}})

    assert end.usage == Usage(input_tokens=5, output_tokens=2)


def test_a_report_that_cannot_be_believed_is_none() -> None:
    _, end = read(ChatReader(), {**stop(), "usage": {"prompt_tokens": -5, "completion_tokens": 2}})

    assert end.usage is None
    assert end.message.usage is not None


@pytest.mark.parametrize("reason", ["error", "network_error", "insufficient_system_resource"])
def test_a_reason_that_is_a_failure_is_no_answer(reason: str) -> None:
    reader = ChatReader()

    with pytest.raises(ProviderRefused):
        read(reader, delta(content="half"), stop(reason))

    partial = reader.collected.partial()
    assert partial is not None
    assert partial.content == (Text(text="half"),)


def test_openrouters_error_in_a_chunk_has_its_status() -> None:
    error = {"error": {"code": 502, "message": "Provider returned error"}, "choices": [{"delta": {}}]}

    with pytest.raises(ProviderRefused) as seen:
        read(ChatReader(), error)

    assert seen.value.status == 502


def test_vllms_bare_error_is_one() -> None:
    error = {"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}

    with pytest.raises(ProviderRefused) as seen:
        read(ChatReader(), error)

    assert (seen.value.status, "too long" in seen.value.text) == (400, True)


def test_choices_that_are_null_or_empty_are_no_answer_yet() -> None:
    _, end = read(ChatReader(), {"choices": None}, {"choices": []}, {"id": 1}, delta(content="a"), stop())

    assert end.message.content == (Text(text="a"),)


def test_half_an_emoji_becomes_a_mark_and_stops_nothing() -> None:
    _, end = read(ChatReader(), b'{"choices":[{"delta":{"content":"a\\ud83d"}}]}', stop())

    assert end.message.content == (Text(text="a\ufffd"),)


def test_broken_utf8_becomes_a_mark_and_stops_nothing() -> None:
    _, end = read(ChatReader(), b'{"choices":[{"delta":{"content":"a\xff\\ud83d\\ude00\\\\ud83d"}}]}', stop())

    assert end.message.content == (Text(text="a\ufffd\U0001f600\\ud83d"),)


def test_json_that_is_nested_too_deep_is_broken() -> None:
    with pytest.raises(NoJson):
        read(ChatReader(), b'{"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
