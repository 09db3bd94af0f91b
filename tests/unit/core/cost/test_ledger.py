"""The ledger of a session: sums, unknown prices, and why a cache was built again."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from compactd.core.cost.cache_rules import CacheRules, cache_rules
from compactd.core.cost.ledger import BilledRequest, Change, Ledger, Rebuild, cause_of, rebuilt_tokens
from compactd.core.cost.price import price
from compactd.core.models.lookup import Pricing
from compactd.protocol.messages import SummaryUsage, Usage
from tests.support.examples import examples

PRICING = Pricing(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75, cache_write_1h=6.0)
CLAUDE = cache_rules("anthropic", "claude-sonnet-5-5")
GPT = cache_rules("openai", "gpt-5")


def request(
    read: int = 0,
    written: int = 0,
    fresh: int = 0,
    *,
    at: float | None = 0.0,
    output: int = 0,
    lasting: int = 0,
    pricing: Pricing | None = PRICING,
    rules: CacheRules | None = CLAUDE,
    changes: tuple[Change, ...] = (),
    **more: object,
) -> BilledRequest:
    usage = Usage(
        input_tokens=fresh,
        cache_read_tokens=read,
        cache_write_tokens=written,
        cache_write_1h_tokens=lasting,
        output_tokens=output,
    )
    given = BilledRequest(
        usage=usage, at=at, model="m", pricing=pricing, rules=rules, changes=frozenset(changes)
    )
    return replace(given, **more)


def ledger(*requests: BilledRequest) -> Ledger:
    made = Ledger()
    for one in requests:
        made.add(one)
    return made


def test_the_bill_is_the_sum_by_kind() -> None:
    made = ledger(
        request(fresh=1_000_000, output=100_000),
        request(read=1_000_000, written=1_000_000, lasting=400_000),
    )
    made.add_summary(Usage(input_tokens=1_000_000, output_tokens=10_000), PRICING)

    kinds = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "summary")
    costs = [made.cost_of(kind) for kind in kinds]
    assert costs == [pytest.approx(one) for one in (3.0, 0.3, 2.25, 2.4, 1.5, 3.15)]
    assert [getattr(made.tokens, kind) for kind in kinds] == [
        *(1_000_000, 1_000_000, 600_000, 400_000, 100_000, 1_010_000)
    ]
    assert made.billed == pytest.approx(12.6)
    assert made.last_cost == pytest.approx(0.3 + 2.25 + 2.4)


def test_a_compaction_by_the_provider_is_billed_as_a_summary() -> None:
    usage = Usage(input_tokens=1_000_000, summary=SummaryUsage(input_tokens=500_000, output_tokens=100_000))
    made = ledger(replace(request(), usage=usage))

    assert (made.cost_of("input"), made.cost_of("summary")) == (pytest.approx(3.0), pytest.approx(3.0))
    assert (made.tokens.summary, made.billed) == (600_000, pytest.approx(6.0))


def test_a_missing_price_makes_unknown_what_it_is_part_of_and_nothing_else() -> None:
    made = ledger(request(fresh=1_000_000), request(read=500, output=20, pricing=None, model="local"))
    made.add_summary(Usage(), None, "unused")

    assert made.billed is None
    assert made.last_cost is None
    assert made.unpriced == {"local": 520}
    assert (made.cost_of("input"), made.cost_of("cache_read"), made.cost_of("output")) == (3.0, None, None)


def test_a_price_of_zero_is_a_price() -> None:
    free = Pricing(input=0.0, output=0.0)

    assert ledger(request(fresh=9_000, output=9, pricing=free)).billed == 0.0
    assert ledger().billed == 0.0


def test_a_reported_cost_replaces_the_computed_one() -> None:
    made = ledger(request(fresh=1_000_000, reported_cost=0.5), request(fresh=1_000, pricing=None, model="x"))
    both = ledger(request(fresh=1_000_000, reported_cost=0.5), request(fresh=1_000_000))

    assert (made.billed, both.billed, both.reported, both.cost_of("input")) == (None, 3.5, 0.5, 3.0)


def test_a_summarys_cost_is_the_one_that_was_computed_when_it_was_made() -> None:
    made = Ledger()
    made.add_summary(Usage(input_tokens=1_000_000), None, "gone", cost=0.25)

    assert (made.billed, made.cost_of("summary"), made.tokens.summary) == (0.25, 0.25, 1_000_000)


def test_predictions_are_compared_with_the_requests_that_have_one() -> None:
    made = ledger(request(fresh=1_000_000), request(fresh=1_000_000, predicted=2.5))

    assert (made.predicted, made.billed_with_prediction, made.billed) == (2.5, 3.0, 6.0)
    assert ledger(request(fresh=1)).predicted is None


def test_a_growing_conversation_rebuilds_nothing() -> None:
    made = ledger(
        request(written=50_000),
        request(read=50_000, written=2_000, at=60.0),
        request(read=52_000, written=9_000, at=90.0),
    )

    assert made.rebuilds == []


def test_a_rebuild_costs_what_it_costs_more_than_a_read() -> None:
    made = ledger(
        request(written=50_000), request(read=10_000, written=45_000, at=400.0, entry_id="e7", changes=())
    )

    assert made.rebuilds == [
        Rebuild(
            entry_id="e7",
            at=400.0,
            cause="expired",
            tokens=40_000,
            cost=pytest.approx(40_000 * (3.75 - 0.3) / 1e6),
        )
    ]


def test_a_rebuild_for_an_hour_costs_that_rate() -> None:
    made = ledger(
        request(written=10_000, lasting=10_000), request(written=10_000, lasting=10_000, at=4_000.0)
    )

    assert [one.cause for one in made.rebuilds] == ["expired"]
    assert made.rebuilds[0].cost == pytest.approx(10_000 * (6.0 - 0.3) / 1e6)
    # Within the hour, the time does not explain it.
    again = ledger(request(written=9_000, lasting=9_000), request(written=9_000, lasting=9_000, at=3_000.0))
    assert [one.cause for one in again.rebuilds] == ["unknown"]


@pytest.mark.parametrize(
    ("changes", "gap", "lifetime", "cause"),
    [
        (("compaction", "messages"), 900.0, 300.0, "compaction"),
        (("model", "tools"), 900.0, 300.0, "model"),
        (("tools",), 900.0, 300.0, "expired"),
        (("tools", "messages"), 9.0, 300.0, "tools"),
        (("system", "prune"), 300.0, 300.0, "system"),
        (("prune",), None, 300.0, "prune"),
        (("messages",), 900.0, None, "messages"),
        ((), 9.0, 300.0, "unknown"),
        ((), None, 300.0, "unknown"),
    ],
)
def test_the_cause_of_a_rebuild(
    changes: tuple[Change, ...], gap: float | None, lifetime: float | None, cause: str
) -> None:
    assert cause_of(frozenset(changes), gap, lifetime) == cause


def test_a_clock_that_goes_back_explains_nothing() -> None:
    times: list[tuple[float | None, float | None]] = [(1_000.0, 100.0), (None, 1_000.0), (1_000.0, None)]
    causes = [
        ledger(request(written=9_000, at=one), request(written=9_000, at=two)).rebuilds[0].cause
        for one, two in times
    ]

    assert causes == ["unknown"] * 3


def test_the_cause_that_was_recorded_counts() -> None:
    made = ledger(request(written=9_000), request(written=9_000, at=999.0, cause="tools"))

    assert made.rebuilds[0].cause == "tools"


def test_openai_reports_no_writes_so_the_input_is_what_was_paid_again() -> None:
    first, second = request(fresh=20_000, rules=GPT), request(read=19_968, fresh=3_000, rules=GPT)
    lost = request(fresh=24_000, rules=GPT, changes=("system",))

    assert ledger(first, second).rebuilds == []
    made = ledger(first, second, lost)
    assert [(one.cause, one.tokens) for one in made.rebuilds] == [("system", 22_912)]
    assert made.rebuilds[0].cost == pytest.approx(22_912 * (3.0 - 0.3) / 1e6)


@pytest.mark.parametrize("rules", [CLAUDE, None], ids=["the provider names writes", "no rules"])
def test_a_file_without_writes_shows_a_rebuild_as_input(rules: CacheRules | None) -> None:
    first, lost = request(read=42_000, fresh=1_000, rules=rules), request(fresh=44_000, rules=rules)

    made = ledger(first, lost)

    assert [one.tokens for one in made.rebuilds] == [42_000]
    assert made.rebuilds[0].cost == pytest.approx(42_000 * (3.0 - 0.3) / 1e6)


def test_a_rebuild_of_which_a_part_was_not_written_costs_input_for_that_part() -> None:
    made = ledger(request(written=50_000), request(written=30_000, fresh=40_000))

    assert [one.tokens for one in made.rebuilds] == [50_000]
    expected = (30_000 * (3.75 - 0.3) + 20_000 * (3.0 - 0.3)) / 1e6
    assert made.rebuilds[0].cost == pytest.approx(expected)


def test_a_cache_of_which_no_report_speaks_was_never_there() -> None:
    silent = request(fresh=50_000, rules=GPT)

    assert ledger(silent, silent, silent).rebuilds == []
    unknown = request(fresh=50_000, rules=None)
    assert ledger(unknown, unknown).rebuilds == []


def test_a_report_without_tokens_is_not_the_request_before() -> None:
    made = ledger(request(written=50_000), request(at=5.0), request(written=50_000, at=10.0))

    assert made.rebuilds[0].tokens == 50_000
    assert made.requests == 3


SIZES = st.integers(0, 300_000)
REQUESTS = st.builds(
    request,
    read=SIZES,
    written=SIZES,
    fresh=SIZES,
    output=SIZES,
    lasting=SIZES,
    at=st.none() | st.floats(-1e9, 1e10),
    pricing=st.sampled_from((PRICING, None)),
    rules=st.sampled_from((CLAUDE, GPT, None)),
    changes=st.lists(st.sampled_from(("compaction", "model", "messages")), max_size=2).map(tuple),
)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(REQUESTS, max_size=12))
def test_any_reports_add_up_and_no_rebuild_is_larger_than_what_was_paid(given: list[BilledRequest]) -> None:
    made = ledger(*given)

    prices = [price(one.usage, one.pricing) for one in given]
    known = sum(one for one in prices if one is not None)
    assert made.costs.total == pytest.approx(known)
    has_unknown = any(one.pricing is None and any(sizes(one)) for one in given)
    assert made.billed == (None if has_unknown else pytest.approx(known))
    assert made.tokens.total == sum(sum(sizes(one)) for one in given)
    for before, now in pairwise(given):
        assert 0 <= rebuilt_tokens(before, now) <= now.usage.cache_write_tokens + now.usage.input_tokens
    assert all(one.cost is None or one.cost >= 0 for one in made.rebuilds)


def sizes(one: BilledRequest) -> tuple[int, int, int, int]:
    usage = one.usage
    return (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens)
