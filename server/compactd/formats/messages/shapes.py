"""Detect the format of a single message: compactd's neutral format, or that of a provider's API."""

from __future__ import annotations

from typing import Final

from compactd.formats.messages.json_parts import elements, fields
from compactd.formats.messages.lenient_json import Given, is_list, objects_in, text_in
from compactd.protocol.messages import NULL

NAMES: Final = {
    "openai": "OpenAI's chat format",
    "openai_responses": "OpenAI's Responses format",
    "anthropic": "Anthropic's format",
    "gemini": "Gemini's format",
}
"""The providers' formats, by the value of `format`."""

_OPENAI_KEYS = ("tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content")
_OPENAI_BLOCKS = frozenset(("image_url", "input_audio", "refusal"))
_RESPONSES_BLOCKS = frozenset(("input_text", "output_text", "input_image", "input_file"))
_ANTHROPIC_BLOCKS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use", "redacted_thinking"))
_NEUTRAL_BLOCKS = frozenset(("tool_call", "opaque", "thinking"))
_ITEMS = {
    "reasoning": {"summary"},
    "function_call": {"call_id", "arguments"},
    "function_call_output": {"call_id", "output"},
    "custom_tool_call": {"call_id", "input"},
    "custom_tool_call_output": {"call_id", "output"},
    "local_shell_call": {"action"},
}
"""Items of OpenAI's Responses API, and the required fields of each."""


def is_responses_item(record: Given) -> bool:
    """Return whether the record is an item of OpenAI's Responses API. Codex files of 2025 contain such items
    directly, one per line.
    """
    kind = text_in(record, "type")
    if kind == "message":
        content = record.get("content", NULL)
        parts = [fields(raw, "$", "a part") for raw in elements(content, "$")] if is_list(content) else []
        return any(text_in(part, "type").startswith(("input_", "output_")) for part in parts)
    return kind in _ITEMS and _ITEMS[kind] <= record.keys()


def shape_of_message(message: Given) -> str | None:
    """Return the format to which the fields of `message` belong; None if they are valid in several. O(bytes).

    Raise `InvalidParams` for content that is not valid JSON.
    """
    if any(key in message for key in _OPENAI_KEYS) or text_in(message, "role") == "developer":
        return "openai"
    if "entry_id" in message:
        return "neutral"
    for block in objects_in(message, "content"):
        tag = text_in(block, "type")
        if tag in _ANTHROPIC_BLOCKS or "tool_use_id" in block or "thinking" in block or "source" in block:
            return "anthropic"
        if tag in _NEUTRAL_BLOCKS or "call_id" in block or "media_type" in block:
            return "neutral"
        if tag in _OPENAI_BLOCKS or (tag == "file" and "file" in block):
            return "openai"
    return None


def shape_in(message: Given) -> str | None:
    """Return the format of a message or of an item of OpenAI's Responses API; None if it is valid in several
    formats. Raise `InvalidParams` for content that is not valid JSON.
    """
    if is_responses_item(message):
        return "openai_responses"
    if is_list(message.get("parts", NULL)):
        return "gemini"
    if any(text_in(block, "type") in _RESPONSES_BLOCKS for block in objects_in(message, "content")):
        return "openai_responses"
    return shape_of_message(message)
