"""The bill of a replayed session, by a provider's price list and the exact rules of its prompt cache.

A request reads from the cache what the request before left there, if it came within the cache's lifetime and
if its beginning is unchanged. After a compaction only the head (system prompt and tools) is unchanged. All
other input is written to the cache. The answer is output; the next request writes it like other input.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from compactd.core.cost.price import rates_of
from compactd.core.models.lookup import Pricing


class Sent(Struct, frozen=True, array_like=True):
    """One request of a replay. Sizes are tokens."""

    size: int
    """All input."""
    unchanged: int
    """The part at its beginning that equals the request before."""
    output: int
    gap_s: float | None
    """Seconds since the request before; None if the recording has no times."""
    is_reread: bool = False
    """Whether it is an extra request, which reads something again that a compaction had dropped."""
    carried: int = 0
    """Tokens of its input that are there only because they were read again."""
    new_carried: int = 0
    """Those of `carried` that the request before did not have."""
    compacted: int = 0
    """The size before a compaction that was done before this request; 0 if there was none."""
    summary_output: int = 0
    """The output tokens of the model that wrote this compaction's summary; 0 if no model wrote it."""
    uses: int = 0
    """Facts from earlier messages that the answer uses."""
    lost: int = 0
    """Those of `uses` that a compaction had dropped."""


class PriceList(Struct, frozen=True):
    """A model's prices, and how long its cache lasts."""

    name: str
    pricing: Pricing
    lifetime_s: float


class Bill(Struct, frozen=True, kw_only=True):
    """What a replay costs, in US dollars."""

    read: float = 0.0
    write: float = 0.0
    output: float = 0.0
    summary: float = 0.0
    loss: float = 0.0
    """Extra requests, and the tokens that they add to later ones."""
    requests: int = 0
    compactions: int = 0
    rereads: int = 0
    uses: int = 0
    lost: int = 0

    def total(self, weight: float = 1.0) -> float:
        """Return the whole bill, with `weight` times the cost of losses."""
        return self.read + self.write + self.output + self.summary + weight * self.loss

    @property
    def retained(self) -> float:
        """The share of the used facts that were in the context when they were used."""
        return 1 - self.lost / self.uses if self.uses else 1.0


def is_cold(gap_s: float | None, lifetime_s: float) -> bool:
    """Return whether the cache has expired. A recording without times counts as warm."""
    return gap_s is not None and gap_s > lifetime_s


def billed(requests: Iterable[Sent], prices: PriceList) -> Bill:
    """Return the bill of a session's requests. O(requests)."""
    read = write = output = summary = loss = 0.0
    count = compactions = rereads = uses = lost = 0
    for sent in requests:
        rates = rates_of(prices.pricing, sent.size)
        # Without a price for writes, what is written costs what other input costs.
        kept = 0 if is_cold(sent.gap_s, prices.lifetime_s) else min(sent.unchanged, sent.size)
        if sent.compacted and sent.summary_output:
            asked = rates_of(prices.pricing, sent.compacted)
            cached = 0.0 if is_cold(sent.gap_s, prices.lifetime_s) else asked.cache_read
            summary += sent.compacted * (cached or asked.cache_write_5m) + sent.summary_output * asked.output
        fresh = sent.size - kept
        compactions += bool(sent.compacted)
        if sent.is_reread:
            rereads += 1
            loss += kept * rates.cache_read + fresh * rates.cache_write_5m + sent.output * rates.output
            continue
        count += 1
        uses += sent.uses
        lost += sent.lost
        new = min(sent.new_carried, fresh)
        old = min(sent.carried - new, kept)
        cold = sent.carried - old
        loss += cold * rates.cache_write_5m + old * rates.cache_read
        read += (kept - old) * rates.cache_read
        write += (fresh - cold) * rates.cache_write_5m
        output += sent.output * rates.output
    return Bill(
        read=read,
        write=write,
        output=output,
        summary=summary,
        loss=loss,
        requests=count,
        compactions=compactions,
        rereads=rereads,
        uses=uses,
        lost=lost,
    )
