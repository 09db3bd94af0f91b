"""Messages that a client gives without naming their shape: read, or refused if they would lose something."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from compactd.formats.messages import neutral
from compactd.formats.messages.base import read_messages
from compactd.formats.messages.lenient_json import objects_in, text_in
from compactd.formats.messages.parts import fields
from compactd.formats.messages.shapes import NAMES, shape_in
from compactd.protocol.errors import CompactdError, InvalidParams
from compactd.protocol.messages import Document, Image, Message, Thinking, ToolCall, Unknown

_OTHER_CALLS = frozenset(("toolCall", "toolResult", "tool-call", "tool-result"))
"""Blocks of pi's and of Vercel's AI SDK, which no provider's API takes."""
_LOST_KEYS = (b'"tool_calls"', b'"function_call"', b'"reasoning_content"')
"""Fields beside an answer's `content` that compactd's own shape does not read."""


def read_given(
    raws: Sequence[Raw], format: str | None = None, path: str = "$.messages"
) -> list[tuple[Message, Raw]]:
    """As `read_messages`, for messages of a client: without `format`, one in a provider's shape is refused.

    compactd's own shape keeps blocks that it does not know and passes over unknown fields, so a client that
    leaves `format` out would lose its provider's tool calls. Raises `InvalidParams`, which names the `format`
    to give. A message from which nothing is lost passes, and so does everything with `format: "neutral"`.
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
        shape = shape_in(message)
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


def _loses(read: Message, raw: Raw, shape: str) -> bool:
    """Whether the shape's own reader finds more in `raw` than stands in `read`."""
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
