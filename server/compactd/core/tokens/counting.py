"""Tokens of texts, messages, tools: what counts as what, and the estimators that need no vocabulary.

A `Counter` counts a text; everything else here says which texts of a message a model reads and sums
them. Images count by their pixels, documents by their pages, never by the bytes of their base64.
Nothing is added per message: what a provider puts around one is part of the slope and intercept that a
session's reports calibrate. A call of a tool is the exception, where its size is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec
from msgspec import Raw, Struct

from compactd.core.tokens.estimate import estimate, slices
from compactd.core.tokens.image_rules import ANTHROPIC, PictureRule, is_late_claude, picture_rule
from compactd.core.tokens.media import document_pages_tokens, image_tokens, text_of
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
"""Tokens of a family's own tokenizer for each o200k token. Claude: what predicts seven recorded sessions of
Sonnet 4 to Opus 4.6 best; their slopes are 1.00 to 1.20 beside `CALL_TOKENS` (docs/truth.md, 2026-11); its
vocabulary of 2023 gave 1.07 on Python, 1.15 on traces, 1.27 on Chinese. From Opus 4.7 on it makes 1.0 to 1.35
times as many (Anthropic's documentation, "What's new in Claude Opus 4.7"). Gemini: Continue takes 1.18."""

CALL_TOKENS = {"claude": 85, "claude-4.7": 102}
"""Tokens that stand around a call of a tool and its result, beside what both say. Claude's: what the reports
of those sessions leave for each call, 50 to 105, about 65 beside 8 a message (docs/truth.md, 2026-11)."""

FORGETS_THINKING = frozenset(("openai", "gemini"))
"""Families whose thinking no next request holds: OpenAI's chat API takes none back and the other drops it
from earlier turns; Gemini's are summaries, which are not sent (their documentation, "Reasoning" and
"Thinking", seen 2026-11). Claude keeps it from Opus 4.5 and Sonnet 4.6 on, until then that of the running
tool loop ("Extended thinking"): in the recorded sessions that have any it stays (docs/truth.md)."""

OTHER_CALL_TOKENS = 20
"""The same of the others: special tokens, recipient and channel of a call and of its result in OpenAI's
Harmony format, and Hermes' tags that Qwen uses, are 15 to 25 (their documentation, seen 2026-11)."""

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


class Habits(Struct, frozen=True, kw_only=True):
    """What a model's provider makes of blocks that are more, or less, than their text."""

    call_tokens: int = 0
    """Around each call of a tool and its result."""
    keeps_thinking: bool = True
    """Thinking of earlier answers is part of the next request."""
    pictures: PictureRule = ANTHROPIC


class Provided(Struct, frozen=True, kw_only=True):
    """A counter for the models of one provider."""

    habits: Habits = Habits()


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


@runtime_checkable
class Batching(Counter, Protocol):
    """Counts many texts in less time than one after the other."""

    @property
    def habits(self) -> Habits:
        """What its model's provider makes of blocks."""
        ...

    def count_each(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each of `texts`, as `count` gives them. May use several cores."""
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


class ScriptAware(Provided, frozen=True):
    """What o200k would count, told from the kinds of characters, × the factor of the model's family."""

    factor: float = 1.0
    name: str = "script_aware"
    """Another one for another family, so that a change of model counts again."""
    exact: bool = False

    def count(self, text: str) -> int:
        """Tokens of `text`, at least 1 if there is any. O(bytes), 10 to 25 ns each."""
        return max(1, round(estimate(text) * self.factor)) if text else 0


def family_factor(family: str | None) -> float:
    """Tokens of this tokenizer family for each o200k token. The encodings of OpenAI count as `openai`."""
    if family in ("o200k_base", "cl100k_base"):
        return 1.0
    return FAMILY_FACTORS.get(family or "", OTHER_FACTOR)


def script_aware(family: str | None, model: str | None = None) -> ScriptAware:
    """The estimator for a family of tokenizers, as the registry names it; none where nobody knows it.

    `model`, its name, tells which of Claude's tokenizers it has, and what images cost.
    """
    if family == "claude" and is_late_claude(model):
        family = "claude-4.7"
    known = family if family in FAMILY_FACTORS else "other"
    habits = Habits(
        call_tokens=CALL_TOKENS.get(known, OTHER_CALL_TOKENS),
        keeps_thinking=known not in FORGETS_THINKING,
        pictures=picture_rule(model),
    )
    return ScriptAware(family_factor(family), f"script_aware:{known}", habits=habits)


def is_text(message: Message) -> bool:
    """True where a tokenizer alone tells the size of `message`: no image, no document, nothing unknown."""
    return all(_is_text(block) for block in message.content)


def _is_text(block: Block) -> bool:
    if isinstance(block, ToolResult) and not isinstance(block.content, str):
        return all(_is_text(inner) for inner in block.content)
    return isinstance(block, Text | ToolCall | ToolResult | Thinking)


def message_tokens(message: Message, counter: Counter) -> int:
    """Tokens that the blocks of `message` take in a request; 0 for none. O(message)."""
    return sum(block_tokens(block, counter) for block in message.content)


def messages_tokens(messages: Sequence[Message], counter: Counter) -> list[int]:
    """The same of each of `messages`, their texts counted together where that is quicker. O(messages)."""
    if len(messages) < 2 or not isinstance(counter, Batching):
        return [message_tokens(message, counter) for message in messages]
    asked = _Asked(habits=counter.habits, texts=[])
    around, ends = [], []
    for message in messages:
        around.append(message_tokens(message, asked))
        ends.append(len(asked.texts))
    counts = counter.count_each(asked.texts)
    starts = (0, *ends)
    return [own + sum(counts[a:b]) for own, a, b in zip(around, starts, ends, strict=False)]


class _Asked(Provided, frozen=True, kw_only=True):
    """Takes note of what is to be counted: nothing is made of a count but sums."""

    texts: list[str]
    name: str = ""
    exact: bool = False

    def count(self, text: str) -> int:
        """Nothing yet."""
        self.texts.append(text)
        return 0


def block_tokens(block: Block, counter: Counter) -> int:
    """Tokens of one block.

    Thinking is its text where the provider sends it again, else nothing. A call is its name + its arguments
    as compact JSON, and what the provider puts around it where `counter` knows that. A result is its
    text, or its blocks. Signatures count nothing: no model reads them.
    """
    match block:
        case Text(text=text):
            return counter.count(text)
        case Thinking(text=text, redacted=redacted):
            if isinstance(counter, Provided) and not counter.habits.keeps_thinking:
                return 0
            return counter.count(text) + (blob_tokens(redacted.encode()) if redacted else 0)
        case ToolCall(name=name, arguments=arguments):
            around = counter.habits.call_tokens if isinstance(counter, Provided) else 0
            return counter.count(name + compact_arguments(arguments)) + around
        case ToolResult(content=content):
            if isinstance(content, str):
                return counter.count(content)
            return sum(block_tokens(inner, counter) for inner in content)
        case Image():
            return image_tokens(block, _pictures(counter))
        case Document():
            return _document_tokens(block, counter)
        case Opaque(raw=raw):
            encrypted = encrypted_reasoning(block)
            return blob_tokens(bytes(raw)) if encrypted is None else encrypted_tokens(len(encrypted))
        case Unknown(raw=raw):
            return blob_tokens(bytes(raw))


class _Reasoning(Struct, frozen=True):
    """An item of reasoning of OpenAI's Responses API."""

    type: str = ""
    encrypted_content: str | None = None


_decode_reasoning = msgspec.json.Decoder(_Reasoning).decode


def encrypted_reasoning(block: Opaque) -> str | None:
    """The encrypted text of a reasoning item; none if the block is something else. O(block)."""
    try:
        item = _decode_reasoning(block.raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return item.encrypted_content if item.type == "reasoning" else None


def is_encrypted_reasoning(block: Opaque) -> bool:
    """True for reasoning that only the provider can read. O(block)."""
    return encrypted_reasoning(block) is not None


def encrypted_tokens(characters: int) -> int:
    """Tokens of reasoning whose encrypted form has so many characters: what base64 decodes to, less 650 bytes
    around the text, at 4 bytes a token, as Codex CLI estimates it (openai/codex,
    codex-rs/core/src/context_manager/history.rs, `estimate_reasoning_length`, read 2026-11)."""
    return (max(0, characters * 3 // 4 - 650) + 3) // 4


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
    return title + document_pages_tokens(document, _pictures(counter))


def _pictures(counter: Counter) -> PictureRule:
    return counter.habits.pictures if isinstance(counter, Provided) else ANTHROPIC
