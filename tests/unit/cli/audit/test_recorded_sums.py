"""The bills of the recordings, compared with sums by hand that share no code with compactd."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compactd.cli.audit.bill import Bill, bill_of
from compactd.cli.audit.trail import read_trail
from compactd.cli.usage.collect import count_once
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.readers import READABLE, agent_of, read_data
from compactd.cli.usage.requests import FileUsage
from compactd.cli.usage.totals import Filters, report
from tests.support.command_line import recordings

PRICES = {
    "claude-opus-4-5-20251101": (5.0, 0.5, 6.25, 10.0, 25.0),
    "claude-opus-4-6": (5.0, 0.5, 6.25, 10.0, 25.0),
    "claude-sonnet-4-5": (3.0, 0.3, 3.75, 6.0, 15.0),
    "claude-sonnet-4-5-20250929": (3.0, 0.3, 3.75, 6.0, 15.0),
    "claude-sonnet-4-20250514": (3.0, 0.3, 3.75, 6.0, 15.0),
    "claude-haiku-4-5-20251001": (1.0, 0.1, 1.25, 2.0, 5.0),
}
"""Model -> dollars for a million tokens of input, cache read, cache write for 5 minutes, cache write for an
hour, and output (platform.claude.com, "Pricing", 2026-11)."""
KINDS: tuple[str, ...] = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
PI_KINDS = ("input", "cacheRead", "cacheWrite", "output")


def bill(path: Path) -> Bill:
    data = path.read_bytes()
    agent = agent_of(data)
    assert agent is not None
    return bill_of(read_trail(data, FileUsage(agent=agent, session_id="s")), PriceList())


def readable() -> list[Path]:
    return [path for path in recordings() if agent_of(path.read_bytes()) in READABLE]


def of_claude_code() -> list[Path]:
    return [path for path in readable() if b'"requestId"' in path.read_bytes()]


def name(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def by_hand(path: Path) -> dict[str, tuple[int, float]]:
    """Return kind -> (tokens, dollars), from the last report of each answer."""
    reports: dict[tuple[str, str], dict] = {}
    for line in path.read_text(errors="replace").split("\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record.get("type") == "progress":
            record = (record.get("data") or {}).get("message") or {}
        message = record.get("message") or {}
        if record.get("type") == "assistant" and message["model"] in PRICES:
            reports[message["id"], record.get("requestId", "")] = message
    found: dict[str, tuple[int, float]] = dict.fromkeys(KINDS, (0, 0.0))
    for message in reports.values():
        usage = message["usage"]
        written = usage.get("cache_creation_input_tokens", 0)
        hour = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens", 0)
        counts = (
            usage["input_tokens"],
            usage.get("cache_read_input_tokens", 0),
            written - hour,
            hour,
            usage["output_tokens"],
        )
        for kind, count, price in zip(KINDS, counts, PRICES[message["model"]], strict=True):
            tokens, dollars = found[kind]
            found[kind] = (tokens + count, dollars + count * price / 1_000_000)
    return found


@pytest.mark.parametrize("path", of_claude_code(), ids=name)
def test_the_bill_of_a_claude_code_session_is_the_sum_by_hand_for_each_kind(path: Path) -> None:
    seen = bill(path)

    expected = by_hand(path)
    assert {kind: getattr(seen.tokens, kind) for kind in KINDS} == {
        kind: tokens for kind, (tokens, _) in expected.items()
    }
    assert {kind: getattr(seen.costs, kind) for kind in KINDS} == pytest.approx(
        {kind: dollars for kind, (_, dollars) in expected.items()}
    )
    assert seen.total.cost_usd == pytest.approx(sum(dollars for _, dollars in expected.values()))


def of_pi() -> list[Path]:
    return [path for path in readable() if b'"cacheRead"' in path.read_bytes()]


@pytest.mark.parametrize("path", of_pi(), ids=name)
def test_the_bill_of_a_pi_session_is_the_sum_by_hand(path: Path) -> None:
    seen = bill(path)

    reports = {}
    for line in path.read_text().splitlines():
        message = json.loads(line).get("message", {})
        usage = message.get("usage")
        if message.get("role") == "assistant" and any(usage[kind] for kind in PI_KINDS):
            reports[message["timestamp"], *(usage[kind] for kind in PI_KINDS)] = usage
    expected = [sum(usage[kind] for usage in reports.values()) for kind in PI_KINDS]
    tokens = seen.tokens
    assert [tokens.input, tokens.cache_read, tokens.cache_write_5m, tokens.output] == expected
    assert seen.total.cost_usd == pytest.approx(sum(usage["cost"]["total"] for usage in reports.values()))


@pytest.mark.parametrize("path", readable(), ids=name)
def test_the_bill_is_the_one_of_compactd_usage(path: Path) -> None:
    data = path.read_bytes()
    usage = read_data(data, agent_of(data) or "", "s")

    seen = bill(path)

    expected = report(count_once([usage]), ("model",), Filters(), PriceList()).total
    assert seen.total == expected
    kinds = seen.tokens
    assert kinds.input + kinds.cache_read + kinds.cache_write_5m + kinds.cache_write_1h + kinds.output == (
        expected.total
    )


@pytest.mark.parametrize("path", readable(), ids=name)
def test_the_rebuilds_are_at_most_what_was_written_and_their_sums_agree(path: Path) -> None:
    seen = bill(path)

    assert sum(one.tokens for one in seen.causes) == seen.rebuilt_tokens
    assert sum(one.rebuilds for one in seen.causes) == len(seen.rebuilds)
    assert sum(one.requests for one in seen.chains) == seen.total.requests
    assert seen.rewritten_share is None or 0 <= seen.rewritten_share <= 1
    assert seen.rebuilt_tokens <= seen.total.cache_write + seen.total.input
