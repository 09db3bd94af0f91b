"""Read messages in OpenAI's chat format (`/v1/chat/completions`), which many servers use."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Raw
from msgspec.structs import replace

from compactd.core.authors.authors import UNKNOWN
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.formats.messages.json_parts import (
    elements,
    fields,
    first_byte,
    optional_string,
    string,
)
from compactd.formats.messages.neutral import keep_block, message_of, result_content
from compactd.formats.messages.rendering import data_url, image_of_url
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import (
    Block,
    Document,
    Image,
    Message,
    Meta,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
)

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

_PROGRAM = LazyPattern(
    r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?i:tools?|functions?|runner|executor|observations?|environment"
    r"|system|assistant|agents?|bot|search|browser|retrieve[rs]?|retrieval|interpreter|terminal|shell|python"
    r"|critic|planner)(?![a-z])"
)
"""A pattern for a message's `name` that is a program's. Agent frameworks send what a tool or another agent
says in the role `user`, with such a name. All other names count as people's.
"""


def read_message(raw: bytes | Raw, path: str = "$") -> Message:
    """Return one chat message. Raise `InvalidParams` with the path of the bad field.

    A call's `arguments` string stays unchanged. `developer` is read as system. The older `function_call` and
    the role `function` are supported. An assistant's null content is read as empty.
    """
    given = fields(raw, path, "a message")
    name = string(given["role"], f"{path}.role") if "role" in given else ""
    role = _ROLES.get(name)
    if role is None:
        raise InvalidParams(f"role must be one of {', '.join(_ROLES)}", f"{path}.role")
    if role == "tool":
        content: tuple[Block, ...] = (_tool_result(given, path),)
    else:
        content = (*_thinking(given, path), *_content(given, path), *_calls(given, path))
    if not content and not any(
        field in given for field in ("content", "tool_calls", "function_call", "refusal")
    ):
        raise InvalidParams("content is missing: give a string or a list of parts", f"{path}.content")
    return _of_named(message_of(role, content, given, path), given, path)


def _of_named(message: Message, given: dict[str, Raw], path: str) -> Message:
    """Return the message. If it is a user's and its field `name` in `given` is a program's, it gets the
    author `unknown`."""
    if message.role != "user" or "name" not in given or (message.meta and message.meta.author):
        return message
    if _PROGRAM.search(string(given["name"], f"{path}.name")) is None:
        return message
    meta = Meta() if message.meta is None else message.meta
    return replace(message, meta=replace(meta, author=UNKNOWN))


def _tool_result(given: dict[str, Raw], path: str) -> ToolResult:
    name = optional_string(given, "name", path)
    if "tool_call_id" in given:
        call_id = string(given["tool_call_id"], f"{path}.tool_call_id")
    elif name is not None:
        call_id = name
    else:
        raise InvalidParams("a tool message must name its tool call in tool_call_id", f"{path}.tool_call_id")
    content = result_content(given["content"], f"{path}.content") if "content" in given else ""
    return ToolResult(call_id=call_id, content=content, name=name)


def _thinking(given: dict[str, Raw], path: str) -> tuple[Block, ...]:
    # DeepSeek, vLLM and others send reasoning next to the content; few want it back (core/models/lookup.py).
    for field in ("reasoning_content", "reasoning"):
        if first_byte(given.get(field, Raw(b"0"))) == b'"':
            text = string(given[field], f"{path}.{field}")
            return (Thinking(text=text),) if text else ()
    return ()


def _content(given: dict[str, Raw], path: str) -> Iterable[Block]:
    for field in ("content", "refusal"):
        if field not in given:
            continue
        place = f"{path}.{field}"
        match first_byte(given[field]):
            case b'"':
                return (Text(text=string(given[field], place)),)
            case b"[":
                parts = elements(given[field], place)
                return [_part(part, f"{place}[{index}]") for index, part in enumerate(parts)]
            case _:
                raise InvalidParams("content must be a string or a list of parts", place)
    return ()


def _part(raw: Raw, path: str) -> Block:
    given = fields(raw, path, "a part")
    if "type" not in given:
        raise InvalidParams("a part needs a type", f"{path}.type")
    tag = string(given["type"], f"{path}.type")
    match tag:
        case "text" | "input_text" | "output_text" | "refusal":
            field = "refusal" if tag == "refusal" else "text"
            if field not in given:
                raise InvalidParams("text is missing", f"{path}.{field}")
            return Text(text=string(given[field], f"{path}.{field}"))
        case "image_url" if "image_url" in given:
            return _image(given["image_url"], f"{path}.image_url")
        case "file" if "file" in given:
            return _file(raw, fields(given["file"], f"{path}.file", "a file"), path)
        case _:
            return keep_block(tag, raw, "openai")


def _image(raw: Raw, path: str) -> Image:
    if first_byte(raw) == b'"':
        return image_of_url(string(raw, path))
    given = fields(raw, path, "an image_url")
    if "url" not in given:
        raise InvalidParams("an image needs a url", f"{path}.url")
    return image_of_url(string(given["url"], f"{path}.url"))


def _file(raw: Raw, given: dict[str, Raw], path: str) -> Block:
    inline = data_url(optional_string(given, "file_data", f"{path}.file") or "")
    if inline is None:
        return Unknown(type="file", raw=raw)
    title = optional_string(given, "filename", f"{path}.file")
    return Document(media_type=inline[0], data=inline[1], title=title)


def _calls(given: dict[str, Raw], path: str) -> Iterable[ToolCall]:
    if "tool_calls" in given:
        place = f"{path}.tool_calls"
        if first_byte(given["tool_calls"]) != b"[":
            raise InvalidParams("tool_calls must be a list", place)
        return [_call(raw, f"{place}[{at}]") for at, raw in enumerate(elements(given["tool_calls"], place))]
    if "function_call" in given:
        place = f"{path}.function_call"
        function = fields(given["function_call"], place, "a function call")
        return (_function(function, place, call_id=None),)
    return ()


def _call(raw: Raw, path: str) -> ToolCall:
    given = fields(raw, path, "a tool call")
    if "id" not in given:
        raise InvalidParams("a tool call needs an id", f"{path}.id")
    call_id = string(given["id"], f"{path}.id")
    kind = "custom" if "custom" in given else "function"
    if kind not in given:
        raise InvalidParams("a tool call needs the field `function`", f"{path}.function")
    return _function(fields(given[kind], f"{path}.{kind}", "a function"), f"{path}.{kind}", call_id)


def _function(given: dict[str, Raw], path: str, call_id: str | None) -> ToolCall:
    if "name" not in given:
        raise InvalidParams("a function needs a name", f"{path}.name")
    name = string(given["name"], f"{path}.name")
    arguments = given.get("arguments", given.get("input", Raw(b'"{}"')))
    # The older `function_call` has no id; its result has the function's name.
    return ToolCall(call_id=name if call_id is None else call_id, name=name, arguments=arguments)
