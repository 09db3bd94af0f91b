"""The result of a model lookup: what is known of a model.

The lookup itself is in `registry.py`, which is only imported when it is needed.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from compactd.protocol.messages import Confidence

WANT_REASONING = frozenset(("deepseek", "moonshotai"))
"""Providers that require the `reasoning_content` of their models' answers to be sent back. They refuse a
request (400) if an assistant message with tool calls lacks it: DeepSeek ("Thinking Mode", at
api-docs.deepseek.com/guides/thinking_mode; without tool calls, it is ignored) and Moonshot ("Use
kimi-k2-thinking model", platform.moonshot.ai/docs; "thinking is enabled but reasoning_content is missing in
assistant tool call message at index 13", github.com/MoonshotAI/kimi-agent-sdk/issues/169). Seen 2026-11."""


class PriceStep(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The prices of a request whose input exceeds `above` tokens, in US dollars per million tokens."""

    above: int
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None


class Pricing(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Prices in US dollars per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    """A write that stays for the provider's usual time (5 minutes at Anthropic)."""
    cache_write_1h: float | None = None
    """A write that stays for an hour."""
    steps: tuple[PriceStep, ...] = ()
    """Higher prices for large requests, by ascending `above`. The last step whose `above` is exceeded applies
    to the whole request."""


ONE_HOUR_WRITE = 2.0
"""The price of a cache write that lasts an hour, as a multiple of the input price, for Claude's models (read
at platform.claude.com, "Prompt caching", "Pricing", 2026-11). The price lists that the registry is built from
have only one price of writes, the one for 5 minutes: 1.25 times the input price."""


def with_hour_writes(pricing: Pricing | None) -> Pricing | None:
    """Return the prices of a Claude model with those of writes for an hour. A list without prices of writes
    stays as it is. O(steps)."""
    if pricing is None or pricing.cache_write is None or pricing.cache_write_1h is not None:
        return pricing
    steps = tuple(
        step if step.cache_write is None else replace(step, cache_write_1h=step.input * ONE_HOUR_WRITE)
        for step in pricing.steps
    )
    return replace(pricing, cache_write_1h=pricing.input * ONE_HOUR_WRITE, steps=steps)


class Lookup(Struct, frozen=True, kw_only=True):
    """The result of `models/lookup`. Sizes are in tokens."""

    model: str
    """The model's id as the provider spells it, or as asked if no row was found."""
    provider: str | None
    context_window: int
    input_limit: int | None
    """The most input tokens, if that is less than the window."""
    output_limit: int | None
    upper_bound: bool
    """Whether the window is only an upper bound, because a local server may have loaded the model with a
    smaller one."""
    confidence: Confidence
    source: str
    """Where the window comes from, in words."""
    how: str
    """How the lookup found the window, in words."""
    tokenizer: str | None
    pricing: Pricing | None
    retired: bool
    pricing_source: str = ""
    """The lists that the prices are from; empty if there are no prices."""


class Tried(Struct, frozen=True):
    """One step of a lookup, with what it looked for and found, to explain the result."""

    step: str
    looked_for: tuple[str, ...]
    """The spellings and places that were looked up, in order; empty if the step does not apply."""
    found: str
    """What was found, for people to read."""
