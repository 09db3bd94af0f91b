"""Answers in all five wire formats, written by the loopback provider, become the same message."""

from __future__ import annotations

import pytest
from msgspec import Raw

from compactd.protocol.messages import Block, Opaque, Text, Thinking, ToolCall, Usage
from tests.support.loopback import Answer, Call, Dribble, Noise, Plain, Wire, length_stop, refusal
from tests.unit.models.asking_loopback import WIRES, ask

EVERY_WIRE = pytest.mark.parametrize("wire", WIRES)

ANSWER = Answer(
    text="Schön 🙂: ‘read’\u2028it",
    thinking="Let me see …",
    input_tokens=90,
    output_tokens=30,
    cache_read=10,
    reasoning=12,
)


def texts(content: tuple[Block, ...]) -> list[str]:
    return [block.text for block in content if isinstance(block, Text)]


def thoughts(content: tuple[Block, ...]) -> list[tuple[str, str | None]]:
    return [(block.text, block.signature) for block in content if isinstance(block, Thinking)]


@EVERY_WIRE
async def test_text_and_thinking_arrive_in_pieces_and_stand_whole_in_the_message(wire: Wire) -> None:
    heard, _ = await ask(wire, ANSWER)

    finished = heard.finished
    signature = ANSWER.signature if wire == "anthropic" else None
    assert (heard.text, heard.thinking) == (ANSWER.text, ANSWER.thinking)
    assert texts(finished.message.content) == [ANSWER.text]
    assert thoughts(finished.message.content) == [(ANSWER.thinking, signature)]
    assert (finished.stop_reason, finished.message.stop_reason) == ("stop", "stop")
    assert finished.message.role == "assistant"
    assert finished.model == "loopback-1"
    assert len(heard.events) > 6


@EVERY_WIRE
async def test_the_report_comes_back_normalised_and_as_it_came(wire: Wire) -> None:
    heard, _ = await ask(wire, ANSWER)

    seen = heard.finished.usage
    reasoning = {"anthropic": 0, "ollama": 0}.get(wire, 12)
    cached = 0 if wire == "ollama" else 10
    assert seen == Usage(
        input_tokens=100 - cached, output_tokens=30, cache_read_tokens=cached, reasoning_tokens=reasoning
    )
    assert b"oken" in bytes(heard.finished.message.usage or Raw(b"")) or wire == "ollama"


@EVERY_WIRE
async def test_an_answer_without_a_report_has_none(wire: Wire) -> None:
    heard, _ = await ask(wire, Answer(text="hi", usage=False))

    assert (heard.text, heard.finished.usage, heard.finished.message.usage) == ("hi", None, None)


@EVERY_WIRE
async def test_calls_are_ready_whole_and_in_order(wire: Wire) -> None:
    calls = (Call("read", '{"path": "ä.py", "n": 1.0}', "call_a"), Call("list", "{}", "call_b"))

    heard, _ = await ask(wire, Answer(text="I look.", calls=calls))

    finished = heard.finished
    assert [call.name for call in heard.calls] == ["read", "list"]
    paths = ['"ä.py"'.encode() in bytes(Raw(call.arguments)) for call in heard.calls]
    assert paths == [True, False]
    assert finished.stop_reason == "tool_use"
    in_message = [block for block in finished.message.content if isinstance(block, ToolCall)]
    assert [(call.call_id, call.name) for call in in_message] == [
        (call.call_id, call.name) for call in heard.calls
    ]
    assert len({call.call_id for call in in_message}) == 2


@pytest.mark.parametrize("wire", ["openai", "openai_responses", "anthropic"])
async def test_arguments_stay_byte_for_byte(wire: Wire) -> None:
    given = '{ "b":1.0,\n "a": [1e2, "\\u00e4"] }'

    heard, _ = await ask(wire, Answer(calls=(Call("read", given),)))

    assert heard.calls[0].arguments == Raw(given.encode())
    assert heard.finished.message.content == (
        ToolCall(call_id="call_1", name="read", arguments=Raw(given.encode())),
    )


@pytest.mark.parametrize("wire", ["openai", "openai_responses", "anthropic"])
@pytest.mark.parametrize("written", ['{"path": "a', "read a.py", "[1, 2]", '{"a": }'])
async def test_arguments_that_are_no_object_are_kept_as_the_text_they_are(wire: Wire, written: str) -> None:
    heard, _ = await ask(wire, Answer(calls=(Call("read", written),)))

    assert heard.calls[0].arguments == written
    call = heard.finished.message.content[-1]
    assert isinstance(call, ToolCall)
    assert bytes(call.arguments) == b'"' + written.replace('"', '\\"').encode() + b'"'


@EVERY_WIRE
async def test_a_call_without_arguments_has_an_empty_object(wire: Wire) -> None:
    heard, _ = await ask(wire, Answer(calls=(Call("list", ""),)))

    assert heard.calls[0].arguments == Raw(b"{}")


@EVERY_WIRE
async def test_a_call_without_an_id_gets_one_that_no_other_has(wire: Wire) -> None:
    calls = (Call("a", id=""), Call("b", id=""))

    heard, _ = await ask(wire, Answer(calls=calls if wire in ("gemini", "ollama") else (calls[0],)))

    seen = [call.call_id for call in heard.calls]
    assert all(seen)
    assert len(set(seen)) == len(seen)


@EVERY_WIRE
async def test_a_stop_for_length_is_visible(wire: Wire) -> None:
    heard, _ = await ask(wire, length_stop("half a sen"))

    assert (heard.text, heard.finished.stop_reason) == ("half a sen", "length")
    assert heard.finished.raw_stop in ("length", "max_output_tokens", "max_tokens", "MAX_TOKENS")


@EVERY_WIRE
async def test_reasoning_that_eats_the_output_leaves_an_empty_text_and_a_stop_for_length(wire: Wire) -> None:
    heard, _ = await ask(wire, Answer(thinking="hm", stop="length", output_tokens=64, reasoning=64))

    finished = heard.finished
    assert (heard.text, finished.stop_reason) == ("", "length")
    assert texts(finished.message.content) == []
    assert finished.usage is not None
    assert finished.usage.output_tokens == 64


@EVERY_WIRE
async def test_an_empty_answer_is_finished_and_empty(wire: Wire) -> None:
    heard, _ = await ask(wire, Answer(text="", output_tokens=0))

    assert heard.text == ""
    assert heard.finished.stop_reason == "stop"
    assert heard.finished.message.content in ((), (Text(text=""),))


@pytest.mark.parametrize("wire", ["openai", "openai_responses", "anthropic", "gemini"])
async def test_a_refusal_is_visible(wire: Wire) -> None:
    heard, _ = await ask(wire, refusal("No."))

    assert heard.text == "No."
    assert heard.finished.stop_reason == ("content_filter" if wire == "gemini" else "refusal")


@pytest.mark.parametrize("wire", ["openai", "openai_responses", "gemini"])
async def test_a_content_filter_is_visible(wire: Wire) -> None:
    heard, _ = await ask(wire, Answer(text="So fa", stop="content_filter"))

    assert heard.finished.stop_reason == "content_filter"


async def test_a_window_that_was_full_is_visible() -> None:
    heard, _ = await ask("anthropic", Answer(text="So fa", stop="context_window"))

    assert heard.finished.stop_reason == "model_context_window_exceeded"


@pytest.mark.parametrize("wire", ["openai", "anthropic", "gemini", "ollama"])
async def test_a_reason_that_is_not_known_is_kept_beside_the_word_unknown(wire: Wire) -> None:
    heard, _ = await ask(wire, Answer(text="x", stop="BRAND_NEW"))

    assert (heard.finished.stop_reason, heard.finished.raw_stop) == ("unknown", "BRAND_NEW")


@EVERY_WIRE
@pytest.mark.parametrize("wrap", [Plain, Noise, Dribble], ids=["whole", "noisy", "byte by byte"])
async def test_the_same_answer_is_heard_however_it_is_sent(wire: Wire, wrap: type) -> None:
    answer = Answer(text="Grüße 🙂 \u2028\u0085 x", thinking="ähm", calls=(Call("read", '{"a":"é"}'),))

    plainly, _ = await ask(wire, answer)
    heard, _ = await ask(wire, wrap(answer))

    def blocks(content: tuple[Block, ...]) -> list[object]:
        # Ids are made here where the wire has none.
        return [(block.name, block.arguments) if isinstance(block, ToolCall) else block for block in content]

    assert blocks(heard.finished.message.content) == blocks(plainly.finished.message.content)
    assert heard.finished.usage == plainly.finished.usage
    assert heard.finished.stop_reason == "tool_use"
    assert heard.text == answer.text


@EVERY_WIRE
async def test_an_answer_that_is_not_to_be_streamed_comes_as_the_same_events(wire: Wire) -> None:
    heard, server = await ask(wire, Answer(text="hi there", thinking="hm"), stream=False)

    assert (heard.text, heard.thinking, heard.finished.stop_reason) == ("hi there", "hm", "stop")
    asked = server.requests[0]
    assert asked.path.endswith(":generateContent") if wire == "gemini" else asked.body["stream"] is False


async def test_an_encrypted_thought_goes_back_to_the_responses_api_word_for_word() -> None:
    heard, _ = await ask("openai_responses", Answer(text="x", thinking="sum"))

    thinking, item, _ = heard.finished.message.content
    assert thinking == Thinking(text="sum")
    assert isinstance(item, Opaque)
    assert item.provider == "openai_responses"
    assert b'"encrypted_content":"c2lnbmF0dXJl"' in bytes(item.raw)


async def test_geminis_signature_stands_before_the_part_it_signs() -> None:
    heard, _ = await ask("gemini", Answer(thinking="hm", calls=(Call("read", '{"a":1}'),)))

    _, signature, call = heard.finished.message.content
    assert signature == Opaque(provider="gemini", raw=Raw(b'{"thoughtSignature":"c2lnbmF0dXJl"}'))
    assert isinstance(call, ToolCall)
