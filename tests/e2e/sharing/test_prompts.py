"""Prompts in a session that several clients have open: whose tools run, and what if their client leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.sharing.conftest import Share
from tests.support.client import Daemon, Got
from tests.support.loopback import Answer, Call, Loopback, Stall
from tests.support.own_loop import MODELS, TOOLS, Talk, environment
from tests.support.sharing import Shared

START: dict[str, Any] = {"session_id": "s", "model": MODELS["anthropic"], "tools": TOOLS}


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


@pytest.fixture
def shared(share: Share, provider: Loopback) -> Shared:
    """A shared daemon with a provider."""
    return share(env=environment("anthropic", provider.base_url))


def joined(shared: Shared, name: str, **client: object) -> Daemon:
    """Return a client with a name that has the session open."""
    made = shared.attach()
    made.call("session/start", **START, client={"name": name, **client})
    return made


def tool_call(client: Daemon, after: int = -1) -> Got:
    """Wait until a client is asked to run a tool."""
    return client.wait(
        lambda got: got.at > after and got.value.get("method") == "tool/execute", "tool/execute"
    )


def answer(client: Daemon, asked: Got, content: str) -> None:
    body = {"jsonrpc": "2.0", "id": asked.value["id"], "result": {"content": content}}
    client.send(json.dumps(body).encode())


def test_the_tools_run_at_the_client_that_gave_the_prompt(shared: Shared, provider: Loopback) -> None:
    one, two = joined(shared, "one"), joined(shared, "two", answers=True)
    provider.play(Answer(calls=(Call("read", "{}"),)), Answer(text="It is read."))
    talks = Talk(one, "s"), Talk(two, "s")

    assert talks[1].ask("Read it.")["stop_reason"] == "stop"

    assert [len(talk.executed) for talk in talks] == [0, 1]
    for client in (one, two):
        client.event("agent_end")
        appended = [event for event in client.events("s") if event["type"] == "message_appended"]
        # The daemon wrote the answers; the client gave the prompt and the tool's result.
        assert [event["client"] for event in appended] == ["two", None, "two", None]
        deltas = [event for event in client.events("s") if event["type"] == "message_delta"]
        assert "".join(event["delta"] for event in deltas) == "It is read."
        assert {event["client"] for event in deltas} == {"two"}


def test_prompts_queue_with_their_author(shared: Shared, provider: Loopback) -> None:
    one, two = joined(shared, "one"), joined(shared, "two")
    provider.play(Stall("Wait"), Answer(text="Second."))
    first = one.call("agent/prompt", session_id="s", text="First?")["turn_id"]
    two.event("message_delta")
    second = two.call("agent/prompt", session_id="s", text="Second?")
    assert second["queued"] is True
    (waiting,) = one.call("agent/state", session_id="s")["prompts"]
    assert (waiting["client"], waiting["text_preview"]) == ("two", "Second?")

    # Anybody may stop a prompt; the queue goes on with the next prompt.
    assert two.call("agent/abort", session_id="s") == {"aborted": True}
    assert one.event("agent_abort").value["params"] | {"seq": 0} == {
        "session_id": "s",
        "seq": 0,
        "client": "one",
        "type": "agent_abort",
        "turn_id": first,
    }


def test_when_its_client_leaves_another_answers_for_it(shared: Shared, provider: Loopback) -> None:
    one, two = joined(shared, "one"), joined(shared, "two", answers=True)
    provider.play(Answer(calls=(Call("read", "{}"),)), Answer(text="It is read."))
    one.call("agent/prompt", session_id="s", text="Read it.")
    tool_call(one)
    one.kill()

    answer(two, tool_call(two), "the text")

    assert two.event("agent_end").value["params"]["stop_reason"] == "stop"
    entries = two.call("session/history", session_id="s")["entries"]
    assert [entry["message"]["role"] for entry in entries] == ["user", "assistant", "tool", "assistant"]
    results = [event for event in two.events("s") if event["type"] == "message_appended"]
    assert [event["client"] for event in results] == ["one", None, "two", None]


def test_a_client_that_closed_the_session_is_asked_nothing_more(shared: Shared, provider: Loopback) -> None:
    one, two = joined(shared, "one"), joined(shared, "two", answers=True)
    provider.play(
        Stall("Let me"), Answer(calls=(Call("read", "{}"),)), Answer(text="It is read."), Answer(text="Yes.")
    )
    one.call("agent/prompt", session_id="s", text="Think.")
    two.event("message_delta")
    one.call("agent/prompt", session_id="s", text="Read it.")
    one.call("session/close", session_id="s")
    two.call("agent/abort", session_id="s")
    two.call("agent/prompt", session_id="s", text="Are you there?")

    answer(two, tool_call(two), "the text")

    two.event("agent_end", stop_reason="stop")
    assert not [got for got in one.received if got.value.get("method") == "tool/execute"]


def test_without_another_answer_a_prompt_of_a_client_that_closed_the_session_is_stopped(
    shared: Shared, provider: Loopback
) -> None:
    one, two = joined(shared, "one"), joined(shared, "two")
    provider.play(Stall("Let me"))
    turn = one.call("agent/prompt", session_id="s", text="Think.")["turn_id"]
    two.event("message_delta")
    one.call("session/close", session_id="s")

    assert two.event("agent_end", turn_id=turn).value["params"]["stop_reason"] == "aborted"


def test_a_client_that_opens_the_session_again_answers_for_itself(shared: Shared, provider: Loopback) -> None:
    one, two = joined(shared, "one"), joined(shared, "two", answers=True)
    provider.play(Stall("Let me"), Answer(calls=(Call("read", "{}"),)), Answer(text="It is read."))
    one.call("agent/prompt", session_id="s", text="Think.")
    two.event("message_delta")
    one.call("session/close", session_id="s")
    one.call("session/start", **START, client={"name": "one"})
    two.call("agent/abort", session_id="s")
    one.call("agent/prompt", session_id="s", text="Read it.")

    answer(one, tool_call(one), "the text")

    two.event("agent_end", stop_reason="stop")


def test_a_client_that_comes_back_answers_for_itself(shared: Shared, provider: Loopback) -> None:
    one, two = joined(shared, "one"), joined(shared, "two")
    provider.play(Answer(calls=(Call("read", "{}"),)), Answer(text="It is read."))
    one.call("agent/prompt", session_id="s", text="Read it.")
    tool_call(one)
    one.kill()
    again = joined(shared, "one")

    answer(again, tool_call(again), "the text")

    assert two.event("agent_end").value["params"]["stop_reason"] == "stop"


def test_if_nobody_answers_the_prompt_is_stopped_and_the_others_are_told(
    shared: Shared, provider: Loopback
) -> None:
    one, two = joined(shared, "one"), joined(shared, "two")
    provider.play(Answer(calls=(Call("read", "{}"),)))
    turn = one.call("agent/prompt", session_id="s", text="Read it.")["turn_id"]
    tool_call(one)
    one.kill()

    two.event("agent_abort", turn_id=turn)
    assert two.event("agent_end", turn_id=turn).value["params"]["stop_reason"] == "aborted"
    assert not [got for got in two.received if got.value.get("method") == "tool/execute"]
    provider.play(Answer(text="Hello."))
    assert Talk(two, "s").ask("Hello?")["stop_reason"] == "stop"


def test_prompts_behind_one_that_was_given_up_are_answered(shared: Shared, provider: Loopback) -> None:
    one, two = joined(shared, "one"), joined(shared, "two")
    provider.play(Stall("Let me think"), Answer(text="Second."))
    one.call("agent/prompt", session_id="s", text="Think.")
    two.event("message_delta")
    second = two.call("agent/prompt", session_id="s", text="Second?")
    assert second["queued"] is True
    one.kill()
    assert two.event("agent_end", turn_id=second["turn_id"]).value["params"]["stop_reason"] == "stop"
    assert two.call("agent/state", session_id="s")["prompts"] == []


def test_a_prompt_without_tools_is_stopped_too_if_its_client_stays_away(
    shared: Shared, provider: Loopback
) -> None:
    one, two = joined(shared, "one"), joined(shared, "two")
    provider.play(Stall("Let me think"))
    one.call("agent/prompt", session_id="s", text="Think.")
    two.event("message_delta")
    one.kill()
    assert two.event("agent_end").value["params"]["stop_reason"] == "aborted"
    entries = two.call("session/history", session_id="s")["entries"]
    assert [entry["message"]["role"] for entry in entries] == ["user", "assistant"]


def test_a_prompt_ends_with_the_last_client(shared: Shared, provider: Loopback) -> None:
    one = joined(shared, "one")
    provider.play(Stall("Let me think"))
    one.call("agent/prompt", session_id="s", text="Think.")
    one.event("message_delta")
    one.kill()
    two = joined(shared, "two")
    entries = two.call("session/history", session_id="s")["entries"]
    assert [entry["message"]["role"] for entry in entries] == ["user", "assistant"]
    assert two.call("agent/state", session_id="s")["status"] == "idle"
