"""Read messages in Anthropic's format (`/v1/messages`)."""

from __future__ import annotations

from msgspec import Raw

from compactd.formats.messages.json_parts import (
    elements,
    fields,
    first_byte,
    optional_string,
    required_string,
    string,
)
from compactd.formats.messages.neutral import has_type, keep_block, message_of
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import (
    NULL,
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def read_message(raw: bytes | Raw, path: str = "$") -> Message:
    """Return one message of a request or response. A block of an unknown type is kept unchanged. Raise
    `InvalidParams` with the path of the bad field.
    """
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
    given = fields(raw, path, "a block")
    tag = required_string(given, "type", path)
    match tag:
        case "text":
            return Text(text=required_string(given, "text", path))
        case "thinking":
            return Thinking(
                text=optional_string(given, "thinking", path) or "",
                signature=optional_string(given, "signature", path),
            )
        case "redacted_thinking":
            return Thinking(redacted=required_string(given, "data", path))
        case "tool_use":
            return ToolCall(
                call_id=required_string(given, "id", path),
                name=required_string(given, "name", path),
                arguments=given.get("input", NULL),
            )
        case "tool_result":
            return ToolResult(
                call_id=required_string(given, "tool_use_id", path),
                content=_result_content(given.get("content", NULL), f"{path}.content"),
                is_error=given.get("is_error") == Raw(b"true"),
            )
        case "compaction":
            return Opaque(provider="anthropic", raw=raw)
        case "image":
            return _image(given, path) or keep_block(tag, raw, "anthropic")
        case "document":
            return _document(given, path) or keep_block(tag, raw, "anthropic")
        case _:
            return keep_block(tag, raw, "anthropic")


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


def _image(given: dict[str, Raw], path: str) -> Image | None:
    place = f"{path}.source"
    source = fields(given.get("source", NULL), place, "source")
    match required_string(source, "type", place):
        case "base64":
            media_type = optional_string(source, "media_type", place)
            data = required_string(source, "data", place)
            return Image(media_type="image/png" if media_type is None else media_type, data=data)
        case "url":
            return Image(url=required_string(source, "url", place))
        case _:
            return None


def _document(given: dict[str, Raw], path: str) -> Document | None:
    place = f"{path}.source"
    source, title = fields(given.get("source", NULL), place, "source"), optional_string(given, "title", path)
    match required_string(source, "type", place):
        case "base64":
            media_type = optional_string(source, "media_type", place)
            data = required_string(source, "data", place)
            media_type = "application/pdf" if media_type is None else media_type
            return Document(media_type=media_type, data=data, title=title)
        case "text":
            return Document(media_type="text/plain", text=required_string(source, "data", place), title=title)
        case "url":
            return Document(url=required_string(source, "url", place), title=title)
        case _:
            return None
