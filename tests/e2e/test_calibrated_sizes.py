"""The reported context size for a model whose tokenizer compactd lacks: learned from usage reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.client import Daemon
from tests.support.talk import assistant, user

Spawn = Callable[..., Daemon]

OPUS = "anthropic/claude-opus-4-5"

HIDDEN = 20_000
"""Tokens that the fake provider's program sends in addition to the messages."""

SLOPE = 1.3
"""Tokens that the fake provider counts for each token that compactd estimates."""


def start(daemon: Daemon, **more: Any) -> str:
    return str(daemon.call("session/start", **more)["session_id"])


def truth(daemon: Daemon, name: str) -> int:
    """Return the size that the fake provider would report for the next request."""
    return HIDDEN + round(SLOPE * daemon.call("session/context", session_id=name)["tokens"])


def converse(daemon: Daemon, name: str, turns: int) -> None:
    """Append `turns` turns, each with a usage report."""
    for number in range(turns):
        daemon.call("session/append", session_id=name, messages=[user(1500, seed=number)])
        usage = {"input_tokens": truth(daemon, name), "output_tokens": None}
        daemon.call("session/append", session_id=name, messages=[assistant(700, seed=number)], usage=usage)


def current(daemon: Daemon, name: str) -> int:
    return int(daemon.call("agent/state", session_id=name)["token_usage"]["current_context_tokens"])


def test_what_came_after_the_last_report_is_predicted_within_two_percent(daemon: Daemon) -> None:
    name = start(daemon, model=OPUS)
    converse(daemon, name, 6)
    for number in range(10):
        daemon.call("session/append", session_id=name, messages=[user(1500), assistant(1500, seed=number)])

    assert abs(current(daemon, name) / truth(daemon, name) - 1) < 0.02


def test_the_budget_tells_what_was_learned(daemon: Daemon) -> None:
    name = start(daemon, model=OPUS)
    converse(daemon, name, 6)

    budget = daemon.call("agent/state", session_id=name)["budget"]

    assert "× 1.30" in budget["trailing"]["source"]
    assert budget["used"]["value"] == budget["base"]["value"] + budget["trailing"]["value"]


def test_a_hidden_prompt_still_counts_after_a_compaction(daemon: Daemon) -> None:
    name = start(daemon, model=OPUS)
    converse(daemon, name, 12)

    done = daemon.call("session/compact", session_id=name, keep_recent=4000)

    assert done["compacted"] is True
    assert abs(current(daemon, name) / truth(daemon, name) - 1) < 0.02
    assert daemon.call("session/context", session_id=name)["tokens"] == done["tokens_after"]


def test_reports_and_limits_are_in_the_providers_tokens_when_a_compaction_makes_room(daemon: Daemon) -> None:
    name = start(daemon, model=OPUS, compaction={"context_window": 60_000})
    converse(daemon, name, 11)

    before = truth(daemon, name)
    begun = daemon.call("turn/begin", session_id=name)

    assert begun["compaction"]["compacted"] is True
    assert truth(daemon, name) < 60_000 * 0.8 < before
    assert daemon.call("agent/state", session_id=name)["budget"]["over"]["value"] is False


def test_opening_a_session_again_gives_the_same_numbers(spawn: Spawn) -> None:
    first = spawn()
    name = start(first, model=OPUS)
    converse(first, name, 5)
    before = first.call("agent/state", session_id=name)
    first.call("session/close", session_id=name)
    first.call("session/start", session_id=name)
    again = first.call("agent/state", session_id=name)
    first.kill()
    other = spawn()
    other.call("session/start", session_id=name)
    after = other.call("agent/state", session_id=name)

    assert again["budget"] == before["budget"]
    assert after["budget"] == before["budget"]
    assert after["token_usage"] == before["token_usage"]


def test_a_profile_whose_spec_counts_four_characters_is_never_calibrated(daemon: Daemon) -> None:
    name = start(daemon, model=OPUS, compaction={"profile": "opal"})
    converse(daemon, name, 6)
    daemon.call("session/append", session_id=name, messages=[user(321)])

    budget = daemon.call("agent/state", session_id=name)["budget"]

    assert budget["trailing"] == {
        "value": 700 + 321,
        "source": "estimate of what came after the last usage report",
    }


def test_a_report_that_nothing_explains_is_told_of_and_poisons_no_estimate(daemon: Daemon) -> None:
    name = start(daemon, model=OPUS)
    for number, reported in enumerate((150, 90_000, 3, 120_000)):
        usage = {"input_tokens": reported, "output_tokens": 5}
        daemon.call("session/append", session_id=name, messages=[user(50), assistant(5)], usage=usage)
        assert daemon.call("agent/state", session_id=name)["token_usage"]["last_prompt_tokens"] == reported, (
            number
        )

    budget = daemon.call("agent/state", session_id=name)["budget"]
    daemon.call("session/compact", session_id=name, keep_messages=1)

    assert "differs by more than half" in budget["base"]["source"]
    assert current(daemon, name) == daemon.call("session/context", session_id=name)["tokens"]


def test_tokens_count_says_how_it_counted(daemon: Daemon) -> None:
    image = {"role": "user", "content": [{"type": "image", "width": 1024, "height": 1024}]}
    asked = {
        "own tokenizer": {"text": "hello world", "model": "openai/gpt-4o"},
        "another's": {"text": "hello world", "model": OPUS},
        "nobody's": {"text": "hello world"},
        "own, an image": {"messages": [image], "model": "openai/gpt-4o"},
        "another's, an image": {"messages": [image], "model": OPUS},
    }

    told = {name: daemon.call("tokens/count", **params) for name, params in asked.items()}

    assert told == {
        "own tokenizer": {"tokens": 2, "exact": True, "method": "o200k_base"},
        "another's": {"tokens": 3, "exact": False, "method": "script_aware:claude"},
        "nobody's": {"tokens": 3, "exact": False, "method": "script_aware:other"},
        "own, an image": {"tokens": 765, "exact": False, "method": "o200k_base"},
        "another's, an image": {"tokens": 1399, "exact": False, "method": "script_aware:claude"},
    }
