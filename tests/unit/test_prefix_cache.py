"""The loopback's prompt cache follows the documented rules."""

from __future__ import annotations

import pytest

from tests.support.loopback.prefix_cache import PrefixCache, RefusedRequest

MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def cache(clock: Clock | None = None, minimum: int = 0) -> PrefixCache:
    """Each block counts as many tokens as its text has characters."""
    return PrefixCache(
        clock or Clock(), minimum_tokens=minimum, count=lambda block: len(str(block.get("text", "")))
    )


def request(*sizes: int, marked: dict[int, dict] | None = None, **more: object) -> dict:
    """A request of one message with a block of each size; `marked` are the breakpoints."""
    blocks = [
        {"type": "text", "text": "x" * size, **(marked or {}).get(at, {})} for at, size in enumerate(sizes)
    ]
    return {"model": "m", "messages": [{"role": "user", "content": blocks}], **more}


def test_a_prefix_is_written_once_and_then_read() -> None:
    one = cache()

    first = one.bill(request(100, 50, 7, marked={1: MARK}))
    second = one.bill(request(100, 50, 9, marked={1: MARK}))

    assert (first.written_5m, first.read, first.input) == (150, 0, 7)
    assert (second.written_5m, second.read, second.input) == (0, 150, 9)


def test_without_a_breakpoint_nothing_is_cached() -> None:
    one = cache()
    one.bill(request(100, marked={0: MARK}))

    assert one.bill(request(100, 5)).input == 105


def test_a_growing_conversation_writes_only_what_is_new() -> None:
    one = cache()
    one.bill(request(100, marked={0: MARK}))

    grown = one.bill(request(100, 30, marked={1: MARK}))

    assert (grown.read, grown.written_5m, grown.input) == (100, 30, 0)


def test_twenty_blocks_are_looked_at_for_each_breakpoint() -> None:
    near, far = cache(), cache()
    for one in (near, far):
        one.bill(request(100, marked={0: MARK}))

    assert near.bill(request(100, *[1] * 19, marked={19: MARK})).read == 100
    assert far.bill(request(100, *[1] * 20, marked={20: MARK})).read == 0


def test_a_changed_block_ends_the_prefix() -> None:
    one = cache()
    one.bill(request(100, 50, marked={0: MARK, 1: MARK}))

    changed = one.bill(request(100, 51, marked={0: MARK, 1: MARK}))

    assert (changed.read, changed.written_5m) == (100, 51)


@pytest.mark.parametrize(("mark", "lifetime"), [(MARK, 300), (HOUR, 3_600)])
def test_a_prefix_ends_after_its_lifetime_and_a_read_starts_it_again(mark: dict, lifetime: int) -> None:
    clock = Clock()
    one = cache(clock)
    one.bill(request(100, marked={0: mark}))
    reads = []
    for wait in (lifetime - 1, lifetime - 1, lifetime):
        clock.now += wait
        reads.append(one.bill(request(100, marked={0: mark})).read)

    assert reads == [100, 100, 0]


def test_a_short_prefix_is_not_written() -> None:
    one = cache(minimum=101)

    assert one.bill(request(100, marked={0: MARK})).written_5m == 0
    assert one.bill(request(101, marked={0: MARK})).written_5m == 101


def test_too_many_breakpoints_and_lifetimes_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(RefusedRequest, match="maximum of 4"):
        cache().bill(request(*[1] * 5, marked=dict.fromkeys(range(5), MARK)))
    with pytest.raises(RefusedRequest, match="1h"):
        cache().bill(request(1, 1, marked={0: MARK, 1: HOUR}))


def test_the_order_is_tools_system_messages_and_the_model_has_its_own_cache() -> None:
    one = cache()
    head = {
        "tools": [{"name": "a", "text": "t" * 10, **HOUR}],
        "system": [{"type": "text", "text": "s" * 20, **MARK}],
    }
    one.bill(request(5, **head))

    again = one.bill(request(6, **head))
    other_system = one.bill(request(6, tools=head["tools"], system="another"))
    other_model = one.bill({**request(6, **head), "model": "other"})

    assert (again.read, other_system.read, other_model.read) == (30, 10, 0)
    assert (other_model.written_1h, other_model.written_5m) == (10, 20)


def test_the_control_of_the_request_is_a_breakpoint_on_the_last_block() -> None:
    one = cache()
    one.bill(request(100, **MARK))

    assert one.bill(request(100, 5, **MARK)).read == 100


def test_the_price_of_a_request() -> None:
    one = cache()
    one.bill(request(100, marked={0: MARK}))

    assert one.bill(request(100, 40, 8, marked={1: MARK})).cost(2.0) == 2.0 * (8 + 10 + 50)
