"""Read items in the format of OpenAI's Responses API (`/v1/responses`).

One element is one message: an input item, or a complete response object, whose `output` items form one
assistant message so that parallel calls stay together. Reasoning that can be sent back to OpenAI (it has its
encrypted content) is kept unchanged next to its summary. Other items without a neutral equivalent are kept
unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from compactd.formats.messages.json_parts import elements, fields, first_byte, required_string, string
from compactd.formats.messages.neutral import keep_block, message_of, result_content
from compactd.formats.messages.provenance import RESPONSES
from compactd.formats.messages.rendering import data_url, image_of_url, string_field
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

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}

_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}


def read_message(raw: bytes | Raw, path: str = "$") -> Message:
    """Return one input item, or a complete response. Raise `InvalidParams` with the path of the bad field.

    A call's `arguments` string stays unchanged. An `item_reference` also raises `InvalidParams`, because only
    OpenAI knows to what it refers.
    """
    given = fields(raw, path, "an item")
    if "type" not in given and first_byte(given.get("output", NULL)) == b"[":
        content: list[Block] = []
        for at, item in enumerate(elements(given["output"], f"{path}.output")):
            place = f"{path}.output[{at}]"
            role, blocks = _item(item, fields(item, place, "an item"), place)
            if role != "assistant":
                raise InvalidParams(
                    "the output of a response may contain only items that the model wrote", place
                )
            content.extend(blocks)
        return message_of("assistant", tuple(content), given, path)
    role, blocks = _item(Raw(bytes(raw)), given, path)
    return message_of(role, tuple(blocks), given, path)


def _item(raw: Raw, given: dict[str, Raw], path: str) -> tuple[Role, Sequence[Block]]:
    tag = string(given["type"], f"{path}.type") if "type" in given else "message"
    match tag:
        case "message":
            return _message(given, path)
        case "function_call" | "custom_tool_call":
            return "assistant", (_call(given, path, _CALLS[tag]),)
        case "function_call_output" | "custom_tool_call_output":
            call_id = required_string(given, "call_id", path)
            content = _result(given.get("output", NULL), f"{path}.output")
            return "tool", (ToolResult(call_id=call_id, content=content),)
        case "reasoning":
            return "assistant", _reasoning(raw, given, path)
        case "compaction":
            return "assistant", (Opaque(provider=RESPONSES, raw=raw),)
        case "image_generation_call" if string_field(given, "result"):
            media_type = f"image/{string_field(given, 'output_format') or 'png'}"
            return "assistant", (Image(media_type=media_type, data=string_field(given, "result")),)
        case "item_reference":
            raise InvalidParams(
                "compactd cannot look up an item_reference; send the item itself", f"{path}.type"
            )
        case _:
            return ("user" if tag.endswith("_output") else "assistant"), (keep_block(tag, raw, RESPONSES),)


def _message(given: dict[str, Raw], path: str) -> tuple[Role, Sequence[Block]]:
    name = string(given["role"], f"{path}.role") if "role" in given else ""
    role = _ROLES.get(name)
    if role is None:
        raise InvalidParams(f"role must be one of {', '.join(_ROLES)}", f"{path}.role")
    if "content" not in given:
        raise InvalidParams("content is missing: give a string or a list of parts", f"{path}.content")
    place = f"{path}.content"
    match first_byte(given["content"]):
        case b'"':
            return role, (Text(text=string(given["content"], place)),)
        case b"[":
            parts = elements(given["content"], place)
            return role, [_part(part, f"{place}[{at}]") for at, part in enumerate(parts)]
        case _:
            raise InvalidParams("content must be a string or a list of parts", place)


def _call(given: dict[str, Raw], path: str, field: str) -> ToolCall:
    return ToolCall(
        call_id=required_string(given, "call_id", path),
        name=required_string(given, "name", path),
        arguments=given.get(field, Raw(b'"{}"')),
    )


def _result(raw: Raw, path: str) -> str | tuple[Block, ...]:
    if first_byte(raw) == b"[":
        parts = elements(raw, path)
        if all(first_byte(part) == b"{" and _tag(part) in (*_TEXTS, *_MEDIA) for part in parts):
            return tuple(_part(part, f"{path}[{at}]") for at, part in enumerate(parts))
    return result_content(raw, path)


_MEDIA = ("input_image", "input_file")


def _tag(raw: Raw) -> str:
    return string_field(fields(raw, "$", "a part"), "type")


def _reasoning(raw: Raw, given: dict[str, Raw], path: str) -> Sequence[Block]:
    texts = []
    for field in ("summary", "content"):
        if first_byte(given.get(field, NULL)) == b"[":
            for at, part in enumerate(elements(given[field], f"{path}.{field}")):
                texts.append(string_field(fields(part, f"{path}.{field}[{at}]", "a part"), "text"))
    text = "\n".join(text for text in texts if text)
    blocks: list[Block] = [Thinking(text=text)] if text else []
    if string_field(given, "encrypted_content"):
        blocks.append(Opaque(provider=RESPONSES, raw=raw))
    return blocks


def _part(raw: Raw, path: str) -> Block:
    given = fields(raw, path, "a part")
    if "type" not in given:
        raise InvalidParams("a part needs a type", f"{path}.type")
    tag = string(given["type"], f"{path}.type")
    if tag in _TEXTS:
        return Text(text=required_string(given, _TEXTS[tag], path))
    if tag == "input_image" and "image_url" in given:
        return image_of_url(string(given["image_url"], f"{path}.image_url"))
    if tag == "input_file":
        title = string_field(given, "filename") or None
        if "file_url" in given:
            return Document(url=string(given["file_url"], f"{path}.file_url"), title=title)
        inline = data_url(string_field(given, "file_data"))
        if inline is not None:
            return Document(media_type=inline[0], data=inline[1], title=title)
    return keep_block(tag, raw, RESPONSES)
