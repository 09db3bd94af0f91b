"""For any bytes of a server, a reader gives events or one of its few exceptions, never another one."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.models.providers.anthropic import MessagesReader
from compactd.models.providers.gemini import GenerateReader
from compactd.models.providers.json_fields import NoJson, object_bytes
from compactd.models.providers.ollama import OllamaReader
from compactd.models.providers.openai import ChatReader
from compactd.models.providers.openai_responses import ResponsesReader
from compactd.models.providers.provider import Finished, TextChunk
from compactd.models.providers.response import NotAnAnswer, ProviderRefused, ResponseReader, Unfinished
from compactd.models.providers.retries import code_in, error_body, error_in
from compactd.protocol.messages import Message, Text
from tests.support.examples import examples
from tests.support.loopback import Answer, Call, Wire
from tests.support.loopback.player import WRITERS

READERS: dict[Wire, type[ResponseReader]] = {
    "openai": ChatReader,
    "openai_responses": ResponsesReader,
    "anthropic": MessagesReader,
    "gemini": GenerateReader,
    "ollama": OllamaReader,
}

ANSWER = Answer(text="a text", thinking="hm", calls=(Call("read", '{"a": 1}'),), chunk_chars=3)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def paths_in(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a JSON value."""
    found = [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        found += paths_in(each, (*path, name))
    return found


def with_value(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """`value` with another one at `path`."""
    if not path:
        return new
    name, *rest = path
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[name] = with_value(value[name], tuple(rest), new)
    return changed


def drain(reader: ResponseReader, sent: list[tuple[str, bytes]], is_whole: bool) -> None:
    """Read the stream to the end. Check that the streamed text is the text of the final message."""
    shown = ""
    with suppress(ProviderRefused, NoJson, NotAnAnswer, Unfinished):
        for name, data in sent:
            for event in reader.take_whole(data) if is_whole else reader.take(name, data):
                if isinstance(event, TextChunk):
                    shown += event.text
        for event in reader.finish():
            if isinstance(event, Finished):
                content = event.message.content
                assert shown == "".join(block.text for block in content if isinstance(block, Text))
    partial = reader.collected.partial()
    assert partial is None or isinstance(partial, Message)


@pytest.mark.parametrize("wire", READERS)
@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_a_stream_with_anything_anywhere_in_it_breaks_no_reader(wire: Wire, data: st.DataObject) -> None:
    events = [(name, json.loads(text)) for name, text in WRITERS[wire].events(ANSWER) if text[0] == "{"]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(events) - 1))
        name, value = events[at]
        path = data.draw(st.sampled_from(paths_in(value)))
        events[at] = (name, with_value(value, path, data.draw(VALUES)))

    drain(READERS[wire](), [(name, json.dumps(value).encode()) for name, value in events], False)


@pytest.mark.parametrize("wire", READERS)
@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_a_whole_answer_with_anything_anywhere_in_it_breaks_no_reader(
    wire: Wire, data: st.DataObject
) -> None:
    whole = WRITERS[wire].whole(ANSWER)
    path = data.draw(st.sampled_from(paths_in(whole)))

    drain(READERS[wire](), [("", json.dumps(with_value(whole, path, data.draw(VALUES))).encode())], True)


@pytest.mark.parametrize("wire", READERS)
@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=40)), max_size=3), st.booleans())
def test_bytes_that_are_nothing_break_no_reader(
    wire: Wire, sent: list[tuple[str, bytes]], is_whole: bool
) -> None:
    drain(READERS[wire](), sent, is_whole)


@settings(deadline=None)
@given(st.text(max_size=40) | VALUES.map(json.dumps))
def test_no_error_body_breaks_what_reads_it(body: str) -> None:
    status, _ = error_in(error_body(body))

    assert status is None or 400 <= status <= 599
    assert code_in(body) is None or code_in(body)


@settings(deadline=None)
@given(st.text(max_size=30) | VALUES.map(json.dumps))
def test_arguments_are_a_json_object_or_none(text: str) -> None:
    seen = object_bytes(text)

    if seen is not None:
        assert isinstance(json.loads(bytes(seen)), dict)
