"""docs/specs-evmts-opencode.md, "opencode.md", "Phase 2: Pruning", sentence by sentence, over the wire.

`docs/specs-evmts-opencode.md` says which test is whose. Where the spec and docs/dev/behaviour.md differ,
docs/dev/behaviour.md wins, and the test says so.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.parity.opencode import MARK, TWO_TURNS, filled, outputs, pruned, with_output
from tests.support.client import Daemon
from tests.support.talk import assistant, call, result, turns, user
from tests.support.views import problems_of_providers
from tests.support.wire import append, started, view

# --- Phase 2: Pruning -------------------------------------------------------------------------------


@pytest.mark.parametrize(("saved", "ids"), [(20_000, []), (20_001, ["e3"])])
def test_a_prune_must_save_more_than_20000_tokens(daemon: Daemon, saved: int, ids: list[str]) -> None:
    assert pruned(daemon, with_output(daemon, *outputs(saved, 40_000))) == ids


@pytest.mark.parametrize(("newest", "ids"), [(40_000, ["e3"]), (40_001, ["e3", "e6"])])
def test_the_last_40000_tokens_of_output_are_protected(daemon: Daemon, newest: int, ids: list[str]) -> None:
    assert pruned(daemon, with_output(daemon, *outputs(30_000, newest))) == ids


def test_the_output_of_skill_is_never_pruned_and_protects_nothing_older(daemon: Daemon) -> None:
    messages = [*outputs(30_000, 40_000), *outputs(90_000, first=2, tool="skill")]

    assert pruned(daemon, with_output(daemon, *messages)) == ["e3"]


def test_the_numbers_and_the_tools_are_settings(daemon: Daemon) -> None:
    settings = {"prune_protect": 100, "prune_minimum": 50, "protected_tools": ["look"]}
    messages = [*outputs(500, tool="skill"), *outputs(500, first=1, tool="look"), *outputs(100, first=2)]

    assert pruned(daemon, with_output(daemon, *messages, **settings)) == ["e3"]


def test_with_prune_false_no_turn_prunes_and_a_request_still_does(daemon: Daemon) -> None:
    session = with_output(daemon, *outputs(30_000, 40_000), prune=False)

    assert pruned(daemon, session) == []
    assert daemon.call("session/prune", session_id=session)["pruned"] == 1


def test_with_auto_false_old_output_is_pruned_all_the_same(daemon: Daemon) -> None:
    session = with_output(daemon, *outputs(30_000, 40_000), auto=False)

    assert pruned(daemon, session) == ["e3"]


@pytest.mark.parametrize(("newer", "ids"), [(1, []), (2, ["e3"])])
def test_the_last_two_user_turns_are_skipped(daemon: Daemon, newer: int, ids: list[str]) -> None:
    session = filled(daemon, *outputs(90_000), *turns(newer, 5), window=400_000)

    assert pruned(daemon, session) == ids


@pytest.mark.parametrize("meta", [{"synthetic": True}, {"kind": "bash_execution"}], ids=["go on", "command"])
def test_a_users_turn_that_no_person_wrote_counts_as_one(daemon: Daemon, meta: dict[str, Any]) -> None:
    # The spec counts messages of role user; "Continue if you have next steps" is one.
    session = filled(daemon, *outputs(90_000), user(5), assistant(5), user(5, meta=meta), window=400_000)

    assert pruned(daemon, session) == ["e3"]


def test_it_stops_at_a_summary(daemon: Daemon) -> None:
    summary = user(50, meta={"type": "compaction_summary"})

    session = with_output(daemon, *outputs(90_000), summary, *outputs(30_000, 40_000, first=1))

    assert pruned(daemon, session) == ["e7"]


def test_only_completed_output_is_pruned_and_counted(daemon: Daemon) -> None:
    failed = [user(5), call("f", "run"), result("f", 90_000, is_error=True)]
    still_open = [user(5), call("o", "run")]

    session = with_output(daemon, *outputs(30_000, 40_000), *failed, *still_open)

    assert pruned(daemon, session) == ["e3"]


def test_the_parts_of_one_message_go_newest_first(daemon: Daemon) -> None:
    both = result("a", 30_000)["content"] + result("b", 40_000, 1)["content"]
    messages = [user(5), assistant(5, "a", "b"), {"role": "tool", "content": both}]

    session = with_output(daemon, *messages)

    assert pruned(daemon, session) == ["e3"]
    shown = [block["content"] for block in view(daemon, session)[2]["content"]]
    assert [text.startswith(MARK) for text in shown] == [True, False]


def test_deviation_it_stops_altogether_at_what_is_pruned_already(daemon: Daemon) -> None:
    # docs/dev/behaviour.md, "Prune": as its source; the pseudo-code's `break` leaves only the message's own
    # parts, and would prune e3 here.
    session = with_output(daemon, *outputs(30_000, 30_000, 40_000))
    daemon.call("session/pin", session_id=session, entry_ids=["e3"])
    first = pruned(daemon, session)
    daemon.call("session/pin", session_id=session, entry_ids=["e3"], pinned=False)
    append(daemon, session, *outputs(30_000, 40_000, first=3), *TWO_TURNS)

    assert first == ["e6"]
    assert pruned(daemon, session) == ["e6", "e9", "e17"]


def test_a_prune_stubs_the_view_notes_the_time_and_keeps_the_output(daemon: Daemon) -> None:
    messages = [*outputs(30_000, 40_000), *TWO_TURNS]
    session = with_output(daemon, *messages[:6])
    before = daemon.call("session/context", session_id=session)

    begun = daemon.call("turn/begin", session_id=session)

    after = daemon.call("session/context", session_id=session)
    entries = {e["entry_id"]: e for e in daemon.call("session/history", session_id=session)["entries"]}
    original = daemon.call("session/expand", session_id=session, entry_ids=["e3"])["entries"][0]["message"]
    stub = after["messages"][2]["content"][0]["content"]
    assert begun["pruned"] == 1
    assert stub == "[pruned: read 0.py — 30,000 tokens; session/expand e3 shows it]"
    assert entries["e3"]["pruned_at"] >= entries["e3"]["at"]
    assert entries["e3"]["message"] == original == messages[2]
    told = daemon.event("prune_end", session).value["params"]
    assert (told["pruned"], told["tokens_saved"]) == (1, before["tokens"] - after["tokens"])
    assert problems_of_providers(daemon, session) == {}


def test_a_prune_can_be_asked_for_and_tried(daemon: Daemon) -> None:
    session = with_output(daemon, *outputs(30_000, 40_000))

    tried = daemon.call("session/prune", session_id=session, dry_run=True)
    untouched = view(daemon, session)
    done = daemon.call("session/prune", session_id=session)

    assert tried == done
    assert (done["pruned"], done["entry_ids"]) == (1, ["e3"])
    assert not any(MARK in json.dumps(message) for message in untouched)
    assert any(MARK in json.dumps(message) for message in view(daemon, session))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 0), ("ab", 1), ("abcde", 1), ("abcdef", 2), ("😀", 1), ("😀" * 4, 2), ("é" * 6, 2)],
    ids=["empty", "0.25", "0.5", "1.25", "1.5", "two units", "eight units", "six units"],
)
def test_the_estimate_is_a_quarter_of_the_utf16_units_rounded_half_up(
    daemon: Daemon, text: str, tokens: int
) -> None:
    session = started(daemon, "opencode", 100_000)

    append(daemon, session, {"role": "user", "content": text})

    assert daemon.call("session/context", session_id=session)["tokens"] == tokens
