"""Chat messages, as LiteLLM takes them, as messages of the protocol, and back.

A message is a dictionary in OpenAI's format, or an object of LiteLLM's such as `response.choices[0].message`.
Messages that stay in the view are the caller's own objects.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import msgspec

from compactd.formats.messages.neutral_out import encode_message
from compactd.formats.messages.openai import read_message
from compactd.integrations.frameworks.history import History, NeutralMessage, ShownMessage
from compactd.protocol.errors import CompactdError

ChatMessage = Any
"""A dictionary, or an object of LiteLLM's with the same fields."""
Answer = tuple[str, tuple[tuple[str, str, str], ...]]
"""What an assistant message says: its text, and (id, name, arguments) of its calls."""

_SYSTEM = ("system", "developer")


def opening_of(messages: Sequence[ChatMessage]) -> int:
    """Return how many messages at the beginning are the system prompt."""
    for count, message in enumerate(messages):
        if field(message, "role") not in _SYSTEM:
            return count
    return len(messages)


def field(message: ChatMessage, name: str) -> Any:
    """Return a field of a message; None if it has none."""
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def text_of(content: object) -> str:
    """Return the texts of a message's content. O(parts)."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    texts = [part if isinstance(part, str) else field(part, "text") for part in content]
    return "\n".join(text for text in texts if isinstance(text, str))


def answer_of(message: ChatMessage) -> Answer:
    """Return what an assistant message says, equal for the object and for a dictionary made of it."""
    calls = []
    for call in field(message, "tool_calls") or ():
        function = field(call, "function")
        calls.append(
            (str(field(call, "id")), str(field(function, "name")), str(field(function, "arguments")))
        )
    return text_of(field(message, "content")), tuple(calls)


def history_of(
    messages: Sequence[ChatMessage], usage: Callable[[ChatMessage], Mapping[str, int] | None]
) -> History:
    """Return the history of messages without their system prompt. `usage` returns the provider's report on
    the request that an assistant message answers. O(text of the messages).
    """

    def encoded(index: int) -> NeutralMessage:
        neutral = encode(messages[index])
        if neutral["role"] == "assistant" and (report := usage(messages[index])):
            neutral["usage"] = dict(report)
        return neutral

    return History([_key(message) for message in messages], encoded)


def _key(message: ChatMessage) -> Hashable:
    """Return a value that is equal as long as the message says the same. It keeps no text alive: a proxy has
    many conversations.
    """
    return hash(json_bytes(message))


def json_bytes(value: object) -> bytes:
    """Return any value as JSON. Objects of LiteLLM's become what they contain; what JSON cannot hold becomes
    text, and half of a surrogate pair a question mark.
    """
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except UnicodeEncodeError:
        import json

        return json.dumps(value, default=_plain).encode()


def _plain(value: object) -> object:
    contents = getattr(value, "__dict__", None)
    if contents is None or not hasattr(value, "model_fields_set"):
        return str(value)
    extra = getattr(value, "__pydantic_extra__", None) or {}
    return {name: each for name, each in (contents | extra).items() if each is not None}


# --- to the protocol ------------------------------------------------------------------------------------


def encode(message: ChatMessage) -> NeutralMessage:
    """Return a message in the neutral form. A message of an unknown kind is kept with its text, and never
    counts as written by the user.
    """
    raw = json_bytes(message)
    try:
        neutral: NeutralMessage = msgspec.json.decode(encode_message(read_message(raw)))
    except (CompactdError, msgspec.DecodeError):
        return {
            "role": "user",
            "content": text_of(field(message, "content")) or raw.decode(),
            "meta": {"author": "unknown", "synthetic": True},
        }
    signed = field(message, "thinking_blocks")
    if neutral["role"] == "assistant" and isinstance(signed, list) and signed:
        said = [block for block in neutral["content"] if block["type"] != "thinking"]
        neutral["content"] = [*map(_thinking, signed), *said]
    return neutral


def _thinking(block: object) -> dict[str, Any]:
    if redacted := field(block, "data"):
        return {"type": "thinking", "redacted": str(redacted)}
    signature = field(block, "signature")
    signed = {"signature": signature} if isinstance(signature, str) else {}
    return {"type": "thinking", "text": str(field(block, "thinking") or ""), **signed}


# --- and back -------------------------------------------------------------------------------------------


def shown(items: Sequence[int | ShownMessage], messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages of a view: the caller's own objects for those that stay as they are."""
    return [messages[item] if isinstance(item, int) else _decode(item, messages) for item in items]


def _decode(item: ShownMessage, messages: Sequence[ChatMessage]) -> dict[str, Any]:
    host: dict[str, Any] = {}
    if item.index is not None:
        host = msgspec.json.decode(json_bytes(messages[item.index]))
    blocks = item.blocks()
    for block in blocks:
        if block["type"] == "tool_result":
            result = {"role": "tool", "tool_call_id": block["call_id"]}
            return {**(host or result), "content": _content(block["content"])}
    calls = [_call(block) for block in blocks if block["type"] == "tool_call"]
    content = _content([block for block in blocks if block["type"] not in ("tool_call", "thinking")])
    changed: dict[str, Any] = {"role": item.role, **host, "content": content}
    if calls and "function_call" not in host:
        changed["tool_calls"] = calls
        changed["content"] = content or None
    return changed


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = block.get("arguments")
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    function = {"name": block["name"], "arguments": text}
    return {"id": block["call_id"], "type": "function", "function": function}


def _content(content: str | Sequence[Mapping[str, Any]]) -> str | list[Any]:
    if isinstance(content, str):
        return content
    if all(block["type"] == "text" for block in content):
        return "\n".join(block["text"] for block in content)
    return [_part(block) for block in content]


def _part(block: Mapping[str, Any]) -> Mapping[str, Any]:
    match block:
        case {"type": "text", "text": text}:
            return {"type": "text", "text": text}
        case {"type": "image"}:
            return {"type": "image_url", "image_url": {"url": _url(block)}}
        case {"type": "document"} if "data" in block:
            name = {"filename": block["title"]} if block.get("title") else {}
            return {"type": "file", "file": {"file_data": _url(block), **name}}
        case {"type": "opaque", "raw": dict(raw)}:
            return raw
        case _:
            return block


def _url(block: Mapping[str, Any]) -> str:
    return str(block.get("url") or f"data:{block['media_type']};base64,{block['data']}")
