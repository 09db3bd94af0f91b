"""When a compaction lowers the bill."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from compactd.core.cost.policy import (
    KEPT_TOKENS,
    MAX_REREAD_TOKENS,
    MIN_GROWTH_SHARE,
    REREAD_SHARE,
    Situation,
    decide,
    prune_pays,
    target_of,
)
from compactd.core.cost.price import Rates, rates_of
from compactd.core.models.lookup import Pricing
from tests.support.examples import examples

SONNET = rates_of(Pricing(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75), 50_000)
HEAD = 15_000
AFTER = HEAD + KEPT_TOKENS
USUAL = Situation(
    context=60_000,
    after=AFTER,
    head=HEAD,
    growth=1_000.0,
    requests=60,
    grown=60_000 - AFTER,
    is_cold=False,
)


def scaled(rates: Rates, factor: float) -> Rates:
    return Rates(**{name: factor * getattr(rates, name) for name in Rates.__struct_fields__})


def first_due(rates: Rates, situation: Situation) -> int | None:
    """The smallest context, in steps of 500 tokens, at which a compaction is due."""
    sizes = range(situation.after, 400_000, 500)
    return next(
        (
            size
            for size in sizes
            if decide(replace(situation, context=size, grown=size - situation.after), rates).compact
        ),
        None,
    )


def test_a_compaction_is_due_at_the_economic_order_quantity_above_what_it_leaves() -> None:
    # √(2 · 12,000 · 3.75 · 1,000 ÷ 0.3) = 17,321 tokens
    assert first_due(SONNET, USUAL) == 44_500


def test_with_a_large_growth_the_distance_also_spreads_what_is_read_again() -> None:
    # From 30,000 removed tokens on, 12,000 are read again (at $4.05 a million: $0.0486), and 12,000 are
    # written again ($0.045): √(2 · (0.045 + 0.0486) · 4,000 ÷ 0.0000003) = 49,960 tokens.
    assert first_due(SONNET, replace(USUAL, growth=4_000.0)) == 77_000


@given(growth=st.floats(1, 50_000), kept=st.integers(1_000, 100_000), far=st.floats(0.02, 50.0))
@settings(max_examples=examples(100))
def test_no_other_distance_is_cheaper(growth: float, kept: int, far: float) -> None:
    situation = replace(USUAL, after=HEAD + kept, growth=growth, requests=10**9)
    reason = decide(replace(situation, context=HEAD + kept + 1, grown=10**6), SONNET).reason
    due = int(reason.rpartition("cheapest from ")[2].split()[0].replace(",", "")) - situation.after

    def per_token(distance: float) -> float:
        """The cost of one compaction and of the reads until then, by the formula of the module."""
        lost = min(REREAD_SHARE * distance, MAX_REREAD_TOKENS) * (SONNET.cache_write_5m + SONNET.cache_read)
        once = kept * SONNET.cache_write_5m + lost
        return once / distance + SONNET.cache_read * distance / (2 * growth)

    # `due` is rounded to a whole token.
    assert per_token(due) <= 1.001 * per_token(max(1.0, far * due))


def test_the_reason_has_the_numbers() -> None:
    decision = decide(USUAL, SONNET)

    assert decision.compact
    assert decision.payback_turns == pytest.approx(9.5, abs=0.1)
    assert decision.cold is False
    assert "33,000 tokens" in decision.reason
    assert f"{decision.payback_turns} requests" in decision.reason


def test_a_young_session_waits_until_the_compaction_pays_back() -> None:
    decision = decide(replace(USUAL, requests=3), SONNET)

    assert not decision.compact
    assert "about 3 more are expected" in decision.reason


def test_a_cold_cache_makes_a_compaction_cheaper_at_once() -> None:
    situation = replace(USUAL, context=40_000, grown=13_000)

    assert not decide(situation, SONNET).compact
    cold = decide(replace(situation, is_cold=True), SONNET)
    assert cold.compact
    assert cold.cold is True
    assert cold.payback_turns is not None
    assert cold.payback_turns < 0


def test_a_model_that_costs_nothing_is_left_to_the_window() -> None:
    decision = decide(USUAL, rates_of(Pricing(input=0.0, output=0.0), 50_000))

    assert not decision.compact
    assert decision.payback_turns is None
    assert decision.reason == "The window decides alone: the model's prices are zero."


def test_a_summary_by_a_model_waits_longer() -> None:
    without, with_model = first_due(SONNET, USUAL), first_due(SONNET, replace(USUAL, summary_cost=0.2))

    assert without is not None
    assert with_model is not None
    assert with_model > without + 10_000


def test_a_long_request_raises_the_target() -> None:
    assert target_of(HEAD, 500) == AFTER
    assert target_of(HEAD, 20_000) == HEAD + 40_000


@given(
    context=st.integers(0, 2_000_000),
    kept=st.integers(1_000, 100_000),
    growth=st.floats(0, 50_000),
    requests=st.integers(0, 10_000),
    is_cold=st.sampled_from((True, False, None)),
    factor=st.sampled_from((2.0**-10, 0.5, 2.0, 2.0**10)),
)
@settings(max_examples=examples(60))
def test_the_unit_of_money_changes_nothing(
    context: int, kept: int, growth: float, requests: int, is_cold: bool | None, factor: float
) -> None:
    situation = Situation(
        context=context,
        after=HEAD + kept,
        head=HEAD,
        growth=growth,
        requests=requests,
        grown=max(0, context - HEAD - kept),
        is_cold=is_cold,
    )

    one, other = decide(situation, SONNET), decide(situation, scaled(SONNET, factor))

    assert (one.compact, one.payback_turns) == (other.compact, other.payback_turns)


@given(
    read=st.floats(0.01, 1.0),
    write=st.floats(1.0, 2.0),
    dearer=st.floats(1.0, 10.0),
    kept=st.integers(4_000, 60_000),
    growth=st.floats(50, 20_000),
    requests=st.integers(1, 1_000),
)
@settings(max_examples=examples(60))
def test_dearer_writes_never_bring_a_compaction_forward(
    read: float, write: float, dearer: float, kept: int, growth: float, requests: int
) -> None:
    cheap = rates_of(Pricing(input=1.0, output=5.0, cache_read=read, cache_write=write), 0)
    dear = rates_of(Pricing(input=1.0, output=5.0, cache_read=read, cache_write=write * dearer), 0)
    situation = replace(USUAL, after=HEAD + kept, growth=growth, requests=requests)

    early, late = first_due(cheap, situation), first_due(dear, situation)

    assert late is None or (early is not None and early <= late)


@given(
    context=st.integers(0, 2_000_000),
    kept=st.integers(1_000, 100_000),
    requests=st.integers(0, 10_000),
    is_cold=st.sampled_from((True, False, None)),
)
@settings(max_examples=examples(60))
def test_nothing_is_compacted_twice_without_growth_between(
    context: int, kept: int, requests: int, is_cold: bool | None
) -> None:
    # A compaction may leave more than expected: the newest request and pinned messages stay.
    situation = Situation(
        context=context,
        after=HEAD + kept,
        head=HEAD,
        growth=1_000.0,
        requests=requests,
        grown=0,
        is_cold=is_cold,
    )
    for grown in (0, int(MIN_GROWTH_SHARE * kept) - 1):
        assert not decide(replace(situation, grown=grown), SONNET).compact


def test_a_prune_at_the_end_of_the_prefix_pays_and_one_in_its_middle_does_not() -> None:
    assert prune_pays(saved=20_000, behind=5_000, requests=10, is_cold=False, rates=SONNET)
    assert not prune_pays(saved=20_000, behind=100_000, requests=10, is_cold=False, rates=SONNET)
    assert prune_pays(saved=20_000, behind=100_000, requests=10, is_cold=True, rates=SONNET)
    assert prune_pays(saved=20_000, behind=100_000, requests=90, is_cold=False, rates=SONNET)
