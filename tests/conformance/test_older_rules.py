"""Rules of Anthropic's and OpenAI's chat requests that no other test here violates on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.rules import anthropic_messages, openai_chat

Json = dict[str, Any]

GO: Json = {"role": "user", "content": "go"}
USE: Json = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
RESULT: Json = {"type": "tool_result", "tool_use_id": "a", "content": "out"}
SEARCH: Json = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
FOUND: Json = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
TEXT: Json = {"type": "text", "text": "a"}
PICTURE: Json = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"},
}


def says(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def answers(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


@pytest.mark.parametrize(
    "messages",
    [
        [GO, says(USE), answers(RESULT, TEXT)],
        [GO, says(USE), answers({**RESULT, "content": [PICTURE]})],
        [GO, says(SEARCH, FOUND, TEXT), GO],
        [GO, says(SEARCH)],
    ],
)
def test_a_right_request_of_anthropics_has_no_problems(messages: list[Json]) -> None:
    assert anthropic_messages.problems(messages, takes_prefill=False) == []


@pytest.mark.parametrize(
    "messages",
    [
        [says(TEXT), GO],
        [GO, GO],
        [GO, says(USE)],
        [GO, says(USE), answers(TEXT, RESULT)],
        [GO, says(USE), answers(RESULT, RESULT)],
        [GO, says(USE), answers({**RESULT, "is_error": True, "content": [PICTURE]})],
        [GO, says(USE), answers({**RESULT, "is_error": True, "content": ""})],
        [GO, says(SEARCH, TEXT), GO],
        [GO, says(FOUND, TEXT), GO],
        [GO, says(TEXT)],
    ],
)
def test_a_wrong_request_of_anthropics_has_problems(messages: list[Json]) -> None:
    assert anthropic_messages.problems(messages, takes_prefill=False) != []


@pytest.mark.parametrize(
    "content",
    [
        "",
        [],
        [{"type": "text", "text": ""}],
        [{"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,QUJD"}}],
        [{"type": "file", "file": {"filename": "a"}}],
        [{"type": "file", "file": {"filename": "a", "file_data": "data:text/plain;base64,QUJD"}}],
        [{"type": "input_text", "text": "a"}],
    ],
)
def test_a_wrong_message_of_openais_has_problems(content: object) -> None:
    assert openai_chat.problems([{"role": "user", "content": content}]) != []
