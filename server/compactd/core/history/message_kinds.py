"""What a message is to a cut, and which messages are a person's requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from compactd.core.authors.authors import is_typed
from compactd.core.history.entries import Item
from compactd.protocol.messages import Message, Text, ToolResult

Kind = Literal["user", "bash", "assistant", "system", "result"]
"""What a message is to a cut. `bash`: a user's shell command and its output. `result`: holds tool results."""


def kind_of(message: Message) -> Kind:
    """What `message` is to a cut. A user message that holds tool results is a result; O(blocks)."""
    return kind_in(message, any(isinstance(block, ToolResult) for block in message.content))


def kind_in(message: Message, has_result: bool) -> Kind:
    """The same where it is known whether `message` holds tool results. O(1)."""
    if has_result or message.role == "tool":
        return "result"
    if message.role == "user" and message.meta is not None and message.meta.kind == "bash_execution":
        return "bash"
    return message.role


def is_request(message: Message) -> bool:
    """True for what a person asked: a user message with text of its own, a shell command they ran included;
    not what programs write in the user's role, and no summary. O(1) for a message that begins with a
    person's words, else O(characters)."""
    if message.role != "user":
        return False
    if message.meta is not None and message.meta.kind == "bash_execution" and not message.meta.synthetic:
        return any(isinstance(block, Text) and block.text.strip() for block in message.content)
    return is_typed(message)


def newest_request(items: Sequence[Item]) -> int | None:
    """Index of the newest request (law 6); none where nobody asked anything."""
    return next((i for i in range(len(items) - 1, -1, -1) if is_request(items[i].message)), None)
