"""Decide by its cost whether to compact now, and to how many tokens.

A compaction costs `M + (K − H)·w + L`: the request for the summary, what must be written to the cache again,
and what the agent will read again because the summary lacks it. Then each request saves `(C − K)·r`. C is the
size of the context, K its size after the compaction, H the part of K that stays in the cache, w and r the
prices of a token that is written and read.

How often to compact is the economic order quantity: with a growth of g tokens a request, the cheapest
distance between two compactions is `√(2·F / (r·g))` requests, where F is what each compaction costs, whatever
it removes. As long as L grows with the tokens that are removed, it costs the same per request at any
distance, so F is `M + (K − H)·w`. From a certain number of removed tokens on, L stays the same, and is part
of F. The cheaper of the two distances is used. A compaction is due when the context is larger than K by as
much as grows in that distance, and if it pays back within the requests that are still expected. As for many
other things of unknown age, as many more requests are expected as there have been (Lindy's law).

docs/cost.md has the measurements behind the constants.
"""

from __future__ import annotations

import math

from msgspec import Struct

from compactd.core.cost.price import Rates

KEPT_TOKENS = 12_000
"""How many tokens of messages a compaction by cost leaves, summary and tail combined."""
REQUEST_FACTOR = 2
"""A compaction leaves at least this many times the size of the user's newest request, which must stay."""
REREAD_SHARE = 0.4
"""How many tokens the agent reads again for each token that a compaction removes (docs/cost.md, "What is read
again")."""
MAX_REREAD_TOKENS = 12_000
"""The agent reads hardly more than this again, however many tokens a compaction removes (there too)."""
MIN_GROWTH_SHARE = 0.25
"""Hysteresis: no compaction before the context has grown by this share of what the last one left."""


class Situation(Struct, frozen=True, kw_only=True):
    """The state of a session before a request. Sizes are tokens."""

    context: int
    """C: the size of the next request without a compaction."""
    after: int
    """K: its expected size after a compaction."""
    head: int
    """H: the part of `after` that stays in the cache: system prompt, tools, and what is before the cut."""
    growth: float
    """g: how many tokens a request adds, on average."""
    requests: int
    """How many requests there have been."""
    grown: int
    """How many tokens came since the last compaction, or since the session began."""
    is_cold: bool | None
    """Whether the cache has expired; None if that is not known."""
    saves_next: float | None = None
    """What a compaction saves on the next request if the cache has expired, in US dollars, without what the
    summary costs and what is read again; None to compute it from the prices."""
    summary_cost: float = 0.0
    """M: what a model's summary costs, in US dollars; 0 without a model."""


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


def target_of(head: int, newest_request: int, kept: int = KEPT_TOKENS) -> int:
    """Return to how many tokens a compaction by cost reduces the request. O(1)."""
    return head + max(kept, REQUEST_FACTOR * newest_request)


def decide(situation: Situation, rates: Rates) -> PolicyDecision:
    """Return whether a compaction before the next request lowers the bill. O(1)."""
    saved = situation.context - situation.after
    if saved <= 0:
        return _no(situation, "A compaction would not make the request smaller.", None)
    if rates.cache_read <= 0:
        return unpriced("the model's prices are zero")
    write = max(rates.cache_write_5m, rates.input)
    lost = min(REREAD_SHARE * saved, MAX_REREAD_TOKENS) * (write + rates.cache_read)
    rewritten = situation.summary_cost + max(0, situation.after - situation.head) * write
    once = rewritten + lost
    saves_next = 0.0
    if situation.is_cold:
        # Without a compaction, all of the context is written again; with one, only what is left.
        saves_next = saved * write if situation.saves_next is None else situation.saves_next
        once = situation.summary_cost + lost - saves_next
    payback = once / (saved * rates.cache_read)
    if situation.grown < MIN_GROWTH_SHARE * (situation.after - situation.head):
        came = max(0, situation.grown)
        return _no(situation, f"Only {came:,} tokens came since the last compaction or undo.", payback)
    if once <= 0:
        return PolicyDecision(
            compact=True,
            reason=(
                f"The cache has expired: compacting first saves about ${saves_next:.3f} on the next request."
                f" {_extras(situation, lost)}"
            ),
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
    mark = situation.after + _cheapest_growth(rewritten, situation.growth, write, rates.cache_read)
    if situation.context < mark:
        return _no(
            situation,
            f"A compaction would pay back after {payback:.1f} requests, but it is cheapest from {mark:,}"
            " tokens on.",
            payback,
        )
    return PolicyDecision(
        compact=True,
        reason=(
            f"A compaction saves {saved:,} tokens a request and pays back after {payback:.1f} requests. It"
            f" writes about ${rewritten - situation.summary_cost:.3f} to the cache again."
            f" {_extras(situation, lost)}"
        ),
        payback_turns=round(payback, 1),
        cold=situation.is_cold,
    )


def _cheapest_growth(rewritten: float, growth: float, write: float, read: float) -> int:
    """Return after how many new tokens a compaction is cheapest. `rewritten`: what one costs without losses,
    in US dollars. `growth`: tokens per request. `write`, `read`: prices of a token. O(1).
    """
    growth = max(1.0, growth)
    again = write + read
    end = MAX_REREAD_TOKENS / REREAD_SHARE
    # Up to `end` new tokens, the loss is REREAD_SHARE of them; from there on, it is the same per compaction.
    near = min(end, math.sqrt(2 * rewritten * growth / read))
    far = max(end, math.sqrt(2 * (rewritten + MAX_REREAD_TOKENS * again) * growth / read))

    def cost(grown: float) -> float:
        """The cost per new token: of one compaction, and of what the requests until then read."""
        lost = min(REREAD_SHARE * grown, MAX_REREAD_TOKENS) * again
        return (rewritten + lost) / grown + read * grown / (2 * growth)

    cheapest: float = min((near, far), key=cost)
    return round(cheapest)


def _extras(situation: Situation, lost: float) -> str:
    """Return a sentence on what a compaction costs later, or for its summary."""
    read_again = f"What the agent reads again costs about ${lost:.3f}"
    if not situation.summary_cost:
        return f"{read_again}."
    return f"{read_again}, the summary at most ${situation.summary_cost:.3f}."


def unpriced(why: str) -> PolicyDecision:
    """Return the decision if the cost is not known. `why` is the end of a sentence."""
    return PolicyDecision(
        compact=False,
        reason=f"The window decides alone: {why}.",
        payback_turns=None,
        cold=None,
    )


def prune_pays(*, saved: int, behind: int, requests: int, is_cold: bool, rates: Rates) -> bool:
    """Return whether a prune pays back within as many requests as there have been. `saved`: the tokens that
    it removes. `behind`: the tokens after the first of them, which must be written to the cache again. O(1).
    """
    if rates.cache_read <= 0 or is_cold:
        return True
    write = max(rates.cache_write_5m, rates.input)
    return requests * saved * rates.cache_read > behind * (write - rates.cache_read)


def _no(situation: Situation, reason: str, payback: float | None) -> PolicyDecision:
    return PolicyDecision(
        compact=False,
        reason=reason,
        payback_turns=None if payback is None else round(payback, 1),
        cold=situation.is_cold,
    )
