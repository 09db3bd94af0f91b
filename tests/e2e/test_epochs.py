"""Epochs: a usage report of an older view is billed, but never sets the current size."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.talk import CHARS4, assistant, turns, user


def report(prompt: int, completion: int = 0) -> dict[str, int]:
    return {"input_tokens": prompt, "output_tokens": completion}


@pytest.fixture
def session(daemon: Daemon) -> str:
    """A session of 2400 tokens."""
    name = daemon.call("session/start", compaction={"context_window": 100_000, **CHARS4})["session_id"]
    daemon.call("session/append", session_id=name, messages=turns(6, 200))
    return str(name)


def end(daemon: Daemon, session: str, prompt: int, **more: object) -> dict[str, Any]:
    answer = daemon.call(
        "turn/end", session_id=session, messages=[assistant(10)], usage=report(prompt, 10), **more
    )
    return dict(answer["token_usage"])


def test_a_report_that_crossed_with_a_compaction_is_billed_and_sets_no_size(
    daemon: Daemon, session: str
) -> None:
    epoch = daemon.call("turn/begin", session_id=session)["token_usage"]["epoch"]
    done = daemon.call("session/compact", session_id=session, keep_recent=600)

    usage = end(daemon, session, 5000, epoch=epoch)

    assert (epoch, usage["epoch"]) == (1, 2)
    assert usage["total_tokens"] == 5010
    assert usage["last_prompt_tokens"] == 0
    assert usage["current_context_source"] == "estimated"
    assert usage["current_context_tokens"] == done["tokens_after"] + 10


def test_without_an_epoch_the_one_that_was_handed_out_last_is_meant(daemon: Daemon, session: str) -> None:
    daemon.call("session/context", session_id=session)
    done = daemon.call("session/compact", session_id=session, keep_recent=600)

    stale = end(daemon, session, 5000)
    daemon.call("session/context", session_id=session)
    fresh = end(daemon, session, 900)

    assert stale["current_context_tokens"] == done["tokens_after"] + 10
    assert fresh["last_prompt_tokens"] == 900
    assert fresh["current_context_tokens"] == 910


def test_turn_begin_hands_the_epoch_out_as_well(daemon: Daemon, session: str) -> None:
    daemon.call("session/compact", session_id=session, keep_recent=600)
    daemon.call("turn/begin", session_id=session)

    assert end(daemon, session, 900)["last_prompt_tokens"] == 900


def test_a_report_that_names_the_present_epoch_counts_whatever_was_handed_out(
    daemon: Daemon, session: str
) -> None:
    daemon.call("session/compact", session_id=session, keep_recent=600)

    assert end(daemon, session, 900, epoch=2)["current_context_tokens"] == 910


@pytest.mark.parametrize("method", ["session/undo", "session/redo"])
def test_undo_and_redo_are_changes_of_the_context_too(daemon: Daemon, session: str, method: str) -> None:
    daemon.call("session/compact", session_id=session, keep_recent=600)
    if method == "session/redo":
        daemon.call("session/undo", session_id=session)
    daemon.call("session/context", session_id=session)
    changed = daemon.call(method, session_id=session)["token_usage"]

    usage = end(daemon, session, 50_000)

    assert usage["epoch"] == changed["epoch"]
    assert usage["last_prompt_tokens"] == 0
    assert usage["current_context_tokens"] == changed["current_context_tokens"] + 10


TOOL = {"name": "run", "description": "x" * 400, "input_schema": {"type": "object"}}


def test_what_leaves_the_context_as_it_is_leaves_the_epoch_alone(daemon: Daemon, session: str) -> None:
    daemon.call("session/append", session_id=session, messages=[user(5)])
    daemon.call("session/pin", session_id=session, entry_ids=["e1"])
    daemon.call("session/configure", session_id=session, system_prompt="", tools=[], title="x")
    daemon.call("session/configure", session_id=session, compaction={"keep_messages": 7})
    daemon.call("session/start", session_id=session, system_prompt="", tools=[], title="y")

    assert daemon.call("session/context", session_id=session)["epoch"] == 1


def test_what_is_set_before_the_first_message_belongs_to_the_first_epoch(daemon: Daemon) -> None:
    session = daemon.call("session/start", system_prompt="Be brief.")["session_id"]
    daemon.call("model/set", session_id=session, model="openai/gpt-4o")
    daemon.call("session/configure", session_id=session, tools=[TOOL], system_prompt="Be long.")

    assert daemon.call("session/context", session_id=session)["epoch"] == 1


CHANGES: dict[str, tuple[str, dict[str, object]]] = {
    "another prompt": ("session/configure", {"system_prompt": "x" * 40_000}),
    "other tools": ("session/configure", {"tools": [{**TOOL, "description": "x" * 40_000}]}),
    "another prompt at a start": ("session/start", {"system_prompt": "x" * 40_000}),
    "other tools at a start": ("session/start", {"tools": [{**TOOL, "description": "x" * 40_000}]}),
}
EACH_CHANGE = pytest.mark.parametrize("change", CHANGES)


@EACH_CHANGE
@pytest.mark.parametrize("says_epoch", [True, False], ids=["epoch given", "no epoch"])
def test_a_report_from_before_another_prompt_or_other_tools_sets_no_size(
    daemon: Daemon, session: str, change: str, says_epoch: bool
) -> None:
    method, params = CHANGES[change]
    handed = daemon.call("session/context", session_id=session)["epoch"]
    daemon.call(method, session_id=session, **params)

    usage = end(daemon, session, 2400, **({"epoch": handed} if says_epoch else {}))

    whole = daemon.call("session/context", session_id=session)
    assert (handed, usage["epoch"], whole["epoch"]) == (1, 2, 2)
    assert usage["total_tokens"] == 2410, "billed"
    assert usage["current_context_tokens"] == whole["tokens"] > 12_400
    assert (usage["last_prompt_tokens"], usage["current_context_source"]) == (0, "estimated")


@EACH_CHANGE
def test_the_next_report_counts_again_for_clients_that_ask_for_no_context(
    daemon: Daemon, session: str, change: str
) -> None:
    method, params = CHANGES[change]
    daemon.call(method, session_id=session, **params)

    assert end(daemon, session, 12_500)["current_context_tokens"] == 12_510


def test_after_the_late_answer_the_next_one_counts_without_a_new_context(
    daemon: Daemon, session: str
) -> None:
    daemon.call("session/context", session_id=session)
    daemon.call("session/configure", session_id=session, system_prompt="x" * 400)
    late = end(daemon, session, 2400)

    assert late["last_prompt_tokens"] == 0
    assert end(daemon, session, 2600)["current_context_tokens"] == 2610


@pytest.mark.parametrize("reported", [1, 300, 2400, 50_000])
def test_a_prompt_that_goes_takes_no_more_of_the_size_than_its_share(daemon: Daemon, reported: int) -> None:
    session = daemon.call("session/start", compaction=CHARS4, system_prompt="x" * 40_000)["session_id"]
    daemon.call("session/append", session_id=session, messages=turns(6, 200))
    before = end(daemon, session, reported)["current_context_tokens"]

    daemon.call("session/configure", session_id=session, system_prompt="")

    usage = daemon.call("agent/state", session_id=session)["token_usage"]
    assert before == reported + 10
    assert 0 < usage["current_context_tokens"] <= before
    if reported == 50_000:
        assert usage["current_context_tokens"] == before - 10_000
    daemon.call("session/configure", session_id=session, system_prompt="x" * 40_000)
    again = daemon.call("agent/state", session_id=session)["token_usage"]["current_context_tokens"]
    assert again == before, "as it was"


def test_a_first_model_for_a_session_with_messages_makes_a_new_epoch(daemon: Daemon, session: str) -> None:
    handed = daemon.call("session/context", session_id=session)["epoch"]
    daemon.call("model/set", session_id=session, model="openai/gpt-4o")

    usage = end(daemon, session, 90_000, epoch=handed)

    assert (handed, usage["epoch"], usage["last_prompt_tokens"]) == (1, 2, 0)


def test_a_changed_prompt_is_the_same_after_closing_and_opening(daemon: Daemon, session: str) -> None:
    daemon.call("session/context", session_id=session)
    daemon.call("session/configure", session_id=session, system_prompt="x" * 4000)
    end(daemon, session, 2400)
    daemon.call("session/configure", session_id=session, system_prompt="y")
    before = daemon.call("agent/state", session_id=session)["token_usage"]
    daemon.call("session/close", session_id=session)

    again = daemon.call("session/start", session_id=session)["token_usage"]

    assert (again["epoch"], again) == (3, before)


def test_a_model_that_is_changed_at_a_resume_makes_a_new_epoch(daemon: Daemon) -> None:
    daemon.call("session/start", session_id="epochs", model="acme/one")
    daemon.call("session/append", session_id="epochs", messages=[user(5), assistant(5)], usage=report(900))
    daemon.call("session/close", session_id="epochs")

    usage = daemon.call("session/start", session_id="epochs", model="acme/two")["token_usage"]

    assert usage["epoch"] == 2
    assert usage["last_prompt_tokens"] == 0
    assert usage["total_tokens"] == 900


@pytest.mark.parametrize("stop_reason", ["aborted", "error"])
def test_the_report_of_a_turn_that_failed_is_billed_and_sets_no_size(
    daemon: Daemon, session: str, stop_reason: str
) -> None:
    usage = end(daemon, session, 5000, stop_reason=stop_reason)

    assert usage["total_tokens"] == 5010
    assert usage["last_prompt_tokens"] == 0
    assert usage["current_context_tokens"] == 2410


def test_a_changed_system_prompt_adds_its_difference_to_a_reported_size(daemon: Daemon, session: str) -> None:
    end(daemon, session, 5000)

    daemon.call("session/configure", session_id=session, system_prompt="x" * 400)

    usage = daemon.call("agent/state", session_id=session)["token_usage"]
    assert usage["current_context_tokens"] == 5000 + 10 + 100


def test_in_a_bulk_append_each_report_is_billed_and_the_last_one_counts(daemon: Daemon) -> None:
    session = daemon.call("session/start", compaction=CHARS4)["session_id"]
    messages = [
        user(5),
        assistant(5, usage=report(100, 5)),
        user(5),
        assistant(5, usage=report(200, 5)),
        user(7),
    ]

    usage = daemon.call("session/append", session_id=session, messages=messages)["token_usage"]

    assert usage["total_tokens"] == 310
    assert usage["last_prompt_tokens"] == 200
    assert usage["current_context_tokens"] == 200 + 5 + 7


def test_the_usage_of_the_call_beats_the_messages_own(daemon: Daemon) -> None:
    session = daemon.call("session/start", compaction=CHARS4)["session_id"]

    usage = daemon.call(
        "session/append",
        session_id=session,
        messages=[user(5), assistant(5, usage=report(100, 5))],
        usage=report(300, 7),
    )["token_usage"]

    assert (usage["last_prompt_tokens"], usage["total_tokens"]) == (300, 307)


REPORTS = {
    "ours": {"input_tokens": 100, "output_tokens": 7, "cache_read_tokens": 30, "cache_write_tokens": 20},
    "OpenCode": {"input": 100, "output": 7, "reasoning": 0, "cache": {"read": 30, "write": 20}},
    "Anthropic": {
        "input_tokens": 100,
        "output_tokens": 7,
        "cache_read_input_tokens": 30,
        "cache_creation_input_tokens": 20,
    },
    "OpenAI": {
        "prompt_tokens": 150,
        "completion_tokens": 7,
        "total_tokens": 157,
        "prompt_tokens_details": {"cached_tokens": 50},
    },
    "OpenAI Responses": {
        "input_tokens": 150,
        "output_tokens": 7,
        "input_tokens_details": {"cached_tokens": 50},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
    "Gemini": {"promptTokenCount": 150, "candidatesTokenCount": 7, "cachedContentTokenCount": 50},
}


@pytest.mark.parametrize("shape", REPORTS)
def test_every_providers_report_gives_the_same_size(daemon: Daemon, shape: str) -> None:
    session = daemon.call("session/start", compaction=CHARS4)["session_id"]

    usage = daemon.call(
        "session/append", session_id=session, messages=[user(5), assistant(5)], usage=REPORTS[shape]
    )["token_usage"]

    assert usage["last_prompt_tokens"] == 150
    assert usage["current_context_tokens"] == 157
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (150, 7)
    assert usage["cache_read_tokens"] + usage["cache_write_tokens"] == 50
