"""What the provider shapes share when a request goes out: ids, names, schemas, pictures, unknown blocks."""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Iterable, Mapping
from contextlib import suppress
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from compactd.core.pairs import is_blank
from compactd.formats.parts import fields, first_byte
from compactd.formats.tools import NO_PARAMETERS
from compactd.messages import Block, Document, Image, Opaque, Text, Unknown

# OpenAI's and Anthropic's vision guides name the same four (seen 2026-11).
_IMAGE_TYPES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))

_NOT_SAFE = re.compile(r"[^a-zA-Z0-9_-]")

encode = msgspec.json.Encoder().encode


class Rendered(Struct, frozen=True, kw_only=True):
    """A request in a provider's shape."""

    system: str | None
    """Where the shape keeps the system prompt apart."""
    messages: list[Raw]
    tools: list[Raw] | None
    """None where there are none."""


class SafeNames:
    """Names and ids as a provider accepts them: of characters it knows, up to a length; one for one.

    A name that is fine stays as it is. Another gets its bad characters replaced and a checksum of the whole,
    so that the same name always becomes the same. O(length) each.
    """

    def __init__(self, longest: int, known: Iterable[str] = (), any_character: bool = False) -> None:
        """`known` names that are fine are never given to another; `any_character`: only the length counts."""
        self._longest = longest
        self._any_character = any_character
        self._safe: dict[str, str] = {name: name for name in known if self._is_safe(name)}
        self._used = set(self._safe)

    def of(self, name: str) -> str:
        """The accepted form of `name`."""
        safe = self._safe.get(name)
        if safe is None:
            safe = name if self._is_safe(name) and name not in self._used else self._made(name)
            self._safe[name] = safe
            self._used.add(safe)
        return safe

    def _is_safe(self, name: str) -> bool:
        return 0 < len(name) <= self._longest and (self._any_character or _NOT_SAFE.search(name) is None)

    def _made(self, name: str) -> str:
        seed = name.encode("utf-8", "replace")
        while True:
            mark = f"_{crc32(seed):08x}"
            safe = _NOT_SAFE.sub("_", name[: self._longest - len(mark)]) + mark
            if safe not in self._used:
                return safe
            seed += b"+"


def object_schema(schema: Raw) -> Raw:
    """`schema` with the `type` and `properties` that providers demand of a tool's parameters.

    OpenAI: "schema must be a JSON Schema of 'type: "object"'" and "object schema missing properties";
    Anthropic: "input_schema.type: Field required". A schema that has both is unchanged, byte for byte.
    """
    try:
        given = msgspec.json.decode(schema, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return NO_PARAMETERS
    if given.get("type") == Raw(b'"object"') and "properties" in given:
        return schema
    return Raw(encode({**given, "type": "object", "properties": given.get("properties", Raw(b"{}"))}))


def arguments_text(arguments: Raw) -> str:
    """A call's arguments as the JSON text they are; OpenAI's string is that text already."""
    first = first_byte(arguments)
    if first == b'"':
        return msgspec.json.decode(arguments, type=str)
    text = bytes(arguments).decode()
    return "{}" if text in ("", "null") else text


def arguments_object(arguments: Raw) -> Raw:
    """A call's arguments as a JSON object, byte for byte where they are one; else `{"_raw": text}`."""
    text = arguments_text(arguments).strip()
    if not text:
        return Raw(b"{}")
    if text[0] == "{":
        try:
            msgspec.json.decode(text, type=dict[str, Raw])
        except (msgspec.DecodeError, RecursionError):
            pass
        else:
            return Raw(text.encode())
    return Raw(encode({"_raw": text}))


def text_of(block: Block) -> str:
    """What stands for `block` where a shape takes only text; empty where nothing does."""
    match block:
        case Text():
            return "" if is_blank(block) else block.text
        case Image():
            url = web_url(block.url)
            return f"[image: {url}]" if url else f"[image, {block.media_type}]"
        case Document():
            return _document_text(block)
        case Unknown():
            return bytes(block.raw).decode()
        case _:
            return ""


def _document_text(document: Document) -> str:
    text = document.text or ""
    if not text and document.data and document.media_type.startswith("text/"):
        with suppress(ValueError):
            text = a2b_base64(document.data).decode()
    if text and not text.isspace():
        return text
    return f"[document: {document.title or web_url(document.url) or document.media_type}]"


def own_block(block: Opaque | Unknown, provider: str, known: Mapping[str, tuple[str, ...]]) -> Raw | None:
    """`block` as JSON that `provider` takes; None where it would not know it.

    `known`: the provider's types that may stand here, and the fields each cannot be without: another
    program's block may have the same type.
    """
    if isinstance(block, Opaque):
        return block.raw if block.provider == provider and first_byte(block.raw) == b"{" else None
    if block.type not in known:
        return None
    given = fields(block.raw, "$", "a block")
    return block.raw if all(name in given for name in known[block.type]) else None


def picture(image: Image) -> tuple[str, str] | None:
    """(media type, base64) of an image that comes with its data, where providers take its type."""
    inline = (image.media_type, image.data) if image.data else data_url(image.url or "")
    return inline if inline is not None and inline[0] in _IMAGE_TYPES else None


def web_url(url: str | None) -> str | None:
    """`url` where a provider can fetch it."""
    return url if url and url.startswith(("http://", "https://")) else None


def data_url(url: str) -> tuple[str, str] | None:
    """(media type, base64) of a `data:` URL in base64; None for any other."""
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return None
    return head[5:-7].partition(";")[0] or "application/octet-stream", data
