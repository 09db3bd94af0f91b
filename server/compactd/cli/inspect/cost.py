"""What a conversation has cost so far, from its usage reports and the registry's prices."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from compactd.core.models.cost import price
from compactd.core.models.registry import Pricing
from compactd.core.tokens.usage import context_size, normalise
from compactd.protocol.messages import Message


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
        dollars += price(usage, pricing) or 0.0
        reports += 1
        whole += context_size(usage)
        cached += usage.cache_read_tokens
    if not reports or not whole:
        return None
    return Cost(dollars=dollars, reports=reports, cached_share=cached / whole)
