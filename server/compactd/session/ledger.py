"""What the requests of an open session cost, and what the next one will cost.

The ledger follows the session's usage log (`core/history/usage_log.py`). It takes in what is new each time it
is asked, so it costs O(new requests).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.cost.cache_rules import ONE_HOUR_S, CacheRules, cache_rules
from compactd.core.cost.forecast import NextRequest, forecast, held_tokens
from compactd.core.cost.ledger import BilledRequest, Change, Ledger
from compactd.core.cost.price import price
from compactd.core.history.calibration import median
from compactd.core.history.entries import ModelSet, UsageReported
from compactd.core.history.usage_log import LoggedRequest, LoggedSummary, UsageLog
from compactd.core.models.lookup import Lookup, Pricing
from compactd.core.tokens.usage import context_size

FindModel = Callable[[str | None, str | None], Lookup | None]
"""A function that returns what the registry knows about (model, base URL)."""

MAX_OUTPUTS = 15
"""How many of the last answers the expected size of the next one is computed from."""
USUAL_OUTPUT = 500
"""The expected tokens of an answer if there was none yet."""
MIN_UNCACHED = 3
"""After how many requests without a use of the cache a remark says so."""

_NO_HEAD: frozenset[Change] = frozenset(("model", "system", "tools"))
"""Changes after which not even the beginning of the request is in the cache."""


class ModelPrices(Struct, frozen=True, kw_only=True):
    """What is known of a model's prices and cache."""

    name: str
    """The model as the session names it; empty if it names none."""
    pricing: Pricing | None = None
    rules: CacheRules | None = None
    note: str = ""
    """A sentence about the prices, for people; empty if there is nothing to say."""


def bare_id(model: str) -> str:
    """Return the id of a model without its maker."""
    return model.rpartition("/")[2]


class SessionLedger:
    """The ledger of one open session."""

    def __init__(self, find: FindModel) -> None:
        self._find = find
        self._log: UsageLog | None = None
        self._done = 0
        self._models: dict[tuple[str | None, str | None], ModelPrices] = {}
        self._outputs: list[int] = []
        self._chains: dict[str, Ledger] = {}
        """The requests of each sub-agent. Each has a cache of its own."""
        self._unexamined = 0
        """How many requests are a sub-agent's, without the name of the sub-agent."""
        self._used: dict[str, ModelPrices] = {}
        """The models that answered or wrote a summary, by name."""
        self._uncached: int | None = 0
        """How many requests did not use the provider's cache although they were large enough; None once one
        has used it."""
        self.bill = Ledger()

    def follow(self, log: UsageLog) -> Ledger:
        """Take in what is new in the log, and return the bill. O(new requests); if it is another log than the
        last time, O(its requests)."""
        if log is not self._log:
            self._log, self._done, self.bill, self._uncached = log, 0, Ledger(), 0
            self._outputs.clear()
            self._used.clear()
            self._chains.clear()
            self._unexamined = 0
        for item in log.items[self._done :]:
            self._add(item)
        self._done = len(log.items)
        return self.bill

    def _add(self, item: LoggedRequest | LoggedSummary) -> None:
        if isinstance(item, LoggedSummary):
            known = self.prices_of(item.model, None)
            self.bill.add_summary(item.usage, known.pricing, item.model or "", item.cost)
            if item.cost is None:
                self._used[known.name] = known
            return
        known = self.prices_of(item.model, item.base_url)
        self._used[known.name] = known
        request = self.billed(item)
        self.bill.add(request)
        usage = item.report.usage
        if item.report.is_side:
            self._add_side(request, item.report.chain)
            return
        if item.report.is_base and item.report.reported_output:
            self._outputs.append(usage.output_tokens)
            del self._outputs[:-MAX_OUTPUTS]
        if known.rules is not None and context_size(usage) >= known.rules.minimum_tokens:
            if usage.cache_read_tokens or usage.cache_write_tokens:
                self._uncached = None
            elif self._uncached is not None:
                self._uncached += 1

    def _add_side(self, request: BilledRequest, chain: str) -> None:
        """Add a sub-agent's request to the sub-agent's own ledger, and its rebuild to the bill."""
        if not chain:
            self._unexamined += 1
            return
        ledger = self._chains.setdefault(chain, Ledger())
        other = ledger.last is not None and ledger.last.model != request.model
        changes: frozenset[Change] = frozenset(("model",)) if other else frozenset()
        rebuild = ledger.add(replace(request, is_side=False, changes=changes, cause=None))
        if rebuild is not None:
            self.bill.rebuilds.append(rebuild)

    def billed(self, item: LoggedRequest) -> BilledRequest:
        """Return the request with its prices and the rules of its cache."""
        report, known = item.report, self.prices_of(item.model, item.base_url)
        changes = item.changes
        if report.first_change is not None and not changes:
            changes = frozenset((report.first_change,))
        pricing, usage = known.pricing, report.usage
        if pricing and usage.cache_write_1h_tokens and known.rules and not known.rules.needs_marks:
            # OpenAI's writes for 12 hours. No list has their price.
            pricing = pricing if pricing.cache_write_1h is not None else None
        return BilledRequest(
            usage=usage,
            at=report.at or None,
            model=known.name,
            pricing=pricing,
            rules=known.rules,
            changes=changes,
            entry_id=report.entry_id,
            predicted=report.predicted,
            reported_cost=report.reported_cost if pricing is None else None,
            is_side=report.is_side,
            cause=report.cause,
        )

    def with_judgement(self, report: UsageReported, log: UsageLog, model: ModelSet) -> UsageReported:
        """Return a report that is about to be appended, with the cause if it built its cache again. `model`
        is the session's model."""
        bill = self.follow(log)
        rebuild = bill.rebuild_of(self.billed(log.request_of(report, model)))
        return report if rebuild is None else replace(report, cause=rebuild.cause)

    def prices_of(self, model: str | None, base_url: str | None) -> ModelPrices:
        """Return what is known of a model."""
        key = (model, base_url)
        known = self._models.get(key)
        if known is None:
            known = self._models[key] = self._look_up(model, base_url)
        return known

    def _look_up(self, model: str | None, base_url: str | None) -> ModelPrices:
        found = self._find(model, base_url)
        if found is None or model is None:
            return ModelPrices(name="")
        pricing, note = found.pricing, ""
        if pricing is None and not found.upper_bound and base_url is None:
            # The same model at another provider, as `compactd usage` does.
            other = self._find(bare_id(found.model), None)
            if other is not None and other.pricing is not None:
                pricing = other.pricing
                note = f"The prices of {model} are those of {other.provider}; its own are not known."
        return ModelPrices(
            name=model, pricing=pricing, rules=cache_rules(found.provider, found.model), note=note
        )

    # --- the next request -----------------------------------------------------------------------------

    def predict(
        self, log: UsageLog, model: ModelSet, *, size: int, head: int, epoch: int, at: float
    ) -> float | None:
        """Return what a request of `size` tokens will cost, in US dollars, if it is sent at `at`; None if the
        model's prices are not known. `head`: the tokens of its system prompt and tools. O(1)."""
        self.follow(log)
        return self._cost(model, size, self._cached(model, log.pending(epoch), head, at))

    def predict_compacted(
        self, log: UsageLog, model: ModelSet, *, size: int, head: int, at: float
    ) -> float | None:
        """Return what a request will cost that has `size` tokens after a compaction, in US dollars; None if
        the model's prices are not known. The summary itself is not included. O(1)."""
        self.follow(log)
        return self._cost(model, size, self._cached(model, frozenset(("compaction",)), head, at))

    def _cost(self, model: ModelSet, size: int, cached: int) -> float | None:
        known = self.prices_of(model.model, model.base_url)
        if known.pricing is None:
            return None
        output = round(median(self._outputs)) if self._outputs else USUAL_OUTPUT
        request = NextRequest(size=size, cached=cached, output=output, lasts_an_hour=self.lasts_an_hour)
        return price(forecast(request, self._rules(known)), known.pricing)

    @property
    def lasts_an_hour(self) -> bool:
        """Whether the last request that wrote to the cache wrote more for an hour than for 5 minutes."""
        last = self.bill.last
        if last is None or not last.usage.cache_write_tokens:
            return self.bill.lifetime_s == ONE_HOUR_S
        return 2 * last.usage.cache_write_1h_tokens > last.usage.cache_write_tokens

    def _rules(self, known: ModelPrices) -> CacheRules | None:
        """Return the rules of the model's cache; None if the last request shows that it is not used."""
        last, rules = self.bill.last, known.rules
        if last is None or rules is None or not rules.needs_marks or last.model != known.name:
            return rules
        is_cached = last.usage.cache_read_tokens or last.usage.cache_write_tokens
        return rules if is_cached or context_size(last.usage) < rules.minimum_tokens else None

    def _cached(self, model: ModelSet, changes: frozenset[Change], head: int, at: float) -> int:
        """Return how many tokens at the beginning of the next request are in the provider's cache."""
        last, known = self.bill.last, self.prices_of(model.model, model.base_url)
        if last is None or last.model != known.name or changes & _NO_HEAD:
            return 0
        lifetime = self.bill.lifetime_s
        if lifetime is not None and last.at is not None and at - last.at > lifetime:
            return 0
        held = held_tokens(last.usage, known.rules)
        if not changes:
            return held
        return min(held, head) if known.rules is not None and known.rules.keeps_head else 0

    # --- what is not known ----------------------------------------------------------------------------

    def remarks(self) -> tuple[str, ...]:
        """Return a sentence for each thing that the bill does not know. O(models)."""
        bill, told = self.bill, list[str]()
        for model, tokens in bill.unpriced.items():
            if not model:
                told.append(f"{tokens:,} tokens have no price, because no model is named.")
            else:
                told.append(f"{tokens:,} tokens of {model} have no price: compactd's registry lists none.")
        if bill.reported:
            told.append(
                f"${bill.reported:,.2f} of it is what the imported file reports; by_kind leaves it out,"
                " because compactd's registry lists no price of the model."
            )
        told += [known.note for known in self._used.values() if known.note]
        if self._unexamined:
            are = "request is" if self._unexamined == 1 else "requests are"
            told.append(
                f"{self._unexamined:,} {are} of sub-agents, and nothing says which belong together. Their"
                " rebuilds are not examined."
            )
        if bill.untimed:
            which = "All requests" if bill.untimed == bill.requests else f"{bill.untimed:,} requests"
            told.append(
                f"{which} have no time, so nothing says whether the provider's cache expired between them."
            )
        if self._uncached is not None and self._uncached >= MIN_UNCACHED:
            told.append(
                "No usage report names the provider's prompt cache, although the requests were large enough:"
                " they were not marked for it, or the provider ignores the marks."
            )
        return tuple(told)
