from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import Raw, Struct

from compactd.core.history.projection import project
from compactd.formats.files.detect import read
from compactd.formats.files.session_file import SessionFile
from compactd.formats.messages.base import RENDERABLE, render
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import Block, Text, ToolCall, ToolResult
from tests.support import recorded
from tests.support.conversations import LETTERS, items_of
from tests.support.rendered import decoded, problems

OURS = {
    "claude-code": "claude-code",
    "gemini-cli": "claude-code",
    "pi": "pi",
    "openhands-log": "openai",
    "cline": "cline",
    "swe-agent": "swe-agent",
    "mini-swe-agent": "mini-swe-agent",
    "aider-md": "aider",
}
ROWS = recorded.sessions(*OURS)

pytestmark = pytest.mark.skipif(recorded.folder() is None, reason="the recorded sessions are not here")


def session(row: dict[str, Any]) -> SessionFile:
    folder = recorded.folder()
    assert folder is not None
    return read(folder / row["file"])


TOLD_OTHERWISE = {"aider-chat-history": 63}
"""Messages that the list of recordings counts and that are no answers, but go on after aider's own lines."""

DELIVERED = {"entire-5c5cb639-0": 1, "spotter-258c7280": 2}
"""Messages that the user typed while Claude Code worked, which the list of recordings does not count."""


def blocks(file: SessionFile) -> list[Block]:
    return [block for message, _ in file.messages for block in message.content]


@pytest.fixture(params=ROWS, ids=[row["name"] for row in ROWS], scope="module")
def row(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


@pytest.fixture(scope="module")
def file(row: dict[str, Any]) -> SessionFile:
    return session(row)


def test_a_recorded_session_is_read_whole(row: dict[str, Any], file: SessionFile) -> None:
    results = [block for block in blocks(file) if isinstance(block, ToolResult)]

    seen = {
        "messages": len(file.messages),
        "tool_calls": sum(isinstance(block, ToolCall) for block in blocks(file)),
        "tool_results": len(results),
        "compactions": file.compactions,
        "errors": sum(result.is_error for result in results),
    }

    assert file.format == OURS[row["format"]]
    expected = {name: row[name] for name in seen}
    expected["messages"] += DELIVERED.get(row["name"], 0) - TOLD_OTHERWISE.get(row["name"], 0)
    assert seen == expected


def test_what_is_read_and_its_bytes_say_the_same(file: SessionFile) -> None:
    assert [decode_message(raw) for _, raw in file.messages] == [message for message, _ in file.messages]


def test_the_messages_of_a_recorded_session_have_ids_of_their_own(file: SessionFile) -> None:
    ids = [message.id for message, _ in file.messages if message.id is not None]

    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("format", RENDERABLE)
def test_a_recorded_session_is_a_valid_request_and_holds_every_text(format: str, file: SessionFile) -> None:
    projection = project(items_of([message for message, _ in file.messages]), LETTERS)

    rendered = render(format, "be brief", [], projection)

    assert problems(format, rendered) == []
    messages = decoded(rendered.messages)
    whole = "\0".join([rendered.system or "", *strings(messages), *objects(rendered.messages)])
    at = 0
    for text in (text for each in projection.messages for b in each.message.content for text in texts(b)):
        found = whole.find(text, at)
        at = found if found >= 0 else whole.find(text)
        assert at >= 0


def texts(block: Block) -> Iterator[str]:
    match block:
        case Text():
            yield block.text.rstrip()
        case ToolResult(content=str(text)):
            # White space around JSON is no part of it.
            yield text.strip() if text.lstrip().startswith("{") else text.strip() and text
        case ToolResult(content=inner):
            for each in inner:
                yield from texts(each)
        case _:
            pass


class _Given(Struct, rename="camel"):
    response: Raw


class _Part(Struct, rename="camel"):
    function_response: _Given | None = None


class _Content(Struct):
    parts: list[_Part] = []


def objects(messages: list[Raw]) -> Iterator[str]:
    """Results that are JSON objects: Gemini gets them as they are."""
    for raw in messages:
        for part in msgspec.json.decode(raw, type=_Content).parts:
            if part.function_response is not None:
                yield bytes(part.function_response.response).decode()


def strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from strings(each)
        case dict():
            for each in value.values():
                yield from strings(each)
        case _:
            pass
