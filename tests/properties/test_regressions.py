"""R1 to R29, those about a conversation and its sizes: bugs of real systems that compactd must not have.

`docs/regressions.md` has them all, with the guard that holds each and how removing it was tried. Goes on in
`test_regressions_of_summaries.py`, `test_regressions_of_requests.py` and `test_regressions_of_sessions.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.talk import Message, assistant, result, turns, user
from tests.support.views import problems_of_providers
from tests.support.wire import PROFILES, append, begin, compact, started, state, view

FULL = {"input_tokens": 90_000, "output_tokens": 10}
"""A report of a window of 100,000 that is due."""


# --- R1 ---------------------------------------------------------------------------------------------


def test_a_size_reported_before_a_compaction_is_no_size_after_it(daemon: Daemon) -> None:
    """R1: stale usage after a compaction (Opal's manual one; pi #1860)."""
    session = started(daemon, "default", 100_000)
    append(daemon, session, *turns(40, 500), usage=FULL)

    done = begin(daemon, session)

    assert done is not None
    assert done["compacted"] is True
    usage = state(daemon, session)["token_usage"]
    assert (usage["last_prompt_tokens"], usage["current_context_source"]) == (0, "estimated")
    assert usage["current_context_tokens"] == done["tokens_after"]
    assert begin(daemon, session) is None, "compacted again because of the old report"


def test_tokens_after_is_counted_and_not_computed_from_a_stale_report(daemon: Daemon) -> None:
    """R1: the Go agent's TokensAfter came from the report of before the compaction."""
    session = started(daemon, "default", 100_000)
    append(daemon, session, *turns(40, 500), usage=FULL)

    done = compact(daemon, session, keep_recent=5000)

    assert done["tokens_before"] == 40_000
    assert done["tokens_after"] == daemon.call("session/context", session_id=session)["tokens"]
    assert done["tokens_saved"] == done["tokens_before"] - done["tokens_after"] > 0


def test_a_report_that_was_on_its_way_while_a_compaction_was_made_sets_no_size(daemon: Daemon) -> None:
    """R1: pi #1860."""
    session = started(daemon, "default", 100_000)
    append(daemon, session, *turns(40, 500))
    epoch = daemon.call("turn/begin", session_id=session)["token_usage"]["epoch"]
    compact(daemon, session, keep_recent=5000)

    answer = daemon.call("turn/end", session_id=session, messages=[assistant(10)], usage=FULL, epoch=epoch)

    assert answer["decision"]["kind"] == "fits"
    assert answer["token_usage"]["last_prompt_tokens"] == 0
    assert answer["token_usage"]["prompt_tokens"] == FULL["input_tokens"], "billed all the same"


# --- R4, R6, R7, R15 --------------------------------------------------------------------------------


def test_a_compaction_orphans_no_branch(daemon: Daemon) -> None:
    """R4: Opal deletes what it compacts, and branches that hung off it lose their past."""
    session = started(daemon, "default", 100_000)
    append(daemon, session, *turns(6, 100))
    first = view(daemon, session)
    daemon.call("session/branch", session_id=session, entry_id="e4")
    append(daemon, session, *turns(6, 100))
    done = compact(daemon, session, keep_recent=300)
    second = view(daemon, session)

    assert done["compacted"] is True
    for entry, expected in (("e12", first), ("e25", second), ("e2", first[:2])):
        daemon.call("session/branch", session_id=session, entry_id=entry)
        assert view(daemon, session) == expected, entry
    history = daemon.call("session/history", session_id=session)["entries"]
    assert [one["entry_id"] for one in history] == [f"e{number}" for number in range(1, 26)]


def test_a_branch_has_the_compactions_that_are_in_force_on_it_and_no_others(daemon: Daemon) -> None:
    """R4: going to another branch and back takes back neither a compaction nor its undo."""
    session = started(daemon, "default", 100_000)
    append(daemon, session, *turns(6, 100))
    compact(daemon, session, keep_recent=300)
    append(daemon, session, *turns(6, 100))
    once = view(daemon, session)
    compact(daemon, session, keep_recent=300)
    daemon.call("session/undo", session_id=session)

    daemon.call("session/branch", session_id=session, entry_id="e2")
    apart = view(daemon, session)
    daemon.call("session/branch", session_id=session, entry_id="e26")

    assert [message["entry_id"] for message in apart] == ["e1", "e2"]
    assert view(daemon, session) == once
    daemon.call("session/undo", session_id=session)
    assert len(view(daemon, session)) == 24


@pytest.mark.parametrize("profile", PROFILES)
def test_one_huge_turn_is_compacted(daemon: Daemon, profile: str) -> None:
    """R6: the Go agent cuts before user messages alone, so that one long turn is never compacted."""
    session = started(daemon, profile, 10_000)
    request = user(100)
    work = [
        message
        for number in range(34)
        for message in (assistant(50, f"c{number}", seed=number), result(f"c{number}", 200, seed=number))
    ]
    append(daemon, session, request, *work)

    done = begin(daemon, session)

    assert done is not None
    assert (done["compacted"], done["trigger"]) == (True, "threshold"), done["reason"]
    assert done["tokens_after"] < done["tokens_before"]
    assert request["content"] in [message["content"] for message in view(daemon, session)]
    assert problems_of_providers(daemon, session) == {}


@pytest.mark.parametrize(
    "asked",
    [
        {"keep_recent": 100},
        {"keep_recent": 100, "force": True},
        {"keep_messages": 1},
        {"keep_messages": 2},
        {"keep_recent": 3500, "force": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("profile", ["default", "klaude", "evmts"])
def test_no_cut_is_on_a_tool_result(daemon: Daemon, profile: str, asked: dict[str, Any]) -> None:
    """R7: a huge last tool result makes Opal cut on it, and a forced cut is aligned to nothing."""
    session = started(daemon, profile, 100_000)
    batch = [assistant(20, "a", "b"), result("a", 10), result("b", 3000)]
    append(daemon, session, *turns(4, 100), user(20), *batch)

    done = compact(daemon, session, **asked)

    assert done["compacted"] is True, done["reason"]
    context = daemon.call("session/context", session_id=session)
    assert context["repairs"] == []
    assert [content_of(message) for message in context["messages"][-3:]] == [one["content"] for one in batch]
    first = next(m for m in context["messages"] if m["entry_id"] == done["first_kept_entry_id"])
    assert first["role"] != "tool"
    assert problems_of_providers(daemon, session) == {}


def content_of(message: Message) -> Any:
    return message["content"]


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_no_cut_parts_a_call_from_a_result_that_comes_late(daemon: Daemon, keep: int) -> None:
    """R7: where the user said something before the result came, the cut that looks clean is none."""
    session = started(daemon, "default", 100_000)
    asked = [assistant(20, "a"), user(20), result("a", 10), assistant(100)]
    append(daemon, session, *turns(4, 100), *asked)

    done = compact(daemon, session, keep_messages=keep)

    context = daemon.call("session/context", session_id=session)
    assert done["compacted"] is True
    assert [one["kind"] for one in context["repairs"] if "orphan" in one["kind"]] == []
    calls = [b["type"] for m in context["messages"] for b in m["content"] if isinstance(b, dict)]
    assert calls.count("tool_call") == calls.count("tool_result")
    assert problems_of_providers(daemon, session) == {}


@pytest.mark.parametrize("budget", ["keep_messages", "preserve_count", "keep_recent", "target_tokens"])
@pytest.mark.parametrize("value", [0, -1, -1000])
def test_keeping_nothing_or_less_is_refused_and_changes_nothing(
    daemon: Daemon, budget: str, value: int
) -> None:
    """R15: evmts' slice takes 0 for everything and a negative number for the oldest messages."""
    session = started(daemon, "evmts", 100_000)
    append(daemon, session, *turns(6, 100))
    before = daemon.call("session/context", session_id=session)

    refused = daemon.refusal("session/compact", session_id=session, **{budget: value})

    assert refused.code == -32602
    assert budget in refused.message
    assert daemon.call("session/context", session_id=session) == before


@pytest.mark.parametrize("setting", ["keep_messages", "preserve_count", "keep_recent_tokens"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_setting_that_keeps_nothing_or_less_is_refused(daemon: Daemon, setting: str, value: int) -> None:
    """R15: the same as a setting, where it would count for every later compaction."""
    assert daemon.refusal("session/start", compaction={setting: value}).code == -32602


# --- R17, R18 ---------------------------------------------------------------------------------------


def test_the_window_is_the_new_models_as_soon_as_the_model_changes(daemon: Daemon) -> None:
    """R17: Opal shows the old model's window until the next report, the Go agent for good."""
    session = started(daemon, "default", model="anthropic/claude-sonnet-4-5")
    append(daemon, session, *turns(5, 100))
    before, at = state(daemon, session), daemon.now

    answer = daemon.call("model/set", session_id=session, model="openai/gpt-4")

    after = state(daemon, session)
    assert before["token_usage"]["context_window"] == 200_000
    assert answer["token_usage"]["context_window"] == after["token_usage"]["context_window"] == 8192
    assert after["token_usage"]["threshold_tokens"] == 6554
    assert after["token_usage"]["percent"] == round(100 * 1000 / 8192, 2)
    told = daemon.event("usage_update", session, after=at).value["params"]
    assert (told["context_window"], told["usage"]["context_window"]) == (8192, 8192)
    assert append(daemon, session, user(6000))["decision"]["kind"] == "due"


def test_an_image_is_counted_in_tokens_of_its_pixels_by_the_trigger_and_by_the_cut(daemon: Daemon) -> None:
    """R18: klaude adds 1200 to the characters where 1200 tokens are meant, so that an image costs 300."""
    image = {"type": "image", "media_type": "image/png", "url": "https://example.org/a.png"}
    size = {"width": 1000, "height": 750}
    session = started(daemon, "klaude", 100_000)
    shown: list[Message] = [{"role": "user", "content": [{**image, **size}]}, assistant(100)]

    decision = append(daemon, session, *turns(5, 100), *shown * 2)["decision"]
    done = compact(daemon, session, keep_recent=1300)

    assert decision["used"] == 1000 + 2 * (1000 * 750 // 750 + 100)
    assert done["kept_messages"] == 4, "images of 300 tokens would leave room for nine"


# --- R25 --------------------------------------------------------------------------------------------


def test_a_manual_compaction_that_does_nothing_says_so_and_is_no_success(daemon: Daemon) -> None:
    """R25: Opal answers ok whether it compacted or not."""
    session = started(daemon, "opal", 100_000)
    append(daemon, session, *turns(3, 100))

    done = compact(daemon, session)

    assert (done["compacted"], done["compaction_id"]) == (False, None)
    assert "nothing to compact" in done["reason"]
    assert done["tokens_after"] == done["tokens_before"] == 600
    assert done["tokens_saved"] == 0
    assert [e for e in daemon.events(session) if e["type"] in ("compaction_start", "compaction_end")] == []
    assert state(daemon, session)["compaction"]["count"] == 0
    assert len(view(daemon, session)) == 6


# --- R2, R3: after a restart ------------------------------------------------------------------------


def named(messages: list[Message], first: int = 0) -> list[Message]:
    """`messages` with the ids `m0`, `m1` …, from `first` on."""
    return [{**message, "id": f"m{number}"} for number, message in enumerate(messages, first)]


def test_what_a_compaction_kept_is_known_by_its_id_and_not_by_its_place(spawn: Any) -> None:
    """R2: klaude saved the index of the first kept message; after a reload it pointed elsewhere."""
    daemon = spawn()
    session = started(daemon, "default", 100_000)
    append(daemon, session, *named(turns(10, 100)))
    compact(daemon, session, keep_recent=500)
    daemon.stop()
    again = spawn()
    again.call("session/start", session_id=session)
    append(again, session, *named(turns(5, 100), first=20))

    done = compact(again, session, keep_recent=500)
    kept = [message["id"] for message in view(again, session)[1:]]
    again.stop()
    third = spawn()
    third.call("session/start", session_id=session)

    assert kept == [f"m{number}" for number in range(24, 30)]
    assert [message["id"] for message in view(third, session)[1:]] == kept
    gone = third.call("session/expand", session_id=session, compaction_id=done["compaction_id"])["entries"]
    assert [one["message"]["id"] for one in gone] == [f"m{number}" for number in range(24)]


def test_messages_have_their_ids_after_a_resume(spawn: Any) -> None:
    """R3: the Go agent's resumed messages have none, so that nothing can be named any more."""
    daemon = spawn()
    session = started(daemon, "default", 100_000)
    messages = named(turns(4, 100))
    append(daemon, session, *messages)
    before = daemon.call("session/history", session_id=session)["entries"]
    daemon.kill()
    again = spawn()
    again.call("session/start", session_id=session)

    assert again.call("session/history", session_id=session)["entries"] == before
    shown = [(message["entry_id"], message["id"]) for message in view(again, session)]
    assert shown == [(f"e{number + 1}", f"m{number}") for number in range(8)]
    resent = append(again, session, *messages, user(5))
    assert resent["duplicates"] == [f"m{number}" for number in range(8)]
    assert resent["entry_ids"] == [f"e{number}" for number in range(1, 10)]
