"""What a conversation has cost so far, from its usage reports and the registry's prices."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from compactd.core.models.registry import Pricing
from compactd.core.tokens.usage import context_size, normalise
from compactd.protocol.messages import Message, Usage

MILLION = 1_000_000


class Cost(Struct, frozen=True, kw_only=True):
    """The cost of all requests that have a usage report, in US dollars."""

    dollars: float
    reports: int
    cached_share: float
    """The share of all input that was read from the cache, 0 to 1."""


def cost_of(messages: Iterable[Message], pricing: Pricing) -> Cost | None:
    """Return the cost of the conversation; None if no message has a usage report. O(messages)."""
    dollars, reports, whole, cached = 0.0, 0, 0, 0
    for message in messages:
        if message.usage is None:
            continue
        usage, _ = normalise(message.usage)
        dollars += price_of(usage, pricing)
        reports += 1
        whole += context_size(usage)
        cached += usage.cache_read_tokens
    if not reports or not whole:
        return None
    return Cost(dollars=dollars, reports=reports, cached_share=cached / whole)


def price_of(usage: Usage, pricing: Pricing) -> float:
    """Return the price of one request with this usage, in US dollars."""
    size = context_size(usage)
    read, write, into, out = pricing.cache_read, pricing.cache_write, pricing.input, pricing.output
    for step in pricing.steps:
        if size > step.above:
            read, write, into, out = step.cache_read, step.cache_write, step.input, step.output
    return (
        usage.input_tokens * into
        + usage.cache_read_tokens * (into if read is None else read)
        + usage.cache_write_tokens * (into if write is None else write)
        + usage.output_tokens * out
    ) / MILLION
