"""compactd's own message format ("neutral"): decoding from and encoding to JSON.

`decode_message` reads the JSON of one message; `encode_message` writes it. JSON that the user sent (tool
arguments, usage reports, blocks of an unknown type) keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from compactd.formats.messages.json_parts import (
    decode_part,
    elements,
    fields,
    first_byte,
    refuse,
    string,
)
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import (
    NULL,
    Block,
    Document,
    Image,
    Message,
    Meta,
    Opaque,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
)


class _Result(Struct, frozen=True, kw_only=True, tag="tool_result"):
    call_id: str
    content: Raw = Raw(b'""')
    name: str | None = None
    is_error: bool = False


_Inner = Text | Thinking | Image | Document | Opaque
"""Blocks that may be in any message, and in a tool result."""
_Known = _Inner | ToolCall | _Result


class _TypedResult(Struct, frozen=True, kw_only=True, gc=False, tag="tool_result"):
    # `ToolResult` itself cannot be decoded, because `Unknown`, one of its blocks, has no tag of its own.
    call_id: str
    content: str | tuple[_Inner, ...] = ""
    name: str | None = None
    is_error: bool = False


class _Rest(Struct, frozen=True, kw_only=True, gc=False):
    """The fields of a message other than role and content. `usage` cannot be `Raw | None`, because that would
    reject an object (msgspec 0.22).
    """

    id: str | None = None
    created_at: float | None = None
    usage: Raw = NULL
    stop_reason: str | None = None
    meta: Meta | None = None


class _User(_Rest, frozen=True, kw_only=True, gc=False, tag_field="role", tag="user"):
    content: str | tuple[_Inner | _TypedResult, ...]


class _Assistant(_Rest, frozen=True, kw_only=True, gc=False, tag_field="role", tag="assistant"):
    content: str | tuple[_Inner | ToolCall, ...]


class _Tool(_Rest, frozen=True, kw_only=True, gc=False, tag_field="role", tag="tool"):
    # Opaque is rejected later. With only one struct, msgspec 0.22 would not require its `type`.
    content: tuple[_TypedResult | Opaque, ...]


class _System(_Rest, frozen=True, kw_only=True, gc=False, tag_field="role", tag="system"):
    content: str | tuple[_Inner, ...]


class _RoleAndRest(_Rest, frozen=True, kw_only=True):
    role: Role


_Typed = _User | _Assistant | _Tool | _System
_ROLE_OF: dict[type[_Typed], Role] = {
    _User: "user",
    _Assistant: "assistant",
    _Tool: "tool",
    _System: "system",
}

_decode_typed = msgspec.json.Decoder(_Typed).decode
_decode_rest = msgspec.json.Decoder(_RoleAndRest).decode
_decode_known = msgspec.json.Decoder(_Known).decode
_decode_inner = msgspec.json.Decoder(tuple[_Inner, ...]).decode
_encode = msgspec.json.Encoder().encode

_TAGS = frozenset(("text", "thinking", "image", "document", "tool_call", "tool_result", "opaque"))
_ROLES = frozenset((b'"user"', b'"assistant"', b'"tool"', b'"system"'))
_NEUTRAL_FIELDS = frozenset(("id", "created_at", "usage", "stop_reason", "meta"))
_IN_RESULTS = frozenset(("text", "thinking", "image", "document", "opaque"))


def read_messages(raws: Sequence[Raw], path: str = "$.messages") -> list[tuple[Message, Raw]]:
    """Return each of `raws` as (message, a copy of its bytes). O(bytes).

    The copy makes it possible to free the frame in which the bytes arrived. Raise `InvalidParams` with the
    path of the bad field for the first wrong message, and `LimitExceeded` for too deep nesting.
    """
    read = []
    for index, raw in enumerate(raws):
        own = Raw(bytes(raw))
        read.append((decode_message(own, f"{path}[{index}]"), own))
    return read


def decode_message(raw: bytes | Raw, path: str = "$") -> Message:
    """Decode a message from `raw`, a JSON object in neutral form.

    A string `content` is one text block, even if empty. Null for an optional field means that it is missing.
    A block of an unknown type is kept as `Unknown`. `path` is the message's path, for errors.

    Raise `InvalidParams` (`data.path` names the field) for a wrong role, a missing content, a tool call
    outside an assistant message, a tool result outside a tool or user message, and anything but tool results
    in a tool message. Raise `LimitExceeded` for nesting beyond the decoder's depth. The JSON is read once;
    more often if a block is unknown, a field is null, or a tool result is neither text nor blocks.
    """
    # msgspec (0.22) does not check the encoding of what stays Raw and of unknown fields.
    try:
        str(raw, "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidParams(f"the text is not valid UTF-8 at byte {error.start}", path) from None
    try:
        typed = _of_typed(_decode_typed(raw))
    except msgspec.ValidationError:
        typed = None
    except (RecursionError, msgspec.DecodeError, UnicodeDecodeError) as error:
        refuse(error, path)
    if typed is not None:
        return typed
    message = _of_parts(raw, path)
    _check_blocks(message, path)
    return message


def _of_typed(wire: _Typed) -> Message | None:
    """Return the message; None if `_of_parts` must read or reject it.

    Reading a stored session spends most of its time here, so decoded values are used without copying. The
    decoder has already checked that the message's role may have its blocks.
    """
    usage = None if wire.usage is NULL else wire.usage
    if usage is not None and first_byte(usage) != b"{":
        return None
    content: tuple[Block, ...]
    if isinstance(wire, _Tool):
        content = tuple([_read_result(block) for block in wire.content if isinstance(block, _TypedResult)])
        if len(content) != len(wire.content):
            return None
    elif isinstance(wire.content, str):
        content = (Text(text=wire.content),)
    elif isinstance(wire, _User):
        content = tuple(
            [_read_result(block) if isinstance(block, _TypedResult) else block for block in wire.content]
        )
    else:
        content = wire.content
        for block in content:
            if isinstance(block, ToolCall) and block.arguments == NULL:
                return None
    return Message(
        role=_ROLE_OF[type(wire)],
        content=content,
        id=wire.id,
        created_at=wire.created_at,
        usage=usage,
        stop_reason=wire.stop_reason,
        meta=wire.meta,
    )


def _read_result(wire: _TypedResult) -> ToolResult:
    return ToolResult(call_id=wire.call_id, content=wire.content, name=wire.name, is_error=wire.is_error)


def _build_message(rest: _RoleAndRest, content: tuple[Block, ...], path: str) -> Message:
    usage = None if rest.usage == NULL else rest.usage
    if usage is not None and first_byte(usage) != b"{":
        raise InvalidParams("usage must be an object", f"{path}.usage")
    return Message(
        role=rest.role,
        content=content,
        id=rest.id,
        created_at=rest.created_at,
        usage=usage,
        stop_reason=rest.stop_reason,
        meta=rest.meta,
    )


def _of_parts(raw: bytes | Raw, path: str) -> Message:
    """Return the message, decoded part by part. This is for messages with unknown blocks, nulls or tool
    results of any JSON value, and to find the field that is wrong.
    """
    given = fields(raw, path, "a message")
    content = given.pop("content", None)
    if "meta" in given:
        given["meta"] = Raw(_encode(fields(given["meta"], f"{path}.meta", "meta")))
    rest = _rest(given, path)
    if content is None:
        raise InvalidParams("content is missing: give a string or a list of blocks", f"{path}.content")
    return _build_message(rest, _content(rest.role, content, f"{path}.content"), path)


def _rest(given: dict[str, Raw], path: str) -> _RoleAndRest:
    if bytes(given.get("role", NULL)) not in _ROLES:
        raise InvalidParams("role must be one of user, assistant, tool, system", f"{path}.role")
    return decode_part(_decode_rest, _encode(given), path)


def message_of(role: Role, content: tuple[Block, ...], given: dict[str, Raw], path: str) -> Message:
    """Return a message that was read from another format. It has the blocks `content`, and the fields of
    `given` that the neutral format also has (`id`, `usage` and others).

    `given` are the fields of the message at `path`, without nulls. Raise the errors of `decode_message`.
    """
    ours = {name: value for name, value in given.items() if name in _NEUTRAL_FIELDS}
    if "meta" in ours:
        ours["meta"] = Raw(_encode(fields(ours["meta"], f"{path}.meta", "meta")))
    ours["role"] = Raw(_encode(role))
    message = _build_message(_rest(ours, path), content, path)
    _check_blocks(message, path)
    return message


def _content(role: Role, raw: Raw, path: str) -> tuple[Block, ...]:
    first = first_byte(raw)
    if first == b'"':
        text = string(raw, path)
        if role == "tool":
            raise InvalidParams(
                "a tool message contains tool_result blocks, each with its call_id, not a string", path
            )
        return (Text(text=text),)
    if first != b"[":
        raise InvalidParams("content must be a string or a list of blocks", path)
    return tuple(_block(part, f"{path}[{index}]") for index, part in enumerate(elements(raw, path)))


def _block(raw: Raw, path: str) -> Block:
    given = fields(raw, path, "a block")
    if "type" not in given:
        raise InvalidParams("a block needs a type", f"{path}.type")
    tag = string(given["type"], f"{path}.type")
    if tag not in _TAGS:
        return Unknown(type=tag, raw=raw)
    block: _Known = decode_part(_decode_known, _encode(given), path)
    if not isinstance(block, _Result):
        return block
    return ToolResult(
        call_id=block.call_id,
        content=result_content(block.content, f"{path}.content"),
        name=block.name,
        is_error=block.is_error,
    )


def result_content(raw: Raw, path: str) -> str | tuple[Block, ...]:
    """Return the content of a tool result: a string unchanged, a list of blocks as blocks, and other JSON as
    the text of that JSON.
    """
    first = first_byte(raw)
    if first == b'"':
        return string(raw, path)
    if raw == NULL:
        return ""
    if first != b"[":
        return bytes(raw).decode()
    try:
        return _decode_inner(raw)
    except msgspec.ValidationError:
        parts = elements(raw, path)
    except (RecursionError, msgspec.DecodeError) as error:
        refuse(error, path)
    if not all(first_byte(part) == b'"' or has_type(part) for part in parts):
        return bytes(raw).decode()
    return tuple(
        Text(text=string(part, f"{path}[{index}]"))
        if first_byte(part) == b'"'
        else _inner(part, f"{path}[{index}]")
        for index, part in enumerate(parts)
    )


def keep_block(tag: str, raw: Raw, provider: str) -> Opaque | Unknown:
    """Return the block `raw` of another format without a neutral equivalent, unchanged.

    `tag` is the block's type. If the neutral format uses this name for another block, `raw` becomes an
    `opaque` block of `provider`, so that the neutral reader does not misread it.
    """
    return Opaque(provider=provider, raw=raw) if tag in _TAGS else Unknown(type=tag, raw=raw)


def has_type(raw: Raw) -> bool:
    """Return whether the JSON is an object whose `type` is a string, as in a block."""
    return first_byte(raw) == b"{" and first_byte(fields(raw, "$", "a block").get("type", NULL)) == b'"'


def _inner(raw: Raw, path: str) -> Block:
    """Return a block inside a tool result. Calls and results have no meaning there and are kept unchanged."""
    tag = string(fields(raw, path, "a block")["type"], path)
    return _block(raw, path) if tag in _IN_RESULTS else Unknown(type=tag, raw=raw)


def _check_blocks(message: Message, path: str) -> None:
    role = message.role
    for index, block in enumerate(message.content):
        if isinstance(block, ToolCall):
            if role != "assistant":
                raise InvalidParams(
                    f"a tool_call belongs in an assistant message, not in a {role} message",
                    f"{path}.content[{index}]",
                )
        elif isinstance(block, ToolResult):
            if role not in ("tool", "user"):
                raise InvalidParams(
                    f"a tool_result belongs in a tool or user message, not in a {role} message",
                    f"{path}.content[{index}]",
                )
        elif role == "tool":
            raise InvalidParams(
                "a tool message may contain only tool_result blocks; put anything else in a user message",
                f"{path}.content[{index}]",
            )
