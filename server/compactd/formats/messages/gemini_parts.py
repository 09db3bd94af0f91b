"""Our blocks as parts of Gemini's contents; a block that has no counterpart there becomes text."""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw

from compactd.formats.messages.parts import fields, first_byte
from compactd.formats.messages.provenance import GEMINI
from compactd.formats.messages.rendering import (
    ERROR_WITHOUT_OUTPUT,
    Json,
    data_url,
    string_field,
    system_message_text,
    text_of,
)
from compactd.protocol.messages import Block, Document, Image, Opaque, ToolResult

# Gemini's guides to images, documents, audio and video (seen 2026-11).
_MEDIA = re.compile(
    r"image/(?:png|jpeg|webp|heic|heif)|application/pdf"
    r"|audio/(?:wav|mp3|mpeg|aiff|aac|ogg|flac)"
    r"|video/(?:mp4|mpeg|quicktime|mov|avi|x-flv|mpg|webm|wmv|3gpp)"
)
_IN_RESULT = ("image/png", "image/jpeg", "image/webp", "application/pdf")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_CODE = {"executableCode": "code", "codeExecutionResult": "outcome"}
"""Parts of Gemini's own that go back as they came, and what each cannot be without."""


def response_of(text: str, is_error: bool) -> Json | Raw:
    """A result as the object that Gemini wants: itself where it is one, else as `output` or `error`."""
    given = _decoded(text)
    if given is not None and ("error" in given) == is_error:
        return Raw(text.encode())
    if is_error:
        return {"error": text if text and not text.isspace() else ERROR_WITHOUT_OUTPUT}
    return {"output": text}


def _decoded(text: str) -> dict[str, Raw] | None:
    if text.lstrip()[:1] != "{":
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return None


def signature_of(block: Opaque) -> str | None:
    """The signature of the part that follows, as our reader keeps it; None for any other block."""
    if block.provider != GEMINI or first_byte(block.raw) != b"{":
        return None
    given = fields(block.raw, "$", "a part")
    signature = string_field(given, "thoughtSignature")
    return signature if len(given) == 1 and is_signature(signature) else None


def is_signature(signature: str) -> bool:
    """True for text that Gemini can decode: it is base64, with either alphabet."""
    return _BASE64.fullmatch(signature) is not None and len(signature.rstrip("=")) % 4 != 1


def own_part(block: Opaque) -> Raw | None:
    """A part of Gemini's own, as it came: a signed thought, or code that it ran."""
    if block.provider != GEMINI or first_byte(block.raw) != b"{":
        return None
    given = fields(block.raw, "$", "a part")
    for name, wanted in _CODE.items():
        if name in given:
            inner = given[name]
            return block.raw if first_byte(inner) == b"{" and wanted in fields(inner, "$", name) else None
    is_thought = given.get("thought") == Raw(b"true") and first_byte(given.get("text", Raw(b"0"))) == b'"'
    return block.raw if is_thought and is_signature(string_field(given, "thoughtSignature")) else None


def user_parts(block: Block) -> list[Json | Raw]:
    """`block` in a user's content; none for a result, or where nothing stands for it."""
    if isinstance(block, ToolResult):
        return []
    media = media_of(block)
    if media is not None:
        return [media]
    text = text_of(block)
    return [{"text": text}] if text else []


def media_of(block: Block) -> Json | None:
    """A picture or file as a part; None where only text can stand for it."""
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


# Ends of paths whose type is plain; the block's own type is often only our default.
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
    """The parts of a system message in the middle, its texts as one text of the user's."""
    texts = [str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part]
    others = [part for part in parts if not (isinstance(part, dict) and "text" in part)]
    return [{"text": system_message_text(texts)}, *others] if texts else others


def stands_in_result(part: Json | Raw) -> bool:
    """True for what a Gemini 3 takes inside a `functionResponse` (guide, seen 2026-11)."""
    inline = part.get("inlineData") if isinstance(part, dict) else None
    return isinstance(inline, dict) and inline.get("mimeType") in _IN_RESULT
