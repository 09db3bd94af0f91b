"""The bill of a replay by the lifetime of the cache."""

from __future__ import annotations

import pytest

from benchmarks.cost.bill import Sent
from benchmarks.cost.lifetimes import billed, is_timed
from compactd.core.models.lookup import Pricing

PRICING = Pricing(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75, cache_write_1h=6.0)
GAP_S = 600.0


def talk(requests: int, gap_s: float | None) -> list[Sent]:
    """Return requests of 10,000 tokens and 100 more each time."""
    sizes = [10_000 + 100 * number for number in range(requests)]
    before = [0, *sizes]
    return [
        Sent(size=size, unchanged=before[number], output=0, gap_s=gap_s if number else None)
        for number, size in enumerate(sizes)
    ]


def test_five_minutes_write_all_again_after_each_pause() -> None:
    assert billed(talk(3, GAP_S), "5m", PRICING) == pytest.approx((10_000 + 10_100 + 10_200) * 3.75e-6)


def test_an_hour_reads_what_it_has_written() -> None:
    expected = (10_000 + 100 + 100) * 6e-6 + (10_000 + 10_100) * 0.3e-6

    assert billed(talk(3, GAP_S), "1h", PRICING) == pytest.approx(expected)


def test_auto_begins_with_five_minutes_and_changes_to_an_hour() -> None:
    few, many = talk(3, GAP_S), talk(30, GAP_S)

    assert billed(few, "auto", PRICING) == billed(few, "5m", PRICING)
    assert billed(many, "1h", PRICING) < billed(many, "auto", PRICING) < 0.5 * billed(many, "5m", PRICING)


def test_a_head_that_expires_is_written_again() -> None:
    # Warm when it changes to an hour, so that the head was written for 5 minutes.
    sent = [*talk(30, 10.0)]
    sent[10] = Sent(size=sent[10].size, unchanged=sent[10].unchanged, output=0, gap_s=GAP_S)
    sent[20] = Sent(size=sent[20].size, unchanged=sent[20].unchanged, output=0, gap_s=GAP_S)

    lives = billed(sent, "auto", PRICING)
    expires = billed(sent, "auto", PRICING, head_expires=True)

    assert lives < expires


def test_sessions_without_times_are_left_out() -> None:
    assert is_timed(talk(4, GAP_S))
    assert not is_timed(talk(4, None))
