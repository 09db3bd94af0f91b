"""Strategy `summarize`: a model writes the summary. Whatever it answers, the compaction ends well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.loopback import (
    Answer,
    Call,
    EmptyBody,
    ErrorEvent,
    Fail,
    Html,
    Loopback,
    Overflow,
    Silence,
    Stall,
    length_stop,
    refusal,
)
from tests.support.own_loop import MODELS, WIRES, environment
from tests.support.talk import CHARS4, turns, user

Spawn = Callable[..., Daemon]

SUMMARY = """## Goal
- Make the parser faster.
## Constraints & Preferences
- Never change the grammar.
## Progress
### Done
- [x] The profile was read.
### In Progress
- [ ] The tokenizer is being rewritten.
### Blocked
(none)
## Key Decisions
- **Tables**: they are quicker than branches.
## Next Steps
1. Run the benchmark.
## Critical Context
- The slow function is `scan`.
"""


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def filled(daemon: Daemon, wire: str = "anthropic", **settings: Any) -> str:
    compaction = {**CHARS4, "model": MODELS[wire], **settings}
    name = str(daemon.call("session/start", compaction=compaction, context_window=100_000)["session_id"])
    daemon.call("session/append", session_id=name, messages=[*turns(20, 500), user(20)])
    return name


@pytest.mark.parametrize("wire", WIRES)
def test_a_model_writes_the_summary_over_each_wire(spawn: Spawn, server: Loopback, wire: str) -> None:
    server.play(Answer(text=SUMMARY, input_tokens=9000, output_tokens=200))
    daemon = spawn(env=environment(wire, server.base_url))
    name = filled(daemon, wire)

    done = daemon.call("session/compact", session_id=name, keep_recent=2000)

    assert (done["compacted"], done["strategy"], done["model"]) == (True, "summarize", MODELS[wire])
    assert done["usage"]["input_tokens"] == 9000
    assert "Never change the grammar." in done["summary"]
    assert len(server.requests) == 1
    sent = server.requests[0].raw.decode()
    assert "<conversation>" in sent
    assert "tools" not in server.requests[0].body
    told = [e for e in daemon.events(name) if e["type"] == "compaction_progress" and "delta" in e]
    assert "".join(e["delta"] for e in told) == SUMMARY


@pytest.mark.parametrize(
    "step",
    [
        Answer(text=""),
        Answer(text="   \n"),
        length_stop(SUMMARY),
        refusal(),
        Answer(text="Sure, I will go on with the parser now."),
        Answer(text="", thinking="so much to think about", reasoning=300, stop="length"),
        Answer(text=SUMMARY, calls=(Call("read", "{}"),)),
        Fail(status=401),
        Fail(status=429, body='{"error":{"type":"insufficient_quota","message":"quota"}}'),
        Html(),
        EmptyBody(),
        ErrorEvent(text=SUMMARY[:50], kind="invalid"),
        Overflow(),
    ],
    ids=lambda step: type(step).__name__,
)
def test_whatever_is_no_summary_gives_way_to_the_next_strategy(
    spawn: Spawn, server: Loopback, step: Any
) -> None:
    server.play(*[step] * 4)
    daemon = spawn(env=environment("anthropic", server.base_url))
    name = filled(daemon)

    done = daemon.call("session/compact", session_id=name, keep_recent=2000)

    assert (done["compacted"], done["strategy"]) == (True, "extract")
    assert done["reason"].startswith("summarize: ")
    assert done["tokens_after"] < done["tokens_before"]
    assert "model" not in done


@pytest.mark.parametrize("step", [Silence(), Stall(SUMMARY[:100])], ids=["silent", "stalled"])
def test_a_summariser_that_takes_too_long_is_given_up(spawn: Spawn, server: Loopback, step: Any) -> None:
    server.play(Answer(text=SUMMARY), step)
    daemon = spawn(env=environment("anthropic", server.base_url))
    name = filled(daemon)
    daemon.call("session/compact", session_id=name, keep_recent=2000)
    daemon.call("session/append", session_id=name, messages=[*turns(10, 500), user(20)])
    daemon.call("session/configure", session_id=name, compaction={"summary_deadline_s": 2})

    done = daemon.call("session/compact", session_id=name, keep_recent=2000)

    assert (done["compacted"], done["strategy"]) == (True, "extract")
    assert "longer than 2 seconds" in done["reason"]
    assert server.requests[1].was_left()


def test_a_previous_summary_is_merged_and_sent_once(spawn: Spawn, server: Loopback) -> None:
    server.play(Answer(text=SUMMARY), Answer(text=SUMMARY.replace("Never", "Really never")))
    daemon = spawn(env=environment("anthropic", server.base_url))
    name = filled(daemon)
    daemon.call("session/compact", session_id=name, keep_recent=2000)
    daemon.call("session/append", session_id=name, messages=[*turns(10, 500), user(20)])

    done = daemon.call("session/compact", session_id=name, keep_recent=2000)

    assert done["strategy"] == "summarize"
    sent = server.requests[1].raw.decode()
    assert sent.count("Never change the grammar.") == 1
    assert "<previous-summary>" in sent
    assert "Really never change" in done["summary"]


def test_the_focus_that_was_asked_for_reaches_the_model(spawn: Spawn, server: Loopback) -> None:
    server.play(Answer(text=SUMMARY))
    daemon = spawn(env=environment("anthropic", server.base_url))
    name = filled(daemon)

    daemon.call(
        "session/compact", session_id=name, keep_recent=2000, instructions="Look at the unicode tables."
    )

    assert "Look at the unicode tables." in server.requests[0].raw.decode()


def test_without_a_named_model_a_key_alone_sends_nothing_anywhere(spawn: Spawn, server: Loopback) -> None:
    daemon = spawn(env=environment("anthropic", server.base_url))
    name = str(daemon.call("session/start", model=MODELS["anthropic"], compaction=CHARS4)["session_id"])
    daemon.call("session/append", session_id=name, messages=[*turns(20, 500), user(20)])

    assert daemon.call("session/compact", session_id=name, keep_recent=2000)["strategy"] == "extract"
    assert server.requests == []


def test_the_request_names_its_own_summariser(spawn: Spawn, server: Loopback) -> None:
    server.play(Answer(text=SUMMARY))
    daemon = spawn(env=environment("openai", server.base_url))
    name = str(daemon.call("session/start", compaction=CHARS4, context_window=100_000)["session_id"])
    daemon.call("session/append", session_id=name, messages=[*turns(20, 500), user(20)])

    done = daemon.call("session/compact", session_id=name, keep_recent=2000, model="openai/gpt-4o-mini")

    assert (done["strategy"], done["model"]) == ("summarize", "openai/gpt-4o-mini")
    assert server.requests[0].body["model"] == "gpt-4o-mini"


def test_a_spending_cap_that_is_reached_leaves_it_to_extract_and_says_so(
    spawn: Spawn, server: Loopback
) -> None:
    server.play(Answer(text=SUMMARY, input_tokens=1_000_000, output_tokens=1000), Answer(text=SUMMARY))
    daemon = spawn(env=environment("anthropic", server.base_url))
    name = filled(daemon, max_cost=1.0)
    first = daemon.call("session/compact", session_id=name, keep_recent=2000)
    daemon.call("session/append", session_id=name, messages=[*turns(10, 500), user(20)])

    second = daemon.call("session/compact", session_id=name, keep_recent=2000)

    assert first["cost"] > 1.0
    assert second["strategy"] == "extract"
    assert "spending cap" in second["reason"]
    assert len(server.requests) == 1


def test_a_cancelled_compaction_frees_the_connection_and_changes_nothing(
    spawn: Spawn, server: Loopback
) -> None:
    server.play(Stall(SUMMARY[:100]))
    daemon = spawn(env=environment("anthropic", server.base_url))
    name = filled(daemon)
    before = daemon.call("session/context", session_id=name)
    asked = daemon.ask("session/compact", session_id=name, keep_recent=2000)
    daemon.event("compaction_progress", name)
    daemon.asked(server.requests)

    daemon.notify("$/cancelRequest", id=asked)

    assert daemon.refused(asked).code == -32800
    assert daemon.call("session/context", session_id=name) == before
    assert daemon.event("compaction_end", name).value["params"]["status"] == "cancelled"
    assert server.requests[0].was_left()


def test_while_a_summary_streams_the_session_and_others_are_answered(spawn: Spawn, server: Loopback) -> None:
    server.play(Stall(SUMMARY[:100]))
    daemon = spawn(env=environment("anthropic", server.base_url))
    name, other = filled(daemon), filled(daemon)
    asked = daemon.ask("session/compact", session_id=name, keep_recent=2000)
    daemon.event("compaction_start", name)
    daemon.asked(server.requests)

    assert daemon.call("agent/state", session_id=name)["status"] == "compacting"
    assert daemon.call("session/append", session_id=name, messages=[user(5)])["entry_ids"]
    assert daemon.call("agent/state", session_id=other)["status"] == "idle"
    assert not daemon.answered_so_far(asked)
    daemon.call("session/close", session_id=name)
    assert daemon.refused(asked).code == -32800


def test_a_conversation_larger_than_the_summarisers_window_is_folded_in_chunks(
    spawn: Spawn, server: Loopback
) -> None:
    server.play(*[Answer(text=SUMMARY)] * 20)
    daemon = spawn(env=environment("openai", server.base_url))
    compaction = {**CHARS4, "model": "openai/gpt-4"}
    name = str(daemon.call("session/start", compaction=compaction, context_window=200_000)["session_id"])
    daemon.call("session/append", session_id=name, messages=[*turns(20, 500), user(20)])

    done = daemon.call("session/compact", session_id=name, keep_recent=2000)

    assert done["strategy"] == "summarize"
    assert len(server.requests) > 2
    assert all(request.tokens <= 8192 for request in server.requests)


def test_while_summaries_of_two_sessions_stream_everything_else_is_answered_and_kept(
    spawn: Spawn, server: Loopback
) -> None:
    server.play(Stall(SUMMARY[:100]), Stall(SUMMARY[:100]))
    daemon = spawn(env=environment("anthropic", server.base_url))
    names = [filled(daemon), filled(daemon)]
    other = str(daemon.call("session/start", compaction=CHARS4)["session_id"])
    asked = [daemon.ask("session/compact", session_id=name, keep_recent=2000) for name in names]
    for name in names:
        daemon.wait(
            lambda got, name=name: (  # type: ignore[misc]
                got.value.get("params", {}).get("session_id") == name and "delta" in got.value["params"]
            ),
            "a word of the summary",
        )

    for name in names:
        assert daemon.call("agent/state", session_id=name)["status"] == "compacting"
        assert daemon.call("session/append", session_id=name, messages=turns(2, 20))["entry_ids"]
        assert daemon.call("session/search", session_id=name, query="looked")["hits"]
        assert daemon.refusal("session/compact", session_id=name).code == 1002
    assert daemon.call("session/append", session_id=other, messages=[user(5)])["entry_ids"] == ["e1"]
    assert daemon.call("turn/begin", session_id=other)["compaction"] is None
    assert not any(daemon.answered_so_far(one) for one in asked)

    daemon.notify("$/cancelRequest", id=asked[0])
    assert daemon.refused(asked[0]).code == -32800
    server.play(Answer(text=SUMMARY))
    done = daemon.call("session/compact", session_id=names[0], keep_recent=2000)
    assert (done["compacted"], done["strategy"]) == (True, "summarize")
    assert len(daemon.call("session/history", session_id=names[0])["entries"]) >= 41 + 4
    daemon.call("session/close", session_id=names[1])
    assert daemon.refused(asked[1]).code == -32800


def test_a_dry_run_tells_what_asking_would_take_and_asks_nobody(spawn: Spawn, server: Loopback) -> None:
    daemon = spawn(env=environment("anthropic", server.base_url))
    name = filled(daemon)

    told = daemon.call("session/compact", session_id=name, keep_recent=2000, dry_run=True)

    assert server.requests == []
    assert (told["strategy"], told["model"]) == ("summarize", MODELS["anthropic"])
    assert told["usage"]["input_tokens"] > 5000
    assert told["cost"] > 0
    assert told["tokens_after"] < told["tokens_before"]
    server.play(Answer(text=SUMMARY))
    done = daemon.call("session/compact", session_id=name, keep_recent=2000)
    assert done["messages_removed"] == told["messages_removed"]
    assert done["tokens_after"] <= told["tokens_after"]
