"""Decide by its cost whether to compact now.

A compaction costs `M + (K − H)·w + L`: the request for the summary, what must be written to the cache again,
and what the agent will read again because the summary lacks it. Then each request saves `(C − K)·r`. C is the
size of the context, K its size after the compaction, H the part of K that stays in the cache, w and r the
prices of a token that is written and read.

With a growth of g tokens a request, the cheapest distance between two compactions is
`√(2·(M + (K − H)·w + L) / (r·g))` requests (the economic order quantity). So a compaction is due when the
context is larger than K by as much as grows in that distance, and if it pays back within the requests that
are still expected. As for many other things of unknown age, as many more requests are expected as there have
been (Lindy's law).
"""

from __future__ import annotations

import math

from msgspec import Struct

from compactd.core.cost.price import Rates


class Situation(Struct, frozen=True, kw_only=True):
    """The state of a session before a request. Sizes are tokens."""

    context: int
    """C: the size of the next request without a compaction."""
    after: int
    """K: its expected size after a compaction."""
    head: int
    """H: the part of `after` that stays in the cache: system prompt, tools, and what is before the cut."""
    growth: float
    """g: how many tokens a request adds, on average since the last compaction."""
    requests: int
    """How many requests there have been."""
    is_cold: bool | None
    """Whether the cache has expired; None if that is not known."""
    summary_cost: float = 0.0
    """M: what a model's summary costs, in US dollars; 0 without a model."""
    reread_tokens: float = 0.0
    """The tokens that the agent is expected to read again because of the compaction."""


class PolicyDecision(Struct, frozen=True, kw_only=True):
    """Whether to compact, and why."""

    compact: bool
    reason: str
    """A sentence with the numbers."""
    payback_turns: float | None
    """After how many requests the compaction has paid for itself; None if never or if that is not known.
    Negative if it is cheaper at once."""
    cold: bool | None
    """`Situation.is_cold`."""


def decide(situation: Situation, rates: Rates) -> PolicyDecision:
    """Return whether a compaction before the next request lowers the bill. O(1)."""
    saved = situation.context - situation.after
    if saved <= 0:
        return _no(situation, "A compaction would not make the request smaller.", None)
    if rates.cache_read <= 0:
        return _no(situation, "The model costs nothing, so the window decides.", None)
    write = max(rates.cache_write_5m, rates.input)
    lost = situation.reread_tokens * (write + rates.cache_read)
    rewritten = max(0, situation.after - situation.head) * write
    cost = situation.summary_cost + rewritten + lost
    once = cost
    if situation.is_cold:
        # Without a compaction, all of the context is written again; with one, only what is left.
        once = situation.summary_cost + lost - saved * write
    payback = once / (saved * rates.cache_read)
    if once <= 0:
        return PolicyDecision(
            compact=True,
            reason=f"The cache has expired: compacting first saves ${-once:.2f} on the next request.",
            payback_turns=round(payback, 1),
            cold=True,
        )
    if payback > situation.requests:
        return _no(
            situation,
            f"A compaction would pay back after {payback:.1f} requests; about {situation.requests} more are"
            " expected.",
            payback,
        )
    distance = math.sqrt(2 * cost / (rates.cache_read * max(1.0, situation.growth)))
    mark = situation.after + round(distance * max(1.0, situation.growth))
    if situation.context < mark:
        return _no(
            situation,
            f"It would pay back after {payback:.1f} requests, but it is cheapest at {mark:,} tokens.",
            payback,
        )
    return PolicyDecision(
        compact=True,
        reason=(
            f"A compaction for ${cost:.3f} saves {saved:,} tokens a request and pays back after"
            f" {payback:.1f} requests."
        ),
        payback_turns=round(payback, 1),
        cold=situation.is_cold,
    )


def _no(situation: Situation, reason: str, payback: float | None) -> PolicyDecision:
    return PolicyDecision(
        compact=False,
        reason=reason,
        payback_turns=None if payback is None else round(payback, 1),
        cold=situation.is_cold,
    )
