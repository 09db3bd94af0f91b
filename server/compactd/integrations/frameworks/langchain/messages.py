"""LangChain's messages as messages of the protocol, and back."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import msgspec
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from compactd.integrations.frameworks.history import History, NeutralMessage, ShownMessage

_SUMMARY_MARK = {"lc_source": "summarization"}
"""What LangChain's own middleware puts into the message that contains a summary."""

Block = Mapping[str, Any]

_PLAIN = frozenset((str, int))
"""Types whose values are their own keys: those of most arguments."""


def history_of(messages: Sequence[AnyMessage]) -> History:
    """Return the history of a list of messages. The messages are not copied. O(messages and their blocks)."""
    return History([_key(message) for message in messages], lambda index: encode(messages[index]))


def _key(message: BaseMessage) -> Hashable:
    """Return a value that is equal for messages which say the same. The id is left out, because LangGraph
    gives it later.
    """
    content = message.content
    said: Hashable = content if isinstance(content, str) else _frozen(content)
    extra = _frozen(message.additional_kwargs) if message.additional_kwargs else None
    if isinstance(message, ToolMessage):
        return ("tool", said, extra, message.tool_call_id, message.status)
    if isinstance(message, AIMessage):
        calls = tuple([(each["id"], each["name"], _frozen(each["args"])) for each in message.tool_calls])
        invalid = _frozen(message.invalid_tool_calls) if message.invalid_tool_calls else None
        return ("ai", said, extra, calls, invalid)
    return (message.type, said, extra, message.name)


def _frozen(value: object) -> Hashable:
    if type(value) is str or type(value) is int:
        return value
    if isinstance(value, bool | float):
        return repr(value)  # True, 1 and 1.0 are equal
    if isinstance(value, dict):
        if _PLAIN.issuperset(map(type, value.values())):
            return tuple(value.items())
        return tuple([(key, _frozen(each)) for key, each in value.items()])
    if isinstance(value, list | tuple):
        return tuple([_frozen(each) for each in value])
    return value if isinstance(value, Hashable) else repr(value)


# --- to the protocol ------------------------------------------------------------------------------------


def encode(message: BaseMessage) -> NeutralMessage:
    """Return a message in the neutral form. A message of an unknown class is kept with its text, and never
    counts as written by the user.
    """
    match message:
        case AIMessage():
            return _assistant(message)
        case ToolMessage():
            return {"role": "tool", "content": [_result(message, message.tool_call_id)]}
        case FunctionMessage():
            return {"role": "tool", "content": [_result(message, message.id or message.name or "")]}
        case HumanMessage() if message.additional_kwargs.get("lc_source") == "summarization":
            return {
                "role": "user",
                "content": _content(message),
                "meta": {"author": "summary", "synthetic": True},
            }
        case HumanMessage():
            return {"role": "user", "content": _content(message)}
        case SystemMessage():
            return {"role": "system", "content": _content(message)}
        case _:
            return {
                "role": "user",
                "content": _content(message),
                "meta": {"author": "unknown", "synthetic": True},
            }


def _assistant(message: AIMessage) -> NeutralMessage:
    blocks = [_block(block) for block in message.content_blocks]
    given = {block["call_id"] for block in blocks if block["type"] == "tool_call"}
    for call in (*message.tool_calls, *message.invalid_tool_calls):
        if call["id"] not in given:
            blocks.append(_block({"type": "tool_call", **call}))
    neutral: NeutralMessage = {"role": "assistant", "content": blocks}
    metadata = message.response_metadata
    if reason := metadata.get("finish_reason") or metadata.get("stop_reason"):
        neutral["stop_reason"] = str(reason)
    if usage := _usage(message):
        neutral["usage"] = usage
    return neutral


def _usage(message: AIMessage) -> dict[str, Any] | None:
    """Return the usage report in Anthropic's form, which counts the cached input apart."""
    usage = message.usage_metadata
    if usage is None:
        return None
    details = usage.get("input_token_details") or {}
    read, written = details.get("cache_read") or 0, details.get("cache_creation") or 0
    return {
        "input_tokens": max(0, usage["input_tokens"] - read - written),
        "output_tokens": usage["output_tokens"],
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }


def _result(message: ToolMessage | FunctionMessage, call_id: str) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "call_id": call_id, "content": _content(message)}
    if message.name:
        result["name"] = message.name
    if isinstance(message, ToolMessage) and message.status == "error":
        result["is_error"] = True
    return result


def _content(message: BaseMessage) -> str | list[dict[str, Any]]:
    if isinstance(message.content, str):
        return message.content
    return [_block(block) for block in message.content_blocks]


def _block(block: Block) -> dict[str, Any]:
    """Return one of LangChain's standard content blocks in the neutral form."""
    match block:
        case {"type": "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "reasoning"}:
            signature = (block.get("extras") or {}).get("signature")
            thinking: dict[str, Any] = {"type": "thinking", "text": block.get("reasoning") or ""}
            return {**thinking, "signature": signature} if isinstance(signature, str) else thinking
        case {"type": "tool_call" | "invalid_tool_call"}:
            return {
                "type": "tool_call",
                "call_id": block.get("id") or "",
                "name": block.get("name") or "",
                "arguments": _plain(block.get("args")) or {},
            }
        case {"type": "image"} if source := _source(block):
            return {"type": "image", "media_type": block.get("mime_type") or "image/png", **source}
        case {"type": "file" | "text-plain"} if source := _source(block):
            media = block.get("mime_type") or ("text/plain" if "text" in source else "application/pdf")
            return {"type": "document", "media_type": media, **source}
        case _:
            return {"type": "opaque", "provider": "langchain", "raw": _plain(dict(block))}


def _source(block: Block) -> dict[str, Any]:
    if data := block.get("base64"):
        return {"data": data}
    if url := block.get("url"):
        return {"url": url}
    return {"text": text} if (text := block.get("text")) else {}


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold; what it cannot is written as text."""
    plain: object = msgspec.to_builtins(value, enc_hook=repr, str_keys=True)
    return plain


# --- and back -------------------------------------------------------------------------------------------


def shown(items: Sequence[int | ShownMessage], messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the messages of a view: the host's own objects for those that stay as they are."""
    return [messages[item] if isinstance(item, int) else _decode(item, messages) for item in items]


def _decode(item: ShownMessage, messages: Sequence[AnyMessage]) -> AnyMessage:
    original = None if item.index is None else messages[item.index]
    blocks = item.blocks()
    results = [block for block in blocks if block["type"] == "tool_result"]
    if results:
        return _tool_message(results[0], original)
    content = _text_or_blocks(blocks)
    match item.role:
        case "assistant":
            return _ai_message(blocks, original)
        case "system":
            return SystemMessage(content=content)
        case _ if original is not None:
            return original.model_copy(update={"content": content})
        case _:
            return HumanMessage(content=content, additional_kwargs=_SUMMARY_MARK if item.is_summary else {})


def _tool_message(result: Mapping[str, Any], original: AnyMessage | None) -> AnyMessage:
    inner = result["content"]
    content = inner if isinstance(inner, str) else _text_or_blocks(inner)
    if original is not None:
        return original.model_copy(update={"content": content})
    status = "error" if result.get("is_error") else "success"
    return ToolMessage(
        content=content, tool_call_id=result["call_id"], name=result.get("name"), status=status
    )


def _ai_message(blocks: Sequence[Mapping[str, Any]], original: AnyMessage | None) -> AnyMessage:
    calls = [
        {"type": "tool_call", "id": block["call_id"], "name": block["name"], "args": _arguments(block)}
        for block in blocks
        if block["type"] == "tool_call"
    ]
    content = _text_or_blocks([block for block in blocks if block["type"] != "tool_call"])
    if original is not None:
        return original.model_copy(update={"content": content, "tool_calls": calls})
    return AIMessage(content=content, tool_calls=calls)


def _arguments(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = block.get("arguments")
    if isinstance(arguments, str):
        arguments = msgspec.json.decode(arguments or "{}")
    return arguments if isinstance(arguments, dict) else {}


def _text_or_blocks(blocks: Sequence[Mapping[str, Any]]) -> Any:
    if not blocks:
        return ""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return [_standard_block(block) for block in blocks]


def _standard_block(block: Mapping[str, Any]) -> dict[str, Any]:
    match block:
        case {"type": "text", "text": text}:
            return {"type": "text", "text": text}
        case {"type": "thinking"}:
            extras = {"extras": {"signature": block["signature"]}} if block.get("signature") else {}
            return {"type": "reasoning", "reasoning": block.get("text", ""), **extras}
        case {"type": "image" | "document"}:
            kind = "image" if block["type"] == "image" else "file"
            names = {"data": "base64", "url": "url", "text": "text"}
            source = {ours: block[name] for name, ours in names.items() if block.get(name)}
            return {"type": kind, "mime_type": block.get("media_type"), **source}
        case {"type": "opaque", "raw": dict(raw)}:
            return raw
        case _:
            return {"type": "non_standard", "value": dict(block)}


def tool_texts(message: ToolMessage, change: Callable[[str], str]) -> ToolMessage:
    """Return the message with each of its texts changed; the message itself if none did."""
    content = message.content
    if isinstance(content, str):
        new: Any = change(content)
    else:
        new = [
            {**block, "text": change(block["text"])}
            if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
            else block
            for block in content
        ]
    return message if new == content else message.model_copy(update={"content": new})
