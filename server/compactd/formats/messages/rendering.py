"""Helpers that all request formats share: safe ids and names, schemas, images, unknown blocks."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.tool_pairs import is_blank
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.formats.messages.json_parts import fields, first_byte, json_object, string
from compactd.formats.messages.tools import NO_PARAMETERS
from compactd.protocol.messages import Block, Document, Image, Message, Opaque, Text, Unknown

# OpenAI's and Anthropic's vision guides name the same four types (seen 2026-11).
_IMAGE_TYPES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))

_NOT_SAFE = LazyPattern(r"[^a-zA-Z0-9_-]")
_DOTTED = LazyPattern(r"[a-zA-Z_][a-zA-Z0-9_.-]*")

CONTINUES = "(conversation continues)"
"""The text of the user message that is added where a provider requires one and the view has none."""

ERROR_WITHOUT_OUTPUT = "[error without output]"
"""The text for a failed tool that returned nothing."""

Json = dict[str, object]

encode = msgspec.json.Encoder().encode


class Rendered(Struct, frozen=True, kw_only=True):
    """A request in a provider's format."""

    system: str | None
    """The system prompt, if the format keeps it separate."""
    messages: list[Raw]
    tools: list[Raw] | None
    """The tools that are offered to the model; None if there are none."""
    names: dict[str, str] = {}
    """The name sent to the model -> the tool's own name, for tools whose name the provider would reject."""
    headers: dict[str, str] = {}
    """HTTP headers that the provider requires for this request."""


class SafeNames:
    """A converter of names and ids to unique ones that a provider accepts, by their characters and length.

    A valid name stays unchanged. In any other, bad characters are replaced and a checksum is added, so that
    the same name always gives the same result. O(length) each.
    """

    def __init__(
        self, longest: int, known: Iterable[str] = (), *, any_character: bool = False, dotted: bool = False
    ) -> None:
        """Create a converter for names of at most `longest` characters.

        `known`: names that no other name may be converted to; those that are invalid are ignored.
        `any_character`: only the length is limited. `dotted`: dots are allowed, and the first character is a
        letter or `_`.
        """
        self._longest = longest
        self._any_character = any_character
        self._dotted = dotted
        self._safe: dict[str, str] = {name: name for name in known if self._is_safe(name)}
        self._used = set(self._safe)

    def of(self, name: str) -> str:
        """Return the accepted form of `name`."""
        safe = self._safe.get(name)
        if safe is None:
            safe = name if self._is_safe(name) and name not in self._used else self._make(name)
            self._safe[name] = safe
            self._used.add(safe)
        return safe

    def made_names(self) -> dict[str, str]:
        """Return accepted name -> original name, for all names that were changed so far."""
        return {safe: name for name, safe in self._safe.items() if safe != name}

    def _is_safe(self, name: str) -> bool:
        if not 0 < len(name) <= self._longest:
            return False
        if self._dotted:
            return _DOTTED.fullmatch(name) is not None
        return self._any_character or _NOT_SAFE.search(name) is None

    def _make(self, name: str) -> str:
        seed = name.encode("utf-8", "replace")
        while True:
            mark = f"_{crc32(seed):08x}"
            start = "" if not self._dotted or _DOTTED.match(name) else "_"
            safe = start + _NOT_SAFE.sub("_", name[: self._longest - len(mark) - len(start)]) + mark
            if safe not in self._used:
                return safe
            seed += b"+"


def object_schema(schema: Raw) -> Raw:
    """Return `schema` with the `type` and `properties` that providers require of a tool's parameters.

    OpenAI: "schema must be a JSON Schema of 'type: "object"'" and "object schema missing properties";
    Anthropic: "input_schema.type: Field required". A schema that has both is unchanged.
    """
    given = json_object(schema)
    if given is None:
        return NO_PARAMETERS
    if given.get("type") == Raw(b'"object"') and "properties" in given:
        return schema
    return Raw(encode({**given, "type": "object", "properties": given.get("properties", Raw(b"{}"))}))


def arguments_text(arguments: Raw) -> str:
    """Return a call's arguments as JSON text. A string, as in OpenAI's format, already contains that text."""
    if first_byte(arguments) == b'"':
        return string(arguments, "$.arguments")
    text = bytes(arguments).decode()
    return "{}" if text in ("", "null") else text


def arguments_object(arguments: Raw) -> Raw:
    """Return a call's arguments as a JSON object, unchanged if they are one; otherwise `{"_raw": text}`."""
    text = arguments_text(arguments).strip()
    if not text:
        return Raw(b"{}")
    if json_object(text) is not None:
        return Raw(text.encode())
    return Raw(encode({"_raw": text}))


def block_text(block: Block) -> str:
    """Return the text form of `block`; empty if it has none."""
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


def opaque_fields(block: Opaque, provider: str) -> dict[str, Raw]:
    """Return the fields of `block` if it is an object of `provider`; otherwise an empty dict."""
    is_own = block.provider == provider and first_byte(block.raw) == b"{"
    return fields(block.raw, "$", "a block") if is_own else {}


def provider_block(
    block: Opaque | Unknown, provider: str, known: Mapping[str, tuple[str, ...]]
) -> Raw | None:
    """Return the unchanged JSON of `block` if `provider` accepts it; otherwise None.

    `known`: the provider's block types that are allowed at this place, and the required fields of each. The
    fields are checked because another program's block may have the same type, and a client may mark anything
    as opaque.
    """
    if isinstance(block, Opaque):
        given = opaque_fields(block, provider)
        tag = string_field(given, "type")
    else:
        tag = block.type
        given = fields(block.raw, "$", "a block") if tag in known else {}
    if tag not in known:
        return None
    return block.raw if all(name in given for name in known[tag]) else None


def string_field(given: Mapping[str, Raw], name: str) -> str:
    """Return the string `given[name]`; empty if it is missing or something else."""
    raw = given.get(name, Raw(b"0"))
    return string(raw, f"$.{name}") if first_byte(raw) == b'"' else ""


def leading_system(messages: Sequence[Message]) -> list[str]:
    """Return the texts of the system messages before any other message. They are added to the
    system prompt.
    """
    texts: list[str] = []
    for message in messages:
        if message.role != "system" or not all(isinstance(block, Text) for block in message.content):
            break
        texts.append("\n".join(block_text(block) for block in message.content))
    return texts


def joined_prompts(system: str | None, leading: Iterable[str]) -> str | None:
    """Return the system prompt and leading system messages as one text; None if there is none."""
    prompts = [prompt for prompt in (system or "", *leading) if prompt and not prompt.isspace()]
    return "\n\n".join(prompts) or None


def from_result(call_id: str) -> str:
    """Return the line that introduces images and files of a tool result, for formats that cannot have them
    inside the result.
    """
    return f"[from the result of tool call {call_id}]"


def system_message_text(texts: Iterable[str]) -> str:
    """Return the texts of a system message that is between other messages as one text for a user message
    (docs/dev/behaviour.md, "Time travel").
    """
    return "\n".join(("<system-message>", *texts, "</system-message>"))


def picture(image: Image) -> tuple[str, str] | None:
    """Return (media type, base64) of an image that contains its data; None if it does not, or if providers do
    not accept its type.
    """
    inline = (image.media_type, image.data) if image.data else data_url(image.url or "")
    return inline if inline is not None and inline[0] in _IMAGE_TYPES else None


def web_url(url: str | None) -> str | None:
    """Return `url` if a provider can fetch it; otherwise None."""
    return url if url and url.startswith(("http://", "https://")) else None


def image_of_url(url: str) -> Image:
    """Return the image at `url`. The image contains its data if `url` is a `data:` URL in base64."""
    inline = data_url(url)
    return Image(url=url) if inline is None else Image(media_type=inline[0], data=inline[1])


def data_url(url: str) -> tuple[str, str] | None:
    """Return (media type, base64) of a `data:` URL in base64; None for any other."""
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return None
    return head[5:-7].partition(";")[0] or "application/octet-stream", data
