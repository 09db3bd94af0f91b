"""Compute what a request costs from its usage report and its model's prices."""

from __future__ import annotations

from msgspec import Struct, UnsetType
from msgspec.structs import replace

from compactd.core.models.lookup import ONE_HOUR_WRITE, PriceStep, Pricing
from compactd.core.tokens.usage import context_size
from compactd.protocol.messages import SummaryUsage, Usage

_TOKENS_PRICED = 1_000_000


class Rates(Struct, frozen=True, kw_only=True):
    """The prices of one request, in US dollars per token."""

    input: float
    cache_read: float
    cache_write_5m: float
    """Also the price of writes whose lifetime is not reported."""
    cache_write_1h: float
    output: float


class CostByKind(Struct, kw_only=True):
    """US dollars, by what they were paid for."""

    input: float = 0.0
    cache_read: float = 0.0
    cache_write_5m: float = 0.0
    cache_write_1h: float = 0.0
    output: float = 0.0
    summary: float = 0.0
    """What summaries cost, by a model that compactd asked or by the provider."""

    @property
    def total(self) -> float:
        """The sum of all kinds."""
        return (
            self.input
            + self.cache_read
            + self.cache_write_5m
            + self.cache_write_1h
            + self.output
            + self.summary
        )

    def add(self, other: CostByKind) -> None:
        """Add the amounts of `other`."""
        for name in CostByKind.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def rates_of(pricing: Pricing, request_tokens: int) -> Rates:
    """Return the prices of a request whose input, cache included, has `request_tokens` tokens.

    A large input may have higher prices: those of the last of `pricing.steps` whose `above` is less than the
    input tokens. They apply to the whole request, output included (models.dev's `context_over_200k`, price
    lists of Google and OpenAI, seen 2026-10). If no cache price is listed, the input price applies; for
    writes that last an hour, twice the input price, which is Anthropic's. O(steps).
    """
    rates: Pricing | PriceStep = pricing
    for step in pricing.steps:
        if request_tokens > step.above:
            rates = step
    write = rates.input if rates.cache_write is None else rates.cache_write
    lasting = rates.input * ONE_HOUR_WRITE if rates.cache_write_1h is None else rates.cache_write_1h
    return Rates(
        input=rates.input / _TOKENS_PRICED,
        cache_read=(rates.input if rates.cache_read is None else rates.cache_read) / _TOKENS_PRICED,
        cache_write_5m=write / _TOKENS_PRICED,
        cache_write_1h=lasting / _TOKENS_PRICED,
        output=rates.output / _TOKENS_PRICED,
    )


def price_by_kind(usage: Usage, pricing: Pricing) -> CostByKind:
    """Return the price of one request, by kind. What the provider's own compaction took is part of it, as
    `summary`. O(steps)."""
    costs = _by_kind(usage, rates_of(pricing, context_size(usage)))
    summary = usage.summary
    if isinstance(summary, UnsetType):
        return costs
    whole = summary.input_tokens + summary.cache_read_tokens + summary.cache_write_tokens
    return replace(costs, summary=_by_kind(summary, rates_of(pricing, whole)).total)


def _by_kind(usage: Usage | SummaryUsage, rates: Rates) -> CostByKind:
    for_an_hour = min(usage.cache_write_1h_tokens, usage.cache_write_tokens)
    return CostByKind(
        input=usage.input_tokens * rates.input,
        cache_read=usage.cache_read_tokens * rates.cache_read,
        cache_write_5m=(usage.cache_write_tokens - for_an_hour) * rates.cache_write_5m,
        cache_write_1h=for_an_hour * rates.cache_write_1h,
        output=usage.output_tokens * rates.output,
    )


def price(usage: Usage | None, pricing: Pricing | None) -> float | None:
    """Return the price of one request in US dollars; None if its tokens or its prices are unknown.
    O(steps)."""
    if usage is None or pricing is None:
        return None
    return price_by_kind(usage, pricing).total


def rounded(amount: float | None) -> float | None:
    """Return an amount in US dollars without the digits that adding up floats makes. The last digit that is
    left, 10⁻⁹, is less than the price of one token of any priced model."""
    return None if amount is None else round(amount, 9)
