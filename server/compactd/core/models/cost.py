"""Compute what a request costs from its usage report and its model's prices."""

from __future__ import annotations

from compactd.core.models.lookup import PriceStep, Pricing
from compactd.core.tokens.usage import context_size
from compactd.protocol.messages import Usage

_TOKENS_PRICED = 1_000_000

ONE_HOUR_WRITE = 2.0
"""The price of a cache write that lasts an hour, as a multiple of the input price. Only Claude's usage
reports name such writes (Anthropic, platform.claude.com, "Prompt caching", "Pricing"; 1.25 is the multiple
for 5 minutes, which the registry has as the price of cache writes; 2026-11).
"""


def price(usage: Usage | None, pricing: Pricing | None, *, one_hour_write_tokens: int = 0) -> float | None:
    """Return the price of one request in US dollars; None if its tokens or its prices are unknown.

    A large input may have higher prices: those of the last of `pricing.steps` whose `above` is less than the
    input tokens, cache included. These prices apply to the whole request, output included (models.dev's
    `context_over_200k`, price lists of Google and OpenAI, seen 2026-10). If no cache price is listed, the
    input price applies. `one_hour_write_tokens` are those of the cache writes that last an hour. O(steps).
    """
    if usage is None or pricing is None:
        return None
    size = context_size(usage)
    rates: Pricing | PriceStep = pricing
    for step in pricing.steps:
        if size > step.above:
            rates = step
    read = rates.input if rates.cache_read is None else rates.cache_read
    write = rates.input if rates.cache_write is None else rates.cache_write
    dollars = (
        usage.input_tokens * rates.input
        + usage.output_tokens * rates.output
        + usage.cache_read_tokens * read
        + (usage.cache_write_tokens - one_hour_write_tokens) * write
        + one_hour_write_tokens * rates.input * ONE_HOUR_WRITE
    )
    return dollars / _TOKENS_PRICED
