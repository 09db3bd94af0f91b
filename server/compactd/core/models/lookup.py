"""What is known of a model, as a value. How it is found is `registry`'s affair, which is imported when first
asked."""

from __future__ import annotations

from msgspec import Struct

from compactd.protocol.messages import Confidence

WANT_REASONING = frozenset(("deepseek", "moonshotai"))
"""Providers that want the `reasoning_content` of their models' answers back, and refuse a request (400) whose
assistant messages with tool calls lack it: DeepSeek ("Thinking Mode", at
api-docs.deepseek.com/guides/thinking_mode; where no tool was called it is ignored) and Moonshot
("Use kimi-k2-thinking model", platform.moonshot.ai/docs; "thinking is enabled but reasoning_content is
missing in assistant tool call message at index 13", github.com/MoonshotAI/kimi-agent-sdk/issues/169).
Seen 2026-11."""


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Prices of a request whose input is above `above` tokens."""

    above: int
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class Pricing(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """US dollars for a million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    steps: tuple[Step, ...] = ()
    """By rising `above`; the last that applies holds for the whole request."""


class Lookup(Struct, frozen=True, kw_only=True):
    """The answer to `models/lookup`. Tokens."""

    model: str
    """As the provider spells it; as asked where no row was found."""
    provider: str | None
    context_window: int
    input_limit: int | None
    """Most input, where that is less than the window."""
    output_limit: int | None
    upper_bound: bool
    """A local server may load less than this window."""
    confidence: Confidence
    source: str
    """Where the number comes from."""
    how: str
    """By which step it was found."""
    tokenizer: str | None
    pricing: Pricing | None
    retired: bool


class Tried(Struct, frozen=True):
    """One step of a lookup, for whoever asks why."""

    step: str
    looked_for: tuple[str, ...]
    """The spellings and places that were looked up, in order; empty where the step does not apply."""
    found: str
    """What was found, for people to read."""
