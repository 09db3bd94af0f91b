"""Opal's token metrics, trigger, estimation and windows, each at its edge, over the wire."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.client import Daemon
from e2e.opal import BOTH, append, report, started
from e2e.talk import assistant, result, text, turns, user

# --- opal.md, "Token Metrics" -----------------------------------------------------------------------


def example(daemon: Daemon, profile: str = "opal", window: int = 200_000) -> tuple[str, dict[str, Any]]:
    """The spec's three turns."""
    session = started(daemon, profile, window)
    append(daemon, session, user(10))
    for prompt, completion in ((10_000, 2000), (14_000, 3000), (19_000, 1000)):
        answer = append(daemon, session, assistant(10), usage=report(prompt, completion))
    return session, answer["token_usage"]


@BOTH
def test_three_turns_are_billed_49000_tokens_while_the_context_holds_19000(
    daemon: Daemon, profile: str
) -> None:
    _, usage = example(daemon, profile)

    assert usage["total_tokens"] == 49_000
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (43_000, 6000)
    assert usage["last_prompt_tokens"] == 19_000
    assert usage["current_context_tokens"] == 20_000, "the last answer is in the next request, too"
    assert usage["percent"] == 10.0


@BOTH
def test_what_was_billed_decides_nothing(daemon: Daemon, profile: str) -> None:
    session, usage = example(daemon, profile, 30_000)

    begun = daemon.call("turn/begin", session_id=session)

    assert usage["total_tokens"] > usage["context_window"]
    assert begun["compaction"] is None


# --- opal.md, "Auto-Compaction": trigger ------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("used", "kind"), [(799, "fits"), (800, "due"), (801, "due")])
def test_a_compaction_is_due_at_80_percent_of_the_window_and_not_one_token_before(
    daemon: Daemon, profile: str, used: int, kind: str
) -> None:
    session = started(daemon, profile)

    answer = append(daemon, session, *turns(3, 100), user(used - 600))

    assert answer["decision"] == {"kind": kind, "used": used, "threshold": 800, "window": 1000}
    begun = daemon.call("turn/begin", session_id=session)
    assert (begun["compaction"] is not None) == (kind == "due")


@BOTH
@pytest.mark.parametrize(("prompt", "kind"), [(799, "fits"), (800, "due")])
def test_a_reported_size_is_held_against_the_same_80_percent(
    daemon: Daemon, profile: str, prompt: int, kind: str
) -> None:
    session = started(daemon, profile)

    answer = append(daemon, session, user(1), assistant(1), usage=report(prompt, 0))

    assert (answer["decision"]["kind"], answer["decision"]["used"]) == (kind, prompt)


# --- opal.md, "Auto-Compaction": estimation ---------------------------------------------------------


def test_without_a_report_everything_is_estimated_at_four_characters_a_token(daemon: Daemon) -> None:
    session = started(daemon, system_prompt=text(100))

    usage = append(daemon, session, user(30), assistant(20, "t1"), result("t1", 50))["token_usage"]

    assert usage["current_context_tokens"] == 200
    assert usage["current_context_source"] == "estimated"
    assert usage["last_prompt_tokens"] == 0


def test_with_a_report_only_what_came_after_it_is_estimated(daemon: Daemon) -> None:
    session = started(daemon)
    append(daemon, session, user(30), assistant(20, "t1"), usage=report(300, 25))

    usage = append(daemon, session, result("t1", 50), user(7))["token_usage"]

    assert usage["current_context_tokens"] == 300 + 25 + 50 + 7
    assert usage["current_context_source"] == "mixed"
    assert usage["last_prompt_tokens"] == 300


# --- opal.md, "Auto-Compaction": flow ---------------------------------------------------------------


@BOTH
def test_an_automatic_compaction_keeps_a_quarter_of_the_window(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 100_000)
    append(daemon, session, *turns(41, 1000))

    done = daemon.call("turn/begin", session_id=session)["compaction"]

    assert done["trigger"] == "threshold"
    assert done["kept_messages"] == 26, "25 are within 25,000, the 26th exceeds it and is a user's"
    assert daemon.call("agent/state", session_id=session)["budget"]["keep"]["value"] == 25_000


@BOTH
def test_a_compaction_sets_the_last_prompt_tokens_back(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile)
    append(daemon, session, *turns(4, 100), usage=report(810, 10))

    begun = daemon.call("turn/begin", session_id=session)

    usage, done = begun["token_usage"], begun["compaction"]
    assert done["compacted"] is True
    assert usage["last_prompt_tokens"] == 0
    assert usage["current_context_source"] == "estimated"
    assert usage["current_context_tokens"] == done["tokens_after"]
    assert usage["total_tokens"] == 820, "billing goes on"


@BOTH
def test_start_and_end_tell_the_message_counts_before_and_after(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile)
    append(daemon, session, *turns(4, 100), user(10))

    daemon.call("turn/begin", session_id=session)

    assert daemon.event("compaction_start", session).value["params"]["message_count"] == 9
    end = daemon.event("compaction_end", session).value["params"]["result"]
    count = daemon.call("agent/state", session_id=session)["message_count"]
    assert (end["messages_before"], end["messages_after"]) == (9, count)


# --- opal.md, "Context Window Sizes" ----------------------------------------------------------------


@pytest.mark.parametrize(("profile", "threshold"), [("opal", 102_400), ("default", 76_800)])
def test_an_unknown_model_has_128000_tokens_and_that_is_called_a_guess(
    daemon: Daemon, profile: str, threshold: int
) -> None:
    session = started(daemon, profile, None, model="acme/unheard-of-9")

    usage = append(daemon, session, user(1))["token_usage"]

    assert usage["context_window"] == 128_000
    assert usage["context_window_confidence"] == "guess"
    assert usage["threshold_tokens"] == threshold, "the default profile compacts a guess earlier, at 60 %"
    found = daemon.call("models/lookup", model="acme/unheard-of-9")
    assert (found["context_window"], found["confidence"]) == (128_000, "guess")


@pytest.mark.parametrize(
    ("model", "window"),
    [("anthropic/claude-sonnet-4-5", 200_000), ("acme/unheard-of-9", 128_000), (None, 128_000)],
)
def test_the_window_is_in_the_state_from_the_start_and_in_every_usage_update(
    daemon: Daemon, model: str | None, window: int
) -> None:
    session = daemon.call("session/start", model=model)["session_id"]

    first = daemon.call("agent/state", session_id=session)
    append(daemon, session, *turns(4, 3000), usage=report(100, 10))
    daemon.call("turn/end", session_id=session, messages=[user(1), assistant(1)], usage=report(200, 10))
    daemon.call("session/compact", session_id=session, keep_recent=4000)
    daemon.call("session/undo", session_id=session)
    daemon.call("session/configure", session_id=session, system_prompt="Be brief.")

    assert first["token_usage"]["context_window"] == window
    assert first["budget"]["window"]["value"] == window
    told = [event for event in daemon.events(session) if event["type"] == "usage_update"]
    assert len(told) == 5
    assert {event["context_window"] for event in told} == {window}
    assert {event["usage"]["context_window"] for event in told} == {window}


def test_a_window_that_is_configured_is_told_at_once(daemon: Daemon) -> None:
    session = daemon.call("session/start")["session_id"]

    daemon.call("session/configure", session_id=session, compaction={"context_window": 64_000})

    told = daemon.event("usage_update", session).value["params"]
    assert told["context_window"] == 64_000
    assert told["usage"]["context_window_confidence"] == "override"
