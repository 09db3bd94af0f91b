"""Sums, prices and days of `compactd usage`."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, timedelta, timezone

import pytest

from compactd.cli.usage.dates import day_of
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.requests import FileUsage, Request, seconds
from compactd.cli.usage.totals import Filters, Report, report
from compactd.models.registry_files import PACKAGED, PRICES_AS_OF

MILLION = 1_000_000
OPUS = ("", "claude-opus-4-5")
NOBODYS = ("", "nobodys-model-9")
FIRST = seconds("2026-01-02T23:50:00Z")


def request(model: int = 0, at: int = FIRST, cost: float | None = None, **tokens: int) -> Request:
    counts = {"input": 0, "output": 0, "cache_write": 0, "cache_write_1h": 0, "cache_read": 0, **tokens}
    return Request(key=0, at=at, model=model, cost=cost, **counts)


def usage(*requests: Request, session: str = "s1", agent: str = "claude-code", **fields: object) -> FileUsage:
    file = FileUsage(agent=agent, session_id=session, project="/home/someone/ledger", models=[OPUS, NOBODYS])
    file.requests = list(requests)
    return file


def summed(*files: FileUsage, by: tuple[str, ...] = ("day",), **filters: object) -> Report:
    chosen = Filters(**{"zone": UTC, **filters})  # type: ignore[arg-type]
    return report([(file, file.requests) for file in files], by, chosen, PriceList())


def test_the_price_is_that_of_the_registry_and_long_cache_writes_cost_twice_the_input() -> None:
    # claude-opus-4-5: 5 for input, 25 for output, 0.5 for reads and 6.25 for writes, in dollars per million.
    found = summed(
        usage(
            request(input=MILLION, output=MILLION),
            request(cache_write=3 * MILLION, cache_write_1h=MILLION, cache_read=MILLION),
        )
    ).total

    assert found.cost_usd == pytest.approx(5 + 25 + 2 * 6.25 + 1 * 10 + 0.5)
    assert found.cached_share == pytest.approx(1 / 5)


def test_a_large_request_has_the_higher_price_but_not_the_sum_of_small_ones() -> None:
    # gemini-2.5-pro costs more if one request has more than 200,000 input tokens.
    model = ("google", "gemini-2.5-pro")
    prices = PriceList().find(*model)
    assert prices is not None
    assert prices.steps[0].above == 200_000
    small, large = usage(*[request(input=150_000)] * 2), usage(request(input=300_000))
    small.models = large.models = [model]

    assert summed(small).total.cost_usd == pytest.approx(0.3 * prices.input)
    assert summed(large).total.cost_usd == pytest.approx(0.3 * prices.steps[0].input)


def test_an_unknown_price_is_never_zero_and_the_sum_says_what_it_leaves_out() -> None:
    only = summed(usage(request(1, input=10)))
    both = summed(usage(request(1, input=10), request(0, input=MILLION)))

    assert (only.total.cost_usd, only.unpriced) == (None, (("nobodys-model-9", 10),))
    assert both.total.cost_usd == pytest.approx(5)
    assert (both.total.unpriced_tokens, both.unpriced) == (10, (("nobodys-model-9", 10),))


def test_a_reported_cost_replaces_the_price() -> None:
    found = summed(usage(request(0, input=MILLION, cost=1.25), request(1, input=7, cost=0.5))).total

    assert (found.cost_usd, found.reported_usd, found.cost_reports) == (1.75, 1.75, 2)
    assert found.unpriced_tokens == 0


def test_days_are_those_of_the_time_zone() -> None:
    file = usage(request(output=1), request(output=2, at=FIRST + 1200))
    india = timezone(timedelta(hours=5, minutes=30))

    def days(**filters: object) -> list[tuple[str, int]]:
        return [(key[0], found.output) for key, found in summed(file, **filters).rows]

    assert days() == [("2026-01-02", 1), ("2026-01-03", 2)]
    assert days(zone=india) == [("2026-01-03", 3)]


def test_since_and_until_are_inclusive_and_undated_requests_are_told() -> None:
    file = usage(
        request(output=1),
        request(output=2, at=FIRST + 1200),
        request(output=4, at=0),
        request(output=8, at=1),
    )

    def outputs(**filters: object) -> tuple[int, int]:
        found = summed(file, **filters)
        return found.total.output, found.undated

    assert outputs() == (15, 0)
    assert outputs(since="2026-01-03") == (2, 2)
    assert outputs(until="2026-01-02") == (1, 2)
    assert outputs(since="2026-01-02", until="2026-01-02") == (1, 2)


def test_models_are_chosen_by_a_part_of_their_name() -> None:
    file = usage(request(0, output=1), request(1, output=2))

    assert summed(file, models=("OPUS",)).total.output == 1
    assert summed(file, models=("opus", "nobody")).total.output == 3


def test_rows_go_from_the_first_day_and_from_the_most_tokens() -> None:
    old, new = (
        usage(request(0, output=1), request(1, output=5)),
        usage(request(0, at=FIRST + 90_000, output=9)),
    )
    other = usage(request(0, at=FIRST + 90_000, output=90), session="s0", agent="codex")

    def keys(*by: str) -> list[tuple[str, ...]]:
        return [key for key, _ in summed(new, other, old, by=by).rows]

    assert keys("month", "agent") == [("2026-01", "codex"), ("2026-01", "claude-code")]
    assert keys("day") == [("2026-01-02",), ("2026-01-04",)]
    assert keys("model") == [("claude-opus-4-5",), ("nobodys-model-9",)]
    assert keys("session") == [("s1",), ("s0",)]
    assert keys("project") == [("/home/someone/ledger",)]


def test_rows_know_their_sessions_and_when_they_were() -> None:
    found = summed(usage(request(output=1)), usage(request(output=2, at=FIRST + 5), session="s2")).total

    assert (found.sessions, found.first_at, found.last_at, found.requests) == (
        {"s1", "s2"},
        FIRST,
        FIRST + 5,
        2,
    )


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-11-01", "2026-11-01"),
        ("20261101", "2026-11-01"),
        ("today", "2026-11-27"),
        ("Yesterday", "2026-11-26"),
        ("1d", "2026-11-27"),
        ("7d", "2026-11-21"),
        ("2w", "2026-11-14"),
        ("1m", "2026-10-29"),
    ],
)
def test_days_are_read(text: str, day: str) -> None:
    assert day_of(text, date(2026, 11, 27)) == day


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "7", "7y", "-3d", "2026-11", "99999d"])
def test_what_is_no_day_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="write a date"):
        day_of(text, date(2026, 11, 27))


@pytest.mark.parametrize(
    ("time", "second"),
    [
        ("2026-01-02T03:04:05.678Z", 1_767_323_045),
        ("2026-01-02T04:04:05+01:00", 1_767_323_045),
        ("2026-01-02T03:04:05", 1_767_323_045),
        (1_767_323_045_678, 1_767_323_045),
        ("now", 0),
        (-5, 0),
        (None, 0),
    ],
)
def test_times_are_seconds_since_1970(time: str | int | None, second: int) -> None:
    assert seconds(time) == second


def test_the_date_of_the_prices_belongs_to_the_packaged_rows() -> None:
    content = hashlib.sha256((PACKAGED / "models.jsonl").read_bytes()).hexdigest()

    assert {content[:16]: PRICES_AS_OF} == {"f539ad0a97bcbb84": "2026-11-22"}, (
        "set PRICES_AS_OF for the new rows"
    )
