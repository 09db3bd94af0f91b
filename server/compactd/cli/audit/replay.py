"""Estimate what a session would have cost if compactd's policy had decided when to compact.

The conversation with the user is replayed request by request: each grows by as many tokens as it did, and
breaks the cache where it did, except for the agent's own compactions. `core/cost/policy.py` decides before
each request. Sub-agents are left as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from compactd.cli.audit.bill import usage_of
from compactd.cli.audit.trail import MAIN, Place, Trail
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.requests import Request
from compactd.core.cost.cache_rules import ONE_HOUR_S, cache_rules
from compactd.core.cost.policy import (
    KEPT_TOKENS,
    MAX_REREAD_TOKENS,
    REREAD_SHARE,
    PolicyDecision,
    Situation,
    decide,
)
from compactd.core.cost.price import Rates, price, rates_of
from compactd.core.models.lookup import Pricing
from compactd.core.tokens.usage import context_size
from compactd.protocol.messages import Usage

MIN_REQUESTS = 5
"""A shorter conversation shows no growth to replay."""
HEAD_SHARE = 0.5
"""If no request shows how large system prompt and tools are, they are taken for this share of the first
request."""

ASSUMPTIONS = (
    "We assume that each request would have added as many tokens as it did, and that the cache would have"
    " failed at the same requests, apart from those after the agent's own compactions. A compaction is made"
    f" without a model, so it costs no request; it leaves {KEPT_TOKENS:,} tokens of messages. The agent reads"
    f" {100 * REREAD_SHARE:.0f} % of what it removes again, at most {MAX_REREAD_TOKENS:,} tokens. A request"
    " that would be larger than the largest of the session is compacted first. Both sides are at list prices,"
    " without the requests that wrote the agent's own summaries. What more compactions lose is not part of"
    " the estimate; docs/cost.md has measurements of both."
)
"""What the estimate assumes."""
POLICY = (
    'The policy is the setting `when = "cost"` (docs/howto/cache.md). It needs a program that lets compactd'
    " compact; agents such as Claude Code decide themselves when they compact."
)
"""What the policy is, and who can use it."""


class Replay(Struct, frozen=True, kw_only=True):
    """What the conversation with the user would have cost."""

    recorded_usd: float
    """What its requests cost, by the price list."""
    estimate_usd: float
    """What they would have cost."""
    requests: int
    compactions: int
    """How often compactd would have compacted."""
    recorded_compactions: int
    side_requests: int = 0
    """How many requests of sub-agents are left out."""

    @property
    def is_same(self) -> bool:
        """Whether there is no compaction on either side, so that nothing differs."""
        return not self.compactions and not self.recorded_compactions


class NoReplay(Struct, frozen=True, kw_only=True):
    """No estimate is possible."""

    reason: str
    """A sentence."""


class _Step(Struct, frozen=True, kw_only=True):
    """One recorded request, as the replay needs it."""

    usage: Usage
    pricing: Pricing
    grown: int | None
    """How many tokens it had more than the request before; None after a compaction of the agent."""
    broken: float
    """Which share of what the cache held was not read, 0 to 1, for another reason than a compaction."""
    is_cold: bool | None
    writes_an_hour: bool


def replay(
    trail: Trail, prices: PriceList, decision: Callable[[Situation, Rates], PolicyDecision] = decide
) -> Replay | NoReplay:
    """Return the estimate for a file. `decision`: the policy. O(requests)."""
    found = simulate(trail, prices, decision)
    if isinstance(found, Replay) and found.is_same:
        return replace(found, estimate_usd=found.recorded_usd)
    return found


def simulate(
    trail: Trail, prices: PriceList, decision: Callable[[Situation, Rates], PolicyDecision]
) -> Replay | NoReplay:
    """Return the estimate for a file as the replay gives it, also if nothing differs. O(requests)."""
    steps = _steps(trail, prices)
    if isinstance(steps, NoReplay):
        return steps
    grown = [step.grown for step in steps if step.grown is not None and step.grown > 0]
    growth = sum(grown) / len(grown) if grown else 0.0
    sizes = [context_size(step.usage) for step in steps]
    head = _head(steps)
    largest = max(sizes)
    context = held = compacted = 0
    estimate = 0.0
    compactions = 0
    added = 0.0
    for number, step in enumerate(steps):
        delta = sizes[0] if number == 0 else growth if step.grown is None else step.grown
        before, context = context, max(head, round(context + delta + added))
        added = 0.0
        # The first request finds in the cache what it found there.
        held = round(before * (1 - step.broken)) if number else step.usage.cache_read_tokens
        held = min(context, held)
        rates = rates_of(step.pricing, context)
        after = min(context, head + KEPT_TOKENS)
        situation = Situation(
            context=context,
            after=after,
            head=head,
            growth=growth,
            requests=number,
            grown=context - compacted,
            is_cold=step.is_cold,
        )
        if after < context and number and (context > largest or decision(situation, rates).compact):
            added = min(REREAD_SHARE * (context - after), MAX_REREAD_TOKENS)
            context = after
            held = min(held, head)
            compacted = context
            compactions += 1
        estimate += _cost(step, context, held, rates_of(step.pricing, context))
    return Replay(
        recorded_usd=sum(price(step.usage, step.pricing) or 0.0 for step in steps),
        estimate_usd=estimate,
        requests=len(steps),
        compactions=compactions,
        recorded_compactions=sum(one.kind == "compaction" and one.chain == MAIN for one in trail.boundaries),
        side_requests=sum(place.chain != MAIN for place in trail.places),
    )


def _cost(step: _Step, context: int, held: int, rates: Rates) -> float:
    """Return what a replayed request costs. What the cache does not hold is written if the recorded request
    wrote, apart from the part that it did not write either."""
    usage = step.usage
    rest = max(0, context - held)
    if not usage.cache_write_tokens:
        new = rest * rates.input
    else:
        bare = min(rest, usage.input_tokens)
        write = rates.cache_write_1h if step.writes_an_hour else rates.cache_write_5m
        new = bare * rates.input + (rest - bare) * write
    return held * rates.cache_read + new + usage.output_tokens * rates.output


def _steps(trail: Trail, prices: PriceList) -> list[_Step] | NoReplay:
    usage = trail.usage
    if usage.agent == "aider":
        return NoReplay(reason="The file has many chats, and aider chooses the files of each request.")
    own = [
        (request, place)
        for request, place in zip(usage.requests, trail.places, strict=True)
        if place.chain == MAIN and not place.is_summary and context_size(usage_of(request))
    ]
    if len(own) < MIN_REQUESTS:
        return NoReplay(
            reason=f"The conversation has fewer than {MIN_REQUESTS} requests with a usage report."
        )
    if not any(request.cache_read or request.cache_write for request, _ in own):
        return NoReplay(reason="The file reports nothing of a prompt cache.")
    steps: list[_Step] = []
    before: tuple[Request, Place] | None = None
    lifetime_s: float | None = None
    for request, place in own:
        provider, model = usage.models[request.model]
        pricing = prices.find(provider, model)
        if pricing is None:
            return NoReplay(reason="The price of a model is not known.")
        rules = cache_rules(provider or None, model)
        steps.append(_step(before, request, place, pricing, lifetime_s))
        if request.cache_write_1h:
            lifetime_s = ONE_HOUR_S
        elif request.cache_write or lifetime_s is None:
            lifetime_s = rules.lifetime_s if rules else None
        before = request, place
    return steps


def _step(
    before: tuple[Request, Place] | None,
    request: Request,
    place: Place,
    pricing: Pricing,
    lifetime_s: float | None,
) -> _Step:
    is_compacted = bool(place.changes & {"compaction", "prune"})
    grown, broken, is_cold = None, 0.0, None
    if before is not None:
        size, earlier = context_size(usage_of(request)), context_size(usage_of(before[0]))
        held = before[0].cache_read + before[0].cache_write or earlier
        grown = None if is_compacted else size - earlier
        if not is_compacted and held:
            broken = min(1.0, max(0.0, (held - request.cache_read) / held))
        if place.at is not None and before[1].at is not None and lifetime_s is not None:
            is_cold = place.at - before[1].at > lifetime_s
        if is_compacted and is_cold:
            broken = 1.0
    return _Step(
        usage=usage_of(request),
        pricing=pricing,
        grown=grown,
        broken=broken,
        is_cold=is_cold,
        writes_an_hour=2 * request.cache_write_1h > request.cache_write,
    )


def _head(steps: Sequence[_Step]) -> int:
    """Return the size of system prompt and tools: the least that a request read from the cache after
    something else had changed, or else a share of the first request."""
    reads = [step.usage.cache_read_tokens for step in steps if step.usage.cache_read_tokens]
    first = context_size(steps[0].usage)
    return min([round(HEAD_SHARE * first), *reads])
