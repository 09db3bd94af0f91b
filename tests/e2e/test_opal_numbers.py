"""Opal's numbers, each at its edge, over the wire. The section of the spec stands at each group.

Profile `opal` is the spec to the letter; `default` has the same numbers.
"""

from __future__ import annotations

import pytest

from e2e.client import Daemon
from e2e.talk import CHARS4, Message, assistant, call, chars4, result, said, text, turns, user

BOTH = pytest.mark.parametrize("profile", ["opal", "default"])


def started(daemon: Daemon, profile: str = "opal", window: int | None = 1000, **params: object) -> str:
    compaction: dict[str, object] = {"profile": profile, **CHARS4}
    if window is not None:
        compaction["context_window"] = window
    return str(daemon.call("session/start", compaction=compaction, **params)["session_id"])


def append(daemon: Daemon, session: str, *messages: Message, **more: object) -> dict:
    answer = daemon.call("session/append", session_id=session, messages=messages, **more)
    assert isinstance(answer, dict)
    return answer


def report(prompt: int, completion: int) -> dict[str, int]:
    """A usage object as OpenAI's chat API sends it."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


# --- opal.md, "Token Metrics" -----------------------------------------------------------------------


def example(daemon: Daemon, profile: str = "opal", window: int = 200_000) -> tuple[str, dict]:
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
