"""The loopback's automatic cache follows the documented rules."""

from __future__ import annotations

import pytest

from tests.support.loopback.automatic_cache import AutomaticCache


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def request(*sizes: int, **more: object) -> dict:
    """A request with a message of each size in tokens, its quotation marks included."""
    return {"model": "m", "input": ["x" * (4 * size - 2) for size in sizes], **more}


def reads(*bodies: dict) -> list[int]:
    one = AutomaticCache(Clock())
    return [one.bill(body).read for body in bodies]


def test_the_common_beginning_is_read_in_steps_of_128_from_1024_tokens_on() -> None:
    assert reads(request(1_100), request(1_100, 900), request(1_100, 900, 5)) == [0, 1_024, 1_920]
    assert reads(request(1_020), request(1_020, 2_000)) == [0, 0]


def test_what_is_not_read_is_input_and_nothing_is_written() -> None:
    one = AutomaticCache(Clock())
    one.bill(request(1_100))
    billed = one.bill(request(1_100, 900))

    assert (billed.written_5m, billed.written_1h) == (0, 0)
    assert billed.input + billed.read == billed.size
    assert billed.size == pytest.approx(2_000, abs=2)


@pytest.mark.parametrize("changed", [{"tools": ["other"]}, {"instructions": "other"}, {"model": "other"}])
def test_a_change_at_the_beginning_ends_the_prefix(changed: dict) -> None:
    assert reads(request(2_000), request(2_000, **changed)) == [0, 0]


def test_a_prefix_ends_five_minutes_after_its_last_use() -> None:
    clock = Clock()
    one = AutomaticCache(clock)
    found = []
    for wait in (0, 299, 299, 300):
        clock.now += wait
        found.append(one.bill(request(2_048)).read > 0)

    assert found == [False, True, True, False]
