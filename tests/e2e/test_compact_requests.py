"""Options of `session/compact`, and the switches that turn automatic compaction off."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.talk import CHARS4, Message, assistant, result, turns, user
from tests.support.views import problems_of_providers, seen


def started(daemon: Daemon, messages: list[Message], **compaction: Any) -> str:
    """The id of a new session with these messages."""
    settings = {"context_window": 100_000, **CHARS4, **compaction}
    session = str(daemon.call("session/start", compaction=settings)["session_id"])
    daemon.call("session/append", session_id=session, messages=messages)
    return session


# --- budgets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["keep_messages", "preserve_count"])
@pytest.mark.parametrize("count", [1, 4, 19])
def test_a_number_of_messages_is_kept_exactly(daemon: Daemon, name: str, count: int) -> None:
    session = started(daemon, turns(10, 200))

    done = daemon.call("session/compact", session_id=session, **{name: count})

    assert (done["compacted"], done["kept_messages"], done["reason"]) == (True, count, "")
    assert done["messages_before"] == 20


def test_a_number_of_messages_is_moved_where_it_would_part_a_call_from_its_result(daemon: Daemon) -> None:
    tail = [assistant(50, "t1", "t2"), result("t1", 100), result("t2", 100, 1), assistant(50)]
    session = started(daemon, [*turns(8, 200), user(10), *tail])

    done = daemon.call("session/compact", session_id=session, keep_messages=2)

    assert done["first_kept_entry_id"] == "e18", "back to the call"
    assert done["kept_messages"] == 4
    assert problems_of_providers(daemon, session) == {}


@pytest.mark.parametrize("target", [900, 1500, 3000])
def test_a_target_is_a_budget_for_the_whole_new_request(daemon: Daemon, target: int) -> None:
    session = started(daemon, turns(20, 200))
    daemon.call("session/configure", session_id=session, system_prompt="x" * 400)

    done = daemon.call("session/compact", session_id=session, target_tokens=target)

    assert done["tokens_before"] == 8100
    assert done["tokens_after"] <= target
    assert daemon.call("session/context", session_id=session)["tokens"] == done["tokens_after"]


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"target_tokens": 4000}, "target"),
        ({"target_tokens": 9000}, "target"),
        ({"keep_messages": 20}, "20"),
        ({"keep_messages": 500}, "500"),
        ({"keep_recent": 4000}, "4,000"),
        ({}, "20,000"),
    ],
)
def test_where_all_is_to_be_kept_nothing_happens_and_the_reason_says_so(
    daemon: Daemon, params: dict[str, int], word: str
) -> None:
    session = started(daemon, turns(10, 200))
    before = seen(daemon, session)

    done = daemon.call("session/compact", session_id=session, **params)

    assert done["compacted"] is False
    assert done["compaction_id"] is None
    assert done["reason"].startswith("nothing to compact")
    assert word in done["reason"]
    assert done["tokens_after"] == done["tokens_before"] == 4000
    assert seen(daemon, session) == before
    events = {event["type"] for event in daemon.events(session)}
    assert events == {"message_appended", "usage_update"}, "no start without a compaction"


def test_an_empty_session_has_nothing_to_compact(daemon: Daemon) -> None:
    session = started(daemon, [])

    done = daemon.call("session/compact", session_id=session, force=True)

    assert done["compacted"] is False
    assert done["reason"]


@pytest.mark.parametrize("more", [{}, {"dry_run": False}, {"dry_run": None}, {"dry_run": True}])
def test_plan_only_never_changes_the_session(daemon: Daemon, more: dict[str, bool | None]) -> None:
    session = started(daemon, turns(10, 200))
    before = seen(daemon, session)

    told = daemon.call("session/compact", session_id=session, plan_only=True, keep_messages=4, **more)

    assert (told["compaction_id"], told["summary"], told["messages_removed"]) == (None, "", 16)
    assert told["reason"].startswith("dry run: nothing was changed")
    assert seen(daemon, session) == before
    assert daemon.call("agent/state", session_id=session)["compaction"]["count"] == 0


def test_a_dry_run_tells_the_plan_and_the_real_run_keeps_it(daemon: Daemon) -> None:
    session = started(daemon, turns(10, 200))
    before = seen(daemon, session)

    dry = daemon.call("session/compact", session_id=session, keep_recent=900, dry_run=True)
    unchanged = seen(daemon, session)
    done = daemon.call("session/compact", session_id=session, keep_recent=900)

    assert unchanged == before
    same = ("messages_before", "messages_after", "kept_messages", "first_kept_entry_id", "pinned_entry_ids")
    assert {name: dry[name] for name in same} == {name: done[name] for name in same}
    assert dry["tokens_before"] == done["tokens_before"]
    assert dry["tokens_after"] >= done["tokens_after"], "with a summary that uses all its budget"


def test_the_same_budget_again_is_nothing_to_compact_until_something_is_appended(daemon: Daemon) -> None:
    session = started(daemon, turns(10, 200))
    daemon.call("session/compact", session_id=session, keep_recent=900)

    again = daemon.call("session/compact", session_id=session, keep_recent=900)
    daemon.call("session/append", session_id=session, messages=turns(5, 200))
    later = daemon.call("session/compact", session_id=session, keep_recent=900)

    assert again["compacted"] is False
    assert again["reason"].startswith("nothing to compact")
    assert later["compacted"] is True


def test_the_record_of_all_compactions_stands_in_the_state(daemon: Daemon) -> None:
    session = started(daemon, turns(10, 200))
    done = []
    for _ in range(2):
        done.append(daemon.call("session/compact", session_id=session, keep_recent=900))
        daemon.call("session/append", session_id=session, messages=turns(5, 200))

    compaction = daemon.call("agent/state", session_id=session)["compaction"]

    assert compaction["count"] == 2
    assert compaction["tokens_saved"] == sum(one["tokens_saved"] for one in done)
    assert [one["compaction_id"] for one in compaction["history"]] == [one["compaction_id"] for one in done]
    assert compaction["last"]["compaction_id"] == done[1]["compaction_id"]


def test_a_tail_that_does_not_fit_is_clipped_with_a_mark_and_expands_to_the_original(daemon: Daemon) -> None:
    messages = [user(20), assistant(20, "t1"), result("t1", 5000), assistant(20)]
    session = started(daemon, messages, context_window=4000)

    done = daemon.call("turn/begin", session_id=session)["compaction"]

    assert done["compacted"] is True
    assert done["tokens_after"] < 4000
    original = daemon.call("session/expand", session_id=session, entry_ids=["e3"])["entries"][0]["message"]
    assert original == messages[2]
    assert problems_of_providers(daemon, session) == {}
    daemon.call("session/configure", session_id=session, compaction={"enabled": False})
    assert daemon.call("session/undo", session_id=session)["message_count"] == 4
    assert daemon.call("session/context", session_id=session)["tokens"] == 5060, "one undo takes all back"


# --- switches ---------------------------------------------------------------------------------------


def due(daemon: Daemon, **compaction: Any) -> dict[str, Any]:
    """Return what `turn/begin` answers if a compaction is due."""
    session = started(daemon, turns(9, 100), context_window=2000, **compaction)
    return dict(daemon.call("turn/begin", session_id=session))


@pytest.mark.parametrize("name", ["enabled", "auto"])
def test_where_compaction_is_disabled_no_turn_compacts_and_a_request_still_does(
    daemon: Daemon, name: str
) -> None:
    session = started(daemon, turns(9, 100), context_window=2000, **{name: False})

    begun = daemon.call("turn/begin", session_id=session)
    asked = daemon.call("session/compact", session_id=session, keep_recent=500)

    assert begun["compaction"] is None
    assert asked["compacted"] is True


@pytest.mark.parametrize(("value", "is_off"), [("1", True), ("yes", True), ("0", False), ("false", False)])
def test_the_environment_turns_automatic_compaction_off_above_every_setting(
    spawn: Spawn, value: str, is_off: bool
) -> None:
    daemon = spawn(env={"COMPACTD_DISABLE_AUTOCOMPACT": value})

    begun = due(daemon, enabled=True)

    assert (begun["compaction"] is None) is is_off


def test_opencodes_own_switch_counts_under_its_profile_alone(spawn: Spawn) -> None:
    daemon = spawn(env={"OPENCODE_DISABLE_AUTOCOMPACT": "1"})

    assert due(daemon, profile="opencode", reserve_tokens=400)["compaction"] is None
    assert due(daemon, profile="default")["compaction"]["compacted"] is True


@pytest.mark.parametrize(("profile", "compacts"), [("default", True), ("klaude", False)])
def test_under_klaude_alone_a_sub_agents_session_skips_the_check(
    daemon: Daemon, profile: str, compacts: bool
) -> None:
    parent = started(daemon, [])
    settings = {"context_window": 2000, "profile": profile, **CHARS4}
    session = daemon.call("session/start", parent_session_id=parent, compaction=settings)["session_id"]
    daemon.call("session/append", session_id=session, messages=turns(9, 100))

    begun = daemon.call("turn/begin", session_id=session)

    assert (begun["compaction"] is not None) is compacts


def test_a_threshold_compaction_that_finds_nothing_stops_nobody(daemon: Daemon) -> None:
    session = started(daemon, [user(850), assistant(10)], context_window=1000)

    begun = daemon.call("turn/begin", session_id=session)

    assert begun["compaction"]["compacted"] is False
    assert begun["compaction"]["reason"]
    assert begun["token_usage"]["current_context_tokens"] == 860


# --- prune ------------------------------------------------------------------------------------------


def old_output(*sizes: int) -> list[Message]:
    """A turn for each size, with one tool result of that many tokens."""
    return [
        message
        for n, size in enumerate(sizes)
        for message in (user(10, n), assistant(10, f"t{n}"), result(f"t{n}", size, n), assistant(10, seed=n))
    ]


def test_opencode_prunes_old_tool_output_before_a_turn_and_undo_takes_it_back(daemon: Daemon) -> None:
    messages = old_output(30_000, 30_000, 40_000, 5, 5)
    session = started(daemon, messages, profile="opencode", context_window=400_000)
    before = daemon.call("session/context", session_id=session)

    begun = daemon.call("turn/begin", session_id=session)

    pruned = daemon.call("session/context", session_id=session)
    history = daemon.call("session/history", session_id=session)["entries"]
    told = daemon.event("prune_end", session).value["params"]
    assert (begun["pruned"], begun["compaction"]) == (2, None)
    assert (told["pruned"], told["tokens_saved"]) == (2, before["tokens"] - pruned["tokens"])
    assert pruned["epoch"] == before["epoch"] + 1
    assert [entry["entry_id"] for entry in history if "pruned_at" in entry] == ["e3", "e7"]
    assert [entry["message"] for entry in history if entry["kind"] == "message"] == messages
    undone = daemon.call("session/undo", session_id=session)
    assert undone["entry_ids"] == ["e3", "e7"]
    assert "compaction_id" not in undone
    assert daemon.call("session/context", session_id=session)["messages"] == before["messages"]


@pytest.mark.parametrize(("old", "pruned"), [(20_000, 0), (20_001, 1)])
def test_opencode_prunes_only_what_saves_more_than_its_minimum(daemon: Daemon, old: int, pruned: int) -> None:
    messages = old_output(old, 40_000, 5, 5)
    session = started(daemon, messages, profile="opencode", context_window=400_000)

    begun = daemon.call("turn/begin", session_id=session)

    assert begun["pruned"] == pruned


def test_opencodes_switch_for_pruning_counts_under_its_profile(spawn: Spawn) -> None:
    daemon = spawn(env={"OPENCODE_DISABLE_PRUNE": "1"})
    session = started(daemon, old_output(30_000, 40_000, 5, 5), profile="opencode", context_window=400_000)

    assert daemon.call("turn/begin", session_id=session)["pruned"] == 0


def test_opencode_goes_on_by_itself_after_a_compaction_that_completed(daemon: Daemon) -> None:
    session = started(
        daemon, [*turns(20, 100), user(10)], profile="opencode", context_window=4000, reserve_tokens=2500
    )

    begun = daemon.call("turn/begin", session_id=session)

    assert begun["compaction"]["compacted"] is True
    last = daemon.call("session/context", session_id=session)["messages"][-1]
    assert (last["role"], last["content"]) == ("user", "Continue if you have next steps")
    assert last["meta"]["synthetic"] is True
