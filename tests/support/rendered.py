"""Conversations for the tests of provider formats, and the requests that they become."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from compactd.core.history.projection import Projection, project
from compactd.formats.messages.base import Rendered, render
from compactd.protocol.messages import Block, Message, Role, Text, ToolCall, ToolResult
from tests.support.conversations import LETTERS, items_of
from tests.support.rules import (
    anthropic_messages,
    gemini_contents,
    neutral_shape,
    openai_chat,
    openai_responses,
)


def says(role: Role, *texts: str) -> Message:
    return Message(role=role, content=tuple(Text(text=text) for text in texts))


def asks(*blocks: Block) -> Message:
    return Message(role="assistant", content=blocks)


def call(call_id: str = "a", arguments: bytes = b"{}", name: str = "read") -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments=Raw(arguments))


def result(call_id: str = "a", content: str | tuple[Block, ...] = "out", is_error: bool = False) -> Message:
    return Message(role="tool", content=(ToolResult(call_id=call_id, content=content, is_error=is_error),))


def projected(*messages: Message, models: Sequence[str | None] = (None,)) -> Projection:
    """The messages, written while the session was on `models` in turn."""
    return project(items_of(messages, models), LETTERS)


def sent(
    format: str,
    *messages: Message,
    system: str | None = None,
    wrote: str | None = None,
    model: str | None = None,
) -> list[dict[str, Any]]:
    """The messages as the provider's `model` gets them; its rules hold. `wrote` made them."""
    rendered = render(format, system, [], projected(*messages, models=(wrote,)), model)
    assert problems(format, rendered, model) == []
    return decoded(rendered.messages)


def decoded(raws: list[Raw]) -> list[dict[str, Any]]:
    return [json.loads(bytes(raw)) for raw in raws]


def problems(format: str, rendered: Rendered, model: str | None = None) -> list[str]:
    messages = decoded(rendered.messages)
    offered = None if rendered.tools is None else decoded(rendered.tools)
    match format:
        case "openai":
            return openai_chat.problems(messages, offered)
        case "anthropic":
            takes_prefill = model != "claude-opus-4-6"
            return anthropic_messages.problems(messages, rendered.system, offered, takes_prefill)
        case "openai_responses":
            return openai_responses.problems(messages, rendered.system, offered)
        case "gemini":
            is_third = "gemini-3" in (model or "")
            return gemini_contents.problems(messages, rendered.system, offered, is_third)
        case _:
            return neutral_shape.problems(messages)
