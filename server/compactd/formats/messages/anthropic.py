"""Read messages in Anthropic's format (`/v1/messages`)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from compactd.formats.messages.json_parts import elements, fields, first_byte, string
from compactd.formats.messages.neutral import encode_message, has_type, keep_block, message_of
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import (
    NULL,
    Block,
    Document,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def read_messages(raws: Sequence[Raw], path: str = "$.messages") -> list[tuple[Message, Raw]]:
    """Return each of `raws` as (message, the same in neutral form), in order. O(bytes).

    A block of an unknown type is kept unchanged. Raise `InvalidParams` with the path of the bad field, which
    begins with `path`, and `LimitExceeded` for too deep nesting.
    """
    read = []
    for index, raw in enumerate(raws):
        message = read_message(raw, f"{path}[{index}]")
        read.append((message, Raw(encode_message(message))))
    return read


def read_message(raw: bytes | Raw, path: str = "$") -> Message:
    """Return one message of a request or response. Raise `InvalidParams` with the path of the bad field."""
    given = fields(raw, path, "a message")
    name = string(given["role"], f"{path}.role") if "role" in given else ""
    role = _ROLES.get(name)
    if role is None:
        raise InvalidParams("role must be user or assistant", f"{path}.role")
    if "content" not in given:
        raise InvalidParams("content is missing: give a string or a list of blocks", f"{path}.content")
    return message_of(role, read_content(given["content"], f"{path}.content"), given, path)


def read_content(raw: Raw, path: str) -> tuple[Block, ...]:
    """Return the blocks of `raw`, a message's content. A string becomes one text block. `path` is the path of
    the content, for errors."""
    match first_byte(raw):
        case b'"':
            return (Text(text=string(raw, path)),)
        case b"[":
            return tuple(read_block(part, f"{path}[{at}]") for at, part in enumerate(elements(raw, path)))
        case _:
            raise InvalidParams("content must be a string or a list of blocks", path)


def read_block(raw: Raw, path: str) -> Block:
    """Return the content block `raw`. `path` is its path, for errors."""
    if first_byte(raw) == b'"':
        return Text(text=string(raw, path))
    given = _Fields(fields(raw, path, "a block"), path)
    tag = given.string("type")
    match tag:
        case "text":
            return Text(text=given.string("text"))
        case "thinking":
            return Thinking(text=given.string("thinking", ""), signature=given.optional("signature"))
        case "redacted_thinking":
            return Thinking(redacted=given.string("data"))
        case "tool_use":
            return ToolCall(
                call_id=given.string("id"), name=given.string("name"), arguments=given.raw("input")
            )
        case "tool_result":
            return ToolResult(
                call_id=given.string("tool_use_id"),
                content=_result_content(given.raw("content"), f"{path}.content"),
                is_error=given.raw("is_error") == Raw(b"true"),
            )
        case "image":
            return _image(given) or keep_block(tag, raw, "anthropic")
        case "document":
            return _document(given) or keep_block(tag, raw, "anthropic")
        case _:
            return keep_block(tag, raw, "anthropic")


class _Fields:
    """The fields of one object. Reading a missing one raises `InvalidParams` with its path."""

    def __init__(self, given: dict[str, Raw], path: str) -> None:
        self._given = given
        self._path = path

    def string(self, name: str, default: str | None = None) -> str:
        if name in self._given:
            return string(self._given[name], f"{self._path}.{name}")
        if default is None:
            raise InvalidParams(f"{name} is missing", f"{self._path}.{name}")
        return default

    def optional(self, name: str) -> str | None:
        return self.string(name) if name in self._given else None

    def raw(self, name: str) -> Raw:
        return self._given.get(name, NULL)

    def object(self, name: str) -> _Fields:
        place = f"{self._path}.{name}"
        return _Fields(fields(self.raw(name), place, name), place)


def _result_content(raw: Raw, path: str) -> str | tuple[Block, ...]:
    """Return the content of a tool result, as a string or as blocks. Other JSON, which some programs write as
    the content, becomes a string.
    """
    if raw == NULL:
        return ""
    match first_byte(raw):
        case b'"':
            return string(raw, path)
        case b"[" if all(first_byte(part) == b'"' or has_type(part) for part in elements(raw, path)):
            return read_content(raw, path)
        case _:
            return bytes(raw).decode()


def _image(given: _Fields) -> Image | None:
    source = given.object("source")
    match source.string("type"):
        case "base64":
            return Image(media_type=source.string("media_type", "image/png"), data=source.string("data"))
        case "url":
            return Image(url=source.string("url"))
        case _:
            return None


def _document(given: _Fields) -> Document | None:
    source, title = given.object("source"), given.optional("title")
    match source.string("type"):
        case "base64":
            media_type = source.string("media_type", "application/pdf")
            return Document(media_type=media_type, data=source.string("data"), title=title)
        case "text":
            return Document(media_type="text/plain", text=source.string("data"), title=title)
        case "url":
            return Document(url=source.string("url"), title=title)
        case _:
            return None
