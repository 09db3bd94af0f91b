"""Which message shape a single message has: compactd's own, or that of one provider's API."""

from __future__ import annotations

from typing import Final

from msgspec import Raw

from compactd.errors import CompactdError, InvalidParams
from compactd.formats.loose import Given, is_list, objects_in, text_in
from compactd.formats.parts import NULL, elements, fields
from compactd.messages import Document, Image, Message, Thinking, ToolCall, Unknown

NAMES: Final = {
    "openai": "OpenAI's chat shape",
    "openai_responses": "OpenAI's Responses shape",
    "anthropic": "Anthropic's shape",
    "gemini": "Gemini's shape",
}
"""The providers' shapes by their `format`."""

_OPENAI_KEYS = ("tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content")
_OPENAI_BLOCKS = frozenset(("image_url", "input_audio", "refusal"))
_RESPONSES_BLOCKS = frozenset(("input_text", "output_text", "input_image", "input_file"))
_ANTHROPIC_BLOCKS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use", "redacted_thinking"))
_NEUTRAL_BLOCKS = frozenset(("tool_call", "opaque"))
_OTHER_CALLS = frozenset(("toolCall", "toolResult", "tool-call", "tool-result"))
"""Blocks of pi's and of Vercel's AI SDK, which no provider's API takes."""
_LOST_KEYS = (b'"tool_calls"', b'"function_call"', b'"reasoning_content"')
"""Fields beside an answer's `content` that compactd's own shape does not read."""
_ITEMS = {
    "reasoning": {"summary"},
    "function_call": {"call_id", "arguments"},
    "function_call_output": {"call_id", "output"},
    "custom_tool_call": {"call_id", "input"},
    "custom_tool_call_output": {"call_id", "output"},
    "local_shell_call": {"action"},
}
"""Items of OpenAI's Responses API, and what each cannot be without."""


def is_responses_item(record: Given) -> bool:
    """True for an item of OpenAI's Responses API, as rollouts of 2025 hold them bare."""
    kind = text_in(record, "type")
    if kind == "message":
        content = record.get("content", NULL)
        parts = [fields(raw, "$", "a part") for raw in elements(content, "$")] if is_list(content) else []
        return any(text_in(part, "type").startswith(("input_", "output_")) for part in parts)
    return kind in _ITEMS and _ITEMS[kind] <= record.keys()


def shape_of_message(message: Given) -> str | None:
    """The shape that only this message's fields belong to; None if it looks the same in several.

    Raises `InvalidParams` for content that is no valid JSON. Cost: O(bytes).
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
        if tag == "thinking":
            return "neutral"
        if tag in _OPENAI_BLOCKS or (tag == "file" and "file" in block):
            return "openai"
    return None


def refuse_other_shape(raw: Raw, path: str, read: Message | None = None) -> None:
    """Raises `InvalidParams` if `other_shape` names a shape: it says which `format` to give."""
    shape = other_shape(raw, path, read)
    if shape is not None:
        raise InvalidParams(
            f'this message is in {NAMES[shape]}: give `format: "{shape}"`', path, format=shape
        )


def other_shape(raw: Raw, path: str, read: Message | None = None) -> str | None:
    """The provider's shape that `raw` is in, a name of `NAMES`, if compactd's own shape loses part of it.

    `read` is the message as compactd's own shape reads it, None if it could not be read. Raises
    `InvalidParams` for tool calls in a shape that no `format` reads. Cost: a look at the blocks of `read`; a
    message with unknown blocks or fields is read a second time.
    """
    if read is not None and not _may_lose(read, raw):
        return None
    try:
        message = fields(raw, path, "a message")
        shape = _shape(message)
        blocks = objects_in(message, "content")
    except CompactdError:
        return None
    if shape in NAMES:
        return shape if read is None or _loses(read, raw, shape) else None
    for block in blocks:
        tag = text_in(block, "type")
        if tag in _OTHER_CALLS:
            raise InvalidParams(
                f"a block of type `{tag}` is in no shape that can be read: a tool call is a block of type "
                "`tool_call`, a result one of type `tool_result`",
                path,
            )
    return None


def _shape(message: Given) -> str | None:
    if is_responses_item(message):
        return "openai_responses"
    if is_list(message.get("parts", NULL)):
        return "gemini"
    if any(text_in(block, "type") in _RESPONSES_BLOCKS for block in objects_in(message, "content")):
        return "openai_responses"
    return shape_of_message(message)


def _loses(read: Message, raw: Raw, shape: str) -> bool:
    """Whether the shape's own reader finds more in `raw` than stands in `read`."""
    from compactd.formats.base import read_messages

    try:
        other = read_messages((raw,), shape)[0][0]
    except CompactdError:
        return True
    return other.content != read.content


def _may_lose(read: Message, raw: Raw) -> bool:
    has_call = False
    for block in read.content:
        match block:
            case Unknown() | Thinking(text="", redacted=None) | Image(data=None, url=None):
                return True
            case Document(text=None, data=None, url=None):
                return True
            case ToolCall():
                has_call = True
            case _:
                pass
    if read.role != "assistant" or has_call:
        return False
    data = bytes(raw)
    return any(key in data for key in _LOST_KEYS)
