"""Unusual behaviour of Anthropic, OpenAI Responses, Gemini and Ollama, fed to the reader as bytes."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from compactd.models.providers.anthropic import CompactionReader, MessagesReader
from compactd.models.providers.gemini import GenerateReader
from compactd.models.providers.ollama import OllamaReader
from compactd.models.providers.openai import ChatReader
from compactd.models.providers.openai_responses import CompactReader, ResponsesReader
from compactd.models.providers.provider import Finished, TextChunk, ToolCallReady
from compactd.models.providers.response import NotAnAnswer, ProviderRefused, Unfinished
from compactd.protocol.messages import Opaque, Text, Thinking, ToolCall, Usage
from tests.unit.models.asking_loopback import read

# --- anthropic --------------------------------------------------------------------------------------------


def block(index: int, content: dict[str, object], *deltas: dict[str, object]) -> list[object]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": each} for each in deltas),
        {"type": "content_block_stop", "index": index},
    ]


END = ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"})


def test_two_thoughts_keep_their_own_signatures() -> None:
    begun: dict[str, object] = {"type": "thinking", "thinking": "", "signature": ""}

    def thought(text: str, signature: str) -> tuple[dict[str, object], dict[str, object]]:
        return {"type": "thinking_delta", "thinking": text}, {
            "type": "signature_delta",
            "signature": signature,
        }

    _, end = read(
        MessagesReader(), *block(0, begun, *thought("a", "1")), *block(1, begun, *thought("b", "2")), *END
    )

    assert end.message.content == (Thinking(text="a", signature="1"), Thinking(text="b", signature="2"))


def test_hidden_thinking_is_kept_word_for_word() -> None:
    empty: dict[str, object] = {"type": "thinking", "thinking": "", "signature": "sig"}

    _, end = read(
        MessagesReader(), *block(0, {"type": "redacted_thinking", "data": "xyz"}), *block(1, empty), *END
    )

    assert end.message.content == (Thinking(redacted="xyz"), Thinking(text="", signature="sig"))


def test_two_texts_stay_two_texts() -> None:
    one: dict[str, object] = {"type": "text_delta", "text": "a"}

    _, end = read(
        MessagesReader(),
        *block(0, {"type": "text", "text": ""}, one),
        *block(1, {"type": "text", "text": ""}, one),
        *END,
    )

    assert end.message.content == (Text(text="a"), Text(text="a"))


def test_a_servers_own_tool_is_kept_as_it_would_have_come_whole() -> None:
    call: dict[str, object] = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    given: dict[str, object] = {"type": "input_json_delta", "partial_json": '{"query": "x"}'}
    result: dict[str, object] = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}

    _, end = read(MessagesReader(), *block(0, call, given), *block(1, result), *END)

    first, second = end.message.content
    assert isinstance(first, Opaque)
    assert json.loads(bytes(first.raw)) == {**call, "input": {"query": "x"}}
    assert isinstance(second, Opaque)
    assert json.loads(bytes(second.raw)) == result


def test_a_summary_at_a_threshold_is_kept_as_it_would_have_come_whole() -> None:
    begun: dict[str, object] = {"type": "compaction", "content": None}
    late: dict[str, object] = {"type": "compaction_delta", "content": "So far.", "encrypted_content": "ZW5j"}
    failed: dict[str, object] = {"type": "compaction_delta", "content": None}

    _, end = read(MessagesReader(), *block(0, begun, late), *block(1, begun, failed), *END)

    whole = {"type": "compaction", "content": "So far.", "encrypted_content": "ZW5j"}
    opaque = [json.loads(bytes(one.raw)) for one in end.message.content if isinstance(one, Opaque)]
    assert opaque == [whole, begun]


def test_what_a_summary_took_is_the_sum_of_its_iterations() -> None:
    one = {"type": "compaction", "input_tokens": 100, "cache_read_input_tokens": 40, "output_tokens": 7}
    usage = {"input_tokens": 0, "output_tokens": 0, "iterations": [one, {**one, "input_tokens": 5}, 3]}
    stop = {"type": "message_delta", "delta": {"stop_reason": "compaction"}, "usage": usage}
    plain = {**stop, "usage": {"input_tokens": 0, "output_tokens": 0}}
    good = {**stop, "usage": {**usage, "iterations": [one, {**one, "input_tokens": 5}, {"type": "message"}]}}

    read_usages = [read(CompactionReader(), event)[1].usage for event in (good, stop, plain)]

    assert read_usages == [
        Usage(input_tokens=105, cache_read_tokens=80, output_tokens=14),
        None,
        Usage(),
    ]


@pytest.mark.parametrize("body", [b"{}", b'{"object":"response","output":[]}', b'{"output":[]}'])
def test_a_compaction_of_openai_that_is_none_is_no_answer(body: bytes) -> None:
    with pytest.raises(NotAnAnswer):
        list(CompactReader().take_whole(body))


def test_an_error_in_place_of_a_compaction_is_one() -> None:
    error = b'{"error":{"message":"no","code":"invalid_encrypted_content"}}'

    with pytest.raises(ProviderRefused):
        list(CompactReader().take_whole(error))
    with pytest.raises(ProviderRefused):
        list(CompactReader().take("error", error))


def test_the_ends_report_completes_the_starts() -> None:
    start = {"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 1}
    later = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}

    _, end = read(MessagesReader(), {"type": "message_start", "message": {"usage": start}}, later)

    assert end.usage == Usage(input_tokens=9, cache_read_tokens=4, output_tokens=7)


def test_an_event_without_its_type_is_known_by_its_name() -> None:
    reader = MessagesReader()

    seen = list(reader.take("content_block_start", b'{"content_block":{"type":"text","text":"a"}}'))

    assert seen == [TextChunk("a")]


# --- responses --------------------------------------------------------------------------------------------


def test_a_last_event_with_everything_in_it_is_enough() -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
    call = {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"}
    response = {"status": "completed", "output": [message, call], "usage": {"input_tokens": 1}}

    seen, end = read(ResponsesReader(), {"type": "response.completed", "response": response})

    assert end.message.content == (Text(text="hi"), ToolCall(call_id="c", name="read"))
    assert [type(event) for event in seen] == [TextChunk, ToolCallReady, Finished]


def test_parts_of_a_summary_are_paragraphs() -> None:
    def thought(text: str, number: int) -> list[object]:
        place = {"output_index": 0, "summary_index": number}
        return [
            {"type": "response.reasoning_summary_part.added", **place},
            {"type": "response.reasoning_summary_text.delta", **place, "delta": text},
        ]

    done = {"type": "response.completed", "response": {"output": []}}

    _, end = read(ResponsesReader(), *thought("a", 0), *thought("b", 1), done)

    assert end.message.content == (Thinking(text="a\n\nb"),)


def test_a_failed_response_is_an_error_with_what_came() -> None:
    reader = ResponsesReader()
    failed = {
        "type": "response.failed",
        "response": {"status": "failed", "error": {"code": "server_error", "message": "no"}, "output": []},
    }

    with pytest.raises(ProviderRefused) as seen:
        read(reader, {"type": "response.output_text.delta", "output_index": 0, "delta": "half"}, failed)

    partial = reader.collected.partial()
    assert (seen.value.status, seen.value.code) == (500, "server_error")
    assert partial is not None
    assert partial.content == (Text(text="half"),)


def test_items_of_the_providers_own_are_kept_once() -> None:
    item = {"type": "web_search_call", "id": "ws", "status": "completed"}
    events = (
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"output": [item]}},
    )

    _, end = read(ResponsesReader(), *events)

    (kept,) = end.message.content
    assert isinstance(kept, Opaque)
    assert (kept.provider, json.loads(bytes(kept.raw))) == ("openai_responses", item)


# --- gemini -----------------------------------------------------------------------------------------------


def chunk(*parts: dict[str, object], finish: str | None = None) -> dict[str, object]:
    candidate: dict[str, object] = {"content": {"parts": list(parts)}}
    return {"candidates": [{**candidate, "finishReason": finish} if finish else candidate]}


def test_a_prompt_that_was_blocked_has_no_candidates_and_is_a_content_filter() -> None:
    _, end = read(GenerateReader(), {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})

    assert (end.stop_reason, end.raw_stop) == ("content_filter", "PROHIBITED_CONTENT")


def test_a_signature_that_comes_last_and_alone_is_kept() -> None:
    _, end = read(
        GenerateReader(),
        chunk({"text": "hi"}),
        chunk({"text": "", "thoughtSignature": "c2ln"}, finish="STOP"),
    )

    assert end.message.content == (
        Text(text="hi"),
        Opaque(provider="gemini", raw=Raw(b'{"thoughtSignature":"c2ln"}')),
        Text(text=""),
    )


def test_a_list_of_chunks_is_an_answer_that_was_not_streamed() -> None:
    reader = GenerateReader()

    seen = list(
        reader.take_whole(json.dumps([chunk({"text": "a"}), chunk({"text": "b"}, finish="STOP")]).encode())
    )

    assert seen == [TextChunk("a"), TextChunk("b")]


def test_a_candidate_without_content_is_an_empty_answer() -> None:
    _, end = read(GenerateReader(), {"candidates": [{"finishReason": "MAX_TOKENS"}]})

    assert (end.message.content, end.stop_reason) == ((), "length")


def test_a_call_that_gemini_could_not_write_is_an_unknown_stop() -> None:
    _, end = read(GenerateReader(), {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]})

    assert (end.stop_reason, end.raw_stop) == ("unknown", "MALFORMED_FUNCTION_CALL")


# --- ollama -----------------------------------------------------------------------------------------------


def test_a_model_that_was_only_loaded_gave_no_answer() -> None:
    _, end = read(
        OllamaReader(), {"model": "m", "message": {"content": ""}, "done_reason": "load", "done": True}
    )

    assert (end.stop_reason, end.usage) == ("unknown", None)


def test_an_error_line_is_an_error() -> None:
    with pytest.raises(ProviderRefused) as seen:
        read(OllamaReader(), {"error": "model 'x' not found"})

    assert "not found" in seen.value.text


def test_a_line_of_something_else_is_no_answer() -> None:
    with pytest.raises(NotAnAnswer):
        read(OllamaReader(), {"hello": "world"})


@pytest.mark.parametrize(
    "reader",
    [
        *(ChatReader, ResponsesReader, MessagesReader, GenerateReader, OllamaReader),
        *(CompactionReader, CompactReader),
    ],
)
def test_nothing_is_no_answer(reader: type[ChatReader]) -> None:
    with pytest.raises(Unfinished):
        list(reader().finish())

    assert reader().collected.partial() is None
