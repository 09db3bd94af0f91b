"""For how long Anthropic's cache keeps a session's requests."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.core.cost.lifetime import MIN_GAPS, Lifetime, NextWrite, Pauses, choose_lifetime
from compactd.core.cost.price import Rates, rates_of
from compactd.core.models.lookup import Pricing
from tests.support.examples import examples

SONNET = rates_of(
    Pricing(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75, cache_write_1h=6.0), 50_000
)
USUAL = NextWrite(context=50_000, growth=1_000.0, is_cold=False)
FRESH = 1_000
"""What each request adds, in tokens."""
MINUTE = 60.0
SHORT, MIDDLE, LONG = 10.0, 10 * MINUTE, 90 * MINUTE


def noted(gaps: Iterable[float]) -> Pauses:
    """Return the pauses of a session with these gaps."""
    pauses, at = Pauses(), 1_000.0
    pauses.note_request(at, FRESH)
    for gap in gaps:
        at += gap
        pauses.note_request(at, FRESH)
    return pauses


def chosen(gaps: Iterable[float], current: Lifetime = "5m", request: NextWrite = USUAL) -> Lifetime:
    return choose_lifetime(current, noted(gaps), request, SONNET)


def after_each(gaps: list[float], request: NextWrite = USUAL) -> list[Lifetime]:
    """Return the lifetime of each request, if each decision begins with the one before."""
    found: list[Lifetime] = []
    for count in range(len(gaps) + 1):
        found.append(chosen(gaps[:count], found[-1] if found else "5m", request))
    return found


def test_pauses_of_ten_minutes_make_it_an_hour() -> None:
    assert chosen([MIDDLE] * 3) == "1h"


def test_pauses_of_a_minute_leave_it_at_five_minutes() -> None:
    assert chosen([MINUTE] * 50) == "5m"
    assert chosen([MINUTE] * 50, "1h") == "5m"


def test_pauses_of_more_than_an_hour_do_not_pay_for_an_hour() -> None:
    assert chosen([LONG] * 10) == "5m"
    assert chosen([LONG] * 10, "1h") == "5m"


@pytest.mark.parametrize("current", ["5m", "1h"])
@pytest.mark.parametrize("gap", [SHORT, MIDDLE, LONG])
def test_fewer_gaps_than_three_change_nothing(current: Lifetime, gap: float) -> None:
    assert chosen([gap] * (MIN_GAPS - 1), current) == current


def test_few_pauses_are_enough_if_the_context_is_large() -> None:
    gaps = [*[SHORT] * 30, MIDDLE, *[SHORT] * 30, MIDDLE]

    assert chosen(gaps, request=NextWrite(context=150_000, growth=1_000.0, is_cold=False)) == "1h"
    assert chosen(gaps, request=NextWrite(context=20_000, growth=1_000.0, is_cold=False)) == "5m"


def test_a_request_that_writes_everything_waits_with_the_change() -> None:
    gaps = [*[SHORT] * 30, MIDDLE]
    warm = NextWrite(context=150_000, growth=1_000.0, is_cold=False)
    cold = NextWrite(context=150_000, growth=1_000.0, is_cold=True)

    assert (chosen(gaps, request=warm), chosen(gaps, request=cold)) == ("1h", "5m")


def test_a_session_that_becomes_quick_returns_to_five_minutes_once() -> None:
    found = after_each([*[MIDDLE] * 5, *[SHORT] * 300])

    changes = [(before, now) for before, now in pairwise(found) if before != now]
    assert changes == [("5m", "1h"), ("1h", "5m")]


def test_near_the_break_even_the_lifetime_does_not_change_with_each_gap() -> None:
    # One pause in `many` gaps is about where both lifetimes cost the same.
    many = round(USUAL.context * (3.75 - 0.3) / (FRESH * (6.0 - 3.75)))
    found = after_each(([SHORT] * (many - 1) + [MIDDLE]) * 4)

    assert sum(before != now for before, now in pairwise(found)) <= 2


def test_times_that_say_nothing_are_no_gaps() -> None:
    pauses = Pauses()
    for at in (1_000.0, 0.0, 2_000.0, 1_500.0, 1_500.0):
        pauses.note_request(at, FRESH)

    assert (pauses.requests, pauses.gaps) == (5, 0)
    pauses.note_request(1_500.0 + MIDDLE, FRESH)
    assert (pauses.gaps, pauses.middle) == (1, 1.0)


def test_a_pause_before_a_compacted_request_is_no_reason_for_an_hour() -> None:
    pauses, at = Pauses(), 1_000.0
    for _ in range(6):
        pauses.note_change()
        pauses.note_request(at, 20_000)
        at += MIDDLE

    assert pauses.middle == 0
    assert choose_lifetime("5m", pauses, USUAL, SONNET) == "5m"


def test_what_is_written_is_measured_after_short_gaps_only() -> None:
    pauses = Pauses()
    for at, fresh in ((1.0, 90_000), (2.0, 500), (2.0 + MIDDLE, 90_000), (3.0 + MIDDLE, 500)):
        pauses.note_request(at, fresh)

    assert pauses.fresh_tokens(7.0) == pytest.approx(500)
    assert Pauses().fresh_tokens(7.0) == 7.0


GAPS = st.lists(st.sampled_from((SHORT, MINUTE, MIDDLE, 50 * MINUTE)), max_size=40)
REQUESTS = st.builds(
    NextWrite,
    context=st.integers(0, 500_000),
    growth=st.floats(1, 20_000),
    is_cold=st.booleans(),
)


@given(gaps=GAPS, longer=st.sets(st.integers(0, 39)), request=REQUESTS)
@settings(max_examples=examples(60))
def test_longer_pauses_never_shorten_the_lifetime(
    gaps: list[float], longer: set[int], request: NextWrite
) -> None:
    usual = NextWrite(context=request.context, growth=FRESH, is_cold=request.is_cold)
    others = [MIDDLE if at in longer else gap for at, gap in enumerate(gaps)]
    # Only where a gap becomes longer.
    others = [max(gap, other) for gap, other in zip(gaps, others, strict=True)]

    pairs = zip(after_each(gaps, usual), after_each(others, usual), strict=True)

    assert all(other == "1h" for before, other in pairs if before == "1h")


@given(gaps=st.lists(st.floats(0, 3 * 3_600), max_size=40), request=REQUESTS)
@settings(max_examples=examples(60))
def test_a_decision_stands_until_something_new_is_known(gaps: list[float], request: NextWrite) -> None:
    pauses = noted(gaps)
    first = {now: choose_lifetime(now, pauses, request, SONNET) for now in ("5m", "1h")}

    assert choose_lifetime(first["5m"], pauses, request, SONNET) == first["5m"]
    assert choose_lifetime(first["1h"], pauses, request, SONNET) == first["1h"]


@given(
    gaps=st.lists(st.floats(0, 3 * 3_600), max_size=40),
    request=REQUESTS,
    factor=st.sampled_from((2.0**-10, 0.5, 2.0, 2.0**10)),
)
@settings(max_examples=examples(60))
def test_the_unit_of_money_changes_nothing(gaps: list[float], request: NextWrite, factor: float) -> None:
    scaled = Rates(**{name: factor * getattr(SONNET, name) for name in Rates.__struct_fields__})

    assert choose_lifetime("5m", noted(gaps), request, SONNET) == choose_lifetime(
        "5m", noted(gaps), request, scaled
    )


def test_a_model_that_costs_nothing_keeps_five_minutes() -> None:
    free = rates_of(Pricing(input=0.0, output=0.0), 50_000)

    assert choose_lifetime("5m", noted([MIDDLE] * 10), USUAL, free) == "5m"
