"""What the provider shapes share when a request goes out: ids, names, schemas, pictures, unknown blocks."""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.tool_pairs import is_blank
from compactd.formats.messages.parts import fields, first_byte, string
from compactd.formats.messages.tools import NO_PARAMETERS
from compactd.protocol.messages import Block, Document, Image, Message, Opaque, Text, Unknown

# OpenAI's and Anthropic's vision guides name the same four (seen 2026-11).
_IMAGE_TYPES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))

_NOT_SAFE = re.compile(r"[^a-zA-Z0-9_-]")
_DOTTED = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]*")

CONTINUES = "(conversation continues)"
"""The user message that is written where a provider wants one and the view has none."""

ERROR_WITHOUT_OUTPUT = "[error without output]"
"""What a failed tool said where it said nothing."""

Json = dict[str, object]

encode = msgspec.json.Encoder().encode


class Rendered(Struct, frozen=True, kw_only=True):
    """A request in a provider's shape."""

    system: str | None
    """Where the shape keeps the system prompt apart."""
    messages: list[Raw]
    tools: list[Raw] | None
    """None where there are none."""
    names: dict[str, str] = {}
    """What the model calls a tool whose own name its provider refuses: that name → the tool's own."""


class SafeNames:
    """Names and ids as a provider accepts them: of characters it knows, up to a length; one for one.

    A name that is fine stays as it is. Another gets its bad characters replaced and a checksum of the whole,
    so that the same name always becomes the same. O(length) each.
    """

    def __init__(
        self, longest: int, known: Iterable[str] = (), *, any_character: bool = False, dotted: bool = False
    ) -> None:
        """`known` names that are fine are never given to another; `any_character`: only the length counts;
        `dotted`: dots are fine too, and the first character is a letter or `_`."""
        self._longest = longest
        self._any_character = any_character
        self._dotted = dotted
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

    def made(self) -> dict[str, str]:
        """The names that were made, each with the one that it stands for."""
        return {safe: name for name, safe in self._safe.items() if safe != name}

    def _is_safe(self, name: str) -> bool:
        if not 0 < len(name) <= self._longest:
            return False
        if self._dotted:
            return _DOTTED.fullmatch(name) is not None
        return self._any_character or _NOT_SAFE.search(name) is None

    def _made(self, name: str) -> str:
        seed = name.encode("utf-8", "replace")
        while True:
            mark = f"_{crc32(seed):08x}"
            start = "" if not self._dotted or _DOTTED.match(name) else "_"
            safe = start + _NOT_SAFE.sub("_", name[: self._longest - len(mark) - len(start)]) + mark
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
            inline = data_url(block.url or "")
            return f"[image: {url}]" if url else f"[image, {inline[0] if inline else block.media_type}]"
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
    program's block may have the same type, and a client may call anything opaque.
    """
    if isinstance(block, Opaque):
        if block.provider != provider or first_byte(block.raw) != b"{":
            return None
        given = fields(block.raw, "$", "a block")
        tag = string_field(given, "type")
    else:
        tag = block.type
        given = fields(block.raw, "$", "a block") if tag in known else {}
    if tag not in known:
        return None
    return block.raw if all(name in given for name in known[tag]) else None


def string_field(given: Mapping[str, Raw], name: str) -> str:
    """The string that an object has under `name`; empty where it has none."""
    raw = given.get(name, Raw(b"0"))
    return string(raw, f"$.{name}") if first_byte(raw) == b'"' else ""


def leading_system(messages: Sequence[Message]) -> list[str]:
    """The texts of the system messages that come before anything else: they join the system prompt."""
    texts: list[str] = []
    for message in messages:
        if message.role != "system" or not all(isinstance(block, Text) for block in message.content):
            break
        texts.append("\n".join(text_of(block) for block in message.content))
    return texts


def joined_prompts(system: str | None, leading: Iterable[str]) -> str | None:
    """System prompt and leading system messages as one text; None where there is none."""
    prompts = [prompt for prompt in (system or "", *leading) if prompt and not prompt.isspace()]
    return "\n\n".join(prompts) or None


def from_result(call_id: str) -> str:
    """The text before what a tool result held and its shape has no place for."""
    return f"[from the result of tool call {call_id}]"


def system_message_text(texts: Iterable[str]) -> str:
    """A system message in the middle, as a user's text (docs/dev/behaviour.md, "Time travel")."""
    return "\n".join(("<system-message>", *texts, "</system-message>"))


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
