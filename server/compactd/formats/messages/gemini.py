"""Read messages in Gemini's format (`generateContent`), which calls them contents."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from compactd.core.authors.authors import TOOL
from compactd.formats.messages.json_parts import elements, fields, first_byte, string
from compactd.formats.messages.neutral import message_of
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import (
    Block,
    BlockMeta,
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

_ROLES: dict[str, Role] = {
    "user": "user",
    "model": "assistant",
    "function": "user",
    "system": "system",
}


def read_message(raw: bytes | Raw, path: str = "$") -> Message:
    """Return one content of a request or response as a message. Raise `InvalidParams` with the path of the
    bad field.

    If a call has no id, the function's name serves as the id of the call and of its result. A thought
    signature becomes a block of its own before the block of its part, so that it can be sent back to Gemini.
    """
    given = fields(raw, path, "a content")
    # A content without a role is the user's (API reference, `Content.role`).
    role = _ROLES.get(string(given["role"], f"{path}.role") if "role" in given else "user")
    if role is None:
        raise InvalidParams("role must be user or model", f"{path}.role")
    if "parts" not in given or first_byte(given["parts"]) != b"[":
        raise InvalidParams("parts must be a list", f"{path}.parts")
    content: list[Block] = []
    for at, part in enumerate(elements(given["parts"], f"{path}.parts")):
        content.extend(_part(part, f"{path}.parts[{at}]"))
    is_function = given.get("role") == Raw(b'"function"')
    if is_function or (role == "user" and any(isinstance(block, ToolResult) for block in content)):
        # A user's text is a content of its own, so other parts next to a function's result belong to the
        # result.
        content = [_by_tool(block) for block in content]
    if role == "user" and content and all(isinstance(block, ToolResult) for block in content):
        role = "tool"
    return message_of(role, tuple(content), given, path)


def _by_tool(block: Block) -> Block:
    if not isinstance(block, Text | Document):
        return block
    return msgspec.structs.replace(block, meta=BlockMeta(author=TOOL))


def _part(raw: Raw, path: str) -> list[Block]:
    given = fields(raw, path, "a part")
    signature = _either(given, "thoughtSignature", "thought_signature")
    if "text" in given:
        text = string(given["text"], f"{path}.text")
        if given.get("thought") == Raw(b"true"):
            # A thought with a signature is also kept unchanged, so that it can be sent back to Gemini.
            kept = () if signature is None else (Opaque(provider="gemini", raw=raw),)
            return [Thinking(text=text), *kept]
        return [*_signature_blocks(signature), Text(text=text)]
    for names, read in (
        (("functionCall", "function_call"), _call),
        (("functionResponse", "function_response"), _response),
        (("inlineData", "inline_data"), _inline),
        (("fileData", "file_data"), _file),
    ):
        value = _either(given, *names)
        if value is not None:
            place = f"{path}.{names[0]}"
            return [*_signature_blocks(signature), read(fields(value, place, names[0]), place)]
    return [Opaque(provider="gemini", raw=raw)]


def _either(given: dict[str, Raw], camel: str, snake: str) -> Raw | None:
    return given.get(camel, given.get(snake))


def _signature_blocks(signature: Raw | None) -> list[Block]:
    if signature is None:
        return []
    return [Opaque(provider="gemini", raw=Raw(msgspec.json.encode({"thoughtSignature": signature})))]


def _name(given: dict[str, Raw], path: str) -> str:
    if "name" not in given:
        raise InvalidParams("a function call or function response must have a name", f"{path}.name")
    return string(given["name"], f"{path}.name")


def _id(given: dict[str, Raw], path: str) -> str:
    return string(given["id"], f"{path}.id") if "id" in given else _name(given, path)


def _call(given: dict[str, Raw], path: str) -> Block:
    return ToolCall(
        call_id=_id(given, path), name=_name(given, path), arguments=given.get("args", Raw(b"{}"))
    )


def _response(given: dict[str, Raw], path: str) -> Block:
    response = given.get("response", Raw(b"{}"))
    is_error = first_byte(response) == b"{" and "error" in fields(response, f"{path}.response", "response")
    content: str | tuple[Block, ...] = bytes(response).decode()
    if first_byte(given.get("parts", Raw(b"0"))) == b"[":
        parts = elements(given["parts"], f"{path}.parts")
        media = [block for at, part in enumerate(parts) for block in _part(part, f"{path}.parts[{at}]")]
        content = (Text(text=bytes(response).decode()), *media)
    return ToolResult(call_id=_id(given, path), name=_name(given, path), content=content, is_error=is_error)


def _inline(given: dict[str, Raw], path: str) -> Block:
    media_type = _media_type(given, path)
    data = string(given["data"], f"{path}.data") if "data" in given else ""
    if media_type.startswith("image/"):
        return Image(media_type=media_type, data=data)
    return Document(media_type=media_type, data=data)


def _file(given: dict[str, Raw], path: str) -> Block:
    media_type = _media_type(given, path)
    uri = _either(given, "fileUri", "file_uri")
    url = string(uri, f"{path}.fileUri") if uri is not None else ""
    if media_type.startswith("image/"):
        return Image(media_type=media_type, url=url)
    return Document(media_type=media_type, url=url)


def _media_type(given: dict[str, Raw], path: str) -> str:
    value = _either(given, "mimeType", "mime_type")
    return string(value, f"{path}.mimeType") if value is not None else "application/octet-stream"
