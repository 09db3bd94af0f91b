"""Opal's compaction algorithm, each number at its edge, over the wire."""

from __future__ import annotations

import pytest

from e2e.client import Daemon
from e2e.opal import BOTH, append, report, started
from e2e.talk import Message, assistant, call, chars4, result, said, turns, user

# --- opal.md, "1. Find Cut Point" and "Manual Compaction" -------------------------------------------


@BOTH
def test_a_manual_compaction_keeps_20000_tokens(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 1_000_000)
    append(daemon, session, *turns(30, 1000))

    done = daemon.call("session/compact", session_id=session)

    assert done["trigger"] == "manual"
    assert done["kept_messages"] == 20, "the 21st exceeds 20,000 and is an assistant's: forward to the user's"


@BOTH
@pytest.mark.parametrize(("keep", "kept"), [(399, 4), (400, 4), (499, 4), (500, 6), (599, 6), (600, 6)])
def test_the_walk_back_stops_where_the_total_exceeds_the_budget_that_was_given(
    daemon: Daemon, profile: str, keep: int, kept: int
) -> None:
    # 500 is exceeded by the 6th message from the end only, a user's; 499 by the 5th, from which the cut
    # moves forward to the user's message behind it.
    session = started(daemon, profile, 100_000)
    append(daemon, session, *turns(10, 100))

    done = daemon.call("session/compact", session_id=session, keep_recent=keep)

    assert done["kept_messages"] == kept


@BOTH
def test_forced_where_no_cut_is_valid_all_but_the_last_2_messages_go(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 100_000)
    append(daemon, session, *turns(3, 200))

    refused = daemon.call("session/compact", session_id=session)
    forced = daemon.call("session/compact", session_id=session, force=True)

    assert refused["compacted"] is False
    assert refused["reason"].startswith("nothing to compact")
    assert forced["compacted"] is True
    assert (forced["kept_messages"], forced["messages_removed"]) == (2, 4)
    assert forced["first_kept_entry_id"] == "e5"


# --- opal.md, "2. Detect Split Turns" ---------------------------------------------------------------


def long_turn(prefix: int) -> list[Message]:
    """An old turn, then one that is cut behind `prefix` messages when 200 tokens are kept."""
    steps = [
        user(50),
        assistant(60, "t1"),
        result("t1", 70),
        assistant(60, "t2"),
        result("t2", 70),
    ]
    if prefix == 4:
        steps[3:] = [assistant(60)]
    return [*turns(1, 200), *steps, assistant(100, "t3"), result("t3", 100), assistant(20)]


@BOTH
@pytest.mark.parametrize(("prefix", "is_split"), [(5, True), (4, False)])
def test_a_cut_turn_gets_its_own_summary_from_a_prefix_of_5_messages_on(
    daemon: Daemon, profile: str, prefix: int, is_split: bool
) -> None:
    session = started(daemon, profile, 100_000)
    append(daemon, session, *long_turn(prefix))

    done = daemon.call("session/compact", session_id=session, keep_recent=200)

    assert done["compacted"] is True
    assert done["first_kept_entry_id"] == f"e{3 + prefix}"
    assert done["split_turn"] is is_split
    assert done["pinned_entry_ids"] == ["e3"], "the turn's request stays word for word"


# --- opal.md, "3. Generate Summary" -----------------------------------------------------------------


def test_without_a_model_opal_writes_how_many_of_which_role_and_the_files(daemon: Daemon) -> None:
    session = started(daemon, window=100_000)
    read = [call("r", "read", path="src/loader.py"), result("r", 300)]
    append(daemon, session, *turns(3, 200), user(10), *read, *turns(2, 200))

    done = daemon.call("session/compact", session_id=session, keep_recent=600)

    assert done["strategy"] == "truncate"
    assert "[Compacted 9 messages: 4 user, 4 assistant, 1 tool]" in done["summary"]
    assert "<read-files>\nsrc/loader.py\n</read-files>" in done["summary"]


def test_without_a_model_the_default_profile_extracts_the_sections(daemon: Daemon) -> None:
    session = started(daemon, "default", 100_000)
    append(daemon, session, user(10, content="Fix the loader. Never touch the public API."), *turns(10, 200))

    done = daemon.call("session/compact", session_id=session, keep_recent=600)

    assert done["strategy"] == "extract"
    headings = [line for line in done["summary"].splitlines() if line.startswith("## ")]
    assert headings == [
        "## Goal",
        "## Constraints & Preferences",
        "## Progress",
        "## Key Decisions",
        "## Next Steps",
        "## Critical Context",
    ]
    assert "Never touch the public API." in done["summary"]


# --- opal.md, "4. Replace Messages" -----------------------------------------------------------------


@BOTH
def test_the_summary_is_one_users_message_with_its_files_as_metadata(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 100_000)
    touched = [
        call("r", "read", path="a.py"),
        result("r", 200),
        call("w", "write", file_path="b.py", content="x = 1"),
        result("w", 1),
    ]
    append(daemon, session, user(10), *touched, *turns(4, 200))

    done = daemon.call("session/compact", session_id=session, keep_recent=600)

    first = daemon.call("session/context", session_id=session)["messages"][0]
    assert first["role"] == "user"
    assert first["meta"] == {
        "type": "compaction_summary",
        "compaction_id": done["compaction_id"],
        "read_files": ["a.py"],
        "modified_files": ["b.py"],
    }
    assert chars4(said(first)) == done["tokens_after"] - done["kept_messages"] * 200


# --- opal.md, "5. Cumulative File-Op Tracking" ------------------------------------------------------


@BOTH
def test_files_add_up_over_compactions_and_one_that_is_modified_is_no_longer_listed_as_read(
    daemon: Daemon, profile: str
) -> None:
    session = started(daemon, profile, 100_000)
    first = [
        call("1", "read", path="a.py"),
        result("1", 100),
        call("2", "read", path="b.py"),
        result("2", 100),
    ]
    second = [
        call("3", "read", path="c.py"),
        result("3", 100),
        call("4", "edit", path="a.py", old_string="x", new_string="y"),
        result("4", 1),
    ]
    append(daemon, session, user(10), *first, *turns(3, 200))
    one = daemon.call("session/compact", session_id=session, keep_recent=400)
    append(daemon, session, user(10), *second, *turns(3, 200))
    two = daemon.call("session/compact", session_id=session, keep_recent=400)
    append(daemon, session, *turns(3, 200))
    three = daemon.call("session/compact", session_id=session, keep_recent=400)

    assert (one["read_files"], one["modified_files"]) == (["a.py", "b.py"], [])
    assert (sorted(two["read_files"]), two["modified_files"]) == (["b.py", "c.py"], ["a.py"])
    assert (sorted(three["read_files"]), three["modified_files"]) == (["b.py", "c.py"], ["a.py"])


# --- opal.md, "Overflow Recovery": silent truncation ------------------------------------------------


@BOTH
def test_a_report_above_the_window_compacts_before_the_next_turn(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 10_000)
    append(daemon, session, *turns(8, 400), user(10))

    ended = daemon.call(
        "turn/end", session_id=session, messages=[assistant(10)], usage=report(10_001, 10), stop_reason="stop"
    )
    begun = daemon.call("turn/begin", session_id=session)

    assert ended["silent_overflow"] is True
    told = daemon.event("overflow_detected", session).value["params"]
    assert (told["source"], told["limit"], told["requested"]) == ("usage", 10_000, 10_001)
    assert begun["compaction"]["compacted"] is True
    assert begun["compaction"]["trigger"] == "silent_overflow"
    assert begun["compaction"]["kept_messages"] == 6, "window ÷ 5 = 2,000; a quarter would keep 8"
