"""Input items of the OpenAI Agents SDK as messages of the protocol.

Consecutive items that a model wrote (reasoning, text, calls) are one assistant message. Every other item is a
message of its own.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from compactd.core.text.summary_format import LEAD
from compactd.formats.messages.provenance import RESPONSES
from compactd.integrations.frameworks.history import History, NeutralMessage

Item = Any
"""An input item: a dictionary, or a pydantic model of the SDK's."""

_SDKS_OWN = frozenset({"created_by", "_agents_tool_description", "_agents_tool_title"})
"""Fields that the SDK removes when it sends a stored item (openai-agents 0.24,
`strip_internal_input_item_metadata`).
"""
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_NOT_ARGUMENTS = frozenset({"type", "id", "call_id", "status", "name", "namespace", "caller"})
_NOT_OUTPUT = frozenset({"type", "id", "call_id", "status", "caller", "approval_request_id"})


# --- a conversation as messages -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Log:
    """The items of a conversation, grouped into messages. Immutable: `extended` returns a new one."""

    items: list[Item]
    starts: list[int]
    """Where each message begins in `items`."""
    keys: list[Hashable]
    """For each message, a value that is equal as long as its items say the same."""

    @staticmethod
    def of(items: Iterable[Item]) -> Log:
        """Return a log of `items`. O(items and their fields)."""
        return Log([], [], []).extended(items)

    def extended(self, items: Iterable[Item]) -> Log:
        """Return the log with `items` at its end. O(messages + fields of the new items)."""
        log = Log(self.items.copy(), self.starts.copy(), self.keys.copy())
        is_open = bool(log.starts) and _side(fields_of(log.items[log.starts[-1]])) == "assistant"
        added = list(items)
        starts, keys = log.starts, log.keys
        for at, item in enumerate(added, len(log.items)):
            given = item if item.__class__ is dict else fields_of(item)
            is_said = _side(given) == "assistant"
            key = _key(given)
            if is_said and is_open:
                keys[-1] = (*keys[-1], key)  # type: ignore[misc]  # a tuple, as below
            else:
                starts.append(at)
                keys.append((key,))
            is_open = is_said
        log.items.extend(added)
        return log

    def message(self, index: int) -> list[Item]:
        """Return the items of a message."""
        stop = self.starts[index + 1] if index + 1 < len(self.starts) else len(self.items)
        return self.items[self.starts[index] : stop]

    def history(self, usage_of: Callable[[int], dict[str, Any] | None] = lambda _: None) -> History:
        """Return the history for a mirror. `usage_of` returns the provider's report on the request that the
        message at an index answers.
        """

        def encoded(index: int) -> NeutralMessage:
            neutral = encode(self.message(index))
            if neutral["role"] == "assistant" and (usage := usage_of(index)):
                neutral["usage"] = usage
            return neutral

        return History(self.keys, encoded)


def fields_of(item: Item) -> Mapping[str, Any]:
    """Return the item's fields; for an object that has none, one of an unknown type."""
    if isinstance(item, dict):
        return item
    if hasattr(item, "model_dump"):
        dumped = item.model_dump(exclude_unset=True)
        if isinstance(dumped, dict):
            return dumped
    return {"type": "unknown", "value": repr(item)}


def as_sent(item: Item) -> Item:
    """Return an item as the SDK sends it when it was stored."""
    if isinstance(item, dict) and not _SDKS_OWN.isdisjoint(item):
        return {name: value for name, value in item.items() if name not in _SDKS_OWN}
    return item


def _key(given: Mapping[str, Any]) -> Hashable:
    for name, value in given.items():
        if value.__class__ is not str or name in _SDKS_OWN:
            break
    else:
        return tuple(given.items())
    tag = given.get("type")
    # With the policy "omit", the SDK sends stored reasoning without its id.
    left_out = _SDKS_OWN | {"id"} if tag == "reasoning" else _SDKS_OWN
    # What the model wrote is small: packing it is quick. The other items may contain images.
    packed = _packed if tag == "reasoning" or given.get("role") == "assistant" else frozen
    return tuple(
        [
            (name, value if value.__class__ is str else packed(value))
            for name, value in given.items()
            if name not in left_out
        ]
    )


def _packed(value: Any) -> Hashable:
    try:
        return marshal.dumps(value, 2)  # later versions write equal values in several ways
    except ValueError:
        return frozen(value)


def frozen(value: Any) -> Hashable:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return tuple([(name, frozen(each)) for name, each in value.items()])
    if isinstance(value, list | tuple):
        return tuple([frozen(each) for each in value])
    return value if isinstance(value, Hashable) else repr(value)


def _side(given: Mapping[str, Any]) -> str:
    """Return whose message an item is in: the role's, `assistant`, `tool`, or `unknown`."""
    tag = given.get("type")
    if tag == "message" or (tag is None and "role" in given):
        role = given.get("role")
        return _ROLES.get(role, "unknown") if isinstance(role, str) else "unknown"
    if not isinstance(tag, str) or tag == "unknown":
        return "unknown"
    if _result_id(given) is not None:
        return "tool"
    # Without an id of its call, an output must not be separated from it.
    return "assistant"


def _result_id(given: Mapping[str, Any]) -> str | None:
    """Return the id of the call that an item is the result of."""
    tag = str(given.get("type"))
    if tag.endswith("_output"):
        return _id(given.get("call_id"))
    if tag == "mcp_approval_response":
        return _id(given.get("approval_request_id"))
    return None


def call_id_of(given: Mapping[str, Any]) -> str | None:
    """Return the id that the result of a call names; None for an item that waits for no result."""
    tag = str(given.get("type"))
    if tag == "mcp_approval_request":
        return _id(given.get("id"))
    if tag.endswith("_output"):
        return None
    if tag == "function_call":
        return _id(given.get("call_id")) or _id(given.get("id")) or "missing"
    return _id(given.get("call_id"))


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


# --- to the protocol ------------------------------------------------------------------------------------


def encode(items: Sequence[Item]) -> NeutralMessage:
    """Return the items of one message in the neutral form. Never fails: what is not known is kept unchanged,
    and does not count as written by the user.
    """
    neutral = _encode([fields_of(item) for item in items])
    try:
        msgspec.json.encode(neutral)
    except (UnicodeEncodeError, TypeError, OverflowError):
        neutral = _plain(neutral)
    return neutral


def _encode(items: Sequence[Mapping[str, Any]]) -> NeutralMessage:
    first = items[0]
    side = _side(first)
    match side:
        case "assistant":
            return {"role": "assistant", "content": [block for item in items for block in said_by(item)]}
        case "tool":
            return {"role": "tool", "content": [_result(first)]}
        case "user" | "system":
            neutral: NeutralMessage = {"role": side, "content": _content(first.get("content"))}
            if side == "user" and is_summary(first):
                neutral["meta"] = {"author": "summary", "synthetic": True}
            return neutral
        case _:
            meta = {"author": "unknown", "synthetic": True}
            if "content" in first:
                return {"role": "user", "content": _content(first["content"]), "meta": meta}
            return {"role": "user", "content": [_opaque(first)], "meta": meta}


def is_continuation(items: Iterable[Item]) -> bool:
    """Return whether items continue a conversation that the server holds: a result is before any call."""
    for item in items:
        given = fields_of(item)
        if _side(given) == "tool":
            return True
        if _side(given) == "assistant" and call_id_of(given) is not None:
            return False
    return False


def is_summary(given: Mapping[str, Any]) -> bool:
    """Return whether an item is a summary that compactd wrote in an earlier view."""
    content = given.get("content")
    return given.get("role") == "user" and isinstance(content, str) and content.startswith(LEAD)


def _content(content: Any) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        return [_part(part) for part in content]
    return [] if content is None else [_opaque(content)]


def _part(part: Any) -> dict[str, Any]:
    match part:
        case str():
            return {"type": "text", "text": part}
        case {"type": str(tag)} if tag in _TEXTS and isinstance(part.get(_TEXTS[tag]), str):
            return {"type": "text", "text": part[_TEXTS[tag]]}
        case {"type": "input_image" | "computer_screenshot", "image_url": str(url)}:
            return _image(url)
        case {"type": "input_file", "file_url": str(url)}:
            return {"type": "document", "url": url, **_title(part)}
        case {"type": "input_file", "file_data": str(url)}:
            media, data = _data_url(url) or ("application/pdf", url)
            return {"type": "document", "media_type": media, "data": data, **_title(part)}
        case _:
            return _opaque(part)


def _title(part: Mapping[str, Any]) -> dict[str, Any]:
    name = part.get("filename")
    return {"title": name} if isinstance(name, str) else {}


def _image(url: str) -> dict[str, Any]:
    inline = _data_url(url)
    if inline is None:
        return {"type": "image", "url": url}
    return {"type": "image", "media_type": inline[0], "data": inline[1]}


def _data_url(url: str) -> tuple[str, str] | None:
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head[len("data:") : -len(";base64")].partition(";")[0], data


def said_by(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of an item that the model wrote."""
    if (call_id := call_id_of(item)) is not None:
        arguments = item.get("arguments", item.get("input"))
        if arguments is None:
            arguments = {name: value for name, value in item.items() if name not in _NOT_ARGUMENTS}
        name = item.get("name")
        return [
            {
                "type": "tool_call",
                "call_id": call_id,
                "name": name if isinstance(name, str) and name else str(item["type"]),
                "arguments": arguments,
            }
        ]
    match item.get("type"):
        case "reasoning":
            return _reasoning(item)
        case "image_generation_call" if isinstance(item.get("result"), str):
            media_type = f"image/{item.get('output_format') or 'png'}"
            return [{"type": "image", "media_type": media_type, "data": item["result"]}]
        case "message" | None:
            content = _content(item.get("content"))
            return [{"type": "text", "text": content}] if isinstance(content, str) else content
        case _:
            return [_opaque(item)]


def _reasoning(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    texts = [
        part["text"]
        for field in ("summary", "content")
        for part in item.get(field) or ()
        if isinstance(part, Mapping) and isinstance(part.get("text"), str)
    ]
    blocks: list[dict[str, Any]] = [{"type": "thinking", "text": "\n".join(texts)}] if texts else []
    if item.get("encrypted_content"):
        blocks.append(_opaque(item))
    return blocks


def _result(item: Mapping[str, Any]) -> dict[str, Any]:
    output = item.get("output")
    if isinstance(output, Mapping) and output.get("type") == "computer_screenshot":
        output = [output]
    if not isinstance(output, str):
        parts = output if isinstance(output, list | tuple) else ()
        if parts and all(isinstance(part, Mapping) and _part(part)["type"] != "opaque" for part in parts):
            output = [_part(part) for part in parts]
        else:
            rest = {name: value for name, value in item.items() if name not in _NOT_OUTPUT}
            output = json.dumps(rest.get("output", rest), default=repr)
    result: dict[str, Any] = {"type": "tool_result", "call_id": _result_id(item) or "", "content": output}
    if item.get("status") in ("failed", "incomplete"):
        result["is_error"] = True
    return result


def _opaque(value: Any) -> dict[str, Any]:
    return {"type": "opaque", "provider": RESPONSES, "raw": value}


def _plain(value: Any) -> Any:
    """Return a value that can be sent as JSON in UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_plain(str(name)): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(value) if abs(value) < 10**300 else repr(value)
    return value if isinstance(value, int | float | None) else repr(value)
