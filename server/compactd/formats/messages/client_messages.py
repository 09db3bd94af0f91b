"""Read a client's messages. Refuse messages without a named format if the neutral format would lose part of
them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from compactd.formats.messages import neutral
from compactd.formats.messages.base import read_messages
from compactd.formats.messages.json_parts import fields
from compactd.formats.messages.lenient_json import objects_in, text_in
from compactd.formats.messages.shapes import NAMES, shape_in
from compactd.protocol.errors import CompactdError, InvalidParams
from compactd.protocol.messages import Document, Image, Message, Thinking, ToolCall, Unknown

_OTHER_CALLS = frozenset(("toolCall", "toolResult", "tool-call", "tool-result"))
"""Block types of pi and of Vercel's AI SDK, which no provider's API accepts."""
_LOST_KEYS = (b'"tool_calls"', b'"function_call"', b'"reasoning_content"')
"""Fields next to an answer's `content` that the neutral format does not read."""


def read_given(
    raws: Sequence[Raw], format: str | None = None, path: str = "$.messages"
) -> list[tuple[Message, Raw]]:
    """Read messages of a client, like `read_messages`. If `format` is None, refuse a provider's message if
    the neutral format would lose part of it.

    The neutral format ignores unknown fields. So a client that sends its provider's messages without `format`
    would lose tool calls. Raise `InvalidParams`, which names the `format` to give. With `format: "neutral"`,
    no message is refused for this reason.
    """
    if format is not None:
        return read_messages(raws, format, path)
    try:
        read = neutral.read_messages(raws, path)
    except InvalidParams:
        for index, raw in enumerate(raws):
            refuse_other_shape(raw, f"{path}[{index}]")
        raise
    for index, (message, own) in enumerate(read):
        refuse_other_shape(own, f"{path}[{index}]", message)
    return read


def refuse_other_shape(raw: Raw, path: str, read: Message | None = None) -> None:
    """Raise `InvalidParams` if the neutral format would lose part of the message `raw`. The error names the
    `format` to give. The parameters are those of `other_shape`."""
    shape = other_shape(raw, path, read)
    if shape is not None:
        raise InvalidParams(
            f'this message is in {NAMES[shape]}, not in compactd\'s: add `format: "{shape}"`',
            path,
            format=shape,
        )


def other_shape(raw: Raw, path: str, read: Message | None = None) -> str | None:
    """Return the provider's format of the message `raw`, a key of `NAMES`, if the neutral format would lose
    part of the message; otherwise None.

    `path` is the message's path, for errors. `read` is the message as the neutral format reads it; None if
    that failed. Raise `InvalidParams` for tool calls in a form that no `format` reads. Only a message with
    unknown blocks or fields is parsed a second time.
    """
    if read is not None and not _may_lose(read, raw):
        return None
    try:
        message = fields(raw, path, "a message")
        shape = shape_in(message)
        blocks = objects_in(message, "content")
    except CompactdError:
        return None
    if shape in NAMES:
        return shape if read is None or _loses_content(read, raw, shape) else None
    for block in blocks:
        tag = text_in(block, "type")
        if tag in _OTHER_CALLS:
            raise InvalidParams(
                f"a block of type `{tag}` belongs to no format that compactd knows. Send a tool call as a "
                "block of type `tool_call`, and a result as a block of type `tool_result`",
                path,
            )
    return None


def _loses_content(read: Message, raw: Raw, shape: str) -> bool:
    """Return whether the reader of the format `shape` finds other content in `raw` than `read` contains."""
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
