"""The events of the daemon's own agent loop: every start has its end, and the ids that they name exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.properties.loop_events import problems_of_events
from tests.support.client import Daemon
from tests.support.loopback import Answer, Call, Fail, Loopback, Overflow, Stall
from tests.support.own_loop import MODELS, TOOLS, Talk, environment
from tests.support.talk import CHARS4, turns


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture
def one(spawn: Spawn, server: Loopback) -> Iterator[Talk]:
    daemon: Daemon = spawn(env=environment("anthropic", server.base_url))
    daemon.call(
        "session/start",
        session_id="s",
        model=MODELS["anthropic"],
        tools=TOOLS,
        compaction={**CHARS4, "strategy": "extract"},
        client={"name": "example"},
    )
    talk = Talk(daemon, "s")
    yield talk
    talk.stop()


def told(one: Talk, *kinds: str) -> list[dict[str, Any]]:
    """The events of these types, in order."""
    return [event for event in one.daemon.events(one.id) if event["type"] in kinds]


PAIRS = ("turn_start", "message_start", "message_end", "turn_end", "retry", "error", "agent_abort")


def order(one: Talk) -> list[str]:
    """The types of what is paired, in order."""
    return [event["type"] for event in told(one, *PAIRS)]


def test_a_turn_that_fails_ends_before_the_error(one: Talk, server: Loopback) -> None:
    server.play(Fail(status=401))

    assert one.ask("Hello")["type"] == "error"

    assert order(one) == ["turn_start", "message_start", "message_end", "turn_end", "error"]
    (end,) = told(one, "turn_end")
    assert (end["message"], end["usage"], end["turn_id"], end["entry_id"]) == (None, None, "t1", None)


def test_a_turn_that_is_aborted_ends_with_what_the_model_had_said(one: Talk, server: Loopback) -> None:
    server.play(Stall("The answer is"))
    turn = one.prompt("Hello")
    one.daemon.event("message_delta", one.id)

    one.daemon.call("agent/abort", session_id=one.id)
    one.end(turn)

    assert order(one) == ["turn_start", "message_start", "message_end", "turn_end", "agent_abort"]
    message, end = told(one, "message_end", "turn_end")
    assert message["message"]["content"] == end["message"]["content"] == "The answer is"
    assert (message["entry_id"], end["entry_id"]) == ("e2", "e2")


def test_a_repeated_request_starts_a_new_message_after_the_old_one_ended(one: Talk, server: Loopback) -> None:
    server.play(Fail(status=529), Answer(text="Here."))

    one.ask("Hello")

    again = ["message_start", "message_end", "retry", "message_start", "message_end"]
    assert order(one) == ["turn_start", *again, "turn_end"]
    first, second = told(one, "message_end")
    assert (first["message"], first["stop_reason"]) == (None, "error")
    assert second["entry_id"] == "e2"
    assert told(one, "retry")[0]["turn_id"] == "t1"


def test_a_turn_that_overflows_has_one_end_and_each_message_its_own(one: Talk, server: Loopback) -> None:
    server.play(Overflow(requested=300_000, limit=100_000), Answer(text="Now it fits."))
    one.daemon.call("session/append", session_id=one.id, messages=turns(20, 1500))

    one.ask("And now?")

    assert order(one) == [
        "turn_start",
        *["message_start", "message_end"] * 2,
        "turn_end",
    ]


def test_events_name_the_prompt_and_the_entries(one: Talk, server: Loopback) -> None:
    server.play(Answer(text="I look.", calls=(Call("read", "{}", "c1"),)), Answer(text="Done."))

    one.ask("Look")

    entries = one.daemon.call("session/history", session_id=one.id)["entries"]
    roles = {entry["entry_id"]: entry["message"]["role"] for entry in entries}
    assert roles == {"e1": "user", "e2": "assistant", "e3": "tool", "e4": "assistant"}
    appended = told(one, "message_appended")
    assert [(e["entry_id"], e["role"], e["client"], e["turn_id"]) for e in appended] == [
        ("e1", "user", "example", "t1"),
        ("e2", "assistant", None, "t1"),
        ("e3", "tool", "example", "t1"),
        ("e4", "assistant", None, "t1"),
    ]
    assert [e["entry_id"] for e in told(one, "message_end")] == ["e2", "e4"]
    assert [e["entry_id"] for e in told(one, "turn_end")] == ["e2", "e4"]
    assert [e["entry_id"] for e in told(one, "tool_execution_start", "tool_execution_end")] == ["e2", "e3"]
    assert {e["turn_id"] for e in told(one, "message_delta", "message_end", "turn_end")} == {"t1"}
    assert [params["turn_id"] for params in one.executed] == ["t1"]
    assert problems_of_events(one.daemon.events(one.id)) == []


def test_a_call_that_the_client_is_not_asked_to_run_has_no_tool_events(one: Talk, server: Loopback) -> None:
    server.play(Answer(calls=(Call("read", '{"path": ', "c1"),)), Answer(text="Sorry."))

    one.ask("Go")

    assert one.executed == []
    assert told(one, "tool_execution_start", "tool_execution_end") == []
    assert [e["role"] for e in told(one, "message_appended")] == ["user", "assistant", "tool", "assistant"]


def test_appends_are_announced_before_their_answer(one: Talk) -> None:
    asked = one.daemon.ask("session/append", session_id=one.id, messages=turns(2, 5))

    answer = one.daemon.answer(asked)

    before = [got for got in one.daemon.received[: answer.at] if got.value.get("method") == "agent/event"]
    named = [got.value["params"] for got in before if got.value["params"]["type"] == "message_appended"]
    assert [e["entry_id"] for e in named] == answer.value["result"]["entry_ids"]
    assert {e["client"] for e in named} == {"example"}
    assert ["turn_id" in e for e in named] == [False] * len(named)
