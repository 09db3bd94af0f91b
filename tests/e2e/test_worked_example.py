"""The worked example of the design (docs/dev/behaviour.md, "A compaction"), number by number, over the wire.

Window 1000, system prompt 100, kept 250 = window ÷ 4. U user, A assistant, T tool result, in tokens: e1 U40 ·
e2 A60 · e3 T200 · e4 A50 · e5 U30 · e6 A20 · e7 T90 · e8 A20 · e9 T70 · e10 A20 · e11 T140 · e12 A30.
"""

from __future__ import annotations

import pytest

from tests.support.client import Daemon
from tests.support.talk import CHARS4, assistant, chars4, result, said, text, user

MESSAGES = [
    user(40, 1),
    assistant(60, "t1", seed=2),
    result("t1", 200, 3),
    assistant(50, seed=4),
    user(30, 5),
    assistant(20, "t2", seed=6),
    result("t2", 90, 7),
    assistant(20, "t3", seed=8),
    result("t3", 70, 9),
    assistant(20, "t4", seed=10),
    result("t4", 140, 11),
    assistant(30, seed=12),
]
PROFILES = pytest.mark.parametrize("profile", ["default", "opal"])


def started(daemon: Daemon, profile: str) -> str:
    session = daemon.call(
        "session/start",
        system_prompt=text(100),
        compaction={"profile": profile, "context_window": 1000, **CHARS4},
    )["session_id"]
    return str(session)


@PROFILES
def test_870_of_1000_tokens_are_due_and_nothing_is_compacted_by_appending(
    daemon: Daemon, profile: str
) -> None:
    session = started(daemon, profile)

    appended = daemon.call("session/append", session_id=session, messages=MESSAGES)

    assert appended["entry_ids"] == [f"e{n}" for n in range(1, 13)]
    assert appended["decision"] == {"kind": "due", "used": 870, "threshold": 800, "window": 1000}
    assert appended["pending_calls"] == []
    budget = daemon.call("agent/state", session_id=session)["budget"]
    assert {name: budget[name]["value"] for name in ("window", "cap", "threshold", "keep", "used")} == {
        "window": 1000,
        "cap": 1000,
        "threshold": 800,
        "keep": 250,
        "used": 870,
    }
    assert daemon.call("session/context", session_id=session)["tokens"] == 870


@PROFILES
def test_the_next_turn_cuts_before_e8_and_pins_e5(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile)
    daemon.call("session/append", session_id=session, messages=MESSAGES)

    begun = daemon.call("turn/begin", session_id=session)

    done = begun["compaction"]
    summary_tokens = chars4(done["summary"])
    assert done["compacted"] is True
    assert done["trigger"] == "threshold"
    assert done["first_kept_entry_id"] == "e8"
    assert done["pinned_entry_ids"] == ["e5"]
    assert done["split_turn"] is False, "the prefix e5 to e7 has 3 messages, below 5"
    assert (done["messages_before"], done["messages_after"], done["messages_removed"]) == (12, 7, 6)
    assert done["kept_messages"] == 5
    assert done["tokens_before"] == 870
    assert done["tokens_after"] == 410 + summary_tokens
    assert done["tokens_saved"] == 460 - summary_tokens
    assert begun["pruned"] == 0
    assert begun["token_usage"]["current_context_tokens"] == 410 + summary_tokens
    assert begun["token_usage"]["epoch"] == 2
    assert begun["max_output_tokens"] == 1000 - 410 - summary_tokens


@PROFILES
def test_the_new_context_is_summary_e5_and_e8_to_e12(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile)
    daemon.call("session/append", session_id=session, messages=MESSAGES)
    done = daemon.call("turn/begin", session_id=session)["compaction"]

    context = daemon.call("session/context", session_id=session)

    summary, *kept = context["messages"]
    assert summary["role"] == "user"
    assert said(summary) == done["summary"]
    assert summary["meta"]["type"] == "compaction_summary"
    assert summary["meta"]["compaction_id"] == done["compaction_id"]
    assert [message["entry_id"] for message in kept] == ["e5", "e8", "e9", "e10", "e11", "e12"]
    originals = [MESSAGES[n - 1] for n in (5, 8, 9, 10, 11, 12)]
    assert [{"role": m["role"], "content": m["content"]} for m in kept] == originals
    assert context["system"] == text(100)
    assert context["tokens"] == done["tokens_after"]
    assert context["epoch"] == 2
    assert context["repairs"] == []


@PROFILES
def test_start_end_and_usage_come_in_this_order_before_the_answer(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile)
    daemon.call("session/append", session_id=session, messages=MESSAGES)
    daemon.event("usage_update", session)
    before = daemon.now

    answer = daemon.answer(daemon.ask("turn/begin", session_id=session))

    told = [e for e in daemon.events(session, after=before) if e["type"] != "compaction_progress"]
    done = answer.value["result"]["compaction"]
    assert [event["type"] for event in told] == ["compaction_start", "compaction_end", "usage_update"]
    start, end, usage = told
    assert start["compaction_id"] == end["compaction_id"] == done["compaction_id"]
    assert (start["trigger"], start["message_count"], start["tokens_before"]) == ("threshold", 12, 870)
    assert end["status"] == "completed"
    assert end["result"] == done
    assert usage["usage"] == answer.value["result"]["token_usage"]
    assert usage["context_window"] == 1000
    assert daemon.event("usage_update", session, after=before).at < answer.at
    seqs = [event["seq"] for event in daemon.events(session)]
    assert seqs == list(range(1, len(seqs) + 1))


@PROFILES
def test_what_was_removed_is_still_in_the_history_and_can_be_expanded(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile)
    daemon.call("session/append", session_id=session, messages=MESSAGES)
    done = daemon.call("turn/begin", session_id=session)["compaction"]

    expanded = daemon.call("session/expand", session_id=session, compaction_id=done["compaction_id"])
    history = daemon.call("session/history", session_id=session)["entries"]

    assert [entry["entry_id"] for entry in expanded["entries"]] == ["e1", "e2", "e3", "e4", "e6", "e7"]
    assert [entry["message"] for entry in expanded["entries"]] == [MESSAGES[n] for n in (0, 1, 2, 3, 5, 6)]
    assert [entry["kind"] for entry in history] == ["message"] * 12 + ["compaction"]
    assert [entry["in_context"] for entry in history] == [
        n in (5, 8, 9, 10, 11, 12, 13) for n in range(1, 14)
    ]
    assert history[-1]["compaction"] == done


@PROFILES
def test_the_turn_after_it_fits_again(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile)
    daemon.call("session/append", session_id=session, messages=MESSAGES)
    daemon.call("turn/begin", session_id=session)

    again = daemon.call("turn/begin", session_id=session)

    assert again["compaction"] is None
    state = daemon.call("agent/state", session_id=session)
    assert state["compaction"]["count"] == 1
    assert state["message_count"] == 7
    assert state["status"] == "idle"
