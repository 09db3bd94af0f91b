from __future__ import annotations

from typing import Any

import pytest

from tests.support.rules.openai_responses import problems

Item = dict[str, Any]

ASKED: Item = {"role": "user", "content": "go"}
CALL: Item = {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"}
OUTPUT: Item = {"type": "function_call_output", "call_id": "a", "output": "out"}
REASONING: Item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
TOOL: Item = {
    "type": "function",
    "name": "read",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}


def said(role: str, *parts: Item) -> Item:
    return {"type": "message", "role": role, "content": list(parts)}


def text(kind: str, words: str = "a") -> Item:
    return {"type": kind, "text": words}


@pytest.mark.parametrize(
    "items",
    [
        [],
        [ASKED, CALL, OUTPUT],
        [ASKED, REASONING, CALL, said("assistant", text("output_text")), OUTPUT],
        [ASKED, REASONING, {**REASONING, "id": "rs_2"}, said("assistant", text("output_text"))],
        [said("user", {"type": "input_image", "image_url": "https://example.org/a.png"})],
        [said("user", {"type": "input_file", "file_id": "f"})],
        [CALL, {**OUTPUT, "output": [{"type": "input_image", "file_id": "f"}]}],
        [{"type": "compaction", "encrypted_content": "x"}],
    ],
)
def test_a_right_request_has_no_problems(items: list[Item]) -> None:
    assert problems(items, "be brief", [TOOL]) == []


@pytest.mark.parametrize(
    "items",
    [
        [CALL],
        [OUTPUT],
        [CALL, OUTPUT, OUTPUT],
        [CALL, ASKED, OUTPUT],
        [CALL, OUTPUT, CALL, OUTPUT],
        [{**CALL, "call_id": "x" * 65}, {**OUTPUT, "call_id": "x" * 65}],
        [{**CALL, "call_id": ""}, {**OUTPUT, "call_id": ""}],
        [{**CALL, "name": "mcp.read"}, OUTPUT],
        [{**CALL, "arguments": {}}, OUTPUT],
        [{**CALL, "id": "fc_1"}, OUTPUT],
        [CALL, {**OUTPUT, "output": {"a": 1}}],
        [CALL, {**OUTPUT, "output": []}],
        [CALL, {**OUTPUT, "output": [text("output_text")]}],
        [{"role": "tool", "content": "a"}],
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": []}],
        [said("user", text("output_text"))],
        [said("user", text("input_text", ""))],
        [said("assistant", text("input_text"))],
        [said("assistant", {"type": "input_image", "file_id": "f"})],
        [said("user", {"type": "input_image", "image_url": "data:image/svg+xml;base64,QUJD"})],
        [said("user", {"type": "input_file", "file_data": "QUJD", "filename": "a.pdf"})],
        [said("user", {"type": "input_file", "file_data": "data:application/pdf;base64,QUJD"})],
        [REASONING],
        [REASONING, ASKED],
        [REASONING, OUTPUT],
        [REASONING, CALL, OUTPUT, REASONING, {**CALL, "call_id": "b"}, {**OUTPUT, "call_id": "b"}],
        [{**REASONING, "encrypted_content": None}, CALL, OUTPUT],
        [{**REASONING, "summary": None}, CALL, OUTPUT],
        [{**REASONING, "id": ""}, CALL, OUTPUT],
        [{**REASONING, "content": [text("reasoning_text")]}, CALL, OUTPUT],
        [{"type": "item_reference", "id": "msg_1"}],
        [{"type": "compaction"}],
    ],
)
def test_a_wrong_request_has_problems(items: list[Item]) -> None:
    assert problems(items) != []


@pytest.mark.parametrize(
    "tool",
    [
        {**TOOL, "name": "mcp.read"},
        {**TOOL, "type": "custom"},
        {**TOOL, "parameters": {}},
        {**TOOL, "parameters": {"type": "object"}},
        {**TOOL, "strict": True},
        {"type": "function", "function": TOOL},
    ],
)
def test_a_wrong_tool_has_problems(tool: Item) -> None:
    assert problems([ASKED], None, [tool]) != []


def test_empty_instructions_no_tools_and_two_of_one_name_have_problems() -> None:
    assert problems([ASKED], " ") != []
    assert problems([ASKED], None, []) != []
    assert problems([ASKED], None, [TOOL, TOOL]) != []
