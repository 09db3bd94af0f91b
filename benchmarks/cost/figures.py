"""The figures of the page: bills by policy and price list, by session, and what compactions made agents read
again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from benchmarks.cost.bill import Bill, PriceList, billed
from benchmarks.cost.policies import THRESHOLDS, TODAY, AnyPolicy, Cost, Fixed, Never, Own
from benchmarks.cost.replay import Outcome
from benchmarks.cost.running import Replayed
from benchmarks.retention.aside import is_aside

PARTS: dict[str, Callable[[str], bool]] = {
    "tuned": lambda name: not is_aside(name),
    "aside": is_aside,
    "all": lambda name: True,
}
WEIGHTS = (0.5, 1.0, 2.0)
"""By what the cost of losses is multiplied to see how much it matters."""
BASE = "160k"
"""The policy that the others are compared with: 80 % of the window."""
WITHIN = 1.05
FIXED = tuple(Fixed(threshold).name for threshold in THRESHOLDS)


class Row(Struct, frozen=True, kw_only=True):
    """One policy over several sessions, by one price list."""

    bill: Bill
    totals: dict[str, float]
    """The whole bill by weight of the losses."""
    sessions: int


class SessionRow(Struct, frozen=True, kw_only=True):
    """One session by the first price list."""

    name: str
    is_aside: bool
    requests: int
    totals: dict[str, float]
    """The whole bill by policy."""
    retained: dict[str, float]
    """The share of the used facts that were in the context, by policy."""

    @property
    def best(self) -> str:
        """The fixed threshold that is cheapest in hindsight; never compacting counts too."""
        return min((*FIXED, "never"), key=lambda name: self.totals[name])

    @property
    def ratio(self) -> float:
        """The cost policy's bill as a multiple of that of the best threshold."""
        return self.totals["cost"] / self.totals[self.best]


class Reread(Struct, frozen=True, kw_only=True):
    """What the compactions at one threshold removed and made the agent read again, in tokens."""

    compactions: int
    removed: int
    reread: int
    rereads: int


class Figures(Struct, frozen=True, kw_only=True):
    """Everything that the page shows."""

    lists: dict[str, dict[str, dict[str, Row]]]
    """Rows by price list, part and policy."""
    own: dict[str, dict[str, Row]]
    """By the first price list, only the sessions in which the agent itself compacted: rows by part and
    policy."""
    sessions: tuple[SessionRow, ...]
    rereads: dict[str, Reread]
    """By threshold, sessions tuned on only."""


def policies(lists: Sequence[PriceList]) -> tuple[AnyPolicy, ...]:
    """Return the policies to replay. The cost policy decides by the first price list."""
    return (
        Never(),
        Own(),
        *(Fixed(threshold) for threshold in THRESHOLDS),
        TODAY,
        Cost(relative(lists[0])),
    )


def relative(prices: PriceList) -> PriceList:
    """Return the list with an input price of 1. The policy decides the same with it, so a change of all
    prices needs no new replays."""
    pricing = prices.pricing
    if pricing.steps:
        return prices

    def share(price: float | None) -> float | None:
        return None if price is None else round(price / pricing.input, 6)

    return PriceList(
        "relative",
        replace(
            pricing,
            input=1.0,
            output=round(pricing.output / pricing.input, 6),
            cache_read=share(pricing.cache_read),
            cache_write=share(pricing.cache_write),
        ),
        prices.lifetime_s,
    )


def figures(lists: Sequence[PriceList], replays: Sequence[Replayed]) -> Figures:
    """Return all figures. `replays` are those of `policies(lists)`."""
    names = [policy.name for policy in policies(lists)]

    def bills(replayed: Replayed, at: int) -> dict[str, Bill]:
        outcomes = zip(names, replayed.outcomes, strict=True)
        return {name: billed(outcome.sent, lists[at]) for name, outcome in outcomes}

    by_list: dict[str, dict[str, dict[str, Row]]] = {}
    for at, prices in enumerate(lists):
        found = {replayed.name: bills(replayed, at) for replayed in replays}
        by_list[prices.name] = {part: _rows(found, chosen) for part, chosen in PARTS.items()}
    first = {replayed.name: bills(replayed, 0) for replayed in replays}
    compacted = {replayed.name for replayed in replays if replayed.has_own}
    return Figures(
        lists=by_list,
        own={
            part: _rows(first, lambda name, chosen=chosen: name in compacted and chosen(name))
            for part, chosen in PARTS.items()
        },
        sessions=tuple(
            SessionRow(
                name=name,
                is_aside=is_aside(name),
                requests=mine["never"].requests,
                totals={policy: round(bill.total(), 4) for policy, bill in mine.items()},
                retained={policy: round(bill.retained, 5) for policy, bill in mine.items()},
            )
            for name, mine in first.items()
        ),
        rereads={
            names[i]: _reread(replayed.outcomes[i] for replayed in replays if not is_aside(replayed.name))
            for i in range(len(names))
            if names[i] in FIXED
        },
    )


def _rows(found: dict[str, dict[str, Bill]], chosen: Callable[[str], bool]) -> dict[str, Row]:
    mine = [bills for name, bills in found.items() if chosen(name)]
    if not mine:
        return {}
    return {policy: _row([bills[policy] for bills in mine]) for policy in mine[0]}


def _row(bills: Sequence[Bill]) -> Row:
    whole = Bill(
        **{name: _sum(asdict(bill)[name] for bill in bills) for name in Bill.__struct_fields__},
    )
    totals = {f"{weight:g}": round(sum(bill.total(weight) for bill in bills), 4) for weight in WEIGHTS}
    return Row(bill=whole, totals=totals, sessions=len(bills))


def _sum(values: Iterable[float]) -> float:
    total = sum(values)
    return total if isinstance(total, int) else round(total, 4)


def _reread(outcomes: Iterable[Outcome]) -> Reread:
    removals = [removal for outcome in outcomes for removal in outcome.removals]
    return Reread(
        compactions=len(removals),
        removed=sum(removal.before - removal.after for removal in removals),
        reread=sum(removal.reread for removal in removals),
        rereads=sum(removal.rereads for removal in removals),
    )
