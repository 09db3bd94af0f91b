"""A view as ADK's contents: the agent's own objects for those that stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from google.genai import types

from compactd.integrations.frameworks.google_adk.contents import Block, blocks_of, call_ids
from compactd.integrations.frameworks.google_adk.responses import plain, whole_text, with_text
from compactd.integrations.frameworks.history import ShownMessage


def shown(item: int | ShownMessage, contents: Sequence[types.Content]) -> types.Content:
    """Return what an item of a view shows. O(its text)."""
    if isinstance(item, int):
        return contents[item]
    blocks = item.blocks()
    if item.index is not None:
        original = contents[item.index]
        return original.model_copy(update={"parts": _changed(blocks, contents, item.index)})
    role = "model" if item.role == "assistant" else "user"
    return types.Content(role=role, parts=[types.Part(text=text_of(blocks))])


def _changed(blocks: Sequence[Block], contents: Sequence[types.Content], index: int) -> list[types.Part]:
    """Return the parts of a content that `blocks` show. Parts that did not change are the content's own."""
    role = contents[index].role
    rest = list(zip(contents[index].parts or (), call_ids(contents, index), strict=True))
    parts: list[types.Part] = []
    for block in blocks:
        said = {name: value for name, value in block.items() if name != "meta"}
        same = next((each for each in rest if _main_block(*each, role) == said), None)
        if same is not None:
            rest.remove(same)
            parts.append(same[0])
            continue
        of_call = next((each for each in rest if each[1] and each[1] == block.get("call_id")), None)
        if of_call is not None:
            rest.remove(of_call)
            parts.append(_changed_part(of_call[0], block))
        elif block["type"] == "text" and block["text"]:
            parts.append(types.Part(text=block["text"]))
    return parts


def _main_block(part: types.Part, call_id: str, role: str | None) -> Block | None:
    """Return the last block of a part, as it comes back from the daemon."""
    blocks = blocks_of(part, call_id, role)
    return msgspec.json.decode(msgspec.json.encode(blocks[-1])) if blocks else None


def _changed_part(part: types.Part, block: Block) -> types.Part:
    if (response := part.function_response) is not None:
        content = block.get("content", "")
        inner = [{"type": "text", "text": content}] if isinstance(content, str) else content
        has_media = any(each.get("type") in ("image", "document") for each in inner)
        text = text_of(inner)
        new = (
            response.response if text == whole_text(response.response) else with_text(response.response, text)
        )
        update = {"response": new, "parts": response.parts if has_media else None}
        return part.model_copy(update={"function_response": response.model_copy(update=update)})
    assert part.function_call is not None
    arguments = block.get("arguments")
    args = arguments if isinstance(arguments, dict) else {"arguments": plain(arguments)}
    return part.model_copy(update={"function_call": part.function_call.model_copy(update={"args": args})})


def text_of(blocks: Sequence[Block]) -> str:
    """Return the text of blocks, and of results in them."""
    texts: list[str] = []
    for block in blocks:
        if block["type"] == "tool_result":
            content = block.get("content", "")
            texts.append(content if isinstance(content, str) else text_of(content))
        else:
            texts.append(str(block.get("text", "")))
    return "\n".join(text for text in texts if text)
