"""Sums of tokens and costs, by day, month, project, agent, model or session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, tzinfo

from msgspec import Struct

from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.requests import FileUsage, Request
from compactd.core.cost.price import price
from compactd.core.models.lookup import Pricing
from compactd.protocol.messages import Usage

DIMENSIONS = ("day", "month", "project", "agent", "model", "session")
NO_DATE = "no date"
NO_MODEL = "not named"
NO_PROJECT = "unknown"
_SLOT_S = 900
"""Seconds of a slot. A day begins at the beginning of a slot in every time zone."""


class Sum(Struct):
    """The sum of some requests. Counts are tokens, costs US dollars."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0
    reported_usd: float = 0.0
    """The sum of the costs that the files report."""
    priced_usd: float = 0.0
    """The sum of the costs that were computed from prices."""
    cost_reports: int = 0
    """Requests whose file reports a cost."""
    unpriced_tokens: int = 0
    """Tokens without a reported cost whose model has no known price."""
    cache_write_is_reported: bool = False
    """Whether at least one of the agents reports cache writes."""
    first_at: int = 0
    last_at: int = 0
    agents: set[str] = set()
    projects: set[str] = set()
    models: set[str] = set()
    sessions: set[str] = set()

    @property
    def total(self) -> int:
        """All tokens."""
        return self.input + self.output + self.cache_write + self.cache_read

    @property
    def cached_share(self) -> float | None:
        """The share of all input that was read from the cache, 0 to 1; None if there was no input."""
        whole = self.input + self.cache_write + self.cache_read
        return self.cache_read / whole if whole else None

    @property
    def cost_usd(self) -> float | None:
        """The known cost; None if no part of it is known. `unpriced_tokens` says what it leaves out."""
        is_known = self.cost_reports or self.unpriced_tokens < self.total or not self.total
        return self.reported_usd + self.priced_usd if is_known else None

    def add(self, other: Sum) -> None:
        """Add another sum."""
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.cache_write_is_reported |= other.cache_write_is_reported
        starts = [at for at in (self.first_at, other.first_at) if at]
        self.first_at = min(starts, default=0)
        self.last_at = max(self.last_at, other.last_at)
        for name in ("agents", "projects", "models", "sessions"):
            setattr(self, name, getattr(self, name) | getattr(other, name))


_ADDED = (
    *("requests", "input", "output", "cache_write", "cache_write_1h", "cache_read"),
    *("reported_usd", "priced_usd", "cost_reports", "unpriced_tokens"),
)


class Filters(Struct, frozen=True, kw_only=True):
    """Which requests are counted."""

    since: str | None = None
    """The first day, as `2026-11-27`."""
    until: str | None = None
    """The last day, inclusive."""
    models: tuple[str, ...] = ()
    """Parts of a model's name, in any case. A request counts if one of them fits."""
    zone: tzinfo | None = None
    """The time zone of days; None is the local one."""


class Report(Struct, frozen=True, kw_only=True):
    """The sums that the user asked for."""

    by: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], Sum], ...]
    """(the value of each dimension in `by`, the sum), sorted."""
    total: Sum
    unpriced: tuple[tuple[str, int], ...]
    """(model, tokens) whose price is not known, the most tokens first."""
    undated: int
    """Requests that were left out because of `since` or `until`: their file does not say when they were."""


def report(
    counted: Iterable[tuple[FileUsage, Sequence[Request]]],
    by: Sequence[str],
    filters: Filters,
    prices: PriceList,
) -> Report:
    """Return the sums of the requests in `counted`, in groups by the dimensions `by`. O(requests)."""
    day_of = _days(filters.zone)
    rows: dict[tuple[str, ...], Sum] = {}
    unpriced: dict[str, int] = {}
    undated = 0
    for file, requests in counted:
        for slot, place, found in _by_slot(file, requests, prices):
            model = _model_name(file.models[place])
            if filters.models and not any(part.casefold() in model.casefold() for part in filters.models):
                continue
            day = day_of(slot)
            if filters.since or filters.until:
                if day == NO_DATE:
                    undated += found.requests
                    continue
                if day < (filters.since or "") or day > (filters.until or "9999"):
                    continue
            values = {
                "day": day,
                "month": day if day == NO_DATE else day[:7],
                "project": file.project or NO_PROJECT,
                "agent": file.agent,
                "model": model,
                "session": file.session_id,
            }
            key = tuple(values[name] for name in by)
            found.agents, found.projects = {file.agent}, {values["project"]}
            found.models, found.sessions = {model}, {file.session_id}
            found.cache_write_is_reported = "cache_write" not in file.not_reported
            rows.setdefault(key, Sum()).add(found)
            if found.unpriced_tokens:
                unpriced[model] = unpriced.get(model, 0) + found.unpriced_tokens
    total = Sum()
    for found in rows.values():
        total.add(found)
    return Report(
        by=tuple(by),
        rows=tuple(_sorted(rows, by)),
        total=total,
        unpriced=tuple(sorted(unpriced.items(), key=lambda one: (-one[1], one[0]))),
        undated=undated,
    )


def _by_slot(
    file: FileUsage, requests: Sequence[Request], prices: PriceList
) -> Iterator[tuple[int, int, Sum]]:
    """Yield (slot of time, place of the model, sum). A slot can have two sums: one of the requests whose file
    reports their cost, one of the others.
    """
    pricing = [prices.find(provider, model) for provider, model in file.models]
    slots: dict[tuple[int, int, bool], Sum] = {}
    for request in requests:
        at, place, cost = request.at, request.model, request.cost
        key = (at // _SLOT_S, place, cost is None)
        found = slots.get(key)
        if found is None:
            found = slots[key] = Sum(first_at=at, last_at=at)
        found.requests += 1
        found.input += request.input
        found.output += request.output
        found.cache_write += request.cache_write
        found.cache_write_1h += request.cache_write_1h
        found.cache_read += request.cache_read
        if at > found.last_at:
            found.last_at = at
        elif at < found.first_at:
            found.first_at = at
        if cost is not None:
            found.cost_reports += 1
            found.reported_usd += cost
        elif (rates := pricing[place]) is not None and rates.steps:
            found.priced_usd += _price(request, rates)
    for (slot, place, is_unreported), found in slots.items():
        rates = pricing[place]
        if is_unreported and rates is None:
            found.unpriced_tokens = found.total
        elif is_unreported and rates is not None and not rates.steps:
            # Without steps, the price of a sum is the sum of the prices.
            found.priced_usd = _price(found, rates)
        yield slot, place, found


def _price(used: Request | Sum, rates: Pricing) -> float:
    usage = Usage(
        input_tokens=used.input,
        output_tokens=used.output,
        cache_read_tokens=used.cache_read,
        cache_write_tokens=used.cache_write,
        cache_write_1h_tokens=used.cache_write_1h,
    )
    return price(usage, rates) or 0.0


def _model_name(model: tuple[str, str]) -> str:
    return model[1] or NO_MODEL


def _days(zone: tzinfo | None) -> Callable[[int], str]:
    """Return a function that returns the day of a slot, as `2026-11-27`."""
    known: dict[int, str] = {0: NO_DATE}

    def day_of(slot: int) -> str:
        day = known.get(slot)
        if day is None:
            day = known[slot] = datetime.fromtimestamp(slot * _SLOT_S, zone).strftime("%Y-%m-%d")
        return day

    return day_of


def _sorted(rows: dict[tuple[str, ...], Sum], by: Sequence[str]) -> list[tuple[tuple[str, ...], Sum]]:
    """Return the rows in order: days and months from the first to the last, sessions by their beginning,
    everything else from the most tokens to the fewest.
    """
    tokens: list[dict[str, int]] = [{} for _ in by]
    starts: dict[str, int] = {}
    for key, found in rows.items():
        for place, value in enumerate(key):
            tokens[place][value] = tokens[place].get(value, 0) + found.total
            if by[place] == "session":
                starts[value] = min(starts.get(value, found.first_at), found.first_at)

    def rank(row: tuple[tuple[str, ...], Sum]) -> tuple[tuple[int, str], ...]:
        return tuple(
            (0, value)
            if name in ("day", "month")
            else (starts[value], value)
            if name == "session"
            else (-tokens[place][value], value)
            for place, (name, value) in enumerate(zip(by, row[0], strict=True))
        )

    return sorted(rows.items(), key=rank)
