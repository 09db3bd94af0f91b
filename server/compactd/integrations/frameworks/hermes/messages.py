"""Hermes' messages, which are OpenAI's with some keys more, as messages of the protocol."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import msgspec

from compactd.client import Json
from compactd.integrations.frameworks.history import History, NeutralMessage

Message = dict[str, Any]
"""A message as Hermes holds it."""

SUMMARY_HEADING = "[CONTEXT SUMMARY]:"
"""How Hermes recognises a summary: then the message is not the user's words, and shown as a summary."""
SUMMARY_KEY = "_compressed_summary"
"""Hermes' mark on messages that contain a summary. It is removed before a message is sent."""
BRIDGE = "I have read the summary of the earlier conversation."
"""A message between a summary and a message of the user's. Without it, Hermes would make one message of the
two.
"""
_SUMMARIES = (SUMMARY_HEADING, "[CONTEXT COMPACTION")
_NOTES = (
    "[System:",
    "[IMPORTANT: Background process",
    "[Your active task list was preserved across context compression]",
)
"""How messages begin that Hermes writes in the user's role."""
_FLAG = "_synthetic"
"""How the keys end that mark such messages."""
_UNKNOWN = {"author": "unknown", "synthetic": True}


def history_of(messages: Sequence[Message], usages: Sequence[Mapping[str, Json]] = ()) -> History:
    """Return the history of a list of messages. The messages are not copied. O(messages).

    `usages`: the provider's reports that came last, oldest first. They belong to the last answers.
    """
    answers = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    count = min(len(answers), len(usages))
    reports = dict(zip(answers[len(answers) - count :], usages[len(usages) - count :], strict=True))

    def encoded(index: int) -> NeutralMessage:
        neutral = encode(messages[index])
        if index in reports:
            neutral["usage"] = reports[index]
        return neutral

    return History([key_of(message) for message in messages], encoded)


def key_of(message: Message) -> Hashable:
    """Return a value that is equal for messages which say the same. Texts are stripped: Hermes does that when
    it stores them.
    """
    calls = message.get("tool_calls")
    return (
        _frozen(message.get("role")),
        _frozen(message.get("content") or ""),
        tuple([_frozen(named_call(call)) for call in calls]) if calls else (),
        _frozen(message.get("tool_call_id")),
    )


def _frozen(value: object) -> Hashable:
    if isinstance(value, str):
        return value.strip()
    return None if value is None else repr(value)


def encode(message: Message) -> NeutralMessage:
    """Return a message in the neutral form. What Hermes wrote itself does not count as the user's words."""
    content = _content(message.get("content"))
    match message.get("role"):
        case "assistant":
            return _assistant(message, content)
        case "tool":
            return {"role": "tool", "content": [_result(message, content)]}
        case "user":
            author = _author(message)
            meta = {"meta": {"author": author, "synthetic": True}} if author else {}
            return {"role": "user", "content": content, **meta}
        case "system":
            return {"role": "system", "content": content}
        case _:
            return {"role": "user", "content": content, "meta": dict(_UNKNOWN)}


def _author(message: Message) -> str | None:
    """Return who wrote a message in the user's role; None if the user did."""
    text = text_of(message.get("content")).lstrip()
    if message.get(SUMMARY_KEY) or text.startswith(_SUMMARIES):
        return "summary"
    if text.startswith(_NOTES) or any(key.endswith(_FLAG) and message[key] for key in message):
        return "notification"
    return None


def text_of(content: object) -> str:
    """Return the texts of a message's content."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def _assistant(message: Message, content: str | list[Json]) -> NeutralMessage:
    blocks: list[Json] = _thinking(message)
    if isinstance(content, str):
        blocks += [{"type": "text", "text": content}] if content else []
    else:
        blocks += content
    for call in message.get("tool_calls") or ():
        call_id, name, arguments = named_call(call)
        blocks.append(
            {"type": "tool_call", "call_id": call_id, "name": name, "arguments": arguments_of(arguments)}
        )
    neutral: NeutralMessage = {"role": "assistant", "content": blocks}
    if reason := message.get("finish_reason"):
        neutral["stop_reason"] = str(reason)
    if message.get("content") == BRIDGE:
        neutral["meta"] = {"synthetic": True}
    return neutral


def _thinking(message: Message) -> list[Json]:
    """Return what the model thought. Hermes sends it again in the field in which it came."""
    text = message.get("reasoning_content") or message.get("reasoning")
    blocks: list[Json] = [{"type": "thinking", "text": text}] if isinstance(text, str) and text else []
    for key in ("reasoning_details", "codex_reasoning_items"):
        for item in message.get(key) or ():
            blocks.append({"type": "opaque", "provider": "hermes", "raw": _plain(item)})
    return blocks


def named_call(call: Any) -> tuple[str, str, object]:
    """Return the id, name and arguments of a call."""
    if not isinstance(call, Mapping):
        return "", "", _plain(call)
    function = call.get("function") or {}
    return (
        str(call.get("id") or call.get("call_id") or ""),
        str(function.get("name") or ""),
        (function.get("arguments")),
    )


def arguments_of(arguments: object) -> Json:
    """Return the arguments of a call as an object, or as the text that the model wrote."""
    if not isinstance(arguments, str):
        plain: Json = _plain(arguments or {})
        return plain
    try:
        read: Json = json.loads(arguments or "{}")
    except ValueError:
        return arguments
    return read if isinstance(read, dict) else arguments


def _result(message: Message, content: str | list[Json]) -> Json:
    result: dict[str, Json] = {
        "type": "tool_result",
        "call_id": str(message.get("tool_call_id") or ""),
        "content": content,
    }
    if name := message.get("name") or message.get("tool_name"):
        result["name"] = str(name)
    return result


def _content(content: object) -> str | list[Json]:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return [block_of(part) for part in content] if isinstance(content, list) else str(content)


def block_of(part: object) -> Json:
    match part:
        case str():
            return {"type": "text", "text": part}
        case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "image_url" | "input_image", "image_url": {"url": str(url)} | str(url)}:
            return _image(url)
        case _:
            return {"type": "opaque", "provider": "hermes", "raw": _plain(part)}


def _image(url: str) -> Json:
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return {"type": "image", "media_type": head[5:-7] or "image/png", "data": data}
    return {"type": "image", "url": url}


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold; what it cannot is written as text."""
    plain: object = msgspec.to_builtins(value, enc_hook=repr, str_keys=True)
    return plain
