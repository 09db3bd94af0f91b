"""With `when: "cost"`, `turn/begin` compacts as soon as it lowers the bill, and says why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.talk import CHARS4, assistant, user

SYSTEM_TOKENS = 10_000
SYSTEM = "You read. " * (SYSTEM_TOKENS * 4 // 10)
TURN_TOKENS = 2_000
PRICED = "anthropic/claude-sonnet-4-5"
ADDED = ("reason", "payback_turns", "cold")


class Working:
    """An agent that works in a session and reports its usage."""

    def __init__(self, daemon: Daemon, model: str = PRICED, *, written_1h: int = 0, **settings: Any) -> None:
        """`written_1h`: how many tokens each request writes to the cache for an hour."""
        self.daemon, self.written_1h = daemon, written_1h
        compaction = {**CHARS4, "when": "cost", **settings}
        started = daemon.call("session/start", model=model, system_prompt=SYSTEM, compaction=compaction)
        self.id = started["session_id"]
        self.seed = 0

    def turn(self, tokens: int = TURN_TOKENS) -> dict[str, Any]:
        """Append a short request, begin a turn, and append an answer with a usage report. Return the result
        of `turn/begin`."""
        self.seed += 1
        self.daemon.call("session/append", session_id=self.id, messages=[user(20, self.seed)])
        begun = self.daemon.call("turn/begin", session_id=self.id)
        size = self.size()
        usage = {
            "input_tokens": 10,
            "cache_read_tokens": size - 10 - self.written_1h,
            "cache_write_tokens": self.written_1h,
            "cache_write_1h_tokens": self.written_1h,
            "output_tokens": tokens,
        }
        self.daemon.call(
            "turn/end", session_id=self.id, messages=[assistant(tokens, seed=self.seed)], usage=usage
        )
        return dict(begun)

    def state(self) -> dict[str, Any]:
        return dict(self.daemon.call("agent/state", session_id=self.id))

    def size(self) -> int:
        return int(self.state()["token_usage"]["current_context_tokens"])

    def turns_until_compacted(self, most: int) -> list[dict[str, Any]]:
        seen: list[dict[str, Any]] = []
        while len(seen) < most:
            seen.append(self.turn())
            if seen[-1]["compaction"] is not None:
                break
        return seen


def test_a_session_compacts_at_about_the_cheapest_mark_and_says_why(daemon: Daemon) -> None:
    working = Working(daemon)

    first, *_, last = working.turns_until_compacted(60)

    assert first["decision"]["kind"] == "fits"
    assert last["compaction"]["compacted"]
    # 22,000 are left and written again, and 12,000 are read again later:
    # √(2 · (22,000 · 3.75 + 12,000 · 4.05) · 2,000 ÷ 0.3) = 41,800 more are cheapest. (A client's system
    # prompt has no mark for the cache.)
    assert 62_000 <= last["compaction"]["tokens_before"] <= 68_000
    assert last["compaction"]["tokens_after"] <= 22_500
    assert last["decision"]["kind"] == "due"
    assert "pays back after" in last["decision"]["reason"]
    assert 0 < last["decision"]["payback_turns"] < 20
    assert last["decision"]["cold"] is False


def test_a_session_that_writes_for_an_hour_compacts_later(daemon: Daemon) -> None:
    *_, last = Working(daemon, written_1h=1_000).turns_until_compacted(60)

    # As above, with 6 instead of 3.75 dollars for a million written tokens:
    # √(2 · (22,000 · 6 + 12,000 · 6.3) · 2,000 ÷ 0.3) = 52,600 more than the 22,000 that are left.
    assert 72_000 <= last["compaction"]["tokens_before"] <= 78_000


def test_the_next_compaction_comes_after_as_much_growth_again(daemon: Daemon) -> None:
    working = Working(daemon)
    working.turns_until_compacted(60)

    between = working.turns_until_compacted(60)

    assert 17 <= len(between) <= 27


def test_the_state_says_what_the_next_turn_will_do(daemon: Daemon) -> None:
    working = Working(daemon)
    working.turns_until_compacted(3)

    decision = working.state()["decision"]

    assert decision["kind"] == "fits"
    assert decision["reason"]
    assert decision["cold"] is False


def test_the_window_decides_by_default_and_says_nothing_of_cost(daemon: Daemon) -> None:
    working = Working(daemon, when="window")

    seen = working.turns_until_compacted(30)

    assert [turn["compaction"] for turn in seen] == [None] * 30
    assert not set(ADDED) & set(seen[-1]["decision"])


@pytest.mark.parametrize("when", ["cost", "auto"])
def test_without_known_prices_the_window_decides_and_the_reason_says_so(daemon: Daemon, when: str) -> None:
    working = Working(daemon, model="nobody/no-such-model", when=when)

    seen = working.turns_until_compacted(30)

    assert [turn["compaction"] for turn in seen] == [None] * 30
    assert seen[-1]["decision"]["reason"] == (
        "The window decides alone: the prices of nobody/no-such-model are not known."
    )
    assert (seen[-1]["decision"]["payback_turns"], seen[-1]["decision"]["cold"]) == (None, None)


def test_without_usage_reports_nothing_is_compacted_by_cost(daemon: Daemon) -> None:
    working = Working(daemon)
    for seed in range(30):
        messages = [user(20, seed), assistant(TURN_TOKENS, seed=seed)]
        daemon.call("session/append", session_id=working.id, messages=messages)

    begun = daemon.call("turn/begin", session_id=working.id)

    assert begun["compaction"] is None
    assert "about 0 more are expected" in begun["decision"]["reason"]


def test_a_long_request_that_must_stay_is_not_compacted_over_and_over(daemon: Daemon) -> None:
    working = Working(daemon)
    working.turns_until_compacted(60)
    daemon.call("session/append", session_id=working.id, messages=[user(40_000, 99)])

    begun = [daemon.call("turn/begin", session_id=working.id) for _ in range(3)]

    assert [turn["compaction"] for turn in begun] == [None] * 3


def test_a_setting_of_how_much_to_keep_is_respected(daemon: Daemon) -> None:
    working = Working(daemon, keep_recent_tokens=20_000)

    last = working.turns_until_compacted(60)[-1]

    assert last["compaction"]["compacted"]
    assert last["compaction"]["kept_messages"] >= 16


def test_an_undone_compaction_is_not_done_again_at_once(daemon: Daemon) -> None:
    working = Working(daemon)
    working.turns_until_compacted(60)
    daemon.call("session/undo", session_id=working.id, force=True)

    begun = daemon.call("turn/begin", session_id=working.id)

    assert begun["compaction"] is None
    assert begun["decision"]["reason"] == "Only 0 tokens came since the last compaction or undo."


def test_a_prune_in_the_middle_of_a_warm_prefix_waits(daemon: Daemon) -> None:
    pruning = {"prune": True, "prune_minimum": 1_000, "prune_protect": 0}
    kinds = {}
    for when in ("window", "cost"):
        working = Working(daemon, when=when, **pruning)
        call = {"type": "tool_call", "call_id": "c1", "name": "run", "arguments": {}}
        result = {"type": "tool_result", "call_id": "c1", "content": "a line of output\n" * 500}
        daemon.call(
            "session/append",
            session_id=working.id,
            messages=[
                user(20, 77),
                {"role": "assistant", "content": [call]},
                {"role": "tool", "content": [result]},
            ],
        )
        kinds[when] = [working.turn(4_000)["pruned"] for _ in range(4)]

    assert sum(kinds["window"]) == 1
    assert sum(kinds["cost"]) == 0


def test_a_dry_run_shows_the_decision(daemon: Daemon) -> None:
    shown = {}
    for when in ("window", "cost"):
        working = Working(daemon, when=when)
        for _ in range(5):
            working.turn()
        shown[when] = daemon.call("session/compact", session_id=working.id, keep_recent=2_000, dry_run=True)

    assert "decision" not in shown["window"]
    assert shown["cost"]["decision"]["kind"] == "fits"
    assert shown["cost"]["decision"]["reason"]


def test_many_kept_messages_do_not_cause_a_compaction_every_few_turns(daemon: Daemon) -> None:
    working = Working(daemon, keep_messages=40)

    compactions = [working.turn()["compaction"] for _ in range(60)]

    assert sum(one is not None and one["compacted"] for one in compactions) <= 2


def test_a_small_window_still_compacts_at_its_threshold(daemon: Daemon) -> None:
    working = Working(daemon, context_window=24_000)

    last = working.turns_until_compacted(20)[-1]

    assert last["compaction"]["compacted"]
    assert last["compaction"]["tokens_before"] < 24_000


def test_the_forecast_after_a_compaction_is_for_the_size_that_the_cost_chooses(daemon: Daemon) -> None:
    working = Working(daemon)
    working.turns_until_compacted(14)

    forecast = working.daemon.call("session/cost", session_id=working.id)["next"]

    # 22,000 tokens are left. None of them was read from the cache: the client's system prompt has no mark.
    output = TURN_TOKENS * 15e-6
    assert forecast["compacted"] == pytest.approx(22_000 * 3.75e-6 + output, rel=0.05)


def imported_long_ago(daemon: Daemon, **usage: Any) -> str:
    """Import a Claude Code session of 2026-11-20 with 60,000 tokens, whose cache has expired since. `usage`
    is part of each usage report. Return its id."""
    lines = []
    for number in range(30):
        read, text = 2_000 * number, "word " * 1_600
        counts = {
            "input_tokens": 3,
            "output_tokens": 1_900,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": 2_000,
        }
        for kind, more in (("user", {}), ("assistant", {"model": PRICED, "usage": {**counts, **usage}})):
            words = f"Do part {number}." if kind == "user" else text
            content = [{"type": "text", "text": words}]
            message = {"role": kind, "content": content, "id": f"m{number}", **more}
            about = {"type": kind, "uuid": f"{kind[0]}{number}", "sessionId": "s", "message": message}
            lines.append({**about, "timestamp": f"2026-11-20T10:{number:02d}:00.000Z"})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    session = str(daemon.call("session/import", content=text)["session_id"])
    daemon.call("session/configure", session_id=session, compaction={**CHARS4, "when": "cost"})
    return session


UNCACHED = {"input_tokens": 60_000, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
FOR_AN_HOUR = {"cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 2_000}}


@pytest.mark.parametrize(
    ("usage", "price", "read_again"),
    [
        ({}, 3.75e-6, "$0.049"),  # 12,000 tokens, which are written once and read once
        (FOR_AN_HOUR, 6e-6, "$0.076"),
        (UNCACHED, 3e-6, "$0.049"),
    ],
    ids=["5 minutes", "an hour", "uncached"],
)
def test_what_a_compaction_saves_first_is_what_the_bill_predicts(
    daemon: Daemon, usage: dict[str, Any], price: float, read_again: str
) -> None:
    session = imported_long_ago(daemon, **usage)

    forecast = daemon.call("session/cost", session_id=session)["next"]
    begun = daemon.call("turn/begin", session_id=session)
    then = daemon.call("session/cost", session_id=session)["next"]

    reason = begun["decision"]["reason"]
    saved = forecast["now"] - forecast["compacted"]
    assert reason == (
        f"The cache has expired: compacting first saves about ${saved:.3f} on the next request."
        f" What the agent reads again costs about {read_again}."
    )
    assert then["now"] <= forecast["compacted"]
    assert 40_000 * price < saved < 70_000 * price


def test_a_compaction_that_the_cost_decides_says_so(daemon: Daemon) -> None:
    by_cost, by_window = Working(daemon), Working(daemon, when="window", context_window=40_000)

    cost, window = (one.turns_until_compacted(60)[-1] for one in (by_cost, by_window))

    assert cost["compaction"]["reason"] == (
        f"by cost, although the window has room: {cost['decision']['reason']}"
    )
    assert "What the agent reads again costs about $" in cost["decision"]["reason"]
    assert window["compaction"]["reason"] == ""
