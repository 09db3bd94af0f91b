"""The loopback's cache with breakpoints follows OpenAI's documented rules."""

from __future__ import annotations

import pytest

from tests.support.loopback.breakpoint_cache import BreakpointCache
from tests.support.loopback.prefix_cache import RefusedRequest

MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def text(name: str, tokens: int = 1_100, *, marked: bool = False) -> dict:
    block = {"type": "input_text", "text": (name * 4 * tokens)[: 4 * tokens - 34]}
    return {**block, **(MARK if marked else {})}


def said(role: str, *blocks: dict) -> dict:
    return {"type": "message", "role": role, "content": list(blocks)}


def user(name: str, tokens: int = 1_100, *, marked: bool = False) -> dict:
    return said("user", text(name, tokens, marked=marked))


def result(name: str) -> dict:
    return {"type": "function_call_output", "call_id": name, "output": name * 400}


def request(*items: dict, **more: object) -> dict:
    return {"model": "gpt-5.6", "input": list(items), **more}


def bills(*bodies: dict) -> list[tuple[int, int, int]]:
    """For each request in turn, (input, read, written)."""
    cache = BreakpointCache(Clock())
    billed = [cache.bill(body) for body in bodies]
    return [(one.input, one.read, one.written_30m) for one in billed]


EXPLICIT = {"prompt_cache_options": {"mode": "explicit"}}


def test_a_growing_conversation_reads_each_request_before() -> None:
    one, two, three = user("a"), user("b", 300), user("c", 300)

    found = bills(request(one), request(one, two), request(one, two, three))

    assert found == [(0, 0, 1_100), (0, 1_100, 300), (0, 1_400, 300)]


def test_an_unmarked_beginning_is_not_read_if_what_follows_changes() -> None:
    system = said("developer", text("s"))

    assert [read for _, read, _ in bills(request(system, user("a")), request(system, user("b")))] == [0, 0]


def test_a_marked_beginning_is_read_with_the_tools_before_it() -> None:
    system, tools = said("developer", text("s", marked=True)), [{"name": "t" * 4_000}]
    first, second = (request(system, user(name), tools=tools) for name in "ab")

    (_, _, written), (_, read, _) = bills(first, second)

    assert read == written - 1_100
    assert read > 2_000


@pytest.mark.parametrize("changed", [{"tools": ["other"]}, {"instructions": "other"}, {"model": "other"}])
def test_a_change_before_the_breakpoint_ends_the_prefix(changed: dict) -> None:
    found = bills(request(user("a", marked=True)), {**request(user("a", marked=True)), **changed})

    assert [read for _, read, _ in found] == [0, 0]


def test_requests_with_different_keys_share_nothing() -> None:
    one, other = (request(user("a"), prompt_cache_key=key) for key in ("k", "l"))

    assert [read for _, read, _ in bills(one, other, one)] == [0, 0, 1_100]


def test_a_prefix_of_fewer_than_1024_tokens_is_not_written() -> None:
    assert bills(request(user("a", 1_023)), request(user("a", 1_023))) == [(1_023, 0, 0)] * 2
    assert bills(request(user("a", 1_024)))[0] == (0, 0, 1_024)


def test_explicit_mode_writes_only_what_is_marked() -> None:
    marked, rest = user("a", marked=True), user("b", 300)

    assert bills(request(marked, rest, **EXPLICIT))[0] == (300, 0, 1_100)
    assert bills(request(rest, rest, **EXPLICIT), request(rest, rest, **EXPLICIT)) == [(600, 0, 0)] * 2


@pytest.mark.parametrize(("more", "written"), [({}, 3), (EXPLICIT, 4)])
def test_only_the_latest_four_breakpoints_are_written(more: dict, written: int) -> None:
    items = [user(name, marked=True) for name in "abcdef"]
    # The implicit breakpoint is at the end, where no explicit one is.
    items.append(user("z", 100))
    cache = BreakpointCache(Clock())
    cache.bill(request(*items, **more))

    read = [cache.bill(request(*items[:count], user("other"), **EXPLICIT)).read for count in range(1, 7)]

    assert sum(1 for one, count in zip(read, range(1, 7), strict=True) if one == 1_100 * count) == written


def test_an_earlier_end_is_found_up_to_20_messages_back() -> None:
    start = user("a")
    near, far = ([start, *(user(f"{n}", 50) for n in range(count))] for count in (20, 21))

    assert bills(request(start), request(*near))[1][1] == 1_100
    assert bills(request(start), request(*far))[1][1] == 0


def test_only_the_last_of_several_results_is_an_end() -> None:
    calls = [user("a"), *(result(f"{n}") for n in range(30))]
    answers = [calls[0], said("assistant", {"type": "output_text", "text": "x"})]

    assert bills(request(calls[0]), request(*calls))[1][1] == 1_100
    assert bills(request(*answers), request(*answers, user("b")))[1][1] == 1_100


def test_a_prefix_ends_30_minutes_after_its_last_use() -> None:
    clock = Clock()
    cache = BreakpointCache(clock)
    found = []
    for wait in (0, 1_800, 1_800, 1_801):
        clock.now += wait
        found.append(cache.bill(request(user("a"))).read > 0)

    assert found == [False, True, True, False]


@pytest.mark.parametrize(
    "body",
    [
        request(said("assistant", {"type": "output_text", "text": "x", **MARK})),
        request(user("a"), tools=[{"name": "t", **MARK}]),
        request(said("user", {"type": "input_text", "text": "x", "prompt_cache_breakpoint": {}})),
    ],
)
def test_a_breakpoint_at_a_place_that_takes_none_is_refused(body: dict) -> None:
    with pytest.raises(RefusedRequest):
        BreakpointCache(Clock()).bill(body)


def test_writes_cost_more_than_input_and_reads_a_tenth() -> None:
    cache = BreakpointCache(Clock())

    first, second = (cache.bill(request(user("a"))).cost(2.0) for _ in range(2))

    assert (first, second) == (pytest.approx(1_100 * 2.5), pytest.approx(1_100 * 0.2))
