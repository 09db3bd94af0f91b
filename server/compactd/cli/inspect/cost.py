"""What a conversation has cost so far, from its usage reports and the registry's prices.

`cost_in_file` counts as `compactd usage` does, so that both commands show the same cost of a file.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from compactd.core.cost.price import price
from compactd.core.models.registry import Pricing
from compactd.core.tokens.usage import context_size, normalise
from compactd.protocol.messages import Message


class Cost(Struct, frozen=True, kw_only=True):
    """The cost of all requests that have a usage report, in US dollars."""

    dollars: float
    reports: int
    cached_share: float
    """The share of all input that was read from the cache, 0 to 1."""
    models: int = 1
    """How many models answered the requests."""


def cost_in_file(data: bytes, format: str) -> Cost | None:
    """Return the cost of all requests in a session file with the content `data`. Requests of sub-agents are
    included. Each request counts once, at the price of its own model or as the file reports it. Return None
    if the file is no agent's, or if no cost is known. O(bytes).
    """
    from compactd.cli.usage.collect import count_once
    from compactd.cli.usage.prices import PriceList
    from compactd.cli.usage.readers import READABLE, read_data
    from compactd.cli.usage.totals import Filters, report

    if format not in READABLE:
        return None
    found = report(count_once([read_data(data, format, "")]), ("model",), Filters(), PriceList()).total
    if not found.requests or found.cost_usd is None or found.cached_share is None:
        return None
    return Cost(
        dollars=found.cost_usd,
        reports=found.requests,
        cached_share=found.cached_share,
        models=len(found.models),
    )


def cost_of(messages: Iterable[Message], pricing: Pricing) -> Cost | None:
    """Return the cost of the conversation; None if no message has a usage report. O(messages)."""
    dollars, reports, whole, cached = 0.0, 0, 0, 0
    for message in messages:
        if message.usage is None:
            continue
        usage, _ = normalise(message.usage)
        dollars += price(usage, pricing) or 0.0
        reports += 1
        whole += context_size(usage)
        cached += usage.cache_read_tokens
    if not reports or not whole:
        return None
    return Cost(dollars=dollars, reports=reports, cached_share=cached / whole)
