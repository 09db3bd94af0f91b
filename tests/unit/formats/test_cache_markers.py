"""Requests to Anthropic are marked so that the provider reads their beginning from its cache."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec import Raw

from compactd.formats.messages.cache_markers import MAX_MARKERS, CacheMarker, mark_anthropic
from compactd.formats.messages.rendering import Rendered
from tests.support.loopback.prefix_cache import PrefixCache

TOOL = {"name": "read", "input_schema": {"type": "object"}}


def rendered(*messages: object, system: str | None = "Be brief.", tools: int = 2) -> Rendered:
    return Rendered(
        system=system,
        messages=[Raw(msgspec.json.encode(message)) for message in messages],
        tools=[Raw(msgspec.json.encode(TOOL))] * tools or None,
    )


def user(*texts: str) -> dict[str, object]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def places(markers: tuple[CacheMarker, ...]) -> list[str]:
    return [marker.at for marker in markers]


def body_of(made: Rendered, system: Raw | None, **more: object) -> dict:
    return {
        "model": "m",
        "system": json.loads(bytes(system)) if system is not None else made.system,
        "tools": [json.loads(bytes(tool)) for tool in made.tools or ()],
        "messages": [json.loads(bytes(message)) for message in made.messages],
        **more,
    }


def test_the_markers_are_on_the_last_tool_and_the_last_block() -> None:
    made, system, markers = mark_anthropic(rendered(user("a", "b")), starts_with_summary=False, last_sent=0)
    body = body_of(made, system)

    assert (places(markers), system) == (["tools", "messages"], None)
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    assert ["cache_control" in block for block in body["messages"][0]["content"]] == [False, True]


def test_a_summary_and_the_system_prompt_have_their_own_markers() -> None:
    made, system, markers = mark_anthropic(
        rendered(user("summary"), user("x")), starts_with_summary=True, last_sent=0, marks_system=True
    )

    assert places(markers) == ["tools", "system", "summary", "messages"]
    assert json.loads(bytes(system or Raw(b"null"))) == [
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    ]
    assert body_of(made, system)["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}


def test_after_a_long_step_the_end_of_the_request_before_is_marked_too() -> None:
    long = [user("summary"), user("before"), *[user(f"{n}") for n in range(25)]]

    _, _, near = mark_anthropic(rendered(*long[:5]), starts_with_summary=True, last_sent=2, marks_system=True)
    made, _, far = mark_anthropic(rendered(*long), starts_with_summary=True, last_sent=2, marks_system=True)

    assert places(near) == ["tools", "system", "summary", "messages"]
    assert places(far) == ["system", "summary", "messages", "messages"]
    assert "cache_control" in json.loads(bytes(made.messages[1]))["content"][0]


def test_a_message_that_the_client_marked_keeps_its_own_marker() -> None:
    own = {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}
    made, _, markers = mark_anthropic(rendered(own, tools=0), starts_with_summary=False, last_sent=0)

    assert (markers, bytes(made.messages[0])) == ((), msgspec.json.encode(own))


def test_words_about_markers_are_no_markers() -> None:
    said = user('Set "cache_control" in {"cache_control":{}}.')
    made, _, markers = mark_anthropic(rendered(said, tools=0), starts_with_summary=False, last_sent=0)

    assert places(markers) == ["messages"]
    assert json.loads(bytes(made.messages[0]))["content"][0]["text"] == said["content"][0]["text"]


def test_a_longer_lifetime_is_written_out() -> None:
    made, _, markers = mark_anthropic(
        rendered(user("x"), tools=0), starts_with_summary=False, last_sent=0, lifetime="1h"
    )

    assert markers == (CacheMarker(at="messages", ttl="1h"),)
    assert json.loads(bytes(made.messages[0]))["content"][0]["cache_control"]["ttl"] == "1h"


@pytest.mark.parametrize("blocks", [1, 3, 19, 20, 21, 45])
@pytest.mark.parametrize("marks_system", [True, False])
def test_every_request_reads_the_whole_request_before(blocks: int, marks_system: bool) -> None:
    cache = PrefixCache(lambda: 0.0, minimum_tokens=0)
    messages: list[object] = [user("summary " * 50)]
    sent = before = 0
    for turn in range(6):
        messages.append(user(*(f"{turn} {n} words" for n in range(blocks))))
        made, system, markers = mark_anthropic(
            rendered(*messages), starts_with_summary=True, last_sent=sent, marks_system=marks_system
        )
        billed = cache.bill(body_of(made, system))

        assert len(markers) <= MAX_MARKERS
        assert (billed.read, billed.input) == (before, 0)
        sent, before = len(messages), billed.size
