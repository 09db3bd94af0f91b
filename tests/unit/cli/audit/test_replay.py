"""The estimate of what a session would have cost with compactd's policy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from compactd.cli.audit.replay import NoReplay, Replay, replay, simulate
from compactd.cli.audit.rows import policy_text
from compactd.cli.audit.trail import read_trail
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.readers import agent_of
from compactd.cli.usage.requests import FileUsage
from compactd.core.cost.policy import KEPT_TOKENS, MAX_REREAD_TOKENS, REREAD_SHARE, PolicyDecision, Situation
from compactd.core.cost.price import Rates
from tests.support.command_line import recordings
from tests.unit.cli.audit.transcripts import Json, answer, trail_of


def never(situation: Situation, rates: Rates) -> PolicyDecision:
    return PolicyDecision(compact=False, reason="", payback_turns=None, cold=None)


def at_request(number: int) -> Callable[[Situation, Rates], PolicyDecision]:
    """Return a policy that compacts before the request with this number only."""

    def decide(situation: Situation, rates: Rates) -> PolicyDecision:
        return PolicyDecision(compact=situation.requests == number, reason="", payback_turns=None, cold=None)

    return decide


def growing(requests: int, *, step: int = 2_000, first: int = 20_000) -> list[Json]:
    """Return answers whose context grows by `step`, each reading all that was written."""
    sizes = [first + step * number for number in range(requests)]
    return [
        answer(
            number, at=10 * number, read=size - step if number else 0, write=step if number else size, new=0
        )
        for number, size in enumerate(sizes)
    ]


def test_without_a_compaction_the_replay_costs_what_the_session_cost() -> None:
    found = simulate(trail_of(*growing(50)), PriceList(), never)

    assert isinstance(found, Replay)
    assert found.estimate_usd == pytest.approx(found.recorded_usd)
    assert (found.requests, found.compactions) == (50, 0)


def test_the_first_request_finds_in_the_cache_what_it_found() -> None:
    first = answer(0, at=0, read=15_000, write=5_000, new=0)
    found = replay(trail_of(first, *growing(12)[1:]), PriceList(), at_request(11))

    cold = replay(trail_of(*growing(12)), PriceList(), at_request(11))

    assert isinstance(found, Replay)
    assert isinstance(cold, Replay)
    assert cold.estimate_usd - found.estimate_usd == pytest.approx(15_000 * (6.25e-6 - 0.5e-6))
    assert cold.estimate_usd - found.estimate_usd == pytest.approx(cold.recorded_usd - found.recorded_usd)


def test_a_session_that_grows_for_long_is_cheaper_with_compactions() -> None:
    found = replay(trail_of(*growing(90)), PriceList())

    assert isinstance(found, Replay)
    assert found.estimate_usd < found.recorded_usd
    assert found.compactions > 0


def test_after_a_compaction_the_head_is_read_and_what_is_kept_is_written() -> None:
    found = replay(trail_of(*growing(12)), PriceList(), at_request(10))

    read, write, out = 0.5e-6, 6.25e-6, 25e-6
    head = 10_000
    """Half of the first request, as none shows the size of system prompt and tools."""
    before = 20_000 * write + sum((18_000 + 2_000 * n) * read + 2_000 * write for n in range(1, 10))
    compacted = head * read + KEPT_TOKENS * write
    again = round(REREAD_SHARE * (40_000 - head - KEPT_TOKENS))
    after = (head + KEPT_TOKENS) * read + (2_000 + again) * write
    assert isinstance(found, Replay)
    assert found.compactions == 1
    assert found.estimate_usd == pytest.approx(before + compacted + after + 12 * 20 * out)


def test_no_more_is_read_again_than_the_most_that_was_measured() -> None:
    found = replay(trail_of(*growing(60)), PriceList(), at_request(58))

    read, write, out = 0.5e-6, 6.25e-6, 25e-6
    head, after = 10_000, 10_000 + KEPT_TOKENS
    before = 20_000 * write + sum((18_000 + 2_000 * n) * read + 2_000 * write for n in range(1, 58))
    compacted = head * read + KEPT_TOKENS * write
    last = after * read + (2_000 + MAX_REREAD_TOKENS) * write
    assert isinstance(found, Replay)
    assert found.estimate_usd == pytest.approx(before + compacted + last + 60 * 20 * out)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((1.0, 1.0, 0, 0, 0), "no difference for 9 requests: neither the agent nor the policy compacts"),
        (
            (0.5, 1.0, 3, 1, 0),
            "about $0.50 instead of $1.00 for 9 requests, with 3 compactions instead of 1 (estimate)",
        ),
        (
            (0.5, 1.0, 1, 0, 4),
            "about $0.50 instead of $1.00 for 9 requests (without 4 of sub-agents), with 1 compaction instead"
            " of 0 (estimate)",
        ),
    ],
    ids=["same", "cheaper", "sub-agents"],
)
def test_the_line_says_what_is_compared(given: tuple[float, float, int, int, int], told: str) -> None:
    estimate, recorded, compactions, own, side = given

    found = Replay(
        recorded_usd=recorded,
        estimate_usd=estimate,
        requests=9,
        compactions=compactions,
        recorded_compactions=own,
        side_requests=side,
    )

    assert policy_text(found) == told


def steady() -> list[Path]:
    """Return the recordings of Claude Code and pi without a compaction."""
    found = []
    for path in recordings():
        data = path.read_bytes()
        if agent_of(data) not in ("claude-code", "pi") or "sessions" not in path.parts:
            continue
        if b"isCompactSummary" not in data and b'"type":"compaction"' not in data:
            found.append(path)
    return found


@pytest.mark.parametrize("path", steady(), ids=lambda path: path.stem)
def test_without_a_compaction_a_recording_costs_what_it_cost(path: Path) -> None:
    data = path.read_bytes()
    trail = read_trail(data, FileUsage(agent=agent_of(data) or "", session_id="s"))

    simulated, found = (compute(trail, PriceList(), never) for compute in (simulate, replay))

    assert isinstance(simulated, Replay)
    assert simulated.estimate_usd == pytest.approx(simulated.recorded_usd, rel=0.05)
    assert isinstance(found, Replay)
    assert found.estimate_usd == found.recorded_usd


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (growing(4), "fewer than 5"),
        ([answer(n, at=n, new=9_000) for n in range(9)], "nothing of a prompt cache"),
        ([answer(n, at=n, write=9_000, model="nobodys-model-9") for n in range(9)], "price"),
    ],
    ids=["short", "no cache", "no price"],
)
def test_without_what_is_needed_there_is_no_estimate(records: list[Json], reason: str) -> None:
    found = replay(trail_of(*records), PriceList())

    assert isinstance(found, NoReplay)
    assert reason in found.reason


def test_only_the_conversation_with_the_user_is_replayed() -> None:
    side = [answer(100 + n, at=n, write=9_000, isSidechain=True, agentId="b") for n in range(9)]

    alone, together = (replay(trail_of(*some), PriceList()) for some in (growing(20), [*side, *growing(20)]))

    assert isinstance(alone, Replay)
    assert replace(alone, side_requests=9) == together
