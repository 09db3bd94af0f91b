"""The ledger: what the requests of a session cost, and why their cache was built again.

The requests are added in the order in which they were answered. A session of the daemon and the file of
another agent use the same ledger.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, UnsetType

from compactd.core.cost.cache_rules import ONE_HOUR_S, CacheRules
from compactd.core.cost.forecast import held_tokens
from compactd.core.cost.price import CostByKind, price_by_kind, rates_of
from compactd.core.models.lookup import Pricing
from compactd.core.tokens.usage import context_size
from compactd.protocol.messages import SummaryUsage, Usage

Change = Literal["compaction", "prune", "model", "system", "tools", "messages"]
"""What changed in a request, other than that messages were added. `messages`: an undo, a redo, a branch or a
redaction."""
Cause = Literal["compaction", "prune", "model", "system", "tools", "messages", "expired", "unknown"]
"""Why tokens were written to the cache again. `expired`: they were not used for longer than their lifetime.
`unknown`: nothing that is known explains it."""

Kind = Literal["input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "summary"]

MIN_REBUILT_TOKENS = 1_000
"""Fewer tokens are not called a rebuild: a provider caches in blocks, and reports vary (the same bound as in
the package claude-cache-audit 0.1)."""

_BEFORE_EXPIRY: tuple[Change, ...] = ("compaction", "model")
_AFTER_EXPIRY: tuple[Change, ...] = ("tools", "system", "prune", "messages")


class TokensByKind(Struct, kw_only=True):
    """Tokens, by how they are billed."""

    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    """Also writes whose lifetime is not reported."""
    cache_write_1h: int = 0
    """Writes that last an hour or longer."""
    output: int = 0
    summary: int = 0
    """Input and output of requests for summaries, and of the provider's own compactions."""

    @property
    def total(self) -> int:
        """The sum of all kinds."""
        return (
            self.input
            + self.cache_read
            + self.cache_write_5m
            + self.cache_write_1h
            + self.output
            + self.summary
        )

    def add(self, usage: Usage) -> None:
        """Add the tokens of a request."""
        for_an_hour = min(usage.cache_write_1h_tokens, usage.cache_write_tokens)
        self.input += usage.input_tokens
        self.cache_read += usage.cache_read_tokens
        self.cache_write_5m += usage.cache_write_tokens - for_an_hour
        self.cache_write_1h += for_an_hour
        self.output += usage.output_tokens
        if not isinstance(usage.summary, UnsetType):
            self.summary += all_tokens(usage.summary)


def all_tokens(usage: Usage | SummaryUsage) -> int:
    """Return all tokens that a report bills, without those of the provider's own compaction."""
    given = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return given + usage.output_tokens


class BilledRequest(Struct, frozen=True, kw_only=True):
    """One answered request."""

    usage: Usage
    at: float | None = None
    """When it was answered, in seconds since 1970; None if that is not known."""
    model: str = ""
    pricing: Pricing | None = None
    """The model's prices; None if they are not known."""
    rules: CacheRules | None = None
    """The rules of the model's cache; None if they are not known."""
    changes: frozenset[Change] = frozenset()
    """What changed since the request before."""
    entry_id: str | None = None
    """The answer's entry; for the file of another agent, what identifies the answer there."""
    predicted: float | None = None
    """The cost that was predicted before the request was sent, in US dollars."""
    reported_cost: float | None = None
    """The cost that the provider or the agent reported, in US dollars. It replaces the computed one."""
    is_side: bool = False
    """Whether it was not one of the conversation, but a sub-agent's. It is billed only: its cache is another
    one."""
    cause: Cause | None = None
    """Why this request built its cache again, if that was decided when it was answered. Otherwise `cause_of`
    decides."""


class Rebuild(Struct, frozen=True, kw_only=True):
    """A request that paid for tokens which the cache had held."""

    entry_id: str | None
    at: float | None
    cause: Cause
    tokens: int
    """Tokens that were paid for again."""
    cost: float | None
    """What they cost more than a read from the cache would have; None if the prices are not known."""


class Ledger:
    """The bill of a session."""

    def __init__(self) -> None:
        self.tokens = TokensByKind()
        self.costs = CostByKind()
        """The computed costs of the requests whose prices are known."""
        self.reported = 0.0
        """The reported costs, of the requests that have one. They are not part of `costs`."""
        self.predicted: float | None = None
        """The sum of the predictions; None if there is none."""
        self.billed_with_prediction = 0.0
        """What the requests that have a prediction cost."""
        self.rebuilds: list[Rebuild] = []
        self.requests = 0
        self.unpriced: dict[str, int] = {}
        """Tokens without a known price, by model."""
        self.unpriced_tokens = TokensByKind()
        """Tokens without a known price, by kind."""
        self.untimed = 0
        """Requests whose time is not known."""
        self._last: BilledRequest | None = None
        self._last_cost: float | None = None
        self._lifetime_s: float | None = None

    @property
    def billed(self) -> float | None:
        """What all requests cost, in US dollars; None if some have no known price."""
        return None if self.unpriced else self.costs.total + self.reported

    def cost_of(self, kind: Kind) -> float | None:
        """Return what the tokens of a kind cost, in US dollars; None if some have no known price. What only a
        reported cost is known of is not included."""
        return None if getattr(self.unpriced_tokens, kind) else getattr(self.costs, kind)

    @property
    def last_cost(self) -> float | None:
        """What the last request cost, in US dollars; None if that is not known."""
        return self._last_cost

    @property
    def last(self) -> BilledRequest | None:
        """The request that was added last."""
        return self._last

    @property
    def lifetime_s(self) -> float | None:
        """How long the last request stays in the cache after it was used; None if that is not known."""
        return self._lifetime_s

    def add(self, request: BilledRequest) -> Rebuild | None:
        """Add a request of the conversation. Return the rebuild if its cache was built again. O(1)."""
        usage = request.usage
        self.requests += 1
        self.untimed += request.at is None
        self.tokens.add(usage)
        cost = self._add_cost(request)
        if request.predicted is not None and cost is not None:
            self.predicted = (self.predicted or 0.0) + request.predicted
            self.billed_with_prediction += cost
        if request.is_side:
            return None
        self._last_cost = cost
        rebuild = self.rebuild_of(request)
        if rebuild is not None:
            self.rebuilds.append(rebuild)
        if not context_size(usage):
            return rebuild  # it says nothing of the cache
        last, self._last = self._last, request
        usual = request.rules.lifetime_s if request.rules else None
        if usage.cache_write_1h_tokens:
            self._lifetime_s = max(ONE_HOUR_S, usual or 0.0)
        elif usage.cache_write_tokens or last is None or last.model != request.model:
            self._lifetime_s = usual
        return rebuild

    def add_summary(
        self, usage: Usage, pricing: Pricing | None, model: str = "", cost: float | None = None
    ) -> None:
        """Add a request for a summary. It is no request of the conversation, so it changes nothing that is
        known of the cache. `cost`: what it cost, if that was computed when it was made. O(1)."""
        tokens = all_tokens(usage)
        self.tokens.summary += tokens
        if cost is not None:
            self.costs.summary += cost
        elif pricing is None:
            self._add_unpriced(model, tokens)
            self.unpriced_tokens.summary += tokens
        else:
            self.costs.summary += price_by_kind(usage, pricing).total

    def _add_cost(self, request: BilledRequest) -> float | None:
        if request.reported_cost is not None:
            self.reported += request.reported_cost
            return request.reported_cost
        if request.pricing is None:
            tokens = TokensByKind()
            tokens.add(request.usage)
            self._add_unpriced(request.model, tokens.total)
            self.unpriced_tokens.add(request.usage)
            return 0.0 if not tokens.total else None
        costs = price_by_kind(request.usage, request.pricing)
        self.costs.add(costs)
        return costs.total

    def _add_unpriced(self, model: str, tokens: int) -> None:
        if tokens:
            self.unpriced[model] = self.unpriced.get(model, 0) + tokens

    def rebuild_of(self, request: BilledRequest) -> Rebuild | None:
        """Return the rebuild that `request` would be if it were added now; None if it would be none. O(1)."""
        before = self._last
        if before is None:
            return None
        tokens = rebuilt_tokens(before, request)
        if tokens < MIN_REBUILT_TOKENS:
            return None
        return Rebuild(
            entry_id=request.entry_id,
            at=request.at,
            cause=request.cause or cause_of(request.changes, gap_s(before, request), self._lifetime_s),
            tokens=tokens,
            cost=_extra_cost(request, tokens),
        )


def rebuilt_tokens(before: BilledRequest, now: BilledRequest) -> int:
    """Return how many tokens of a request were paid for again although the cache had held them after the
    request before. 0 if the reports of both say nothing of a cache. O(1)."""
    usage, earlier = now.usage, before.usage
    if not earlier.cache_read_tokens + earlier.cache_write_tokens + usage.cache_read_tokens:
        return 0
    held = held_tokens(earlier, before.rules)
    if before.rules is None:
        held = earlier.cache_read_tokens + earlier.cache_write_tokens
    # Not every agent passes on what was written, and some providers do not say it.
    paid = usage.cache_write_tokens + usage.input_tokens
    return max(0, min(held - usage.cache_read_tokens, paid))


def cause_of(changes: frozenset[Change], gap: float | None, lifetime_s: float | None) -> Cause:
    """Return why a cache was built again. A compaction or another model explains it alone. Then comes the
    time: a prefix that had expired would have been written again anyway. `gap`: seconds since the request
    before. O(1)."""
    for change in _BEFORE_EXPIRY:
        if change in changes:
            return change
    if gap is not None and lifetime_s is not None and gap > lifetime_s:
        return "expired"
    for change in _AFTER_EXPIRY:
        if change in changes:
            return change
    return "unknown"


def gap_s(before: BilledRequest, now: BilledRequest) -> float | None:
    """Return the seconds between two answers; None if a time is not known or the clock went back."""
    if before.at is None or now.at is None or now.at < before.at:
        return None
    return now.at - before.at


def _extra_cost(request: BilledRequest, tokens: int) -> float | None:
    """Return what the tokens cost more than a read from the cache."""
    if request.pricing is None:
        return None
    usage = request.usage
    rates = rates_of(request.pricing, context_size(usage))
    written = min(tokens, usage.cache_write_tokens)
    bare = (tokens - written) * (rates.input - rates.cache_read)
    if not written:
        return bare
    for_an_hour = min(usage.cache_write_1h_tokens, usage.cache_write_tokens) / usage.cache_write_tokens
    write = for_an_hour * rates.cache_write_1h + (1 - for_an_hour) * rates.cache_write_5m
    return bare + written * (write - rates.cache_read)
