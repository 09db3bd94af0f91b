"""Count the tokens of texts, messages and tools, with estimators that need no vocabulary.

A `Counter` counts a text. Everything else in this module decides which texts of a message a model reads, and
adds up their counts. Images count by their pixels and documents by their pages, never by the bytes of their
base64. Nothing is added per message: what a provider puts around messages is learned from the session's usage
reports (`core/history/calibration.py`). Tool calls are an exception: what the provider puts around each is
added if it is known (`Habits.call_tokens`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.core.tokens.estimate import estimate, slices
from compactd.core.tokens.image_rules import ANTHROPIC, PictureRule, is_late_claude, picture_rule
from compactd.core.tokens.media import document_pages_tokens, document_text, image_tokens
from compactd.protocol.messages import (
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

FAMILY_FACTORS = {"openai": 1.0, "claude": 1.13, "claude-4.7": 1.36, "gemini": 1.15}
"""Tokens of a model family's own tokenizer per token of o200k, a tokenizer of OpenAI. Claude: the factor that
best predicts the usage reports of seven recorded sessions of Sonnet 4 to Opus 4.6. Each session alone gives
1.00 to 1.20, in addition to `CALL_TOKENS` (docs/truth.md, 2026-11). Claude's vocabulary of 2023 gives 1.07 on
Python, 1.15 on traces, 1.27 on Chinese. From Opus 4.7 on, Claude has 1.0 to 1.35 times as many tokens
(Anthropic's documentation, "What's new in Claude Opus 4.7"). Gemini: Continue uses 1.18."""

CALL_TOKENS = {"claude": 85, "claude-4.7": 102}
"""Tokens that Claude's API puts around each tool call and its result, in addition to their texts. In seven
recorded sessions, the usage reports exceed the tokens of the texts by 50 to 105 per call, or by about 65 per
call and 8 per message (docs/truth.md, 2026-11)."""

FORGETS_THINKING = frozenset(("openai", "gemini"))
"""Model families whose thinking is not part of the next request. OpenAI's chat API does not take it back, and
its Responses API drops it from earlier turns. Gemini returns summaries of its thinking, which are not sent
("Reasoning" and "Thinking" in their documentation, seen 2026-11). Claude is not in this set: from Opus 4.5
and Sonnet 4.6 on, it keeps all thinking; older models keep the thinking of the running tool loop ("Extended
thinking"). In the recorded sessions with thinking, the thinking stays (docs/truth.md)."""

OTHER_CALL_TOKENS = 20
"""Tokens around each tool call and its result in families that are not in `CALL_TOKENS`: the middle of 15 to
25, which OpenAI's Harmony format (special tokens, recipient and channel) and the Hermes tags that Qwen uses
take (their documentation, seen 2026-11)."""

OTHER_FACTOR = 1.1
"""Tokens per token of o200k for families that are not in `FAMILY_FACTORS`."""

BLOB_RUN_BYTES = 256
"""A run of at least this many bytes from base64's alphabet, without white space or quotes, is binary data
and not text."""

BLOB_TOKENS = 1600
"""The maximum number of tokens for one run of binary data. The largest image counts as many."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Habits(Struct, frozen=True, kw_only=True):
    """How a model's provider counts blocks whose size is not just that of their text."""

    call_tokens: int = 0
    """Tokens around each tool call and its result."""
    keeps_thinking: bool = True
    """Whether the thinking of earlier answers is part of the next request."""
    pictures: PictureRule = ANTHROPIC
    """The rule that says how many tokens an image takes."""


class ProviderCounter(Struct, frozen=True, kw_only=True):
    """The base class of counters that know the habits of a model's provider."""

    habits: Habits = Habits()


class Counter(Protocol):
    """A counter of the tokens of a text. The same text always gives the same number. Thread-safe."""

    @property
    def name(self) -> str:
        """The name of the method, as in `tokens/count` and the journal."""
        ...

    @property
    def exact(self) -> bool:
        """Whether this is the tokenizer of the model that is counted for."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`; 0 if it is empty. O(text), in slices that hold the
        interpreter lock for less than 5 ms each."""
        ...


@runtime_checkable
class BatchCounter(Counter, Protocol):
    """A counter that counts many texts at once, which is faster than one `count` after another."""

    @property
    def habits(self) -> Habits:
        """How the model's provider counts blocks."""
        ...

    def count_each(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each of `texts`, as `count` does. It may use several cores."""
        ...


class Chars4(Struct, frozen=True):
    """A counter by code points ÷ 4, rounded up: the heuristic in the specifications of opal, go-agent,
    klaude-code and evmts."""

    name: str = "chars4"
    exact: bool = False

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`. O(1)."""
        return (len(text) + 3) // 4


class Chars4Utf16(Struct, frozen=True):
    """A counter by ⌊UTF-16 units ÷ 4 + ½⌋, which is `Math.round(text.length / 4)` in JavaScript
    (opencode's estimate)."""

    name: str = "chars4_utf16"
    exact: bool = False

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`. O(text); O(1) if it is ASCII."""
        units = len(text)
        if not text.isascii():
            units = sum(len(part.encode("utf-16-le", "surrogatepass")) for part in slices(text)) // 2
        return (units + 2) // 4


class ScriptAware(ProviderCounter, frozen=True):
    """A counter that estimates o200k's count from the kinds of characters and multiplies it by the factor
    of the model's family."""

    factor: float = 1.0
    """Tokens of the family per token of o200k."""
    name: str = "script_aware"
    """The name of the method. It contains the family, so that a change of model leads to a recount."""
    exact: bool = False

    def count(self, text: str) -> int:
        """Return the estimated tokens of `text`, at least 1 unless it is empty. O(bytes), 10 to 25 ns
        each."""
        return max(1, round(estimate(text) * self.factor)) if text else 0


def family_factor(family: str | None) -> float:
    """Return the tokens of this tokenizer family per token of o200k. OpenAI's encodings count as `openai`."""
    if family in ("o200k_base", "cl100k_base"):
        return 1.0
    return FAMILY_FACTORS.get(family or "", OTHER_FACTOR)


def script_aware(family: str | None, model: str | None = None) -> ScriptAware:
    """Return the estimator for a tokenizer family. `family` is the registry's name for it; None means
    unknown. The name `model` decides which of Claude's tokenizers applies, and what images cost."""
    if family == "claude" and is_late_claude(model):
        family = "claude-4.7"
    known = family if family in FAMILY_FACTORS else "other"
    habits = Habits(
        call_tokens=CALL_TOKENS.get(known, OTHER_CALL_TOKENS),
        keeps_thinking=known not in FORGETS_THINKING,
        pictures=picture_rule(model),
    )
    return ScriptAware(family_factor(family), f"script_aware:{known}", habits=habits)


def is_text_only(message: Message) -> bool:
    """Return whether a tokenizer alone determines the size of `message`: it has only text, thinking, tool
    calls, and tool results that contain nothing else."""
    return all(_is_text(block) for block in message.content)


def _is_text(block: Block) -> bool:
    if isinstance(block, ToolResult) and not isinstance(block.content, str):
        return all(_is_text(inner) for inner in block.content)
    return isinstance(block, Text | ToolCall | ToolResult | Thinking)


def message_tokens(message: Message, counter: Counter) -> int:
    """Return the tokens that the blocks of `message` take in a request; 0 if it has none. O(message)."""
    content = message.content
    if len(content) == 1:  # as in most messages
        return block_tokens(content[0], counter)
    return sum([block_tokens(block, counter) for block in content])


def messages_tokens(messages: Sequence[Message], counter: Counter) -> list[int]:
    """Return the tokens of each of `messages`. If `counter` is a `BatchCounter`, all their texts are counted
    together, which is faster. O(messages)."""
    if len(messages) < 2 or not isinstance(counter, BatchCounter):
        return [message_tokens(message, counter) for message in messages]
    asked = _TextCollector(habits=counter.habits, texts=[])
    around, ends = [], []
    for message in messages:
        around.append(message_tokens(message, asked))
        ends.append(len(asked.texts))
    counts = counter.count_each(asked.texts)
    starts = (0, *ends)
    return [own + sum(counts[a:b]) for own, a, b in zip(around, starts, ends, strict=False)]


class _TextCollector(ProviderCounter, frozen=True, kw_only=True):
    """A counter that records the texts to count and returns 0 for each. The real counts are added later."""

    texts: list[str]
    name: str = ""
    exact: bool = False

    def count(self, text: str) -> int:
        """Record `text` and return 0."""
        self.texts.append(text)
        return 0


def block_tokens(block: Block, counter: Counter) -> int:
    """Return the tokens of one block.

    Thinking counts as its text if the provider sends it again, otherwise 0. A call counts as its name and its
    arguments in compact JSON, plus what the provider puts around it if `counter` knows that. A result counts
    as its text or its blocks. Signatures count 0, because no model reads them.
    """
    match block:
        case Text(text=text):
            return counter.count(text)
        case Thinking(text=text, redacted=redacted):
            if isinstance(counter, ProviderCounter) and not counter.habits.keeps_thinking:
                return 0
            return counter.count(text) + (blob_tokens(redacted.encode()) if redacted else 0)
        case ToolCall(name=name, arguments=arguments):
            around = counter.habits.call_tokens if isinstance(counter, ProviderCounter) else 0
            return counter.count(name + compact_arguments(arguments)) + around
        case ToolResult(content=content):
            if isinstance(content, str):
                return counter.count(content)
            return sum(block_tokens(inner, counter) for inner in content)
        case Image():
            return image_tokens(block, _pictures(counter))
        case Document():
            return _document_tokens(block, counter)
        case Opaque():
            return _opaque_tokens(block, counter)
        case Unknown(type="compaction"):
            return _opaque_tokens(block, counter)
        case Unknown(raw=raw):
            return blob_tokens(bytes(raw))


def _opaque_tokens(block: Opaque | Unknown, counter: Counter) -> int:
    """Return the tokens of a block that only its provider understands. Of a provider's own compaction, the
    summary counts: the text that Anthropic shows, or an estimate of what OpenAI encrypted. Signatures and
    Anthropic's `encrypted_content`, which is only metadata, count 0."""
    encrypted = encrypted_reasoning(block) if isinstance(block, Opaque) else None
    if encrypted is not None:
        return encrypted_tokens(len(encrypted))
    try:
        item = _decode_compaction(block.raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return blob_tokens(bytes(block.raw))
    if item.type != "compaction":
        return blob_tokens(bytes(block.raw))
    if item.content is UNSET:
        return encrypted_tokens(len(item.encrypted_content or ""))
    return counter.count(item.content) if item.content else 0


class _Compaction(Struct, frozen=True):
    """A provider's own summary: Anthropic's block, which has `content`, or OpenAI's item, which has not."""

    type: str = ""
    content: str | UnsetType | None = UNSET
    encrypted_content: str | None = None


_decode_compaction = msgspec.json.Decoder(_Compaction).decode


class _Reasoning(Struct, frozen=True):
    """A reasoning item of OpenAI's Responses API."""

    type: str = ""
    encrypted_content: str | None = None


_decode_reasoning = msgspec.json.Decoder(_Reasoning).decode


def encrypted_reasoning(block: Opaque) -> str | None:
    """Return the encrypted text of a reasoning item of OpenAI's; None if the block is something else or
    not encrypted. O(block)."""
    try:
        item = _decode_reasoning(block.raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return item.encrypted_content if item.type == "reasoning" else None


def is_encrypted_reasoning(block: Opaque) -> bool:
    """Return whether the block is reasoning that only the provider can read. O(block)."""
    return encrypted_reasoning(block) is not None


def encrypted_tokens(characters: int) -> int:
    """Return the tokens of reasoning whose encrypted form has this many characters. The estimate is that of
    Codex CLI: the number of decoded bytes, minus 650 that are not text, divided by 4 (openai/codex,
    codex-rs/core/src/context_manager/history.rs, `estimate_reasoning_length`, read 2026-11)."""
    return (max(0, characters * 3 // 4 - 650) + 3) // 4


def system_tokens(system_prompt: str | None, counter: Counter) -> int:
    """Return the tokens of a system prompt; 0 if there is none. O(text)."""
    return counter.count(system_prompt) if system_prompt else 0


def tool_tokens(tool: Tool, counter: Counter) -> int:
    """Return the tokens of one offered tool: its name, description and input schema in compact JSON.
    O(schema)."""
    head = {"name": tool.name, "description": tool.description or ""}
    written = msgspec.json.encode(head).decode("utf-8", "replace")
    return counter.count(f'{written[:-1]},"input_schema":{compact_json(tool.input_schema)}}}')


def compact_json(raw: Raw) -> str:
    """Return JSON without optional white space and escapes, so that these do not change its token count.
    Invalid JSON is returned as it is, as text."""
    try:
        return _encode(_decode(raw)).decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return bytes(raw).decode("utf-8", "replace")


def compact_arguments(arguments: Raw) -> str:
    """Return the arguments of a call in compact JSON. OpenAI sends them as a JSON string. If this string
    contains JSON, the contained JSON is returned."""
    try:
        value = _decode(arguments)
        if isinstance(value, str):
            return compact_json(Raw(value.encode("utf-8", "replace")))
        return _encode(value).decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return bytes(arguments).decode("utf-8", "replace")


def blob_tokens(raw: bytes) -> int:
    """Return an estimate of the tokens of data that compactd cannot read: bytes ÷ 4, but at most
    `BLOB_TOKENS` per run of base64. O(raw)."""
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
    """Return whether the `BLOB_RUN_BYTES` bytes from `start` on are all from base64's alphabet."""
    return not raw[start : start + BLOB_RUN_BYTES].translate(None, _BASE64)


_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"


def _document_tokens(document: Document, counter: Counter) -> int:
    """Return the tokens of a document: its title, and its text or, if it has none, its pages."""
    title = counter.count(document.title) if document.title else 0
    text = document_text(document)
    if text is not None:
        return title + counter.count(text)
    return title + document_pages_tokens(document, _pictures(counter))


def _pictures(counter: Counter) -> PictureRule:
    """Return the image rule of a counter; Anthropic's if it has none."""
    return counter.habits.pictures if isinstance(counter, ProviderCounter) else ANTHROPIC
