"""Tokens of texts, messages, tools: what counts as what, and the estimators that need no vocabulary.

A `Counter` counts a text; everything else here says which texts of a message a model reads and sums
them. Images count by their pixels, documents by their pages, never by the bytes of their base64.
Nothing is added per message: what a provider puts around one is part of the intercept that a
session's reports calibrate.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
from msgspec import Raw, Struct

from compactd.core.media import PAGE_TOKENS, image_tokens, page_count, text_of
from compactd.core.script import estimate, slices
from compactd.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)

FAMILY_FACTORS = {"openai": 1.0, "claude": 1.2, "gemini": 1.15}
"""Tokens of a family's own tokenizer for each o200k token (research of 2026-11: Claude 2's vocabulary gave
1.07 on Python, 1.15 on traces, 1.27 on Chinese; Continue multiplies by 1.23 for Claude, 1.18 for Gemini)."""

OTHER_FACTOR = 1.1
"""The same for every family that `FAMILY_FACTORS` does not name."""

BLOB_RUN_BYTES = 256
"""A run without white space or quotes of at least this many bytes of base64's alphabet is a blob, no text."""

BLOB_TOKENS = 1600
"""Most that one blob counts: what the largest image does."""


class Count(Struct, frozen=True):
    """A number of tokens, and whether the model's own tokenizer gave it."""

    tokens: int
    exact: bool


class Counter(Protocol):
    """Counts the tokens of a text. The same text always gives the same number; safe in any thread."""

    @property
    def name(self) -> str:
        """The method, as `tokens/count` and the journal show it."""
        ...

    @property
    def exact(self) -> bool:
        """True where this is the tokenizer of the model that is counted for."""
        ...

    def count(self, text: str) -> int:
        """Tokens of `text`, 0 for an empty one. O(text), in slices that hold the interpreter < 5 ms each."""
        ...


class Chars4(Struct, frozen=True):
    """Code points ÷ 4, rounded up: the heuristic of the specs (opal, go-agent, klaude-code, evmts)."""

    name: str = "chars4"
    exact: bool = False

    def count(self, text: str) -> int:
        """Tokens of `text`. O(1)."""
        return (len(text) + 3) // 4


class Chars4Utf16(Struct, frozen=True):
    """⌊UTF-16 units ÷ 4 + ½⌋: what JavaScript's `Math.round(text.length / 4)` gives (opencode's estimate)."""

    name: str = "chars4_utf16"
    exact: bool = False

    def count(self, text: str) -> int:
        """Tokens of `text`. O(text), O(1) where it is ASCII."""
        units = len(text)
        if not text.isascii():
            units = sum(len(part.encode("utf-16-le", "surrogatepass")) for part in slices(text)) // 2
        return (units + 2) // 4


class ScriptAware(Struct, frozen=True):
    """What o200k would count, told from the kinds of characters, × the factor of the model's family."""

    factor: float = 1.0
    name: str = "script_aware"
    exact: bool = False

    def count(self, text: str) -> int:
        """Tokens of `text`, at least 1 if there is any. O(bytes), 10 to 25 ns each."""
        return max(1, round(estimate(text) * self.factor)) if text else 0


def family_factor(family: str | None) -> float:
    """Tokens of this tokenizer family for each o200k token. The encodings of OpenAI count as `openai`."""
    if family in ("o200k_base", "cl100k_base"):
        return 1.0
    return FAMILY_FACTORS.get(family or "", OTHER_FACTOR)


def message_tokens(message: Message, counter: Counter) -> int:
    """Tokens that the blocks of `message` take in a request; 0 for none. O(message)."""
    return sum(block_tokens(block, counter) for block in message.content)


def block_tokens(block: Block, counter: Counter) -> int:
    """Tokens of one block.

    A call is its name + its arguments as compact JSON. A result is its text, or its blocks. Signatures
    count nothing: no model reads them.
    """
    match block:
        case Text(text=text):
            return counter.count(text)
        case Thinking(text=text, redacted=redacted):
            return counter.count(text) + (blob_tokens(redacted.encode()) if redacted else 0)
        case ToolCall(name=name, arguments=arguments):
            return counter.count(name + compact_arguments(arguments))
        case ToolResult(content=content):
            if isinstance(content, str):
                return counter.count(content)
            return sum(block_tokens(inner, counter) for inner in content)
        case Image():
            return image_tokens(block)
        case Document():
            return _document_tokens(block, counter)
        case Opaque(raw=raw) | Unknown(raw=raw):
            return blob_tokens(bytes(raw))


def system_tokens(system_prompt: str | None, counter: Counter) -> int:
    """Tokens of a system prompt; 0 where there is none. O(text)."""
    return counter.count(system_prompt) if system_prompt else 0


def tool_tokens(tool: Tool, counter: Counter) -> int:
    """Tokens of one offered tool: its name, description and input schema as compact JSON. O(schema)."""
    head = {"name": tool.name, "description": tool.description or ""}
    written = msgspec.json.encode(head).decode("utf-8", "replace")
    return counter.count(f'{written[:-1]},"input_schema":{compact_json(tool.input_schema)}}}')


def compact_json(raw: Raw) -> str:
    """`raw` without white space and escapes that need not be, so that neither changes a count.

    What is no JSON comes back as the text it is.
    """
    try:
        return msgspec.json.encode(msgspec.json.decode(raw)).decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return bytes(raw).decode("utf-8", "replace")


def compact_arguments(arguments: Raw) -> str:
    """A call's arguments as compact JSON; OpenAI's string counts as the JSON inside it, if it parses."""
    try:
        value = msgspec.json.decode(arguments)
        if isinstance(value, str):
            return compact_json(Raw(value.encode("utf-8", "replace")))
        return msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return bytes(arguments).decode("utf-8", "replace")


def blob_tokens(raw: bytes) -> int:
    """An estimate of what nobody here can read: bytes ÷ 4, a run of base64 at most `BLOB_TOKENS`. O(raw)."""
    total = 0
    start = 0
    while start < len(raw):
        end = raw.find(b'"', start)
        if end < 0:
            end = len(raw)
        size = end - start
        tokens = (size + 4) // 4
        total += min(tokens, BLOB_TOKENS) if size >= BLOB_RUN_BYTES and _is_blob(raw, start) else tokens
        start = end + 1
    return total


def _is_blob(raw: bytes, start: int) -> bool:
    """True if the first bytes from `start` are all of base64's alphabet."""
    return not raw[start : start + BLOB_RUN_BYTES].translate(None, _BASE64)


_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"


def _document_tokens(document: Document, counter: Counter) -> int:
    """Its text where there is one, else its pages."""
    title = counter.count(document.title) if document.title else 0
    text = text_of(document)
    if text is not None:
        return title + counter.count(text)
    return title + page_count(document) * PAGE_TOKENS
