"""klaude's spec, docs/specs.md, "klaude-code.md", to the end of "Trigger Locations", over the wire. Profile
`klaude`.

Goes on in `test_klaude_history.py`. Its edges on every window are in `test_edges*.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.loopback import Answer, Call, Loopback, Overflow
from tests.support.own_loop import Talk
from tests.support.talk import assistant, turns, user
from tests.support.wire import MODEL, OVERFLOW, SUMMARY, append, begin, report, started, state

HAIKU = "anthropic/claude-3-haiku"
"""A model whose window a rejection teaches: no other test uses it."""


def session_of(daemon: Daemon, window: int | None = 200_000, **more: Any) -> str:
    """A session under this profile."""
    return started(daemon, "klaude", window, **more)


# --- lines 11-27, "Threshold-based" -----------------------------------------------------------------


@pytest.mark.parametrize(("used", "due"), [(183_615, False), (183_616, False), (183_617, True)])
def test_it_triggers_above_the_limit_less_the_reserve(daemon: Daemon, used: int, due: bool) -> None:
    session = session_of(daemon)
    append(daemon, session, *turns(11, 1000), usage=report(used))

    assert (begin(daemon, session) is not None) is due


@pytest.mark.parametrize(
    ("window", "reserve", "keep"),
    [
        (200_000, 16_384, 20_000),
        (65_536, 16_384, 20_000),
        (65_532, 16_383, 20_000),
        (57_200, 14_300, 20_000),
        (57_000, 14_250, 19_950),
        (8_000, 2_000, 2_800),
    ],
)
def test_reserve_and_keep_follow_the_models_limit(
    daemon: Daemon, window: int, reserve: int, keep: int
) -> None:
    budget = state(daemon, session_of(daemon, window))["budget"]

    assert (budget["reserve"]["value"], budget["keep"]["value"]) == (reserve, keep)


def test_the_size_is_the_last_reports_input_cache_and_output_and_nothing_that_came_later(
    daemon: Daemon,
) -> None:
    usage = {"input_tokens": 600, "output_tokens": 40, "cache_read_tokens": 30, "cache_write_tokens": 7}
    kinds = []
    for limit in (676, 677):
        session = session_of(daemon, 100_000, settings={"model_auto_compact_token_limit": limit})
        append(daemon, session, user(5), assistant(5), usage=usage)
        kinds.append(append(daemon, session, user(500))["decision"]["kind"])

    assert kinds == ["due", "fits"]


@pytest.mark.parametrize("reason", ["error", "aborted"])
def test_the_report_of_an_answer_that_broke_off_is_no_size(daemon: Daemon, reason: str) -> None:
    session = session_of(daemon, 100_000)
    append(daemon, session, user(5))

    answer = daemon.call(
        "turn/end", session_id=session, messages=[assistant(5)], usage=report(99_000), stop_reason=reason
    )

    assert (answer["decision"]["kind"], answer["decision"]["used"]) == ("fits", 10)


def test_a_report_of_a_failed_turn_or_of_before_the_compaction_is_no_size(daemon: Daemon) -> None:
    session = session_of(daemon, 100_000)
    append(daemon, session, *turns(4, 8000), usage=report(40_000))
    error = {"status": 529, "message": "overloaded"}

    daemon.call("turn/error", session_id=session, error=error, usage=report(99_000))
    after_failure = begin(daemon, session)
    append(daemon, session, assistant(5), usage=report(90_000))
    compacted = begin(daemon, session)
    again = begin(daemon, session)

    assert after_failure is None
    assert compacted is not None
    assert compacted["compacted"] is True
    assert again is None, "the report is older than the compaction"


def test_without_a_report_the_size_is_the_texts_characters_by_four(daemon: Daemon) -> None:
    session = session_of(daemon, 8_000)

    fits = append(daemon, session, *turns(3, 1000))["decision"]
    due = append(daemon, session, {"role": "user", "content": "a"})["decision"]

    assert (fits["kind"], fits["used"], due["kind"], due["used"]) == ("fits", 6000, "due", 6001)


def test_an_unknown_limit_is_the_one_that_the_last_usage_names(daemon: Daemon) -> None:
    session = session_of(daemon, None, model="acme/unheard-of-9")
    append(daemon, session, user(5), assistant(5), usage=report(900_000))
    before = begin(daemon, session)

    answer = append(daemon, session, assistant(5), usage={"input_tokens": 90_000, "context_window": 100_000})

    later = append(daemon, session, assistant(5), usage=report(91_000))
    other = daemon.call("model/set", session_id=session, model="acme/unheard-of-10")

    assert before is None, "without a limit never"
    assert answer["token_usage"]["context_window"] == 100_000
    assert answer["decision"]["kind"] == "due"
    assert later["token_usage"]["context_window"] == 100_000, "of the last report that has one"
    assert other["token_usage"]["context_window"] is None, "it was the other model's"


# --- lines 29-35, "Overflow-based" ------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too long",
        "prompt is too long: 213462 tokens > 200000 maximum",
        "Your input exceeds the context window of this model",
        "context length exceeded",
        "400 (no body)",
        "413 (no body)",
        "400 status code (no body)",
        "413 status code (no body)",
    ],
)
def test_the_specs_messages_are_overflows(daemon: Daemon, words: str) -> None:
    found = daemon.call("overflow/classify", message=words, profile="klaude")

    assert (found["overflow"], found["fix"]) == (True, "compact")


@pytest.mark.parametrize(("status", "kind"), [(400, "overflow"), (413, "overflow"), (429, "rate_limit")])
def test_a_status_without_a_body_is_an_overflow_but_for_429(daemon: Daemon, status: int, kind: str) -> None:
    session = session_of(daemon, 100_000)
    append(daemon, session, *turns(20, 1500))

    found = daemon.call("overflow/classify", status=status, profile="klaude")
    told = daemon.call("turn/error", session_id=session, error={"status": status})

    assert found["kind"] == told["kind"] == kind
    assert (told["overflow"], told["retry"]) == (kind == "overflow", kind == "overflow")


@pytest.mark.parametrize("words", ["429 (no body)", "429 status code (no body)"])
def test_429_without_a_body_is_a_rate_limit_whatever_the_spec_says(daemon: Daemon, words: str) -> None:
    found = daemon.call("overflow/classify", message=words, profile="klaude")

    assert (found["overflow"], found["kind"], found["fix"]) == (False, "rate_limit", "retry_later")


# --- lines 37-71, "Trigger Locations" ---------------------------------------------------------------


def test_before_a_prompt_is_run_the_threshold_is_checked(daemon: Daemon, server: Loopback) -> None:
    server.play(Answer(text=SUMMARY), Answer(text="done"))
    talk = Talk(daemon, session_of(daemon, 40_000, model=MODEL))
    append(daemon, talk.id, *turns(16, 1000))

    talk.ask("go on")

    talk.stop()
    kinds = talk.types()
    assert kinds.index("compaction_end") < kinds.index("turn_start")
    asked = ["<conversation>" in request.raw.decode() for request in server.requests]
    assert asked == [True, False], "the summary, then the prompt"
    assert "go on" in server.requests[1].raw.decode()
    reasons = [e["trigger"] for e in daemon.events(talk.id) if e["type"] == "compaction_start"]
    assert reasons == ["threshold"]


def test_between_the_steps_of_a_tool_loop_it_is_checked_too(daemon: Daemon, server: Loopback) -> None:
    calls = (Call("read", '{"path": "a.py"}', "c1"),)
    server.play(Answer(calls=calls, input_tokens=90_000), Answer(text=SUMMARY), Answer(text="done"))
    talk = Talk(daemon, session_of(daemon, 100_000, model=MODEL))
    append(daemon, talk.id, *turns(30, 1000))

    end = talk.ask("look at it")

    talk.stop()
    assert end["stop_reason"] == "stop", "the agent goes on after the compaction"
    kinds = talk.types()
    assert kinds.index("tool_execution_end") < kinds.index("compaction_start") < kinds.index("agent_end")
    reasons = [e["trigger"] for e in daemon.events(talk.id) if e["type"] == "compaction_start"]
    assert reasons == ["threshold"]


def test_a_sub_agents_session_skips_the_threshold_and_not_the_overflow(daemon: Daemon) -> None:
    parent = session_of(daemon, 40_000)
    child = session_of(daemon, 40_000, parent_session_id=parent)
    for session in (parent, child):
        append(daemon, session, *turns(16, 1000))

    assert begin(daemon, parent) is not None
    assert begin(daemon, child) is None
    told = daemon.call("turn/error", session_id=child, error=OVERFLOW)
    assert told["compaction"]["compacted"] is True
    append(daemon, child, *turns(20, 1000))
    over = begin(daemon, child)
    assert over is not None, "what is above the window is no threshold"
    assert over["compacted"] is True


@pytest.mark.parametrize(("window", "kept"), [(40_000, 14), (200_000, 20)])
def test_an_overflow_is_compacted_with_the_same_keep_and_the_turn_sent_again(
    daemon: Daemon, window: int, kept: int
) -> None:
    # 35 % of the window, or 20,000.
    session = session_of(daemon, window)
    append(daemon, session, *turns(30, 1000))

    told = daemon.call("turn/error", session_id=session, error=OVERFLOW)

    assert (told["overflow"], told["retry"]) == (True, True)
    done = told["compaction"]
    assert (done["trigger"], done["kept_messages"]) == ("overflow", kept)
    assert daemon.call("session/history", session_id=session)["entries"][-1]["kind"] == "compaction"


def test_the_daemons_own_loop_sends_an_overflown_turn_again(daemon: Daemon, server: Loopback) -> None:
    server.play(Overflow(requested=60_000, limit=50_000), Answer(text=SUMMARY), Answer(text="done"))
    talk = Talk(daemon, session_of(daemon, 100_000, model=HAIKU))
    append(daemon, talk.id, *turns(30, 1000))

    end = talk.ask("and now?")

    talk.stop()
    assert end["stop_reason"] == "stop"
    assert "retry" not in talk.types()
    rejected, summary, again = server.requests
    assert "<conversation>" in summary.raw.decode()
    assert "and now?" in again.raw.decode()
    assert again.tokens < rejected.tokens
    reasons = [e["trigger"] for e in daemon.events(talk.id) if e["type"] == "compaction_start"]
    assert reasons == ["overflow"]
