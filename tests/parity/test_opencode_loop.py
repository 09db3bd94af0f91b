"""docs/specs-evmts-opencode.md, "opencode.md", from "Message Filtering" to "Session Summary", sentence by
sentence, over the wire.

`docs/specs-evmts-opencode.md` says which test is whose. Where the spec and docs/dev/behaviour.md differ,
docs/dev/behaviour.md wins, and the test says so.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.parity.opencode import DUE, SUMMARY, filled, talk
from tests.support.client import Daemon
from tests.support.git_marks import of_git
from tests.support.loopback import Answer, Loopback, Overflow, Stall
from tests.support.talk import assistant, turns, user
from tests.support.wire import MODEL, append, begin, compact, journal, started, state, view

# --- Message Filtering ------------------------------------------------------------------------------


def test_what_came_before_the_last_summary_is_not_sent_and_not_lost(daemon: Daemon) -> None:
    first, second = turns(10, 200), turns(10, 100)
    session = filled(daemon, *first)
    one = compact(daemon, session)
    append(daemon, session, *second)

    two = compact(daemon, session)

    summary, *rest = view(daemon, session)
    entries = daemon.call("session/history", session_id=session)["entries"]
    assert summary["meta"]["compaction_id"] == two["compaction_id"]
    assert rest == [{**second[-2], "entry_id": two["pinned_entry_ids"][0]}], "the newest request alone"
    assert one["summary"] != two["summary"]
    assert [e["message"] for e in entries if e["kind"] == "message"] == [*first, *second]
    assert [e["in_context"] for e in entries if e["kind"] == "message"].count(True) == 1


def test_a_summary_that_was_not_completed_is_no_boundary(daemon: Daemon, server: Loopback) -> None:
    server.play(Stall(SUMMARY[:40]))
    session = filled(daemon, model=MODEL)
    before = view(daemon, session)
    asked = daemon.ask("session/compact", session_id=session)
    daemon.event("compaction_start", session)

    daemon.notify("$/cancelRequest", id=asked)

    assert daemon.refused(asked).code == -32800
    assert view(daemon, session) == before


def test_the_messages_come_oldest_first(daemon: Daemon) -> None:
    session = filled(daemon, *turns(10, 200))
    compact(daemon, session, keep_messages=6)
    append(daemon, session, *turns(1, 50))

    ids = [message["entry_id"] for message in view(daemon, session)]

    assert ids[1:] == sorted(ids[1:], key=lambda entry: int(entry[1:]))
    assert len(ids) == 9


@pytest.mark.parametrize("automatic", [True, False])
def test_whether_a_compaction_was_automatic_is_kept_with_it(daemon: Daemon, automatic: bool) -> None:
    session = filled(daemon, **(DUE if automatic else {}))

    done = begin(daemon, session) if automatic else compact(daemon, session)

    assert done is not None
    entries = daemon.call("session/history", session_id=session)["entries"]
    (kept,) = [entry["compaction"] for entry in entries if entry["kind"] == "compaction"]
    assert kept["trigger"] == done["trigger"] == ("threshold" if automatic else "manual")


# --- Entry Point ------------------------------------------------------------------------------------


def test_deviation_what_begins_a_compaction_is_told_and_journalled_but_is_no_message(daemon: Daemon) -> None:
    # docs/dev/behaviour.md, "Commit": the start is journalled; a message would have to be sent to the model.
    session = filled(daemon)

    done = compact(daemon, session)

    told = daemon.event("compaction_start", session).value["params"]
    assert (told["compaction_id"], told["trigger"]) == (done["compaction_id"], "manual")
    assert (told["message_count"], told["tokens_before"]) == (20, 4000)
    records = [line for line in journal(daemon, session) if line.get("compaction_id") == "c1"]
    assert len(records) == 2, "its start and what came of it"
    said_by = daemon.call("session/history", session_id=session)["entries"]
    assert [entry["kind"] for entry in said_by].count("message") == 20


# --- Loop Integration -------------------------------------------------------------------------------


def test_a_compaction_that_runs_is_waited_for_before_another_is_thought_of(
    daemon: Daemon, server: Loopback
) -> None:
    server.play(Stall(SUMMARY[:40]))
    session = filled(daemon, model=MODEL, summary_deadline_s=0.4, **DUE)
    asked = daemon.ask("session/compact", session_id=session)
    daemon.event("compaction_start", session)

    turn = daemon.ask("turn/begin", session_id=session)

    assert daemon.result(turn)["compaction"] is None, "then the request fits"
    assert daemon.result(asked)["compacted"] is True
    assert daemon.answer(turn).at > daemon.event("compaction_end", session).at
    assert state(daemon, session)["compaction"]["count"] == 1


def test_a_finished_answer_above_the_limit_is_compacted_before_the_next_request(
    daemon: Daemon, server: Loopback
) -> None:
    server.play(
        Answer(text="Here.", input_tokens=68_000, output_tokens=1), Answer(text=SUMMARY), Answer(text="Done.")
    )
    one = talk(daemon)

    first, second = one.ask("one"), one.ask("two")
    one.stop()

    assert (first["stop_reason"], second["stop_reason"]) == ("stop", "stop")
    kinds = one.types()
    assert kinds.count("compaction_end") == 1
    assert kinds.index("compaction_start") > kinds.index("agent_end"), "the finished answer stays"
    assert state(daemon, one.id)["compaction"]["last"]["trigger"] == "threshold"


def test_a_summary_itself_is_never_what_is_measured(daemon: Daemon, server: Loopback) -> None:
    server.play(Answer(text=SUMMARY, input_tokens=95_000, output_tokens=9000))
    session = filled(daemon, model=MODEL, **DUE)
    begin(daemon, session)

    usage = state(daemon, session)["token_usage"]

    assert (usage["last_prompt_tokens"], usage["current_context_source"]) == (0, "estimated")
    assert begin(daemon, session) is None


def test_an_overflow_is_compacted_and_the_newest_message_is_sent_again(
    daemon: Daemon, server: Loopback
) -> None:
    server.play(Overflow(requested=300_000, limit=100_000), Answer(text="Now it fits."))
    one = talk(daemon, strategy="extract")

    end = one.ask("And now?")
    one.stop()

    assert end["stop_reason"] == "stop"
    assert server.requests[1].tokens < server.requests[0].tokens
    last = server.requests[1].body["messages"][-1]
    assert (last["role"], last["content"][-1]["text"]) == ("user", "And now?"), "it is not told to go on"


def test_a_provider_that_refuses_every_size_ends_the_turn(daemon: Daemon, server: Loopback) -> None:
    # Its users' most frequent complaint: it compacts for ever.
    server.play(*[Overflow(requested=110_000, limit=100_000)] * 12)
    one = talk(daemon, strategy="extract")

    end = one.ask("And now?")
    one.stop()

    assert (end["type"], end["code"]) == ("error", 1008)
    sizes = [request.tokens for request in server.requests]
    assert len(sizes) == 4, "the request, and three smaller ones"
    assert sizes == sorted(set(sizes), reverse=True), "each attempt sends less"


# --- Events -----------------------------------------------------------------------------------------


def test_the_end_of_a_compaction_is_told_with_its_session(daemon: Daemon) -> None:
    # The spec's `session.compacted`: `compaction_end` with `completed`, once for each.
    session = filled(daemon)
    at = daemon.now

    done = compact(daemon, session)

    ends = [e for e in daemon.events(session, after=at) if e["type"] == "compaction_end"]
    assert [(e["session_id"], e["status"]) for e in ends] == [(session, "completed")]
    assert ends[0]["result"]["compaction_id"] == done["compaction_id"]


# --- Session Summary --------------------------------------------------------------------------------


@of_git
def test_the_files_that_changed_are_told_by_turn_and_for_the_whole_session(
    daemon: Daemon, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    cache = tmp_path / "cache.py"
    cache.write_text("one\ntwo\n", "utf-8")
    session = started(daemon, "opencode", working_dir=str(tmp_path), snapshots=True)
    for words in ("one\n2\nthree\n", "one\n2\n"):
        append(daemon, session, user(5))
        daemon.call("turn/begin", session_id=session)
        cache.write_text(words, "utf-8")
        daemon.call("turn/end", session_id=session, messages=[assistant(5)])

    whole = daemon.call("session/diff", session_id=session)["files"]
    second = daemon.call("session/diff", session_id=session, **{"from": "e3"})["files"]

    names = ("file", "before", "after", "additions", "deletions")
    assert [{name: diff[name] for name in names} for diff in whole] == [
        {"file": "cache.py", "before": "one\ntwo\n", "after": "one\n2\n", "additions": 1, "deletions": 1}
    ]
    assert [(diff["additions"], diff["deletions"]) for diff in second] == [(0, 1)]
    assert second[0]["before"] == "one\n2\nthree\n"


def test_a_users_message_has_a_title(daemon: Daemon) -> None:
    session = filled(daemon, {"role": "user", "content": "\n# Fix the cache\nIt is stale."}, assistant(5))

    entries = daemon.call("session/history", session_id=session)["entries"]

    assert [entry.get("title") for entry in entries] == ["Fix the cache", None]
