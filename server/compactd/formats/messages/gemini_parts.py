"""Convert blocks to parts of Gemini's contents. A block without an equivalent becomes text."""

from __future__ import annotations

import re

from msgspec import Raw

from compactd.core.text.lazy_patterns import LazyPattern
from compactd.formats.messages.json_parts import fields, first_byte, json_object
from compactd.formats.messages.provenance import GEMINI
from compactd.formats.messages.rendering import (
    ERROR_WITHOUT_OUTPUT,
    Json,
    block_text,
    data_url,
    opaque_fields,
    string_field,
    system_message_text,
)
from compactd.protocol.messages import Block, Document, Image, Opaque, ToolResult

# Gemini's guides to images, documents, audio and video (seen 2026-11).
_MEDIA = LazyPattern(
    r"image/(?:png|jpeg|webp|heic|heif)|application/pdf"
    r"|audio/(?:wav|mp3|mpeg|aiff|aac|ogg|flac)"
    r"|video/(?:mp4|mpeg|quicktime|mov|avi|x-flv|mpg|webm|wmv|3gpp)"
)
_IN_RESULT = ("image/png", "image/jpeg", "image/webp", "application/pdf")
_BASE64 = LazyPattern(r"[A-Za-z0-9+/_-]+={0,2}")
_CODE = {"executableCode": "code", "codeExecutionResult": "outcome"}
"""Gemini's own parts that are sent back unchanged, and the field that each must have."""


def response_of(text: str, is_error: bool) -> Json | Raw:
    """Return the text of a tool result as the object that Gemini requires: `{"output": text}`, or
    `{"error": text}` for a failed call. A text that is already a JSON object stays unchanged, if it has the
    field `error` exactly when the call failed.
    """
    given = json_object(text)
    if given is not None and ("error" in given) == is_error:
        return Raw(text.encode())
    if is_error:
        return {"error": text if text and not text.isspace() else ERROR_WITHOUT_OUTPUT}
    return {"output": text}


def signature_of(block: Opaque) -> str | None:
    """Return the thought signature in `block` if the block contains nothing else; otherwise None. The reader
    (`gemini.py`) puts such a block before the block to which the signature belongs.
    """
    given = opaque_fields(block, GEMINI)
    signature = string_field(given, "thoughtSignature")
    return signature if len(given) == 1 and is_signature(signature) else None


def is_signature(signature: str) -> bool:
    """Return whether Gemini can decode the text: it must be base64, in either alphabet."""
    return _BASE64.fullmatch(signature) is not None and len(signature.rstrip("=")) % 4 != 1


def gemini_part(block: Opaque) -> Raw | None:
    """Return the unchanged JSON of `block` if only Gemini has such a part: a signed thought, or code that
    Gemini ran. Return None for any other block.
    """
    given = opaque_fields(block, GEMINI)
    for name, wanted in _CODE.items():
        if name in given:
            inner = given[name]
            return block.raw if first_byte(inner) == b"{" and wanted in fields(inner, "$", name) else None
    is_thought = given.get("thought") == Raw(b"true") and first_byte(given.get("text", Raw(b"0"))) == b'"'
    return block.raw if is_thought and is_signature(string_field(given, "thoughtSignature")) else None


def user_parts(block: Block) -> list[Json | Raw]:
    """Return `block` as parts of a user's content: an image or file as such, otherwise its text. Empty for a
    tool result, and for a block that has no text form."""
    if isinstance(block, ToolResult):
        return []
    media = media_of(block)
    if media is not None:
        return [media]
    text = block_text(block)
    return [{"text": text}] if text else []


def media_of(block: Block) -> Json | None:
    """Return an image or file as a part; None if only text can represent it."""
    if not isinstance(block, Image | Document) or (isinstance(block, Document) and block.text):
        return None
    inline = (block.media_type, block.data) if block.data else data_url(block.url or "")
    if inline is not None:
        if _MEDIA.fullmatch(inline[0]) is None:
            return None
        return {"inlineData": {"mimeType": inline[0], "data": inline[1]}}
    if block.url and block.url.startswith(("https://", "http://", "gs://")):
        return {"fileData": {"mimeType": _type_of(block), "fileUri": block.url}}
    return None


# Endings of a URL's path that show the media type. The `media_type` of a block is often only the default.
_ENDINGS = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
    "gif": "image/gif",
    "pdf": "application/pdf",
}


def _type_of(block: Image | Document) -> str:
    path = re.split(r"[?#]", block.url or "", maxsplit=1)[0]
    return _ENDINGS.get(path.rpartition(".")[2].lower(), block.media_type)


def in_system_tags(parts: list[Json | Raw]) -> list[Json | Raw]:
    """Return the parts of a system message that is between other messages, for a user's content. Its texts
    become one text in `<system-message>` tags.
    """
    texts = [str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part]
    others = [part for part in parts if not (isinstance(part, dict) and "text" in part)]
    return [{"text": system_message_text(texts)}, *others] if texts else others


def may_be_in_result(part: Json | Raw) -> bool:
    """Return whether Gemini 3 accepts the part inside a `functionResponse` (guide, seen 2026-11)."""
    inline = part.get("inlineData") if isinstance(part, dict) else None
    return isinstance(inline, dict) and inline.get("mimeType") in _IN_RESULT
