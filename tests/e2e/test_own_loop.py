"""The daemon's own agent loop with a fake provider on loopback, over each wire format."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.loopback import (
    Answer,
    Call,
    Cut,
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
from tests.support.own_loop import MODELS, TOOLS, WIRES, Talk, environment
from tests.support.talk import CHARS4, turns

Spawn = Callable[..., Daemon]
Open = Callable[..., Talk]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture
def talk(spawn: Spawn, server: Loopback) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_(wire: str = "anthropic", tool: Any = None, env: Any = None, **more: Any) -> Talk:
            daemon = spawn(env={**environment(wire, server.base_url), **(env or {})})
            settings = {**CHARS4, **more.pop("compaction", {})}
            started = daemon.call(
                "session/start", model=MODELS[wire], tools=TOOLS, compaction=settings, **more
            )
            talk = Talk(daemon, started["session_id"], tool)
            stack.callback(talk.stop)
            return talk

        yield open_


def contents(talk: Talk) -> list[dict[str, Any]]:
    return list(talk.daemon.call("session/context", session_id=talk.id)["messages"])


def said_in(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(b.get("text", "") for b in content)


@pytest.mark.parametrize("wire", WIRES)
def test_a_prompt_is_answered_with_its_events_in_their_order(talk: Open, server: Loopback, wire: str) -> None:
    server.play(Answer(text="Good morning.", input_tokens=20, output_tokens=4))
    one = talk(wire)

    end = one.ask("Hello")

    assert one.types() == [
        "agent_start",
        "message_appended",
        "usage_update",
        "turn_start",
        "message_start",
        "message_end",
        "turn_end",
        "message_appended",
        "usage_update",
        "agent_end",
    ]
    assert (end["type"], end["stop_reason"]) == ("agent_end", "stop")
    assert (
        end["context_window"]
        == one.daemon.call("agent/state", session_id=one.id)["token_usage"]["context_window"]
    )
    assert end["usage"]["last_prompt_tokens"] == 20
    deltas = [e["delta"] for e in one.daemon.events(one.id) if e["type"] == "message_delta"]
    assert "".join(deltas) == "Good morning."
    said = contents(one)
    assert [m["role"] for m in said] == ["user", "assistant"]
    assert len(server.requests) == 1


@pytest.mark.parametrize("wire", WIRES)
def test_tools_run_side_by_side_in_the_client_and_their_results_go_back(
    talk: Open, server: Loopback, wire: str
) -> None:
    both = threading.Barrier(2, timeout=10)

    def tool(name: str, arguments: Any) -> Any:
        both.wait()
        return {"content": f"{name} of {arguments['path']}"}

    server.play(
        Answer(
            text="Let me look.",
            calls=(Call("read", '{"path": "a.py"}', "c1"), Call("run", '{"path": "b"}', "c2")),
        ),
        Answer(text="All is well."),
    )
    one = talk(wire, tool)

    end = one.ask("Look at both")

    assert end["stop_reason"] == "stop"
    assert sorted(p["name"] for p in one.executed) == ["read", "run"]
    assert [m["role"] for m in contents(one)] == ["user", "assistant", "tool", "tool", "assistant"]
    assert len(server.requests) == 2
    second = server.requests[1].raw.decode()
    assert "read of a.py" in second
    assert "run of b" in second
    kinds = one.types()
    assert kinds.count("tool_execution_start") == kinds.count("tool_execution_end") == 2


def test_broken_arguments_are_told_to_the_model_and_nothing_is_run(talk: Open, server: Loopback) -> None:
    server.play(Answer(calls=(Call("read", '{"path": ', "c1"),)), Answer(text="Sorry."))
    one = talk()

    assert one.ask("Go")["stop_reason"] == "stop"
    assert one.executed == []
    assert "no JSON object" in server.requests[1].raw.decode()


def test_a_tool_that_the_client_refuses_is_an_error_for_the_model(talk: Open, server: Loopback) -> None:
    def tool(name: str, arguments: Any) -> Any:
        raise LookupError("there is no such tool")

    server.play(Answer(calls=(Call("read", "{}", "c1"),)), Answer(text="I see."))
    one = talk(tool=tool)

    one.ask("Go")

    assert "there is no such tool" in server.requests[1].raw.decode()
    assert [e["is_error"] for e in one.daemon.events(one.id) if e["type"] == "tool_execution_end"] == [True]


@pytest.mark.parametrize("wire", WIRES)
def test_an_overflow_is_compacted_and_the_same_turn_is_sent_again_at_once(
    talk: Open, server: Loopback, wire: str
) -> None:
    server.play(Overflow(requested=300_000, limit=100_000), Answer(text="Now it fits."))
    one = talk(wire, compaction={"strategy": "extract"})
    one.daemon.call("session/append", session_id=one.id, messages=turns(20, 1500))

    end = one.ask("And now?")

    assert (end["type"], end["stop_reason"]) == ("agent_end", "stop")
    assert len(server.requests) == 2
    assert server.requests[1].tokens < server.requests[0].tokens
    assert "And now?" in server.requests[1].raw.decode()
    kinds = one.types()
    assert "overflow_detected" in kinds
    assert "retry" not in kinds
    assert kinds.index("compaction_start") < kinds.index("compaction_end")


def test_after_three_smaller_attempts_the_turn_ends_in_1008(talk: Open, server: Loopback) -> None:
    server.play(*[Overflow(requested=300_000, limit=100_000)] * 9)
    one = talk(compaction={"strategy": "extract"})
    one.daemon.call("session/append", session_id=one.id, messages=turns(20, 1500))

    end = one.ask("And now?")

    assert (end["type"], end["code"]) == ("error", 1008)
    assert 3 <= len(server.requests) <= 4
    sizes = [request.tokens for request in server.requests]
    assert sizes == sorted(set(sizes), reverse=True)
    assert one.daemon.call("session/history", session_id=one.id)["entries"][-1]


def test_a_passing_failure_is_repeated_with_a_retry_event(talk: Open, server: Loopback) -> None:
    server.play(Fail(status=529), Answer(text="Here."))
    one = talk()

    assert one.ask("Hello")["stop_reason"] == "stop"
    (retry,) = [e for e in one.daemon.events(one.id) if e["type"] == "retry"]
    assert retry["attempt"] == 2


@pytest.mark.parametrize(
    "step",
    [
        Fail(status=401),
        Html(),
        EmptyBody(),
        ErrorEvent(text="Half of an ans"),
        Cut(Answer(text="Half of an answer that is long"), after_bytes=300),
    ],
    ids=lambda step: type(step).__name__,
)
def test_a_provider_that_fails_ends_the_turn_with_1006_and_loses_nothing(
    talk: Open, server: Loopback, step: Any
) -> None:
    server.play(step, step, step, step)
    one = talk()

    end = one.ask("Hello")

    assert (end["type"], end["code"]) == ("error", 1006)
    assert [m["role"] for m in contents(one)] == ["user"]
    assert one.types().count("message_start") == one.types().count("message_end")
    server._script.clear()
    server.play(Answer(text="Back."))
    assert one.ask("Again")["stop_reason"] == "stop"


def test_an_answer_that_was_cut_for_length_stays_and_is_not_asked_again(talk: Open, server: Loopback) -> None:
    server.play(length_stop("Half of"))
    one = talk()

    assert one.ask("Hello")["stop_reason"] == "length"
    assert len(server.requests) == 1
    assert said_in(contents(one)[-1]) == "Half of"


def test_a_refusal_ends_the_turn(talk: Open, server: Loopback) -> None:
    server.play(refusal())
    one = talk()

    assert one.ask("Hello")["stop_reason"] == "refusal"


def test_prompts_that_come_meanwhile_wait_durably_and_are_answered_in_their_order(
    talk: Open, server: Loopback
) -> None:
    server.play(Stall("Thinking about it"))
    one = talk()
    first = one.prompt("one")
    one.daemon.event("message_delta", one.id)
    answers = [one.daemon.call("agent/prompt", session_id=one.id, text=text) for text in ("two", "three")]

    assert [a["queued"] for a in answers] == [True, True]
    assert one.daemon.call("agent/state", session_id=one.id)["queued"] == 2
    assert one.daemon.call("agent/state", session_id=one.id)["status"] == "streaming"
    assert one.daemon.call("agent/abort", session_id=one.id) == {"aborted": True}
    assert one.end(first)["stop_reason"] == "aborted"
    last = one.prompt("four")
    one.end(last)
    said = [said_in(m) for m in contents(one) if m["role"] == "user"]
    assert said == ["one", "two", "three", "four"]


def test_queued_prompts_survive_a_kill(spawn: Spawn, server: Loopback) -> None:
    server.play(Stall("Thinking"))
    env = environment("anthropic", server.base_url)
    daemon = spawn(env=env)
    name = daemon.call("session/start", model=MODELS["anthropic"])["session_id"]
    daemon.call("agent/prompt", session_id=name, text="one")
    daemon.event("message_delta", name)
    daemon.call("agent/prompt", session_id=name, text="two")
    daemon.kill()

    again = spawn(env=env)
    again.call("session/start", session_id=name)
    assert again.call("agent/state", session_id=name)["queued"] == 1
    one = Talk(again, name)
    one.ask("three")

    said = [
        said_in(m) for m in again.call("session/context", session_id=name)["messages"] if m["role"] == "user"
    ]
    assert said == ["one", "two", "three"]
    one.stop()


@pytest.mark.parametrize("step", [Silence(), Stall("Hm")], ids=["silent", "stalled"])
def test_an_abort_is_answered_at_once_and_frees_the_connection(
    talk: Open, server: Loopback, step: Any
) -> None:
    server.play(step)
    one = talk()
    turn = one.prompt("Hello")
    one.daemon.event("message_start", one.id)
    one.daemon.asked(server.requests)

    assert one.daemon.call("agent/abort", session_id=one.id) == {"aborted": True}
    assert one.end(turn)["stop_reason"] == "aborted"
    assert "agent_abort" in one.types()
    assert server.requests[0].was_left()
    assert one.daemon.call("agent/abort", session_id=one.id) == {"aborted": False}
    assert one.ask("And now?")["stop_reason"] == "stop"


def test_what_had_been_said_before_an_abort_stays(talk: Open, server: Loopback) -> None:
    server.play(Stall("The answer is"))
    one = talk()
    turn = one.prompt("Hello")
    one.daemon.event("message_delta", one.id)
    one.daemon.call("agent/abort", session_id=one.id)
    one.end(turn)

    last = contents(one)[-1]
    assert last["role"] == "assistant"
    assert "The answer is".startswith(said_in(last))


def test_without_a_key_the_prompt_is_refused_with_1007_and_nothing_is_kept(spawn: Spawn) -> None:
    daemon = spawn(env={"ANTHROPIC_API_KEY": "", "ANTHROPIC_BASE_URL": ""})
    name = daemon.call("session/start", model="anthropic/claude-sonnet-4-5")["session_id"]

    assert daemon.refusal("agent/prompt", session_id=name, text="Hello").code == 1007
    assert daemon.call("session/context", session_id=name)["messages"] == []


@pytest.mark.parametrize("params", [{}, {"text": "a", "content": "b"}, {"text": " "}])
def test_a_prompt_without_words_is_refused(talk: Open, params: dict[str, str]) -> None:
    one = talk()

    assert one.daemon.refusal("agent/prompt", session_id=one.id, **params).code == -32602


def test_a_prompt_holds_the_compaction_slot(talk: Open, server: Loopback) -> None:
    server.play(Stall("Hm"))
    one = talk()
    one.prompt("Hello")
    one.daemon.event("message_delta", one.id)

    for method, params in (
        ("session/compact", {}),
        ("session/undo", {}),
        ("model/set", {"model": "openai/gpt-4o"}),
        ("session/delete", {}),
    ):
        assert one.daemon.refusal(method, session_id=one.id, **params).code == 1002, method
    assert one.daemon.call("session/search", session_id=one.id, query="hello")["hits"]


def test_a_full_window_that_nobody_complained_of_is_compacted_before_the_next_request(
    talk: Open, server: Loopback
) -> None:
    server.play(Answer(text="Done.", input_tokens=210_000), Answer(text="Again.", input_tokens=20_000))
    one = talk(compaction={"strategy": "extract"})
    one.daemon.call("session/append", session_id=one.id, messages=turns(20, 1500))

    assert one.ask("one")["stop_reason"] == "stop"
    assert one.ask("two")["stop_reason"] == "stop"

    assert len(server.requests) == 2
    assert server.requests[1].tokens < server.requests[0].tokens
    (done,) = [e for e in one.daemon.events(one.id) if e["type"] == "compaction_end"]
    assert done["result"]["trigger"] == "silent_overflow"


def test_an_imported_session_does_not_ask_a_model_because_another_one_did(
    talk: Open, server: Loopback
) -> None:
    server.play(Stall("Hm"))
    one = talk()
    one.daemon.call("session/append", session_id=one.id, messages=turns(10, 500))
    one.prompt("one")
    one.daemon.event("message_delta", one.id)
    one.daemon.call("agent/prompt", session_id=one.id, text="two")
    content = one.daemon.call("session/export", session_id=one.id, format="compactd")["content"]

    made = one.daemon.call("session/import", content=content)
    done = one.daemon.call("session/compact", session_id=made["session_id"], keep_recent=1000)

    assert any("waited" in warning for warning in made["warnings"])
    assert one.daemon.call("agent/state", session_id=made["session_id"])["queued"] == 0
    assert done["strategy"] == "extract"
    assert len(server.requests) == 1
