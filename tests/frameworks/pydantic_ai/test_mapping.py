"""Histories of Pydantic AI as a session's messages, and back: nothing that stays is copied or changed."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import messages as pai

from compactd.formats.messages.neutral import decode_message
from compactd.integrations.frameworks.history import ShownMessage
from compactd.integrations.frameworks.pydantic_ai import archive
from compactd.integrations.frameworks.pydantic_ai.messages import is_setup, units_of
from compactd.integrations.frameworks.pydantic_ai.shown import carried_parts, shown_history
from compactd.protocol.messages import Unknown
from tests.frameworks.pydantic_ai.histories import HISTORIES
from tests.support.examples import examples

SUMMARY = ShownMessage("user", msgspec.Raw(b'"[Conversation summary] what was said"'), is_summary=True)


def parts_of(messages: list[pai.ModelMessage]) -> list[object]:
    return [part for message in messages for part in message.parts]


def is_same(one: list[pai.ModelMessage], other: list[pai.ModelMessage]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


@given(HISTORIES)
@settings(max_examples=examples(300))
def test_a_view_of_everything_is_the_history_itself(history: list[pai.ModelMessage]) -> None:
    units = units_of(history)

    shown = shown_history(units, range(len(units.places)))

    assert is_same(shown, history)


@given(HISTORIES, st.data())
@settings(max_examples=examples(300))
def test_what_stays_is_the_agents_own_object_and_in_order(
    history: list[pai.ModelMessage], data: st.DataObject
) -> None:
    units = units_of(history)
    chosen = [at for at in range(len(units.places)) if data.draw(st.booleans())]

    shown = shown_history(units, [SUMMARY, *chosen])

    kept = {
        id(part)
        for message, part in (units.places[at] for at in chosen)
        for part in (history[message].parts if part < 0 else [history[message].parts[part]])
    }
    unsaid = {id(part) for part in parts_of(history)} - {
        id(part)
        for message, part in units.places
        for part in (history[message].parts if part < 0 else [history[message].parts[part]])
    }
    left = [part for part in parts_of(shown) if id(part) in kept]
    assert [id(part) for part in parts_of(history) if id(part) in kept] == [id(part) for part in left]
    others = [part for part in parts_of(shown) if id(part) not in kept | unsaid]
    assert [type(part) for part in others if not isinstance(part, pai.ToolAvailabilityDeltaPart)] == [
        pai.CompactionPart
    ]


@given(HISTORIES, st.data())
@settings(max_examples=examples(200))
def test_what_sets_the_conversation_up_is_in_every_view(
    history: list[pai.ModelMessage], data: st.DataObject
) -> None:
    units = units_of(history)
    chosen = [at for at in range(len(units.places)) if data.draw(st.booleans())]

    shown = shown_history(units, [SUMMARY, *chosen])

    needed = carried_parts(history, set(range(len(history))))
    there = {id(part) for part in parts_of(shown)}
    assert [part for part in needed if id(part) not in there] == []


@given(HISTORIES)
@settings(max_examples=examples(200))
def test_every_unit_is_a_message_of_the_protocol(history: list[pai.ModelMessage]) -> None:
    units = units_of(history)

    for at in range(len(units.places)):
        neutral = units.encode(at)
        neutral.pop("usage", None)
        message = decode_message(msgspec.json.encode(neutral))
        assert message.role == neutral["role"]
        assert not any(isinstance(block, Unknown) for block in message.content)


@given(HISTORIES)
@settings(max_examples=examples(200))
def test_a_history_that_was_stored_and_loaded_has_the_same_units(history: list[pai.ModelMessage]) -> None:
    stored = pai.ModelMessagesTypeAdapter.dump_json(history)

    loaded = pai.ModelMessagesTypeAdapter.validate_json(stored)

    one, other = units_of(history), units_of(loaded)
    assert one.keys == other.keys
    assert [one.encode(at) for at in range(len(one.keys))] == [
        other.encode(at) for at in range(len(other.keys))
    ]


@given(HISTORIES, st.data())
@settings(max_examples=examples(200))
def test_a_view_can_be_stored_and_loaded(history: list[pai.ModelMessage], data: st.DataObject) -> None:
    units = units_of(history)
    chosen = [at for at in range(len(units.places)) if data.draw(st.booleans())]
    shown = shown_history(units, [SUMMARY, *chosen], conversation_id="c")

    loaded = pai.ModelMessagesTypeAdapter.validate_json(pai.ModelMessagesTypeAdapter.dump_json(shown))

    assert units_of(loaded).keys == units_of(shown).keys


@given(HISTORIES, st.data())
@settings(max_examples=examples(200))
def test_another_text_gives_another_key(history: list[pai.ModelMessage], data: st.DataObject) -> None:
    changed = deepcopy(history)
    said = [
        part
        for message in changed
        for part in message.parts
        if isinstance(part, pai.ToolReturnPart | pai.UserPromptPart | pai.TextPart | pai.RetryFeedbackPart)
        and not is_setup(part)
    ]
    if not said:
        return
    data.draw(st.sampled_from(said)).content = "something that no history of this test says"

    assert units_of(changed).keys != units_of(history).keys


def test_a_pruned_result_keeps_its_id_name_and_metadata() -> None:
    result = pai.ToolReturnPart("look", {"a": 1}, tool_call_id="c1", metadata={"mine": True})
    call = pai.ModelResponse(parts=[pai.ToolCallPart("look", {}, tool_call_id="c1")])
    history = [call, pai.ModelRequest(parts=[result, pai.UserPromptPart("and now?")], metadata={"m": 1})]
    block = {"type": "tool_result", "call_id": "c1", "content": "[pruned, expand e2]"}
    pruned = ShownMessage("tool", msgspec.Raw(msgspec.json.encode([block])), index=1)

    shown = shown_history(units_of(history), [0, pruned, 2])

    assert shown[0] is call
    request = shown[1]
    assert isinstance(request, pai.ModelRequest)
    assert request.metadata == {"m": 1}
    assert request.parts[0] == replace(result, content="[pruned, expand e2]")
    assert request.parts[1] is history[1].parts[1]


def test_a_result_that_differs_in_its_id_only_is_the_agents_own() -> None:
    result = pai.ToolReturnPart("look", "seen", tool_call_id="c1")
    call = pai.ModelResponse(parts=[pai.ToolCallPart("look", {"at": 1}, tool_call_id="c1")])
    history = [call, pai.ModelRequest(parts=[result])]
    renamed = [
        ShownMessage(
            "assistant",
            msgspec.Raw(b'[{"type":"tool_call","call_id":"c1-2","name":"look","arguments":{"at":1}}]'),
            index=0,
        ),
        ShownMessage(
            "tool",
            msgspec.Raw(b'[{"type":"tool_result","call_id":"c1-2","name":"look","content":"seen"}]'),
            index=1,
        ),
    ]

    assert is_same(shown_history(units_of(history), renamed), history)


def test_a_clipped_prompt_keeps_its_pictures() -> None:
    picture = pai.BinaryContent(b"\x89PNG\r\n\x1a\n", media_type="image/png")
    history: list[pai.ModelMessage] = [pai.ModelRequest(parts=[pai.UserPromptPart(["long " * 9, picture])])]
    content = units_of(history).encode(0)["content"]
    content[0] = {"type": "text", "text": "long […]"}
    clipped = ShownMessage("user", msgspec.Raw(msgspec.json.encode(content)), index=0)

    shown = shown_history(units_of(history), [clipped])

    prompt = shown[0].parts[0]
    assert isinstance(prompt, pai.UserPromptPart)
    assert prompt.content == ["long […]", picture]


def test_the_system_prompt_comes_before_the_summary() -> None:
    system, asked = pai.SystemPromptPart("Be terse."), pai.UserPromptPart("Go.")
    history: list[pai.ModelMessage] = [
        pai.ModelRequest(parts=[system, asked]),
        pai.ModelResponse(parts=[pai.TextPart("Gone.")]),
    ]

    shown = shown_history(units_of(history), [SUMMARY, 0, 1])

    assert [type(part) for part in parts_of(shown)] == [
        pai.SystemPromptPart,
        pai.CompactionPart,
        pai.UserPromptPart,
        pai.TextPart,
    ]
    assert parts_of(shown)[0] is system
    assert parts_of(shown)[2] is asked


def test_what_a_tool_put_into_a_prompt_is_not_said_by_the_user() -> None:
    call = pai.ModelResponse(parts=[pai.ToolCallPart("look", {}, tool_call_id="c1")], run_id="r")
    result = pai.ToolReturnPart("look", "see below", tool_call_id="c1")
    page = pai.ModelRequest(parts=[result, pai.UserPromptPart("Never delete files.")], run_id="r")
    answer = pai.ModelRequest(parts=[result, pai.UserPromptPart("Go on.")], run_id="s")

    from_tool = units_of([call, page]).encode(2)
    from_user = units_of([call, answer]).encode(2)

    assert from_tool["meta"] == {"author": "tool", "synthetic": True}
    assert "meta" not in from_user


def test_the_names_of_found_tools_stay() -> None:
    found = pai.ToolSearchReturnPart(
        content={"discovered_tools": [{"name": "refund"}]}, tool_call_id="c1", tool_name="search_tools"
    )
    history: list[pai.ModelMessage] = [
        pai.ModelRequest(parts=[pai.UserPromptPart("refund it")]),
        pai.ModelResponse(parts=[pai.ToolSearchCallPart(args={"queries": ["refund"]}, tool_call_id="c1")]),
        pai.ModelRequest(parts=[found]),
        pai.ModelResponse(parts=[pai.TextPart("done")]),
    ]

    shown = shown_history(units_of(history), [SUMMARY, 3])

    deltas = [part for part in parts_of(shown) if isinstance(part, pai.ToolAvailabilityDeltaPart)]
    assert [part.tools_added for part in deltas] == [["refund"]]


def test_messages_of_unknown_classes_stay_where_they_are() -> None:
    class Strange:
        parts = ()
        kind = "strange"

    strange = Strange()
    history = [
        pai.ModelRequest(parts=[pai.UserPromptPart("hello")]),
        strange,
        pai.ModelResponse(parts=[pai.TextPart("hello")]),
    ]

    shown = shown_history(units_of(history), [0, 1])  # type: ignore[arg-type] - that is the test

    assert shown == history


def test_usage_is_that_of_the_provider_without_its_cache() -> None:
    usage = pai.RequestUsage(input_tokens=100, output_tokens=5, cache_read_tokens=60, cache_write_tokens=10)
    answer = pai.ModelResponse(parts=[pai.TextPart("ok")], usage=usage, provider_name="anthropic")

    neutral = units_of([answer]).encode(0)

    assert (neutral["usage"]["input_tokens"], neutral["usage"]["cache_read_tokens"]) == (30, 60)
    estimated = units_of([replace(answer, provider_name=None)]).encode(0)
    assert "usage" not in estimated


def test_a_loaded_capability_is_pinned_with_its_call() -> None:
    history: list[pai.ModelMessage] = [
        pai.ModelResponse(parts=[pai.LoadCapabilityCallPart(args={"id": "refunds"}, tool_call_id="c1")]),
        pai.ModelRequest(
            parts=[pai.LoadCapabilityReturnPart(content={"instructions": "Be kind."}, tool_call_id="c1")]
        ),
    ]
    units = units_of(history)

    assert [units.encode(at)["meta"] for at in range(2)] == [{"pinned": True}, {"pinned": True}]


def test_a_shortened_history_is_known_after_the_framework_joined_its_requests() -> None:
    asked, answered = pai.UserPromptPart("first"), pai.TextPart("answer")
    whole: list[pai.ModelMessage] = [
        pai.ModelRequest(parts=[pai.SystemPromptPart("old"), asked]),
        pai.ModelResponse(parts=[answered]),
    ]
    summary, newest = pai.CompactionPart("what was said"), pai.UserPromptPart("second")
    archive.remember("joined", [pai.ModelRequest(parts=[pai.SystemPromptPart("old"), summary])], whole)

    joined = pai.ModelRequest(parts=[pai.SystemPromptPart("new"), summary, newest])
    known = archive.whole_history("joined", [joined])
    unknown = archive.whole_history("joined", [pai.ModelRequest(parts=[newest])])

    assert [type(part) for part in parts_of(known)] == [
        pai.SystemPromptPart,
        pai.UserPromptPart,
        pai.TextPart,
        pai.UserPromptPart,
    ]
    assert [part.content for part in known[0].parts if isinstance(part, pai.SystemPromptPart)] == ["new"]
    assert parts_of(known)[-1] is newest
    assert parts_of(unknown) == [newest]
