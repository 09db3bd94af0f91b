"""How long Anthropic keeps a session's requests in its cache: by the session's pauses or by the setting."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback, Seen, Step
from tests.support.loopback.prefix_cache import Billed, PrefixCache
from tests.support.own_loop import MODELS, TOOLS, Talk, environment
from tests.support.talk import CHARS4, assistant, user

SYSTEM = "You read files and say what is in them. " * 400
PROMPTS = 9
MINUTE = 60.0
PROGRAM = Path(__file__).parents[1] / "support" / "clocked_daemon.py"


@dataclass
class Billing:
    """A provider with a prompt cache, and the time."""

    file: Path
    now: float = 1_790_000_000.0
    bills: list[Billed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cache = PrefixCache(lambda: self.now)
        self.wait(0)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.file.write_text(str(self.now), encoding="utf-8")

    def reply(self, seen: Seen) -> Step:
        billed = self.cache.bill(seen.body)
        self.bills.append(billed)
        return Answer(
            text="It has words. " * 100,
            input_tokens=billed.input,
            cache_read=billed.read,
            cache_write=billed.written_5m + billed.written_1h,
            cache_write_1h=billed.written_1h,
        )

    def total(self) -> float:
        """Return the price of all input so far, in units of the input price."""
        return sum(one.cost(1.0) for one in self.bills)


Spawn = Callable[..., Daemon]


def talked(
    spawn: Spawn, folder: Path, pauses: list[float], cache: str, model: str = MODELS["anthropic"]
) -> Billing:
    """Send a prompt after each pause, with the setting `cache`. Return the bill."""
    folder.mkdir()
    billing = Billing(folder / "time")
    with Loopback(reply=billing.reply) as server:
        daemon = clocked(spawn, folder, billing, server)
        started = daemon.call(
            "session/start",
            model=model,
            system_prompt=SYSTEM,
            tools=TOOLS,
            compaction={**CHARS4, "strategy": "extract", "cache": cache},
        )
        talk = Talk(daemon, started["session_id"])
        try:
            for number, pause in enumerate(pauses):
                billing.wait(pause)
                assert talk.ask(f"Read file {number}.")["type"] == "agent_end"
        finally:
            talk.stop()
    return billing


def clocked(spawn: Spawn, folder: Path, billing: Billing, server: Loopback) -> Daemon:
    return spawn(
        folder / "home",
        env=environment("anthropic", server.base_url),
        command=(sys.executable, str(PROGRAM), str(billing.file)),
    )


def test_with_pauses_of_ten_minutes_auto_is_cheaper_than_five_minutes(spawn: Spawn, tmp_path: Path) -> None:
    pauses = [10 * MINUTE] * PROMPTS

    auto = talked(spawn, tmp_path / "auto", pauses, "auto")
    fixed = talked(spawn, tmp_path / "5m", pauses, "5m")

    assert len(auto.bills) == len(fixed.bills) == PROMPTS
    assert auto.total() < 0.7 * fixed.total()
    # Once an hour is chosen, it stays, and everything is read.
    lasting = [one.written_1h > 0 for one in auto.bills]
    assert lasting == sorted(lasting)
    assert not any(one.written_5m for one in auto.bills[5:])
    assert all(one.read > 0.8 * one.size for one in auto.bills[5:])


def test_with_pauses_of_a_minute_auto_costs_the_same_as_five_minutes(spawn: Spawn, tmp_path: Path) -> None:
    pauses = [MINUTE] * PROMPTS

    auto = talked(spawn, tmp_path / "auto", pauses, "auto")
    fixed = talked(spawn, tmp_path / "5m", pauses, "5m")

    assert auto.bills == fixed.bills
    assert not any(one.written_1h for one in auto.bills)


def test_the_setting_of_an_hour_is_one_from_the_first_request_on(spawn: Spawn, tmp_path: Path) -> None:
    billing = talked(spawn, tmp_path / "1h", [MINUTE] * 3, "1h")

    assert all(one.written_1h and not one.written_5m for one in billing.bills)


def test_without_known_prices_it_stays_at_five_minutes(spawn: Spawn, tmp_path: Path) -> None:
    billing = talked(spawn, tmp_path / "auto", [10 * MINUTE] * 8, "auto", "anthropic/no-such-model")

    assert not any(one.written_1h for one in billing.bills)


class Working:
    """A client that asks for its requests and reports what they cost."""

    def __init__(self, daemon: Daemon, billing: Billing, session_id: str) -> None:
        self.daemon, self.billing, self.id = daemon, billing, session_id
        self.turns = 0

    def turn(self, pause: float) -> dict[str, Any]:
        self.billing.wait(pause)
        self.turns += 1
        self.daemon.call("session/append", session_id=self.id, messages=[user(50, self.turns)])
        context = self.context()
        body = {"model": "m", "system": context["system"], "messages": context["messages"]}
        usage = self.billing.cache.usage(body, 300)
        answer = [assistant(300, seed=self.turns)]
        self.daemon.call("turn/end", session_id=self.id, messages=answer, usage=usage)
        return context

    def context(self) -> dict[str, Any]:
        return dict(self.daemon.call("session/context", session_id=self.id, format="anthropic"))


def lifetimes(context: dict[str, Any]) -> set[str]:
    return {one["ttl"] for one in context["cache"]["breakpoints"]}


def test_a_clients_request_says_the_lifetime_and_all_its_marks_have_it(spawn: Spawn, tmp_path: Path) -> None:
    billing = Billing(tmp_path / "time")
    with Loopback(reply=billing.reply) as server:
        daemon = clocked(spawn, tmp_path, billing, server)
        started = daemon.call(
            "session/start",
            model=MODELS["anthropic"],
            system_prompt=SYSTEM,
            tools=TOOLS,
            compaction={**CHARS4, "keep_messages": 2},
        )
        working = Working(daemon, billing, started["session_id"])
        seen = [lifetimes(working.turn(10 * MINUTE)) for _ in range(8)]
        daemon.call("session/compact", session_id=working.id)
        after = working.turn(MINUTE)
        again = working.context()

    # Three gaps are known after the fourth request. The cache is cold then, which counts against a change.
    assert seen[:4] == [{"5m"}] * 4
    assert seen[5:] == [{"1h"}] * 3
    assert {one["at"] for one in after["cache"]["breakpoints"]} >= {"tools", "summary", "messages"}
    assert lifetimes(after) == {"1h"}
    assert json.dumps(after["messages"]).count('"ttl": "1h"') == 2
    assert lifetimes(again) == {"1h"}


def test_pauses_before_compacted_requests_are_no_reason_for_an_hour(spawn: Spawn, tmp_path: Path) -> None:
    billing = Billing(tmp_path / "time")
    with Loopback(reply=billing.reply) as server:
        daemon = clocked(spawn, tmp_path, billing, server)
        started = daemon.call("session/start", model=MODELS["anthropic"], system_prompt=SYSTEM)
        working = Working(daemon, billing, started["session_id"])
        seen: list[set[str]] = []
        for _ in range(6):
            seen += [lifetimes(working.turn(10.0)) for _ in range(3)]
            daemon.call("session/compact", session_id=working.id, keep_messages=2)
            seen.append(lifetimes(working.turn(10 * MINUTE)))

    assert seen == [{"5m"}] * len(seen)


def test_a_cold_request_waits_with_the_change_and_is_the_same_if_asked_for_again(
    spawn: Spawn, tmp_path: Path
) -> None:
    billing = Billing(tmp_path / "time")
    with Loopback(reply=billing.reply) as server:
        daemon = clocked(spawn, tmp_path, billing, server)
        started = daemon.call("session/start", model=MODELS["anthropic"], system_prompt=SYSTEM)
        working = Working(daemon, billing, started["session_id"])
        for pause in [*[10.0] * 7, 10 * MINUTE]:
            working.turn(pause)
        billing.wait(10 * MINUTE)
        cold = working.context()
        billing.wait(-9 * MINUTE)
        again = working.context()
        working.turn(0)
        warm = working.turn(10.0)

    assert lifetimes(cold) == {"5m"}
    assert again["messages"] == cold["messages"]
    assert lifetimes(warm) == {"1h"}


def test_an_opened_session_goes_on_with_its_lifetime(spawn: Spawn, tmp_path: Path) -> None:
    billing = Billing(tmp_path / "time")
    with Loopback(reply=billing.reply) as server:
        daemon = clocked(spawn, tmp_path, billing, server)
        started = daemon.call("session/start", model=MODELS["anthropic"], system_prompt=SYSTEM)
        working = Working(daemon, billing, started["session_id"])
        # With so many pauses of each kind, no lifetime is clearly cheaper.
        for pause in [*[10 * MINUTE] * 5, *[90 * MINUTE] * 5]:
            working.turn(pause)
        before = lifetimes(working.context())
        daemon.call("session/close", session_id=working.id)
        daemon.call("session/start", session_id=working.id)
        after = lifetimes(working.context())

    assert before == after == {"1h"}


@pytest.mark.parametrize("cache", ["5m", "1h"])
def test_a_setting_given_later_counts_at_once(spawn: Spawn, tmp_path: Path, cache: str) -> None:
    billing = Billing(tmp_path / "time")
    with Loopback(reply=billing.reply) as server:
        daemon = clocked(spawn, tmp_path, billing, server)
        started = daemon.call("session/start", model=MODELS["anthropic"], system_prompt=SYSTEM)
        working = Working(daemon, billing, started["session_id"])
        working.turn(MINUTE)
        daemon.call("session/configure", session_id=working.id, compaction={"cache": cache})

        assert lifetimes(working.turn(MINUTE)) == {cache}
