"""Measure images and documents from their first bytes, and count their tokens.

`image_rules.py` has each provider's rule for how many tokens an image of a given size takes.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64

from compactd.core.tokens.image_rules import (
    ANTHROPIC,
    PictureRule,
    max_image_tokens,
    page_tokens,
    picture_tokens,
)
from compactd.protocol.messages import Document, Image

PAGE_BYTES = 50_000
"""The assumed size in bytes of one page of a PDF. It is used if the number of pages is unknown."""

MAX_PAGES = 100
"""The maximum number of pages that is assumed: Anthropic's limit for one request ("PDF support", seen
2026-11)."""

HEAD_BYTES = 4096
"""How many bytes are enough to find the size of a PNG, a GIF, a WebP and most JPEGs."""

JPEG_BYTES = 512 * 1024
"""How many bytes of a JPEG are searched for its width and height. Colour profiles and previews can precede
them."""


def image_tokens(image: Image, rule: PictureRule = ANTHROPIC) -> int:
    """Return the tokens of an image, at least 1, computed from its size in pixels. If the size is unknown,
    return the rule's maximum."""
    size: tuple[int, int] | None = None
    if image.width is not None and image.height is not None:
        size = (image.width, image.height)
    elif image.data is not None:
        size = image_size(image.data)
    elif image.url is not None and image.url.startswith("data:"):
        size = image_size(image.url)
    if size is None or min(size) <= 0:
        return max_image_tokens(rule)
    return picture_tokens(*size, rule)


def document_pages_tokens(document: Document, rule: PictureRule = ANTHROPIC) -> int:
    """Return the tokens of all pages of a document whose text cannot be read."""
    return page_count(document) * page_tokens(rule)


def image_size(data: str) -> tuple[int, int] | None:
    """Return (width, height) in pixels of a PNG, GIF, WebP or JPEG in base64; None if the beginning of the
    file does not say them."""
    head = base64_head(data, HEAD_BYTES)
    if head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) >= 24:
        return _big(head, 16, 4), _big(head, 20, 4)
    if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10:
        return _little(head, 6, 2), _little(head, 8, 2)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP" and len(head) >= 30:
        return _webp_size(head)
    if head[:2] == b"\xff\xd8":
        return _jpeg_size(head) or _jpeg_size(base64_head(data, JPEG_BYTES))
    return None


def base64_head(data: str, size_bytes: int) -> bytes:
    """Decode the first bytes of `data` and return at most `size_bytes` of them. `data` is base64, possibly
    a data URL, possibly broken into lines. Empty if it is not base64."""
    start = data.find(",") + 1 if data[:5] == "data:" else 0
    letters = data[start : start + size_bytes * 4 // 3 + size_bytes // 16 + 8]
    letters = "".join(letters.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return a2b_base64(letters[: len(letters) // 4 * 4].encode("ascii", "replace"))[:size_bytes]
    except Base64Error:
        return b""


def page_count(document: Document) -> int:
    """Return the number of pages of a document: the number given, otherwise an estimate from its size (1
    to `MAX_PAGES`)."""
    if document.pages is not None:
        return max(0, document.pages)
    size_bytes = len(document.data or "") * 3 // 4
    return max(1, min(MAX_PAGES, size_bytes // PAGE_BYTES))


def document_text(document: Document) -> str | None:
    """Return the text of a document that is given as text, or as a text file in base64; None for any other
    file."""
    if document.text is not None:
        return document.text
    if document.data is not None and document.media_type.startswith("text/"):
        return base64_head(document.data, len(document.data)).decode("utf-8", "replace")
    return None


def _big(data: bytes, start: int, length: int) -> int:
    return int.from_bytes(data[start : start + length], "big")


def _little(data: bytes, start: int, length: int) -> int:
    return int.from_bytes(data[start : start + length], "little")


def _webp_size(head: bytes) -> tuple[int, int] | None:
    """Return (width, height) in pixels from the beginning of a WebP file, which has one of three forms
    (RFC 9649, section 2.5 to 2.7). None for any other form."""
    match head[12:16]:
        case b"VP8 ":
            return _little(head, 26, 2) & 0x3FFF, _little(head, 28, 2) & 0x3FFF
        case b"VP8L":
            bits = _little(head, 21, 4)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return _little(head, 24, 3) + 1, _little(head, 27, 3) + 1
    return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Return (width, height) in pixels of a JPEG. Its segments are walked up to the start of frame (ITU
    T.81, B.2.2); None if `data` ends before that."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _big(data, at + 7, 2), _big(data, at + 5, 2)
        else:
            at += 2 + _big(data, at + 2, 2)
    return None
