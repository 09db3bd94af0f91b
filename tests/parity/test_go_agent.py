"""The go-agent's spec, docs/specs.md, "go-agent.md", to the end of its "Configuration", over the wire.
Profile `go-agent`.

Goes on in `test_go_agent_summary.py`. Its settings from every layer are in `test_settings_names.py`, its
edges on every window in `test_edges*.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.loopback import Answer, Call, Loopback
from tests.support.own_loop import Talk
from tests.support.talk import Message, assistant, result, said, text, turns, user
from tests.support.wire import (
    MODEL,
    OVERFLOW,
    SUMMARY,
    append,
    begin,
    compact,
    journal,
    report,
    started,
    state,
    view,
)

MODELLED = {"model": MODEL}


def session_of(daemon: Daemon, window: int | None = 200_000, **more: Any) -> str:
    """A session under this profile."""
    return started(daemon, "go-agent", window, **more)


# --- lines 1-6 --------------------------------------------------------------------------------------


def test_a_long_conversation_is_summarised_by_itself_and_its_older_part_replaced(daemon: Daemon) -> None:
    session = session_of(daemon, 8192)
    sizes = []

    for number in range(30):
        append(daemon, session, user(200, seed=number))
        begin(daemon, session)
        sizes.append(daemon.call("session/context", session_id=session)["tokens"])
        append(daemon, session, assistant(400, seed=number + 50))

    assert max(sizes) <= 8192 - 8192 // 4
    assert state(daemon, session)["compaction"]["count"] > 1
    summary = said(view(daemon, session)[0])
    assert "## Goal\n" in summary


# --- lines 10-23, "How It Works" and "Find cut point" -----------------------------------------------


@pytest.mark.parametrize(("used", "due"), [(183_615, False), (183_616, False), (183_617, True)])
def test_a_turn_begins_with_a_compaction_above_183616_of_200000_tokens(
    daemon: Daemon, used: int, due: bool
) -> None:
    session = session_of(daemon)
    append(daemon, session, *turns(11, 1000), usage=report(used))

    done = begin(daemon, session)

    assert (done is not None) is due
    assert state(daemon, session)["budget"]["threshold"]["value"] == 200_000 - 16_384


def test_the_check_is_made_before_every_request_of_a_turn(daemon: Daemon, server: Loopback) -> None:
    # 83,616 of 100,000: the first step fits, the second and the third do not.
    calls = [(Call("read", '{"path": "a.py"}', f"c{n}"),) for n in range(3)]
    server.play(
        Answer(calls=calls[0], input_tokens=80_000),
        Answer(calls=calls[1], input_tokens=83_600, output_tokens=20),
        Answer(text=SUMMARY),
        Answer(calls=calls[2], input_tokens=90_000),
        Answer(text=SUMMARY),
        Answer(text="done"),
    )
    talk = Talk(
        daemon, session_of(daemon, 100_000, model=MODEL), lambda name, arguments: {"content": text(3000)}
    )
    append(daemon, talk.id, *turns(30, 1000))

    end = talk.ask("look at it")

    talk.stop()
    assert end["stop_reason"] == "stop"
    kinds = [kind for kind in talk.types() if kind in ("turn_start", "compaction_end")]
    assert kinds == [
        "turn_start",
        "turn_start",
        "compaction_end",
        "turn_start",
        "compaction_end",
        "turn_start",
    ]
    asked = ["<conversation>" in request.raw.decode() for request in server.requests]
    assert asked == [False, False, True, False, True, False]
    assert server.requests[3].tokens < server.requests[1].tokens


def batch(number: int, size: int) -> list[Message]:
    return [assistant(20, f"t{number}"), result(f"t{number}", size, seed=number)]


@pytest.mark.parametrize("keep", [300, 479, 480, 481, 499, 500, 501, 900, 1300])
def test_the_cut_falls_on_a_users_message_and_parts_no_pair(daemon: Daemon, keep: int) -> None:
    session = session_of(daemon)
    for number in range(8):
        append(daemon, session, user(30, seed=number), *batch(number, 150), assistant(40, seed=number))

    done = compact(daemon, session, keep_recent=keep)

    _, *kept = view(daemon, session)
    assert kept[0]["role"] == "user"
    assert len(kept) == done["kept_messages"] == 4 * -(-keep // 240), "back to the turn that reaches keep"
    assert done["split_turn"] is False
    assert daemon.call("session/context", session_id=session)["repairs"] == []


# --- lines 25-47, "Summarise", "Persist", "Continue" ------------------------------------------------


def test_the_older_portion_and_nothing_else_is_sent_to_the_model(daemon: Daemon, server: Loopback) -> None:
    server.play(Answer(text=SUMMARY))
    session = session_of(daemon, settings=MODELLED)
    append(daemon, session, user(1, content=f"OLDER {text(500)}"), assistant(500))
    append(daemon, session, user(1, content=f"NEWER {text(500)}"), assistant(500))

    done = compact(daemon, session, keep_recent=600)

    sent = server.requests[0].raw.decode()
    assert ("OLDER" in sent, "NEWER" in sent) == (True, False)
    for asked in ("## Goal", "## Progress", "## Key Decisions", "## Next Steps"):
        assert asked in sent
    assert done["strategy"] == "summarize"
    assert "## Goal\n- Make the parser faster." in done["summary"]


def test_a_compaction_entry_with_summary_and_first_kept_id_stands_in_the_sessions_file(
    daemon: Daemon,
) -> None:
    session = session_of(daemon)
    append(daemon, session, *turns(4, 400))

    done = compact(daemon, session, keep_recent=900)

    *_, last = (record for record in journal(daemon, session) if "summary" in record)
    assert last["type"] == "compaction"
    assert last["summary"] == done["summary"]
    assert last["first_kept"] == done["first_kept_entry_id"] == "e5"
    assert last["result"]["tokens_before"] == 3200


def test_a_resumed_session_cuts_at_the_same_messages_again_and_again(daemon: Daemon) -> None:
    session = session_of(daemon)
    for number in range(4):
        append(daemon, session, *turns(4, 400))
        done = compact(daemon, session, keep_recent=900)
        before = view(daemon, session)
        daemon.call("session/close", session_id=session)
        assert daemon.call("session/start", session_id=session)["resumed"] is True

        assert view(daemon, session) == before
        assert done["first_kept_entry_id"] == before[1]["entry_id"], number
        assert len(before) == 1 + 4, "the summary, and what reached 900 tokens"


def test_the_next_call_sees_system_summary_and_what_was_kept(daemon: Daemon) -> None:
    session = session_of(daemon, system_prompt="Be brief.")
    originals = [*turns(4, 400)]
    append(daemon, session, *originals)

    done = compact(daemon, session, keep_recent=900)

    seen = daemon.call("session/context", session_id=session, format="openai")["messages"]
    assert [m["role"] for m in seen] == ["system", "user", "user", "assistant", "user", "assistant"]
    assert seen[0]["content"] == "Be brief."
    assert seen[1]["content"] == done["summary"]
    assert [m["content"] for m in seen[2:]] == [said(m) for m in originals[4:]]


# --- lines 51-79, "Configuration" -------------------------------------------------------------------


def test_without_settings_it_is_on_reserves_16384_and_keeps_20000(daemon: Daemon) -> None:
    session = str(daemon.call("session/start", compaction={"profile": "go-agent"})["session_id"])
    daemon.call("session/configure", session_id=session, compaction={"context_window": 200_000})

    told = state(daemon, session)

    assert told["compaction"]["enabled"] is True
    budget = told["budget"]
    assert (budget["reserve"]["value"], budget["keep"]["value"]) == (16_384, 20_000)


SONNET = {"provider": "anthropic", "id": "claude-sonnet-4-5", "base_url": "https://api.anthropic.com"}


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ({"compaction": {"context_window": 50_000}, "context_window": 60_000, "model": SONNET}, 50_000),
        ({"context_window": 60_000, "model": SONNET}, 60_000),
        ({"model": SONNET}, 200_000),
        ({"model": "acme/unheard-of-9"}, None),
        ({}, None),
    ],
    ids=["compaction's", "top-level", "registry", "unknown model", "no model"],
)
def test_the_window_comes_from_compaction_then_the_top_level_then_the_registry_then_nowhere(
    daemon: Daemon, given: dict[str, Any], window: int | None
) -> None:
    compaction = {"profile": "go-agent", "estimator": "chars4", **given.get("compaction", {})}

    begun = daemon.call("session/start", **{**given, "compaction": compaction})

    usage = begun["token_usage"]
    assert usage["context_window"] == window
    assert (usage["threshold_tokens"] is None) is (window is None)


def test_without_a_window_nothing_is_compacted_by_itself(daemon: Daemon) -> None:
    session = session_of(daemon, None, model="acme/unheard-of-9")
    append(daemon, session, *turns(10, 1000), usage=report(5_000_000))

    assert begin(daemon, session) is None


@pytest.mark.parametrize(
    "given",
    [
        {"compaction": {"context_window": 0}, "context_window": 60_000},
        {"context_window": 0},
        {"compaction": {"context_window": 0}},
    ],
    ids=["compaction's", "top-level", "alone"],
)
def test_a_window_of_0_switches_the_threshold_off_and_no_overflow(
    daemon: Daemon, given: dict[str, Any]
) -> None:
    compaction = {"profile": "go-agent", "estimator": "chars4", **given.get("compaction", {})}
    begun = daemon.call("session/start", **{"model": SONNET, **given, "compaction": compaction})
    session = begun["session_id"]

    told = append(daemon, session, *turns(40, 1000), usage=report(5_000_000))
    before = begin(daemon, session)
    refused = daemon.call("turn/error", session_id=session, error=OVERFLOW)

    assert (begun["token_usage"]["context_window"], begun["token_usage"]["threshold_tokens"]) == (None, None)
    assert told["decision"] == {"kind": "fits", "used": 5_000_000, "threshold": None, "window": None}
    assert before is None
    assert (refused["overflow"], refused["retry"]) == (True, True)
    assert refused["compaction"]["compacted"] is True
    shown = daemon.call("session/configure", session_id=session)["settings"]["context_window"]
    assert shown == {"value": 0, "source": "session/start"}


LIMITED = "This model's maximum context length is 64000 tokens. However, your messages resulted in 80000."


@pytest.mark.parametrize(
    ("error", "window", "threshold"),
    # A quarter of the smaller window is less than 16,384.
    [({"status": 400, "message": LIMITED}, 64_000, 48_000), (OVERFLOW, 128_000, 128_000 - 16_384)],
    ids=["with figures", "without"],
)
def test_a_rejection_gives_an_unknown_window_its_limit(
    daemon: Daemon, error: dict[str, Any], window: int, threshold: int
) -> None:
    session = session_of(daemon, None, model=f"acme/unheard-of-{window}")
    append(daemon, session, *turns(40, 1000))

    daemon.call("turn/error", session_id=session, error=error)

    usage = state(daemon, session)["token_usage"]
    assert (usage["context_window"], usage["threshold_tokens"]) == (window, threshold)


@pytest.mark.parametrize("size", [100, 999, 1000, 3333])
def test_the_newest_20000_tokens_stay_word_for_word(daemon: Daemon, size: int) -> None:
    session = session_of(daemon)
    originals = turns(30_000 // size, size)
    append(daemon, session, *originals)

    done = compact(daemon, session)

    kept = done["kept_messages"]
    assert kept * size >= 20_000
    assert (kept - 2) * size < 20_000, "and no turn more"
    assert [said(m) for m in view(daemon, session)[-kept:]] == [said(m) for m in originals[-kept:]]
