"""Messages of a view as input items. Those that the view keeps are the host's own objects: none is written
from its neutral form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from compactd.integrations.frameworks.history import ShownMessage
from compactd.integrations.frameworks.openai_agents.items import Item, Log, call_id_of, fields_of, said_by

_TEXT_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
"""Items whose output may be any text. The output of others has a form that a shortened text does not have."""


def shown(log: Log, items: Sequence[int | ShownMessage]) -> list[Item]:
    """Return the items of a view. O(items)."""
    return [
        item
        for each in items
        for item in (
            log.message(each)
            if isinstance(each, int)
            else decode(each, None if each.index is None else log.message(each.index))
        )
    ]


def decode(shown: ShownMessage, original: Sequence[Item] | None) -> list[Item]:
    """Return the items for a message that the view shows in another form. `original`: the items that it
    replaces.
    """
    blocks = shown.blocks()
    if original is None:
        return _new_items(shown.role, blocks)
    if shown.role == "assistant":
        return _said_again(blocks, original)
    item = fields_of(original[0])
    if shown.role == "tool":
        if item.get("type") not in _TEXT_OUTPUTS or not blocks:
            return list(original)
        return [{**item, "output": _output(blocks[0].get("content"))}]
    return [{**item, "content": _parts(blocks)}]


def _said_again(blocks: Sequence[Mapping[str, Any]], original: Sequence[Item]) -> list[Item]:
    """Return the items of an assistant message with the texts and arguments of `blocks`. Items that these
    blocks do not contain are left out, reasoning only together with all of it: a provider rejects an item
    without its reasoning.
    """
    calls = {block["call_id"]: block for block in blocks if block["type"] == "tool_call"}
    texts = [block for block in blocks if block["type"] == "text"]
    messages = [item for item in original if fields_of(item).get("type", "message") == "message"]
    items: list[Item] = []
    for item in original:
        given = fields_of(item)
        call_id = call_id_of(given)
        if call_id is not None:
            if call_id not in calls:
                continue
            items.append(_with_arguments(item, given, calls[call_id].get("arguments")))
        elif len(messages) == 1 and item is messages[0] and texts != said_by(given):
            if texts:
                items.append(_with_text(given, texts))
        else:
            items.append(item)
    return items


def _with_arguments(item: Item, given: Mapping[str, Any], arguments: Any) -> Item:
    if given.get("type") != "function_call" or arguments == given.get("arguments"):
        return item
    return {**given, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}


def _with_text(given: Mapping[str, Any], texts: Sequence[Mapping[str, Any]]) -> Item:
    text = "\n".join(block["text"] for block in texts)
    if isinstance(given.get("content"), str):
        return {**given, "content": text}
    return {**given, "content": [{"type": "output_text", "text": text, "annotations": []}]}


def _new_items(role: str, blocks: Sequence[Mapping[str, Any]]) -> list[Item]:
    items: list[Item] = []
    rest: list[Mapping[str, Any]] = []
    for block in blocks:
        match block:
            case {"type": "tool_call"}:
                arguments = block.get("arguments")
                items.append(
                    {
                        "type": "function_call",
                        "call_id": block["call_id"],
                        "name": block["name"],
                        "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
                    }
                )
            case {"type": "tool_result"}:
                output = _output(block.get("content"))
                items.append({"type": "function_call_output", "call_id": block["call_id"], "output": output})
            case {"type": "thinking"}:
                pass
            case _:
                rest.append(block)
    if rest:
        content = _parts(rest)
        if role == "assistant" and not isinstance(content, str):
            content = "\n".join(part["text"] for part in content if part.get("type") == "input_text")
        items.insert(0, {"role": role, "content": content})
    return items


def _output(content: Any) -> Any:
    return content if isinstance(content, str) else _parts(content or ())


def _parts(blocks: Sequence[Mapping[str, Any]]) -> Any:
    """Return blocks as the content of an item: a text, or parts."""
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    return [_as_part(block) for block in blocks]


def _as_part(block: Mapping[str, Any]) -> Any:
    match block:
        case {"type": "text", "text": text}:
            return {"type": "input_text", "text": text}
        case {"type": "image"}:
            url = (
                block.get("url") or f"data:{block.get('media_type', 'image/png')};base64,{block.get('data')}"
            )
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case {"type": "document"}:
            named = {"filename": block["title"]} if block.get("title") else {}
            if url := block.get("url"):
                return {"type": "input_file", "file_url": url, **named}
            if (text := block.get("text")) is not None:
                return {"type": "input_text", "text": text}
            media = block.get("media_type", "application/pdf")
            return {"type": "input_file", "file_data": f"data:{media};base64,{block.get('data')}", **named}
        case {"type": "opaque", "raw": raw}:
            return raw
        case _:
            return {"type": "input_text", "text": json.dumps(block)}
