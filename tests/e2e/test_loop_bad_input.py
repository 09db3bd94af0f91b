"""Faults around the daemon's own agent loop: clients that die, tools that never return, streams that never
end, text that makes no sense."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_disk import limited_to
from tests.support.client import Daemon, Refused
from tests.support.loopback import Answer, Call, Endless, LongLine, Loopback, Noise, Overflow, Stall
from tests.support.own_loop import MODELS, TOOLS, Talk, environment
from tests.support.talk import CHARS4, assistant, turns, user

Spawn = Callable[..., Daemon]
Open = Callable[..., Talk]

LOOKS = Answer(text="Let me look.", calls=(Call("read", '{"path": "a.py"}', "c1"),))


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture
def talk(spawn: Spawn, server: Loopback) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_(tool: Any = None, env: Any = None, command: Any = None, **more: Any) -> Talk:
            options = {} if command is None else {"command": command}
            daemon = spawn(env={**environment("anthropic", server.base_url), **(env or {})}, **options)
            started = daemon.call(
                "session/start",
                **{
                    "model": MODELS["anthropic"],
                    "tools": TOOLS,
                    "compaction": {**CHARS4, "strategy": "extract"},
                    **more,
                },
            )
            talk = Talk(daemon, started["session_id"], tool)
            stack.callback(talk.stop)
            return talk

        yield open_


def results_in(request: Any) -> list[dict[str, Any]]:
    """The tool results that the model is shown."""
    return [
        block
        for message in request.body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def balanced(one: Talk) -> bool:
    """Return whether every start event has its end event."""
    kinds = one.types()
    return all(
        kinds.count(f"{name}_start") == kinds.count(f"{name}_end")
        for name in ("message", "tool_execution", "compaction")
    ) and kinds.count("agent_start") == kinds.count("agent_end") + kinds.count("error")


# --- tools ------------------------------------------------------------------------------------------


def test_a_client_that_goes_while_a_tool_runs_leaves_the_call_open_and_the_next_one_goes_on(
    talk: Open, spawn: Spawn, server: Loopback
) -> None:
    server.play(LOOKS, Answer(text="It broke off."))
    one = talk(tool=lambda name, arguments: None, session_id="s")
    one.prompt("Look at it")
    one.daemon.wait(lambda got: got.value.get("method") == "tool/execute", "tool/execute")
    one.stop()

    assert one.daemon.stop() == 0

    assert one.types()[-3:] == ["tool_execution_end", "agent_abort", "agent_end"]
    again = spawn(env=environment("anthropic", server.base_url))
    again.call("session/start", session_id="s")
    context = again.call("session/context", session_id="s")
    assert [repair["kind"] for repair in context["repairs"]] == ["missing_result"]
    two = Talk(again, "s")
    assert two.ask("And now?")["stop_reason"] == "stop"
    two.stop()
    (result,) = results_in(server.requests[1])
    assert (result["tool_use_id"], result["is_error"]) == ("c1", True)


def test_a_tool_that_never_returns_is_an_error_for_the_model_after_its_time(
    talk: Open, server: Loopback
) -> None:
    server.play(LOOKS)
    one = talk(tool=lambda name, arguments: None, env={"COMPACTD_LOOP_TOOL_S": "0.2"})

    assert one.ask("Look")["stop_reason"] == "stop"

    (result,) = results_in(server.requests[1])
    assert (result["is_error"], "within 0.2 seconds" in json.dumps(result)) == (True, True)
    asked = one.daemon.wait(lambda got: got.value.get("method") == "tool/execute", "tool/execute")
    taken_back = one.daemon.wait(lambda got: got.value.get("method") == "$/cancelRequest", "$/cancelRequest")
    assert taken_back.value["params"]["id"] == asked.value["id"]
    assert balanced(one)


def test_the_time_of_a_tool_may_stand_in_the_users_file(talk: Open, home: Path, server: Loopback) -> None:
    config = home.parent / "config" / "compactd"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("[loop]\ntool_s = 0.3\nsteps = -1\n")
    server.play(LOOKS)
    one = talk(tool=lambda name, arguments: None)

    assert one.ask("Look")["stop_reason"] == "stop"
    assert "within 0.3 seconds" in json.dumps(results_in(server.requests[1]))
    assert "loop.steps is ignored" in one.daemon.log()


def test_one_tool_that_is_slow_does_not_keep_the_result_of_another(talk: Open, server: Loopback) -> None:
    server.play(Answer(calls=(Call("read", "{}", "c1"), Call("run", "{}", "c2"))))
    one = talk(
        tool=lambda name, arguments: {"content": "quick"} if name == "run" else None,
        env={"COMPACTD_LOOP_TOOL_S": "0.2"},
    )

    one.ask("Look")

    shown = {r["tool_use_id"]: r.get("is_error", False) for r in results_in(server.requests[1])}
    assert shown == {"c1": True, "c2": False}


@pytest.mark.parametrize(
    "given",
    [[], "text", 7, {"content": 5}, {"content": [{"type": "text"}]}, {"content": [7]}, {"is_error": "yes"}],
    ids=json.dumps,
)
def test_a_tool_result_that_makes_no_sense_is_an_error_for_the_model(
    talk: Open, server: Loopback, given: Any
) -> None:
    server.play(LOOKS)
    one = talk(tool=lambda name, arguments: given)

    assert one.ask("Look")["stop_reason"] == "stop"

    assert [r["tool_use_id"] for r in results_in(server.requests[1])] == ["c1"]
    assert balanced(one)


def test_a_model_that_calls_tools_for_ever_is_stopped(talk: Open, server: Loopback) -> None:
    server._then = LOOKS
    one = talk(env={"COMPACTD_LOOP_STEPS": "7"})

    assert one.ask("Go")["stop_reason"] == "steps"
    assert len(server.requests) == len(one.executed) == 7


@pytest.mark.parametrize("arguments", ["", '{"path": ', "[]", "null", '{"a":' + "[" * 500, "}{", '"{}"'])
def test_calls_with_broken_arguments_are_answered_and_not_run(
    talk: Open, server: Loopback, arguments: str
) -> None:
    server.play(Answer(calls=(Call("read", arguments, "c1"), Call("run", "{}", "c2"))))
    one = talk()

    assert one.ask("Go")["stop_reason"] == "stop"

    # No arguments at all are those of a tool that takes none.
    assert sorted(p["name"] for p in one.executed) == (
        ["read", "run"] if arguments in ("", "null") else ["run"]
    )
    assert len(results_in(server.requests[1])) == 2


def test_a_response_to_a_tool_that_nobody_asked_for_is_ignored(talk: Open, server: Loopback) -> None:
    one = talk()
    one.daemon.send(b'{"jsonrpc":"2.0","id":"compactd-77","result":{"content":"done"}}')

    assert one.ask("Hello")["stop_reason"] == "stop"


# --- aborts and prompts -----------------------------------------------------------------------------


def test_an_abort_of_nothing_says_so(talk: Open, server: Loopback) -> None:
    one = talk()

    assert one.daemon.call("agent/abort", session_id=one.id) == {"aborted": False}
    one.ask("Hello")
    assert one.daemon.call("agent/abort", session_id=one.id) == {"aborted": False}
    assert one.types().count("agent_end") == 1
    assert "agent_abort" not in one.types()


def test_an_abort_while_a_tool_runs_takes_it_back_and_closes_everything(talk: Open, server: Loopback) -> None:
    server.play(Answer(calls=(Call("read", "{}", "c1"), Call("run", "{}", "c2"))))
    one = talk(tool=lambda name, arguments: None)
    turn = one.prompt("Look")
    one.daemon.event("tool_execution_start", one.id, call_id="c2")

    assert one.daemon.call("agent/abort", session_id=one.id) == {"aborted": True}

    assert one.end(turn)["stop_reason"] == "aborted"
    assert balanced(one)
    for at in (1, 2):
        one.daemon.wait(
            lambda got, at=at: got.value.get("params", {}).get("id") == f"compactd-{at}",  # type: ignore[misc]
            "$/cancelRequest",
        )
    assert one.ask("Go on")["stop_reason"] == "stop"
    assert len(results_in(server.requests[1])) == 2


def test_an_abort_before_the_first_word_closes_the_message(talk: Open, server: Loopback) -> None:
    server.play(Stall())
    one = talk()
    turn = one.prompt("Hello")
    one.daemon.event("message_start", one.id)

    one.daemon.call("agent/abort", session_id=one.id)

    assert one.end(turn)["stop_reason"] == "aborted"
    assert one.types()[-5:] == ["message_start", "message_end", "turn_end", "agent_abort", "agent_end"]
    ended = one.daemon.event("message_end", one.id).value["params"]
    assert (ended["message"], ended["stop_reason"]) == (None, "aborted")


def test_a_prompt_right_behind_an_abort_is_answered(talk: Open, server: Loopback) -> None:
    server.play(Stall("Hm"))
    one = talk()
    one.prompt("Hello")
    one.daemon.event("message_delta", one.id)

    aborted = one.daemon.ask("agent/abort", session_id=one.id)
    prompted = one.daemon.ask("agent/prompt", session_id=one.id, text="And now?")

    assert one.end(one.daemon.result(prompted)["turn_id"])["stop_reason"] == "stop"
    assert one.daemon.result(aborted) == {"aborted": True}
    assert one.daemon.call("agent/state", session_id=one.id)["queued"] == 0
    assert balanced(one)


def test_two_prompts_at_once_are_both_answered_in_their_order(talk: Open, server: Loopback) -> None:
    server.play(Answer(text="First."), Answer(text="Second."))
    one = talk()

    asked = [one.daemon.ask("agent/prompt", session_id=one.id, text=text) for text in ("one", "two")]
    turns_ = [one.daemon.result(id) for id in asked]
    ends = [one.end(turn["turn_id"]) for turn in turns_]

    assert [turn["queued"] for turn in turns_] == [False, True]
    assert [end["stop_reason"] for end in ends] == ["stop", "stop"]
    assert [m["role"] for m in one.daemon.call("session/context", session_id=one.id)["messages"]] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]


def test_a_turn_that_did_not_fit_says_nothing_of_the_next_one(talk: Open, server: Loopback) -> None:
    server.play(*[Overflow(requested=300_000, limit=100_000)] * 4)
    one = talk()
    one.daemon.call("session/append", session_id=one.id, messages=turns(20, 1500))
    assert one.ask("one")["code"] == 1008
    one.daemon.call("session/append", session_id=one.id, messages=[*turns(20, 1500)])
    server._script.clear()
    server.play(Overflow(requested=300_000, limit=100_000))

    assert one.ask("two")["stop_reason"] == "stop"


# --- streams ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step", [Endless("more " * 2_000), LongLine(5_000_000)], ids=["endless", "long-line"]
)
def test_a_stream_without_an_end_is_cut_off_and_ends_the_turn_once(
    talk: Open, server: Loopback, step: Any
) -> None:
    server.play(*[step] * 3)
    one = talk(env={"COMPACTD_PROVIDERS_BODY_BYTES": "300000", "COMPACTD_PROVIDERS_LINE_BYTES": "100000"})

    end = one.ask("Hello")

    assert (end["type"], end["code"]) == ("error", 1006)
    assert balanced(one)
    assert server.requests[0].was_left()
    assert one.daemon.call("daemon/ping") == {}


def test_while_a_stream_without_an_end_comes_an_abort_is_answered(talk: Open, server: Loopback) -> None:
    server.play(Endless("more " * 2_000))
    one = talk()
    turn = one.prompt("Hello")
    one.daemon.event("message_delta", one.id)

    assert one.daemon.call("agent/abort", session_id=one.id) == {"aborted": True}
    assert one.end(turn)["stop_reason"] == "aborted"
    assert server.requests[0].was_left()


def test_events_that_nobody_knows_are_passed_over(talk: Open, server: Loopback) -> None:
    server.play(Noise(Answer(text="All is well.", calls=(Call("read", "{}", "c1"),))))
    one = talk()

    assert one.ask("Hello")["stop_reason"] == "stop"
    assert len(one.executed) == 1


# --- the disk ---------------------------------------------------------------------------------------


def test_on_a_full_disk_a_prompt_ends_once_with_1005_and_waits_for_room(
    talk: Open, spawn: Spawn, server: Loopback
) -> None:
    one = talk(command=limited_to(30_000), session_id="s")
    ends = []
    while not ends or ends[-1]["type"] == "agent_end":
        asked = one.daemon.ask("agent/prompt", session_id=one.id, text=f"{len(ends)} " + "x" * 4000)
        answer = one.daemon.answer(asked).value
        if "error" in answer:
            assert answer["error"]["code"] == 1005
            break
        ends.append(one.end(answer["result"]["turn_id"]))

    assert 1 < len(ends) < 9
    assert ends[-1].get("code", 1005) == 1005
    assert one.daemon.call("agent/state", session_id=one.id)["status"] == "idle"
    assert balanced(one)
    acknowledged = len(ends)
    one.stop()
    one.daemon.kill()
    again = spawn(env=environment("anthropic", server.base_url))
    again.call("session/start", session_id="s")
    two = Talk(again, "s")
    two.ask("Now there is room")
    said = [m for m in again.call("session/history", session_id="s")["entries"] if "title" in m]
    assert len(said) == acknowledged + 1
    two.stop()


# --- messages of the client -------------------------------------------------------------------------


def test_what_a_client_appends_meanwhile_stands_behind_and_breaks_no_pair(
    talk: Open, server: Loopback
) -> None:
    server.play(LOOKS)
    held: list[Talk] = []

    def tool(name: str, arguments: Any) -> Any:
        held[0].daemon.call(
            "session/append", session_id=held[0].id, messages=[user(5), assistant(5), user(5)]
        )
        return {"content": "done"}

    one = talk(tool=tool)
    held.append(one)

    assert one.ask("Look")["stop_reason"] == "stop"
    assert len(results_in(server.requests[1])) == 1


@pytest.mark.parametrize("method", ["session/append", "turn/end"])
def test_an_answer_that_a_client_appends_in_the_place_of_the_models_own_is_refused(
    talk: Open, server: Loopback, method: str
) -> None:
    server.play(LOOKS)
    held: list[Talk] = []
    told: list[Refused] = []

    def tool(name: str, arguments: Any) -> Any:
        told.extend(
            held[0].daemon.refusal(method, session_id=held[0].id, messages=said)
            for said in ([assistant(5)], [user(5), assistant(5)], [assistant(5), user(0)])
        )
        return {"content": "done"}

    one = talk(tool=tool)
    held.append(one)

    assert one.ask("Look")["stop_reason"] == "stop"

    assert [(error.code, "after the `agent_end` event" in error.message) for error in told] == [
        (1002, True)
    ] * 3
    assert server.requests[1].body["messages"][-1]["role"] == "user"
    count = len(one.daemon.call("session/history", session_id=one.id)["entries"])
    assert one.daemon.call(method, session_id=one.id, messages=[assistant(5)])["entry_ids"]
    assert len(one.daemon.call("session/history", session_id=one.id)["entries"]) == count + 1
