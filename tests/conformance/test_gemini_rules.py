from __future__ import annotations

from typing import Any

import pytest

from tests.support.rules.gemini_contents import problems, schema_problems

Content = dict[str, Any]


def user(*parts: Content) -> Content:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Content) -> Content:
    return {"role": "model", "parts": list(parts)}


GO: Content = {"text": "go"}
CALL: Content = {"functionCall": {"name": "read", "args": {}}}
RESPONSE: Content = {"functionResponse": {"name": "read", "response": {"output": "a"}}}
OTHER: Content = {"functionResponse": {"name": "write", "response": {}}}
PICTURE: Content = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}


def inline(media_type: str, data: str = "QUJD") -> Content:
    return {"inlineData": {"mimeType": media_type, "data": data}}


@pytest.mark.parametrize(
    "contents",
    [
        [],
        [user(GO, PICTURE)],
        [user(GO), model(CALL, CALL), user(RESPONSE, RESPONSE)],
        [user(GO), model(CALL), user(RESPONSE), user(GO)],
        [user(GO), model({**CALL, "thoughtSignature": "c2ln"}), user(RESPONSE), model(CALL), user(RESPONSE)],
        [user(GO), model({"text": "", "thoughtSignature": "c2ln"}), user(GO)],
        [user(GO), model({"text": "hm", "thought": True, "thoughtSignature": "c2-n_w=="}), user(GO)],
        [user(GO), model({"executableCode": {"code": "1"}}), user(GO)],
        [user({"fileData": {"fileUri": "gs://bucket/a"}})],
        [
            user(GO),
            model(CALL),
            user({"functionResponse": {**RESPONSE["functionResponse"], "parts": [PICTURE]}}),
        ],
    ],
)
def test_a_right_request_has_no_problems(contents: list[Content]) -> None:
    assert problems(contents, "be brief") == []


@pytest.mark.parametrize(
    "contents",
    [
        [{"role": "assistant", "parts": [GO]}],
        [{"role": "user", "content": "go"}],
        [user()],
        [model(GO), user(GO)],
        [user(GO), model(GO)],
        [user(GO), user(GO)],
        [user(GO), model(GO), model(GO), user(GO)],
        [user(GO), model(CALL), user(GO)],
        [user(GO), model(CALL), model(GO), user(RESPONSE)],
        [user(GO), model(CALL, CALL), user(RESPONSE)],
        [user(GO), model(CALL), user(RESPONSE, RESPONSE)],
        [user(GO), model(CALL), user(RESPONSE, GO)],
        [user(GO), model(CALL), user(GO, RESPONSE)],
        [user(GO), model(CALL), user(RESPONSE, PICTURE)],
        [user(GO), model(CALL), user(OTHER)],
        [user(RESPONSE)],
        [user(CALL)],
        [user(GO), model(RESPONSE), user(GO)],
        [user({"text": ""})],
        [user({"text": "a", "inlineData": PICTURE["inlineData"]})],
        [user({"type": "text", "text": "a"})],
        [user({"text": "a", "thoughtSignature": "c2ln"})],
        [user({"executableCode": {"code": "1"}})],
        [user(GO), model({**CALL, "thoughtSignature": "s"}), user(RESPONSE)],
        [user(GO), model({"text": "hm", "thought": True}), user(GO)],
        [user(GO), model({"functionCall": {"name": "1st", "args": {}}}), user(RESPONSE)],
        [user(GO), model({"functionCall": {"name": "read", "args": "{}"}}), user(RESPONSE)],
        [user(GO), model(CALL), user({"functionResponse": {"name": "read", "response": "a"}})],
        [user(GO), model({"functionCall": {"id": "a", "name": "read", "args": {}}}), user(RESPONSE)],
        [user(inline("image/gif"))],
        [user(inline("image/png", ""))],
        [user(inline("image/png", "Q"))],
        [user({"fileData": {"fileUri": "file:///a"}})],
    ],
)
def test_a_wrong_request_has_problems(contents: list[Content]) -> None:
    assert problems(contents) != []


def test_gemini_3_wants_the_first_call_of_each_content_of_this_turn_signed() -> None:
    signed = {**CALL, "thoughtSignature": "c2ln"}
    older = [user(GO), model(CALL), user(RESPONSE), model(GO)]

    assert problems([*older, user(GO), model(signed, CALL), user(RESPONSE, RESPONSE)], is_third=True) == []
    assert problems([user(GO), model(CALL, signed), user(RESPONSE, RESPONSE)], is_third=True) != []
    assert problems([user(GO), model(CALL), user(RESPONSE)], is_third=True) != []


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "any"},
        {"type": ["string", "null"]},
        {"type": "string", "additionalProperties": False},
        {"type": "string", "format": "uri"},
        {"type": "integer", "enum": [1]},
        {"type": "string", "enum": ["a", ""]},
        {"type": "array"},
        {"type": "string", "items": {"type": "string"}},
        {"type": "string", "properties": {"a": {"type": "string"}}},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"anyOf": []},
        {"anyOf": [{"const": "a"}]},
        {"$ref": "#/$defs/a"},
        "string",
    ],
)
def test_a_wrong_schema_has_problems(schema: object) -> None:
    assert schema_problems(schema, "schema") != []


@pytest.mark.parametrize(
    "tools",
    [
        [{"name": "read"}],
        [{"functionDeclarations": []}],
        [{"functionDeclarations": [{"name": "1st"}]}],
        [{"functionDeclarations": [{"name": "a"}, {"name": "a"}]}],
        [{"functionDeclarations": [{"name": "a", "input_schema": {}}]}],
        [{"functionDeclarations": [{"name": "a", "parameters": {"type": "object"}}]}],
        [{"functionDeclarations": [{"name": "a", "parameters": {"type": "string"}}]}],
    ],
)
def test_wrong_tools_have_problems(tools: list[dict[str, Any]]) -> None:
    assert problems([user(GO)], None, tools) != []
