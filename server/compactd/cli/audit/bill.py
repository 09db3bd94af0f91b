"""The bill of one session file: what its requests cost, by kind, and why its cache was built again.

The sums are those of `compactd usage`. The causes come from the ledger (`core/cost/ledger.py`), with one
ledger for each conversation in the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from compactd.cli.audit.not_told import has_early_reports, unknown_facts
from compactd.cli.audit.trail import Boundary, Place, Sight, Trail
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.requests import FileUsage, Request
from compactd.cli.usage.totals import Filters, Sum, report
from compactd.core.cost.cache_rules import cache_rules
from compactd.core.cost.ledger import BilledRequest, Cause, Ledger, Rebuild, TokensByKind, cause_of
from compactd.core.cost.price import CostByKind, price_by_kind
from compactd.core.tokens.usage import context_size
from compactd.protocol.messages import Usage

CAUSES: tuple[Cause, ...] = (
    "compaction",
    "prune",
    "model",
    "system",
    "tools",
    "messages",
    "expired",
    "unknown",
)
"""The causes, in the order in which they are listed."""


class AuditedRebuild(Struct, frozen=True, kw_only=True):
    """A request that paid again for tokens which the cache had held."""

    cause: Cause
    tokens: int
    cost_usd: float | None
    """What they cost more than a read from the cache; None if the prices are not known."""
    model: str
    at: float | None
    gap_s: float | None
    """The seconds since the answer before; None if a time is missing or the clock went back."""
    line: int | None
    entry_id: str | None
    chain: str
    """Which sub-agent's conversation it is; empty for the conversation with the user."""
    seen: tuple[Sight, ...] = ()
    """What else the file shows before it."""
    has_expired: bool = False
    """Whether the cache had expired too, although another cause counts."""


class CauseSum(Struct, frozen=True, kw_only=True):
    """All rebuilds with one cause."""

    cause: Cause
    rebuilds: int
    tokens: int
    cost_usd: float | None
    """None if the price of one of them is not known."""


class ChainSum(Struct, frozen=True, kw_only=True):
    """One conversation in the file."""

    chain: str
    requests: int
    rebuilds: int
    rebuilt_tokens: int


class CompactionSize(Struct, frozen=True, kw_only=True):
    """A compaction or a prune, with the sizes of the context around it."""

    boundary: Boundary
    tokens_before: int | None
    """The size of the context after the last answer before it; None if that is not known."""
    tokens_after: int | None
    """The size of the first request after it; None if there is none, or if another compaction or prune came
    first."""


class CostPoint(Struct, frozen=True):
    """The cost up to a request, for the picture."""

    at: float | None
    dollars: float
    cause: Cause | None
    """The cause if the request rebuilt its cache."""
    is_compacted: bool
    """Whether a compaction came before the request."""


class Bill(Struct, frozen=True, kw_only=True):
    """What the requests of a session file cost."""

    agent: str
    session_id: str
    project: str
    total: Sum
    """The sums, as `compactd usage` computes them."""
    tokens: TokensByKind
    costs: CostByKind
    """What the tokens of models with a known price cost by the price list, also if the file reports another
    cost."""
    is_priced: bool
    """Whether the prices of all models are known, so that `costs` is complete."""
    unpriced: tuple[tuple[str, int], ...]
    """(model, tokens) without a known price."""
    models: tuple[str, ...]
    has_low_output: bool
    """Whether most reports were written before their answer was complete."""
    rebuilds: tuple[AuditedRebuild, ...]
    """In the order of the file."""
    causes: tuple[CauseSum, ...]
    chains: tuple[ChainSum, ...]
    compactions: tuple[CompactionSize, ...]
    points: tuple[CostPoint, ...]
    """One per request of which the price is known."""
    unknown: tuple[str, ...]
    """Sentences: what the file does not say, and what therefore is not known."""

    @property
    def rebuilt_tokens(self) -> int:
        """The tokens of all rebuilds."""
        return sum(one.tokens for one in self.rebuilds)

    @property
    def rebuilt_usd(self) -> float | None:
        """What all rebuilds cost; None if the price of one is not known."""
        return sum_or_none([one.cost_usd for one in self.rebuilds])

    @property
    def rewritten_share(self) -> float | None:
        """Which share of all tokens that were written to the cache was written again, 0 to 1; None if writes
        are not reported, if there are none, or if some rebuilds wrote nothing."""
        written = self.total.cache_write
        if not self.total.cache_write_is_reported or not written or self.rebuilt_tokens > written:
            return None
        return self.rebuilt_tokens / written


def sum_or_none(amounts: Sequence[float | None]) -> float | None:
    """Return the sum of amounts; None if one of them is None."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def bill_of(trail: Trail, prices: PriceList, counted: Sequence[Request] | None = None) -> Bill:
    """Return the bill of a file. O(requests).

    `counted`: the requests that count for this file, if others contain copies of some; by default, all. A
    request that does not count still shows what the cache held.
    """
    usage = trail.usage
    requests = usage.requests if counted is None else counted
    keys = None if counted is None else {request.key for request in counted}
    summary = report([(usage, requests)], ("model",), Filters(), prices)
    sums = Ledger()
    ledgers: dict[str, Ledger] = {}
    numbers: dict[str, int] = {}
    touched: dict[str, float] = {}
    rebuilds: list[AuditedRebuild] = []
    points: list[CostPoint] = []
    costs = CostByKind()
    unpriced = 0
    dollars = 0.0
    for request, place in zip(usage.requests, trail.places, strict=True):
        is_counted = keys is None or not request.key or request.key in keys
        billed = _billed(usage, request, place, prices, ledgers.get(place.chain))
        if is_counted and billed.pricing is None:
            unpriced += context_size(billed.usage) + billed.usage.output_tokens
        elif is_counted and billed.pricing is not None:
            by_kind = price_by_kind(billed.usage, billed.pricing)
            costs.add(CostByKind(summary=by_kind.total) if place.is_summary else by_kind)
        if place.is_summary:
            if is_counted:
                _add_summary(sums, billed)
            continue
        numbers[place.chain] = numbers.get(place.chain, 0) + is_counted
        ledger = ledgers.setdefault(place.chain, Ledger())
        used_at = _used_at(ledger.last, place, touched.get(place.chain))
        gap = _gap(used_at, place.at)
        has_expired = gap is not None and ledger.lifetime_s is not None and gap > ledger.lifetime_s
        if context_size(billed.usage):
            found = _rebuild(ledger, billed, used_at)
            touched.pop(place.chain, None)
        else:
            # Nothing was reported, so what the cache holds is as before.
            found = None
            touched[place.chain] = max(place.at or 0.0, used_at or 0.0)
        if not is_counted:
            continue
        had = sums.costs.total + sums.reported
        sums.add(billed)
        dollars += sums.costs.total + sums.reported - had
        points.append(
            CostPoint(
                place.at,
                dollars,
                None if found is None else found.cause,
                "compaction" in place.changes,
            )
        )
        if found is not None:
            rebuilds.append(
                AuditedRebuild(
                    cause=found.cause,
                    tokens=found.tokens,
                    cost_usd=found.cost,
                    model=billed.model,
                    at=place.at,
                    gap_s=gap,
                    line=place.line,
                    entry_id=place.entry_id,
                    chain=place.chain,
                    seen=place.seen,
                    has_expired=has_expired,
                )
            )
    return Bill(
        agent=usage.agent,
        session_id=usage.session_id,
        project=usage.project,
        total=summary.total,
        tokens=sums.tokens,
        costs=costs,
        is_priced=not unpriced,
        unpriced=summary.unpriced,
        models=tuple(sorted(summary.total.models)),
        has_low_output=has_early_reports(usage),
        rebuilds=tuple(rebuilds),
        causes=by_cause(rebuilds),
        chains=tuple(_chain_sum(chain, numbers[chain], rebuilds) for chain in numbers),
        compactions=_sizes(trail),
        points=tuple(points),
        unknown=tuple(unknown_facts(trail, prices, summary.total)),
    )


def by_cause(rebuilds: Sequence[AuditedRebuild]) -> tuple[CauseSum, ...]:
    """Return the sums of the rebuilds, by cause. Causes that do not occur are left out."""
    sums: list[CauseSum] = []
    for cause in CAUSES:
        some = [one for one in rebuilds if one.cause == cause]
        if some:
            sums.append(
                CauseSum(
                    cause=cause,
                    rebuilds=len(some),
                    tokens=sum(one.tokens for one in some),
                    cost_usd=sum_or_none([one.cost_usd for one in some]),
                )
            )
    return tuple(sums)


def _billed(
    usage: FileUsage, request: Request, place: Place, prices: PriceList, ledger: Ledger | None
) -> BilledRequest:
    provider, model = usage.models[request.model]
    changes = set(place.changes)
    before = None if ledger is None else ledger.last
    if before is not None and before.model != model:
        changes.add("model")
    return BilledRequest(
        usage=usage_of(request),
        at=place.at,
        model=model,
        pricing=prices.find(provider, model),
        rules=cache_rules(provider or None, model),
        changes=frozenset(changes),
        entry_id=place.entry_id,
        reported_cost=request.cost,
    )


def _used_at(before: BilledRequest | None, place: Place, touched_at: float | None) -> float | None:
    """Return when the cache was last used before a request; None if that is not known."""
    if before is None or before.at is None:
        return None
    return max(before.at, place.touched_at or 0.0, touched_at or 0.0)


def _gap(used_at: float | None, at: float | None) -> float | None:
    return None if used_at is None or at is None or at < used_at else at - used_at


def _rebuild(ledger: Ledger, billed: BilledRequest, used_at: float | None) -> Rebuild | None:
    """Add a request to the ledger of its conversation. Return its rebuild, with the cause that fits the time
    since the cache was last used, which may have been by a request without a report."""
    lifetime_s = ledger.lifetime_s
    found = ledger.add(billed)
    if found is None:
        return None
    return replace(found, cause=cause_of(billed.changes, _gap(used_at, billed.at), lifetime_s))


def usage_of(request: Request) -> Usage:
    """Return the tokens of a request as a usage report."""
    return Usage(
        input_tokens=request.input,
        output_tokens=request.output,
        cache_read_tokens=request.cache_read,
        cache_write_tokens=request.cache_write,
        cache_write_1h_tokens=request.cache_write_1h,
    )


def _add_summary(sums: Ledger, billed: BilledRequest) -> None:
    if billed.reported_cost is None:
        sums.add_summary(billed.usage, billed.pricing, billed.model)
    else:
        sums.tokens.summary += context_size(billed.usage) + billed.usage.output_tokens
        sums.reported += billed.reported_cost


def _chain_sum(chain: str, requests: int, rebuilds: Sequence[AuditedRebuild]) -> ChainSum:
    own = [one for one in rebuilds if one.chain == chain]
    return ChainSum(
        chain=chain, requests=requests, rebuilds=len(own), rebuilt_tokens=sum(one.tokens for one in own)
    )


def _sizes(trail: Trail) -> tuple[CompactionSize, ...]:
    """Return the sizes around each compaction and prune, in the order of the file. O(requests)."""
    before, after = _neighbours(trail)
    sizes: list[CompactionSize] = []
    for boundary, earlier, later in zip(trail.boundaries, before, after, strict=True):
        measured = None if earlier is None else context_size(earlier) + earlier.output_tokens
        sizes.append(
            CompactionSize(
                boundary=boundary,
                tokens_before=boundary.tokens_before or measured,
                tokens_after=None if later is None else context_size(later),
            )
        )
    return tuple(sizes)


def _neighbours(trail: Trail) -> tuple[list[Usage | None], list[Usage | None]]:
    """Return (the last report before each boundary in its conversation, the first report after it). The
    second is None if another boundary came first. O(requests)."""
    before: list[Usage | None] = []
    after: list[Usage | None] = [None] * len(trail.boundaries)
    last: dict[str, Usage] = {}
    waiting: dict[str, int] = {}
    boundaries = deque(enumerate(trail.boundaries))
    for position in range(len(trail.places) + 1):
        while boundaries and boundaries[0][1].position <= position:
            number, boundary = boundaries.popleft()
            before.append(last.get(boundary.chain))
            waiting[boundary.chain] = number
        if position == len(trail.places):
            break
        place, usage = trail.places[position], usage_of(trail.usage.requests[position])
        if place.is_summary or not context_size(usage):
            continue
        last[place.chain] = usage
        if place.chain in waiting:
            after[waiting.pop(place.chain)] = usage
    return before, after
