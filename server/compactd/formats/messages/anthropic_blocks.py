"""Convert blocks to Anthropic's content blocks. A block without an equivalent becomes text."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.formats.messages.provenance import ANTHROPIC
from compactd.formats.messages.rendering import (
    Json,
    block_text,
    data_url,
    opaque_fields,
    picture,
    provider_block,
    string_field,
    web_url,
)
from compactd.protocol.messages import Block, Document, Image, Opaque, Thinking, ToolResult, Unknown

BETA_HEADER = "anthropic-beta"
ON_DEMAND_BETA = "compact-2026-09-04"
THRESHOLD_BETA = "compact-2026-01-12"
"""The header that names the betas of a request, and the betas of compaction on demand and at a threshold."""

# Blocks of Anthropic's own tools that an answer contains and a request sends back, with their required fields
# (API reference, seen 2026-11).
ASSISTANT_BLOCKS = {
    "server_tool_use": ("id", "name", "input"),
    "mcp_tool_use": ("id", "name", "input", "server_name"),
    "mcp_tool_result": ("tool_use_id",),
    "web_search_tool_result": ("tool_use_id", "content"),
    "web_fetch_tool_result": ("tool_use_id", "content"),
    "code_execution_tool_result": ("tool_use_id", "content"),
    "bash_code_execution_tool_result": ("tool_use_id", "content"),
    "text_editor_code_execution_tool_result": ("tool_use_id", "content"),
    "tool_search_tool_result": ("tool_use_id", "content"),
    "container_upload": ("file_id",),
}
# An image or document of the Files API has no neutral equivalent and is sent back unchanged.
_FILES = {"search_result": ("source", "title", "content"), "image": ("source",), "document": ("source",)}
_NEUTRAL_BLOCKS = ("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document")
USER_BLOCKS = {**_FILES, "container_upload": ("file_id",)}
RESULT_BLOCKS = {**_FILES, "tool_reference": ("tool_name",)}


class CompactionBlock(Struct, frozen=True):
    """A summary by Anthropic's own compaction, as far as compactd reads it."""

    type: str = ""
    content: str | UnsetType | None = UNSET
    """The summary; null if the compaction failed. The API then ignores the block."""
    signature: str | None = None
    """Only blocks of compaction on demand have one."""


_decode_compaction = msgspec.json.Decoder(CompactionBlock).decode


def compaction_block(block: Block) -> CompactionBlock | None:
    """Return what `block` says if it is a summary by Anthropic's own compaction; otherwise None. O(block).

    Versions before 2026-12 kept such a block as one of an unknown type.
    """
    match block:
        case Opaque(provider="anthropic", raw=raw) if b"compaction" in bytes(raw):
            pass
        case Unknown(type="compaction", raw=raw):
            pass
        case _:
            return None
    try:
        found = _decode_compaction(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if found.type == "compaction" and found.content is not UNSET else None


def text_block(text: str) -> Json:
    """Return a text block. `text` must contain more than white space."""
    return {"type": "text", "text": text}


def text_blocks(block: Block) -> list[Json | Raw]:
    """Return `block` as text; empty if it has no text form."""
    text = block_text(block)
    return [text_block(text)] if text and not text.isspace() else []


def thinking_blocks(block: Thinking) -> list[Json | Raw]:
    """Return thinking unchanged with its signature; empty if it has no signature."""
    if block.redacted:
        return [{"type": "redacted_thinking", "data": block.redacted}]
    # A signature that is a JSON object is OpenAI's complete reasoning item, which pi stores there.
    if block.signature and block.signature[0] != "{":
        return [{"type": "thinking", "thinking": block.text, "signature": block.signature}]
    return []


def opaque_thinking(block: Opaque) -> Thinking | None:
    """Return the thinking in `block` if it is a thinking block of Anthropic's API that a client kept
    unchanged; otherwise None.
    """
    given = opaque_fields(block, ANTHROPIC)
    match string_field(given, "type"):
        case "thinking":
            return Thinking(text=string_field(given, "thinking"), signature=string_field(given, "signature"))
        case "redacted_thinking":
            return Thinking(redacted=string_field(given, "data"))
        case _:
            return None


def opaque_block(block: Opaque) -> Raw | None:
    """Return the unchanged JSON of `block` if it is a block of an Anthropic answer without a neutral
    equivalent; otherwise None.
    """
    given = opaque_fields(block, ANTHROPIC)
    tag = string_field(given, "type")
    is_whole = all(name in given for name in ASSISTANT_BLOCKS.get(tag, ()))
    return block.raw if tag and tag not in _NEUTRAL_BLOCKS and is_whole else None


def user_blocks(block: Block) -> list[Json | Raw]:
    """Return `block` for a user message; empty for a tool result, because the caller puts tool results before
    all other blocks.
    """
    match block:
        case ToolResult():
            return []
        case Image():
            return [_image(block) or text_block(block_text(block))]
        case Document():
            return [_document(block) or text_block(block_text(block))]
        case Opaque() | Unknown():
            own = provider_block(block, ANTHROPIC, USER_BLOCKS)
            return [own] if own is not None else text_blocks(block)
        case _:
            return text_blocks(block)


def result_blocks(block: Block, is_error: bool = False) -> list[Json | Raw]:
    """Return `block` for the inside of a tool result. If the result is an error, only text may be inside, so
    the caller moves the other blocks out of it.
    """
    if is_error and isinstance(block, Opaque | Unknown):
        return text_blocks(block)
    if isinstance(block, Opaque | Unknown):
        own = provider_block(block, ANTHROPIC, RESULT_BLOCKS)
        return [own] if own is not None else text_blocks(block)
    return user_blocks(block)


def _image(image: Image) -> Json | None:
    inline, url = picture(image), web_url(image.url)
    if inline is not None:
        return {"type": "image", "source": {"type": "base64", "media_type": inline[0], "data": inline[1]}}
    return {"type": "image", "source": {"type": "url", "url": url}} if url else None


def _document(document: Document) -> Json | None:
    source: Json
    inline = (document.media_type, document.data) if document.data else data_url(document.url or "")
    if document.text and not document.text.isspace():
        source = {"type": "text", "media_type": "text/plain", "data": document.text}
    elif inline is not None and inline[0] == "application/pdf":
        source = {"type": "base64", "media_type": "application/pdf", "data": inline[1]}
    elif url := web_url(document.url):
        source = {"type": "url", "url": url}
    else:
        return None
    return {"type": "document", "source": source, **({"title": document.title} if document.title else {})}
