"""Views of the daemon as Hermes' messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from compactd.integrations.frameworks.hermes.messages import (
    BRIDGE,
    SUMMARY_HEADING,
    SUMMARY_KEY,
    Message,
    arguments_of,
    block_of,
    named_call,
)
from compactd.integrations.frameworks.history import ShownMessage

_STORED = ("_db_persisted",)
"""Keys with which Hermes notes that a message is in its store. In a shortened history, it is not."""
_EXACT = "api_content"
"""The key of the exact text that was sent for a message, if it differs from the content."""

Placed = tuple[Message, int | None]
"""A message of a view, and its index in the history; None if the history does not have it."""


def shown(items: Sequence[int | ShownMessage], messages: Sequence[Message]) -> list[Placed]:
    """Return the messages of a view. Those that stay are copies of Hermes' own, without its notes on what it
    has stored. O(messages shown).
    """
    placed: list[Placed] = []
    for item in items:
        message, index = (
            (_copy(messages[item]), item) if isinstance(item, int) else (_decode(item, messages), item.index)
        )
        if (
            placed
            and message.get("role") == placed[-1][0].get("role") == "user"
            and (message.get(SUMMARY_KEY) or placed[-1][0].get(SUMMARY_KEY))
        ):
            placed.append(({"role": "assistant", "content": BRIDGE}, None))
        placed.append((message, index))
    return placed


def _copy(message: Message, *without: str) -> Message:
    return {key: value for key, value in message.items() if key not in _STORED and key not in without}


def _decode(item: ShownMessage, messages: Sequence[Message]) -> Message:
    blocks = item.blocks()
    original = None if item.index is None else messages[item.index]
    if item.role == "tool":
        result = next((block for block in blocks if block["type"] == "tool_result"), {})
        inner = result.get("content") or ""
        if original is None:
            return {"role": "tool", "tool_call_id": result.get("call_id", ""), "content": _text(inner)}
        return {**_copy(original, _EXACT), "content": _parts(inner, original.get("content"))}
    if original is None:
        text = _text(blocks)
        if item.is_summary:
            return {"role": "user", "content": f"{SUMMARY_HEADING}\n{text}", SUMMARY_KEY: True}
        return {"role": item.role, "content": text}
    said = [block for block in blocks if block["type"] not in ("tool_call", "thinking")]
    changed = {**_copy(original, _EXACT), "content": _parts(said, original.get("content"))}
    if original.get("tool_calls"):
        changed["tool_calls"] = _calls(blocks, original["tool_calls"])
    return changed


def _calls(blocks: Sequence[Mapping[str, Any]], originals: Sequence[Any]) -> list[Any]:
    """Return the calls of an answer. Those whose arguments were shortened are new."""
    given = {block["call_id"]: block.get("arguments") for block in blocks if block["type"] == "tool_call"}
    calls = []
    for call in originals:
        call_id, _, arguments = named_call(call)
        new = given.get(call_id)
        if call_id not in given or new == arguments_of(arguments):
            calls.append(call)
        else:
            text = new if isinstance(new, str) else json.dumps(new, ensure_ascii=False)
            calls.append({**call, "function": {**call["function"], "arguments": text}})
    return calls


def _parts(content: str | Sequence[Mapping[str, Any]], original: object) -> Any:
    """Return a changed content in the form that the original has. Images are the original's own."""
    if isinstance(content, str) or not isinstance(original, list):
        return _text(content)
    rest = list(original)
    parts: list[Any] = []
    for block in content:
        same = next((part for part in rest if block_of(part) == block), None)
        if same is not None:
            rest.remove(same)
            parts.append(same)
        elif block["type"] == "text":
            parts.append({"type": "text", "text": block["text"]})
    return parts


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text for block in content if (text := str(block.get("text") or "")))


def messages_of(placed: Sequence[Placed]) -> list[Message]:
    """Return the messages of a view alone."""
    return [message for message, _ in placed]
