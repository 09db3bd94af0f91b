"""Classify messages: the kind, which decides whether a compaction may cut before a message, and whether a
person asks something in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from compactd.core.authors.authors import is_typed
from compactd.core.history.entries import Item
from compactd.protocol.messages import Message, Text, ToolResult

MessageKind = Literal["user", "bash", "assistant", "system", "result"]
"""The kind of a message, by which cut points are chosen. `bash` is a user's shell command with its output.
`result` is any message with tool results."""


def kind_of(message: Message) -> MessageKind:
    """Return the kind of `message`. A user message that contains tool results is a `result`. O(blocks)."""
    return kind_in(message, any(isinstance(block, ToolResult) for block in message.content))


def kind_in(message: Message, has_result: bool) -> MessageKind:
    """Return the kind of `message`. `has_result` says whether it contains tool results. O(1)."""
    if has_result or message.role == "tool":
        return "result"
    if message.role == "user" and message.meta is not None and message.meta.kind == "bash_execution":
        return "bash"
    return message.role


def is_request(message: Message) -> bool:
    """Return whether a person asks something in this message: it is a user message with text that a person
    typed or pasted, or a shell command that the user ran. Texts of programs in the user's role and summaries
    are no requests. O(1) if the message begins with a person's words, otherwise O(characters)."""
    if message.role != "user":
        return False
    if message.meta is not None and message.meta.kind == "bash_execution" and not message.meta.synthetic:
        return any(isinstance(block, Text) and block.text.strip() for block in message.content)
    return is_typed(message)


def newest_request(items: Sequence[Item]) -> int | None:
    """Return the index of the newest message in which a person asks something (`is_request`); None if there
    is none."""
    return next((i for i in range(len(items) - 1, -1, -1) if is_request(items[i].message)), None)
