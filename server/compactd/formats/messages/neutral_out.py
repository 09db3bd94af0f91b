"""Encode messages in compactd's neutral format. Raw JSON keeps its bytes."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.projection import Projected, Projection
from compactd.protocol.messages import Block, Document, Image, Message, Meta, Role, ToolResult, Unknown

_encode = msgspec.json.Encoder().encode


class _Out(Struct, frozen=True, kw_only=True, omit_defaults=True):
    role: Role
    content: tuple[object, ...]
    id: str | None = None
    created_at: float | None = None
    usage: Raw | None = None
    stop_reason: str | None = None
    meta: object = None


class _OutResult(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tool_result"):
    call_id: str
    content: tuple[object, ...]
    name: str | None = None
    is_error: bool = False


def encode_message(message: Message) -> bytes:
    """Encode `message` as compact JSON in neutral form. Raw JSON keeps its bytes."""
    return _encode(
        _Out(
            role=message.role,
            content=tuple(_out(block) for block in message.content),
            id=message.id,
            created_at=message.created_at,
            usage=message.usage,
            stop_reason=message.stop_reason,
            meta=_meta(message.meta),
        )
    )


def _meta(meta: Meta | None) -> object:
    """Return `meta` in the form to encode. For a summary, both lists of files are included even if empty.

    (docs/specs.md, "opal.md", "4. Replace Messages")
    """
    if meta is None or meta.type != "compaction_summary":
        return meta
    given: dict[str, object] = msgspec.to_builtins(meta)
    return {**given, "read_files": meta.read_files, "modified_files": meta.modified_files}


def _out(block: Block) -> object:
    if isinstance(block, Unknown):
        return block.raw
    if isinstance(block, ToolResult) and isinstance(block.content, tuple):
        return _OutResult(
            call_id=block.call_id,
            content=tuple(_out(inner) for inner in block.content),
            name=block.name,
            is_error=block.is_error,
        )
    if isinstance(block, Image | Document):
        # `omit_defaults` would omit a media type that equals the default.
        given = msgspec.structs.asdict(block).items()
        tag = "image" if isinstance(block, Image) else "document"
        return {"type": tag, **{name: value for name, value in given if value is not None}}
    return block


def render_neutral(projection: Projection) -> list[Raw]:
    """Return the projected messages, each with `entry_id` as its last field.

    A result that compactd added for a call has no `entry_id`. A message that was projected unchanged keeps
    the client's bytes.
    """
    return [_render(projected) for projected in projection.messages]


def _render(projected: Projected) -> Raw:
    if projected.source is None:
        data = encode_message(projected.message)
    else:
        data = bytes(projected.source).strip()
        # A client may have sent back a message with its `entry_id`, so the message must not get a second one.
        if b'"entry_id"' in data:
            given = msgspec.json.decode(data, type=dict[str, Raw])
            given.pop("entry_id", None)
            data = _encode(given)
    if projected.entry_id is None:
        return Raw(data)
    return Raw(data[:-1] + b',"entry_id":' + _encode(projected.entry_id) + b"}")
