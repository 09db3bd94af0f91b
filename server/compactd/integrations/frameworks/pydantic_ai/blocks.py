"""The content of Pydantic AI's messages as blocks of the protocol.

Nothing is read back from these blocks: a message that stays in the view is the agent's own object. They only
have to say what the provider will be sent, so that compactd can count, summarise and search it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

import pydantic_core
from pydantic_ai import messages as pai

from compactd.client import Json

Block = dict[str, Json]
"""A block as it is read."""
Blocks = list[Json]
"""Blocks as they are written."""

_INTERNAL = "__pydantic_ai__"
"""The key of the framework's own metadata."""
_REDACTED = "redacted_thinking"
"""The id of a thinking part whose signature is Anthropic's redacted thinking."""


def json_text(value: object) -> str:
    """Return any value as compact JSON, as far as it has one. O(its size)."""
    return pydantic_core.to_json(value, serialize_unknown=True, inf_nan_mode="strings").decode(
        errors="replace"
    )


def user_blocks(content: str | Sequence[pai.UserContent]) -> Blocks:
    """Return what a user prompt contains. Frames that the framework wrote name their author."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for item in content for block in _item_blocks(item)]


def result_content(part: pai.ToolReturnPart) -> str | Blocks:
    """Return what a tool returned: a text if it has no files."""
    files = part.files
    text = part.model_response_str(wrap_if_error=False)
    if not files:
        return text
    blocks: Blocks = [{"type": "text", "text": text}] if text else []
    return blocks + [block for file in files for block in _item_blocks(file)]


def response_blocks(message: pai.ModelResponse) -> Blocks:
    """Return what the model answered, in order."""
    return [block for part in message.parts for block in response_part_blocks(part)]


def response_part_blocks(part: object) -> Blocks:
    """Return one part of an answer as blocks; none if it is empty."""
    match part:
        case pai.TextPart():
            return [{"type": "text", "text": part.content}] if part.content else []
        case pai.ThinkingPart():
            return _thinking(part)
        case pai.ToolCallPart():
            call = {"call_id": part.tool_call_id, "name": part.tool_name}
            return [{"type": "tool_call", **call, "arguments": call_arguments(part)}]
        case pai.FilePart():
            return list(_item_blocks(part.content))
        case pai.SpeechPart():
            return [{"type": "text", "text": part.content}] if part.content else []
    return [opaque(part)]


def call_arguments(part: pai.ToolCallPart) -> Json:
    """Return the arguments of a call as the model gave them: an object, or a string if it wrote no valid
    JSON.
    """
    args = part.args
    if not args:
        return {}
    if isinstance(args, str):
        try:
            read: Json = pydantic_core.from_json(args)
        except ValueError:
            return args
        return read if isinstance(read, dict) else args
    given: Json = pydantic_core.from_json(json_text(args))
    return given


def opaque(part: object) -> Json:
    """Return a part that only its provider or the framework understands."""
    provider = getattr(part, "provider_name", None)
    try:
        raw = pydantic_core.from_json(json_text(part))
    except ValueError:
        raw = {"type": type(part).__name__}
    return {
        "type": "opaque",
        "provider": provider if isinstance(provider, str) else "pydantic-ai",
        "raw": raw,
    }


def _thinking(part: pai.ThinkingPart) -> Blocks:
    if part.id == _REDACTED and part.signature:
        return [{"type": "thinking", "redacted": part.signature}]
    if not part.content and not part.signature:
        return []
    signed = {"signature": part.signature} if part.signature else {}
    return [{"type": "thinking", "text": part.content, **signed}]


def _item_blocks(item: object) -> Iterator[Json]:
    match item:
        case str():
            yield {"type": "text", "text": item}
        case pai.TextContent():
            author = _frame_author(item.metadata)
            yield {"type": "text", "text": item.content, **({"meta": {"author": author}} if author else {})}
        case pai.CachePoint():
            return
        case pai.ImageUrl():
            yield {"type": "image", "url": item.url}
        case pai.DocumentUrl():
            yield {"type": "document", "url": item.url}
        case pai.BinaryContent() if item.is_image:
            data = base64.b64encode(item.data).decode()
            yield {"type": "image", "media_type": item.media_type, "data": data}
        case pai.BinaryContent() if item.media_type.startswith("text/"):
            text = item.data.decode(errors="replace")
            yield {"type": "document", "media_type": item.media_type, "text": text}
        case pai.BinaryContent():
            data = base64.b64encode(item.data).decode()
            yield {"type": "document", "media_type": item.media_type, "data": data}
        case _:
            yield opaque(item)


def _frame_author(metadata: object) -> str | None:
    """Return who wrote a text that the framework put into a user prompt; None if the user did."""
    own = metadata.get(_INTERNAL) if isinstance(metadata, dict) else None
    if not isinstance(own, dict) or not own.get("framework_frame"):
        return None
    return "tool" if own.get("framework_frame_author") in ("tool", "file") else "notification"
