"""Opal's spec, docs/specs.md, "opal.md", from its start to "Detect Split Turns": what is measured, when, and
where it is cut.

Profile `opal` is the spec; `default` has the same numbers and must pass too. Goes on in
`test_opal_summary.py`. Every number's edge on every window is in `test_edges.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.parity.prompts import PREFIX, SUMMARISES, missing, task_of
from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback
from tests.support.own_loop import Talk
from tests.support.talk import Message, assistant, result, said, text, turns, user
from tests.support.wire import MODEL, SUMMARY, append, begin, compact, report, started, state, view

BOTH = pytest.mark.parametrize("profile", ["opal", "default"])


@pytest.fixture
def talk(daemon: Daemon) -> Iterator[Talk]:
    """A session whose model is `server` and whose loop the daemon runs."""
    one = Talk(daemon, started(daemon, "opal", 100_000, model=MODEL, system_prompt="Be brief."))
    yield one
    one.stop()


# --- line 3 -----------------------------------------------------------------------------------------


@BOTH
def test_a_conversation_of_any_length_stays_within_the_window(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 2000, persist=False)
    sizes = []

    for number in range(40):
        append(daemon, session, user(60, seed=number))
        begin(daemon, session)
        sizes.append(daemon.call("session/context", session_id=session)["tokens"])
        append(daemon, session, assistant(90, seed=number + 50))

    assert 1000 < max(sizes) <= 1600, "never 80 % when the request is sent"
    assert state(daemon, session)["compaction"]["count"] > 2
    assert len(daemon.call("session/history", session_id=session)["entries"]) > 80, "nothing is deleted"


# --- lines 31-53, "Token Metrics" -------------------------------------------------------------------


def test_each_call_sends_the_entire_conversation(talk: Talk, server: Loopback) -> None:
    for number in range(1, 4):
        server.play(Answer(text=f"answer {number}", input_tokens=100 * number, output_tokens=7))
        talk.ask(f"question {number}")

    last = server.requests[2].raw.decode()
    assert [f"question {n}" in last for n in (1, 2, 3)] == [True, True, True]
    assert [f"answer {n}" in last for n in (1, 2)] == [True, True]
    assert "Be brief." in last
    usage = state(talk.daemon, talk.id)["token_usage"]
    assert usage["last_prompt_tokens"] == 300, "as the provider returned it"
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (600, 21)


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
    assert usage["last_prompt_tokens"] == 19_000, "Opal's currentContextTokens"
    assert usage["current_context_tokens"] == 20_000, "the last answer is in the next request, too"


@BOTH
def test_what_was_billed_decides_nothing(daemon: Daemon, profile: str) -> None:
    session, usage = example(daemon, profile, 30_000)

    assert usage["total_tokens"] > usage["context_window"]
    assert begin(daemon, session) is None


@BOTH
def test_the_bar_is_the_context_over_the_window(daemon: Daemon, profile: str) -> None:
    _, usage = example(daemon, profile)

    assert usage["percent"] == 100 * usage["current_context_tokens"] / usage["context_window"] == 10.0


# --- lines 55-68, "Auto-Compaction" -----------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("used", "kind"), [(799, "fits"), (800, "due"), (801, "due")])
def test_a_turn_starts_with_a_compaction_from_80_percent_of_the_window_on(
    daemon: Daemon, profile: str, used: int, kind: str
) -> None:
    session = started(daemon, profile, 1000)

    answer = append(daemon, session, *turns(3, 100), user(used - 600))

    assert answer["decision"] == {"kind": kind, "used": used, "threshold": 800, "window": 1000}
    assert (begin(daemon, session) is not None) == (kind == "due")


def test_each_request_of_the_daemons_own_loop_is_checked_before_it_is_sent(
    talk: Talk, server: Loopback
) -> None:
    append(talk.daemon, talk.id, *turns(40, 1000))
    server.play(Answer(text=SUMMARY), Answer(text="done"))

    talk.ask("go on")

    assert talk.types().index("compaction_end") < talk.types().index("turn_start")
    assert server.requests[-1].tokens < 40_000


@BOTH
@pytest.mark.parametrize(("base", "kind"), [(789, "fits"), (790, "due")])
def test_with_a_report_only_what_came_after_it_is_estimated(
    daemon: Daemon, profile: str, base: int, kind: str
) -> None:
    session = started(daemon, profile, 1000)
    append(daemon, session, user(30), assistant(20, "t1"), usage=report(base, 3))

    answer = append(daemon, session, result("t1", 5), user(2))

    usage = answer["token_usage"]
    assert usage["current_context_tokens"] == base + 3 + 5 + 2
    assert usage["current_context_source"] == "mixed"
    assert answer["decision"]["kind"] == kind


@pytest.mark.parametrize("usage", [None, report(0, 0)], ids=["none", "of 0 tokens"])
def test_without_a_report_everything_is_estimated_at_four_characters_a_token(
    daemon: Daemon, usage: dict[str, int] | None
) -> None:
    session = started(daemon, "opal", 1000, system_prompt=text(100))

    append(daemon, session, user(30), assistant(20, "t1"), **({} if usage is None else {"usage": usage}))
    told = append(daemon, session, result("t1", 50))["token_usage"]

    assert told["current_context_tokens"] == 200
    assert told["last_prompt_tokens"] == 0
    assert told["current_context_source"] == "estimated"


@BOTH
def test_start_and_end_are_broadcast_with_the_message_counts(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 1000)
    append(daemon, session, *turns(4, 100), user(10))

    begin(daemon, session)

    told = [e for e in daemon.events(session) if e["type"].startswith("compaction_")]
    assert (told[0]["type"], told[-1]["type"]) == ("compaction_start", "compaction_end")
    assert told[0]["compaction_id"] == told[-1]["compaction_id"]
    end = told[-1]["result"]
    assert (told[0]["message_count"], end["messages_before"]) == (9, 9)
    assert end["messages_after"] == state(daemon, session)["message_count"]


@BOTH
def test_an_automatic_compaction_keeps_a_quarter_of_the_window(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 100_000)
    append(daemon, session, *turns(41, 1000))

    done = begin(daemon, session)

    assert done is not None
    assert done["trigger"] == "threshold"
    assert done["kept_messages"] == 26, "25 are within 25,000, the 26th exceeds it and is a user's"
    assert state(daemon, session)["budget"]["keep"]["value"] == 25_000


@BOTH
def test_a_compaction_sets_the_last_prompt_tokens_back(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 1000)
    append(daemon, session, *turns(4, 100), usage=report(810, 10))

    begun = daemon.call("turn/begin", session_id=session)
    late = append(daemon, session, assistant(1), usage=report(900, 1), epoch=1)

    usage, done = begun["token_usage"], begun["compaction"]
    assert done["compacted"] is True
    assert usage["last_prompt_tokens"] == 0
    assert usage["current_context_source"] == "estimated"
    assert usage["current_context_tokens"] == done["tokens_after"]
    assert usage["total_tokens"] == 820, "billing goes on"
    assert late["token_usage"]["last_prompt_tokens"] == 0, "a report of the old view is no base any more"
    assert begin(daemon, session) is None, "the stale size does not trigger again"


# --- lines 72-82, "1. Find Cut Point" ---------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("keep", "kept"), [(399, 4), (400, 4), (499, 4), (500, 6), (599, 6), (600, 6)])
def test_the_walk_back_stops_where_the_total_exceeds_the_budget(
    daemon: Daemon, profile: str, keep: int, kept: int
) -> None:
    # 500 is exceeded by the 6th message from the end only, a user's; 499 by the 5th, from which the cut
    # moves forward to the user's message behind it.
    session = started(daemon, profile, 100_000)
    append(daemon, session, *turns(10, 100))

    assert compact(daemon, session, keep_recent=keep)["kept_messages"] == kept


def test_what_stays_begins_at_a_users_message_wherever_one_follows(daemon: Daemon) -> None:
    session = started(daemon, "opal", 100_000)
    batch = [user(50), assistant(60, "t1"), result("t1", 400), assistant(60)]
    append(daemon, session, *turns(2, 200), *batch, user(20), assistant(30))

    done = compact(daemon, session, keep_recent=300)

    assert done["first_kept_entry_id"] == "e9", "the walk stops at the result, the next user's is behind it"
    assert done["split_turn"] is False


@BOTH
@pytest.mark.parametrize("keep", [150, 230], ids=["stops at a call", "stops at a result"])
def test_without_a_clean_boundary_the_turn_is_split_and_never_between_a_call_and_its_result(
    daemon: Daemon, profile: str, keep: int
) -> None:
    session = started(daemon, profile, 100_000)
    steps = [m for n in range(6) for m in (assistant(60, f"t{n}"), result(f"t{n}", 60))]
    append(daemon, session, user(500), assistant(5), user(20), *steps, assistant(60))

    done = compact(daemon, session, keep_recent=keep)

    kept = view(daemon, session)[-done["kept_messages"] :]
    assert kept[0]["role"] == "assistant"
    assert done["split_turn"] is True
    calls = [b["call_id"] for m in kept for b in m["content"] if b["type"] == "tool_call"]
    answers = [b["call_id"] for m in kept for b in m["content"] if b["type"] == "tool_result"]
    assert calls == answers
    assert daemon.call("session/context", session_id=session)["repairs"] == []


@BOTH
def test_a_compaction_without_a_budget_keeps_20000_tokens(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 1_000_000)
    append(daemon, session, *turns(30, 1000))

    done = compact(daemon, session)

    assert done["trigger"] == "manual"
    assert done["kept_messages"] == 20, "the 21st exceeds 20,000 and is an assistant's: forward to the user's"


@BOTH
def test_forced_where_no_cut_is_valid_all_but_the_last_2_messages_go(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 100_000)
    append(daemon, session, *turns(3, 200))

    refused = compact(daemon, session)
    forced = compact(daemon, session, force=True)

    assert (refused["compacted"], refused["compaction_id"]) == (False, None)
    assert refused["reason"].startswith("nothing to compact")
    assert refused["tokens_after"] == refused["tokens_before"]
    assert forced["compacted"] is True
    assert (forced["kept_messages"], forced["messages_removed"]) == (2, 4)
    assert forced["first_kept_entry_id"] == "e5"


# --- lines 84-95, "2. Detect Split Turns" -----------------------------------------------------------


def long_turn(prefix: int) -> list[Message]:
    """An old turn, then one that is cut behind `prefix` messages when 200 tokens are kept."""
    steps = [
        user(50, content=f"BEGINNING {text(40)}"),
        assistant(60, "t1"),
        result("t1", 70),
        assistant(60, "t2"),
        result("t2", 70),
    ]
    if prefix == 4:
        steps[3:] = [assistant(60)]
    old = [user(200, content=f"HISTORY {text(190)}"), assistant(200)]
    return [*old, *steps, assistant(100, "t3"), result("t3", 100), assistant(20)]


@BOTH
@pytest.mark.parametrize(("prefix", "is_split"), [(5, True), (4, False)])
def test_a_cut_turn_gets_its_own_summary_from_a_prefix_of_5_messages_on(
    daemon: Daemon, profile: str, prefix: int, is_split: bool
) -> None:
    session = started(daemon, profile, 100_000)
    append(daemon, session, *long_turn(prefix))

    done = compact(daemon, session, keep_recent=200)

    assert done["compacted"] is True
    assert done["first_kept_entry_id"] == f"e{3 + prefix}"
    assert done["split_turn"] is is_split
    assert done["pinned_entry_ids"] == ["e3"], "the turn's request stays word for word"


@BOTH
@pytest.mark.parametrize(("prefix", "asked"), [(5, 2), (4, 1)])
def test_history_and_turn_prefix_are_summarised_each_by_a_request_of_its_own(
    daemon: Daemon, server: Loopback, profile: str, prefix: int, asked: int
) -> None:
    answers = [SUMMARY.replace("The slow function", f"Slow function {number}") for number in range(asked)]
    server.play(*[Answer(text=answer) for answer in answers])
    session = started(daemon, profile, 100_000, settings={"model": MODEL})
    append(daemon, session, *long_turn(prefix))

    done = compact(daemon, session, keep_recent=200)

    assert (done["strategy"], done["split_turn"]) == ("summarize", asked == 2)
    sent = [request.raw.decode() for request in server.requests]
    assert len(sent) == asked
    (history,) = (one for one in sent if "HISTORY" in one)
    if asked == 1:
        assert "BEGINNING" in history, "the request of the turn, though it stays word for word"
        return
    (beginning,) = (one for one in sent if "BEGINNING" in one)
    assert "HISTORY" not in beginning
    assert "BEGINNING" not in history
    for request in server.requests:
        assert "You are a summariser" in str(request.body["system"])
        (prompt,) = (block["text"] for block in request.body["messages"][0]["content"])
        assert prompt.count("<conversation>") == prompt.count("</conversation>") == 1
        assert missing(task_of(prompt), SUMMARISES) == []
        assert missing(task_of(prompt), PREFIX) == ([] if "BEGINNING" in prompt else list(PREFIX))
    before, _, after = done["summary"].partition("## Turn Context (split turn)")
    assert f"Slow function {sent.index(history)} is" in before
    assert f"Slow function {sent.index(beginning)} is" in after
    assert said(view(daemon, session)[0]) == done["summary"], "both are one message"


def test_a_split_turn_without_a_model_is_truncated_and_crashes_nothing(
    daemon: Daemon, server: Loopback
) -> None:
    session = started(daemon, "opal", 100_000)
    append(daemon, session, *long_turn(5))

    done = compact(daemon, session, keep_recent=200, strategy="truncate")

    assert (done["compacted"], done["strategy"], done["split_turn"]) == (True, "truncate", True)
    assert (done["first_kept_entry_id"], done["pinned_entry_ids"]) == ("e8", ["e3"])
    # Two old messages and the five of the turn's beginning, of which its request stays.
    history, _, turn = done["summary"].partition("\n\n## Turn Context (split turn)\n")
    assert history.endswith("[Compacted 6 messages: 1 user, 3 assistant, 2 tool]")
    assert turn == "(5 messages of the turn in progress)"
    assert server.requests == []
