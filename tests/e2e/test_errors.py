"""Every way a client can be wrong, over the wire: the code, the field, and what to do; and then work goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from e2e.client import Daemon, Refused
from e2e.conftest import Spawn
from e2e.talk import CHARS4, Message, assistant, call, encoded, result, turns, user
from e2e.views import originals_in_order, problems_of_providers


@pytest.fixture
def session(daemon: Daemon) -> str:
    """A session with two messages, the second with the id `m2`."""
    name = str(daemon.call("session/start", compaction=CHARS4)["session_id"])
    daemon.call("session/append", session_id=name, messages=[user(5), assistant(5, id="m2")])
    return name


def polite(daemon: Daemon, error: Refused, code: int) -> Refused:
    """`error`, if it has this code and says something fit for a client, and the connection lives on."""
    assert error.code == code, error
    assert len(error.message) > 15
    for secret in ("Traceback", str(daemon.home), "/compactd/", ".py"):
        assert secret not in error.message
        assert secret not in json.dumps(error.data)
    assert daemon.call("daemon/ping") == {}
    return error


# --- params -----------------------------------------------------------------------------------------

TEXT = {"role": "user", "content": "x"}
BAD_PARAMS: dict[str, tuple[str, dict[str, Any], str]] = {
    "no session id": ("session/append", {"session_id": None, "messages": []}, "$.session_id"),
    "an empty session id": ("session/context", {"session_id": ""}, "$.session_id"),
    "a session id with a line end": ("session/start", {"session_id": "a\nb"}, "$.session_id"),
    "a session id of 257 characters": ("session/start", {"session_id": "x" * 257}, "$.session_id"),
    "a number for a text": ("session/start", {"system_prompt": 5}, "$.system_prompt"),
    "a text for a number": ("session/compact", {"keep_recent": "many"}, "$.keep_recent"),
    "a text for a list": ("session/append", {"messages": "hello"}, "$.messages"),
    "no messages": ("session/append", {}, "$.messages"),
    "a message that is no object": ("session/append", {"messages": [TEXT, 7]}, "$.messages[1]"),
    "an unknown role": (
        "session/append",
        {"messages": [TEXT, {"role": "robot", "content": "x"}]},
        "$.messages[1].role",
    ),
    "no content": ("session/append", {"messages": [{"role": "user"}]}, "$.messages[0].content"),
    "a content of the wrong kind": (
        "session/append",
        {"messages": [{"role": "user", "content": 7}]},
        "$.messages[0].content",
    ),
    "a block without a type": (
        "session/append",
        {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
        "$.messages[0].content[0].type",
    ),
    "a text block without its text": (
        "session/append",
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        "$.messages[0].content[0].text",
    ),
    "a call without an id": (
        "session/append",
        {"messages": [{"role": "assistant", "content": [{"type": "tool_call", "name": "run"}]}]},
        "$.messages[0].content[0].call_id",
    ),
    "a tool message of plain text": (
        "session/append",
        {"messages": [{"role": "tool", "content": "x"}]},
        "$.messages[0].content",
    ),
    "a call in a user message": (
        "session/append",
        {"messages": [{"role": "user", "content": [{"type": "tool_call", "call_id": "t", "name": "run"}]}]},
        "$.messages[0].content[0]",
    ),
    "a result in an assistant message": (
        "turn/end",
        {"messages": [{"role": "assistant", "content": [{"type": "tool_result", "call_id": "t"}]}]},
        "$.messages[0].content[0]",
    ),
    "a usage that is no object": ("session/append", {"messages": [TEXT], "usage": 7}, "$.usage"),
    "negative usage": (
        "session/append",
        {"messages": [TEXT], "usage": {"input_tokens": -1, "output_tokens": 1}},
        "$.usage.input_tokens",
    ),
    "half a token": (
        "session/append",
        {"messages": [TEXT], "usage": {"prompt_tokens": 1.5, "completion_tokens": 1}},
        "$.usage.prompt_tokens",
    ),
    "more tokens than there are": (
        "session/append",
        {"messages": [TEXT], "usage": {"input_tokens": 10**30, "output_tokens": 1}},
        "$.usage.input_tokens",
    ),
    "a message's own negative usage": (
        "session/append",
        {"messages": [TEXT, {"role": "assistant", "content": "x", "usage": {"input": 5, "output": -5}}]},
        "$.messages[1].usage.output",
    ),
    "an epoch that was never handed out": ("session/append", {"messages": [TEXT], "epoch": 99}, "$.epoch"),
    "an epoch of 0": ("session/append", {"messages": [TEXT], "epoch": 0}, "$.epoch"),
    "two budgets": ("session/compact", {"keep_recent": 5, "target_tokens": 5}, "$.target_tokens"),
    "two names of one budget and another": (
        "session/compact",
        {"preserve_count": 5, "keep_recent": 5},
        "$.keep_messages",
    ),
    "a budget of 0": ("session/compact", {"keep_recent": 0}, "$.keep_recent"),
    "a negative budget": ("session/compact", {"keep_messages": -3}, "$.keep_messages"),
    "a target of 0": ("session/compact", {"target_tokens": 0}, "$.target_tokens"),
    "an unknown strategy": ("session/compact", {"strategy": "magic"}, "$.strategy"),
    "an empty query": ("session/search", {"query": ""}, "$.query"),
    "a limit of 0": ("session/search", {"query": "x", "limit": 0}, "$.limit"),
    "an entry that is not there": ("session/history", {"from": "e99"}, "$.from"),
    "a window of 0": ("session/start", {"context_window": 0}, "$.context_window"),
    "an empty model": ("session/start", {"model": " "}, "$.model"),
    "a model without its id": ("session/start", {"model": {"provider": "x"}}, "$.model.id"),
    "a tool without a name": ("session/start", {"tools": [{"description": "x"}]}, "$.tools[0].name"),
    "a lookup of nothing": ("models/lookup", {"model": ""}, "$.model"),
    "a count of nothing": ("tokens/count", {}, "$.text"),
    "a count of two things": ("tokens/count", {"text": "x", "messages": []}, "$.text"),
    "a profile that is none": (
        "session/start",
        {"compaction": {"profile": "fastest"}},
        "$.compaction.profile",
    ),
    "a ratio above 1": (
        "session/configure",
        {"compaction": {"threshold_ratio": 1.01}},
        "$.compaction.threshold_ratio",
    ),
    "a ratio of 0": (
        "session/configure",
        {"compaction": {"threshold_ratio": 0}},
        "$.compaction.threshold_ratio",
    ),
    "keep of 0": (
        "session/configure",
        {"compaction": {"keep_recent_tokens": 0}},
        "$.compaction.keep_recent_tokens",
    ),
    "negative keep": (
        "session/configure",
        {"compaction": {"preserve_count": -1}},
        "$.compaction.preserve_count",
    ),
    "a negative reserve": (
        "session/configure",
        {"compaction": {"reserve_tokens": -1}},
        "$.compaction.reserve_tokens",
    ),
    "a window beyond all numbers": (
        "session/configure",
        {"compaction": {"context_window": 10**20}},
        "$.compaction.context_window",
    ),
    "a negative cost": ("session/configure", {"compaction": {"max_cost": -0.5}}, "$.compaction.max_cost"),
    "an estimator that is none": (
        "session/configure",
        {"compaction": {"estimator": "dice"}},
        "$.compaction.estimator",
    ),
    "a word for a switch": ("session/configure", {"compaction": {"enabled": "no"}}, "$.compaction.enabled"),
    "a text for a list of tools": (
        "session/configure",
        {"compaction": {"protected_tools": "skill"}},
        "$.compaction.protected_tools",
    ),
}


@pytest.mark.parametrize("case", BAD_PARAMS)
def test_a_wrong_parameter_is_named_and_nothing_changes(daemon: Daemon, session: str, case: str) -> None:
    method, params, path = BAD_PARAMS[case]
    if method.startswith(("session/", "turn/")) and method != "session/start":
        params = {"session_id": session, **params}
    before = daemon.call("session/history", session_id=session)
    state = daemon.call("agent/state", session_id=session)

    error = polite(daemon, daemon.refusal(method, **params), -32602)

    assert error.data["path"] == path
    assert path in error.message
    assert daemon.call("session/history", session_id=session) == before
    assert daemon.call("agent/state", session_id=session) == state


def test_params_that_are_no_object_are_named_as_such(daemon: Daemon) -> None:
    error = polite(daemon, daemon.refused(daemon.ask_raw("session/start", b"[1, 2]")), -32602)

    assert error.data["path"] == "$"


def test_fields_that_nobody_knows_are_ignored(daemon: Daemon) -> None:
    started = daemon.call("session/start", colour="blue", compaction={"estimator": "chars4", "flavour": 3})

    appended = daemon.call(
        "session/append", session_id=started["session_id"], messages=[{**TEXT, "mood": "good"}], shoe=44
    )

    assert appended["entry_ids"] == ["e1"]
    context = daemon.call("session/context", session_id=started["session_id"])
    assert context["messages"][0]["mood"] == "good", "a message's own fields are the user's data"


@pytest.mark.parametrize("method", ["session/append", "session/context"])
def test_a_format_that_is_not_supported_is_told_with_those_that_are(
    daemon: Daemon, session: str, method: str
) -> None:
    params = {"messages": [TEXT]} if method == "session/append" else {}

    error = polite(daemon, daemon.refusal(method, session_id=session, format="cobol", **params), 1010)

    assert {"neutral", "openai", "anthropic"} <= set(error.data["supported"])
    assert "anthropic" in error.message


# --- messages that are odd, not wrong ---------------------------------------------------------------


def context_of(daemon: Daemon, *messages: Message) -> tuple[dict[str, Any], bytes]:
    """(context, bytes of the history) of a new session with these messages."""
    session = daemon.call("session/start", compaction=CHARS4)["session_id"]
    appended = daemon.call("session/append", session_id=session, messages=messages)
    assert len(appended["entry_ids"]) == len(messages)
    assert problems_of_providers(daemon, session) == {}
    history = daemon.answer(daemon.ask("session/history", session_id=session)).body
    assert originals_in_order(history, messages) == len(messages)
    return daemon.call("session/context", session_id=session), history


def test_a_block_of_a_type_that_nobody_knows_is_kept_byte_for_byte(daemon: Daemon) -> None:
    block = {"type": "hologram", "Data": {"b": 1, "a": [1.0, {"type": "text"}]}, "arguments": None}
    message = {"role": "user", "content": [{"type": "text", "text": "Look"}, block]}

    context, _ = context_of(daemon, message)

    assert context["messages"][0]["content"][1] == block


@pytest.mark.parametrize("content", ["", "  \n\t ", [], [{"type": "text", "text": ""}]])
def test_a_message_without_anything_in_it_is_kept_and_sent_to_no_model(daemon: Daemon, content: Any) -> None:
    context, _ = context_of(
        daemon,
        user(5),
        {"role": "assistant", "content": content},
        user(6, 1),
        {"role": "user", "content": content},
    )

    assert [message["entry_id"] for message in context["messages"]] == ["e1", "e3"]
    assert [(r["kind"], r["entry_id"]) for r in context["repairs"]] == [
        ("empty_message", "e2"),
        ("empty_message", "e4"),
    ]


def test_a_result_of_a_call_that_nobody_made_is_kept_left_out_and_reported(daemon: Daemon) -> None:
    context, _ = context_of(daemon, user(5), result("nobody", 9), assistant(5))

    assert [message["entry_id"] for message in context["messages"]] == ["e1", "e3"]
    assert context["repairs"] == [{"kind": "orphan_result", "entry_id": "e2", "call_id": "nobody"}]
    assert context["tokens"] == 10


def test_an_open_call_gets_an_error_as_its_result_until_the_real_one_comes(daemon: Daemon) -> None:
    session = daemon.call("session/start", compaction=CHARS4)["session_id"]
    first = daemon.call(
        "session/append", session_id=session, messages=[user(5), assistant(9, "t1", "t2"), result("t2", 5)]
    )
    open_context = daemon.call("session/context", session_id=session)
    problems = problems_of_providers(daemon, session)

    second = daemon.call("session/append", session_id=session, messages=[result("t1", 6)])

    assert first["pending_calls"] == ["t1"]
    assert second["pending_calls"] == []
    assert problems == {}
    written = open_context["messages"][2]
    assert "entry_id" not in written
    assert written["content"][0]["call_id"] == "t1"
    assert written["content"][0]["is_error"] is True
    assert open_context["repairs"] == [{"kind": "missing_result", "entry_id": "e2", "call_id": "t1"}]
    closed = daemon.call("session/context", session_id=session)
    assert closed["repairs"] == []
    assert [m["entry_id"] for m in closed["messages"]] == ["e1", "e2", "e3", "e4"]


def test_a_call_id_that_comes_again_is_a_new_call(daemon: Daemon) -> None:
    context, _ = context_of(
        daemon, user(5), call("t", "run", n=1), result("t", 5), call("t", "run", n=2), result("t", 6, 1)
    )

    ids = [
        block["call_id"]
        for message in context["messages"]
        for block in message["content"]
        if isinstance(block, dict) and "call_id" in block
    ]
    assert ids[0] == ids[1]
    assert ids[2] == ids[3]
    assert ids[0] != ids[2]
    assert [repair["kind"] for repair in context["repairs"]] == ["renamed_call"]


# --- ids that are used twice ------------------------------------------------------------------------


def test_a_message_that_comes_again_is_not_added_twice(daemon: Daemon, session: str) -> None:
    again = daemon.call(
        "session/append", session_id=session, messages=[assistant(5, id="m2"), user(6, 1, id="m3")]
    )

    assert again["entry_ids"] == ["e2", "e3"]
    assert again["duplicates"] == ["m2"]
    assert len(daemon.call("session/context", session_id=session)["messages"]) == 3


def test_an_id_that_names_another_message_refuses_the_whole_call(daemon: Daemon, session: str) -> None:
    error = polite(
        daemon,
        daemon.refusal(
            "session/append", session_id=session, messages=[user(7, 1), assistant(6, id="m2", seed=1)]
        ),
        -32602,
    )

    assert error.data["path"] == "$.messages[1].id"
    assert "m2" in error.message
    assert len(daemon.call("session/context", session_id=session)["messages"]) == 2


def test_within_one_call_the_same_holds(daemon: Daemon, session: str) -> None:
    same = daemon.call(
        "session/append", session_id=session, messages=[user(5, id="x"), user(5, id="x"), user(5, 1)]
    )
    error = daemon.refusal("session/append", session_id=session, messages=[user(5, id="y"), user(6, id="y")])

    assert same["entry_ids"] == ["e3", "e3", "e4"]
    assert same["duplicates"] == ["x"]
    assert (error.code, error.data["path"]) == (-32602, "$.messages[1].id")


def test_a_retried_append_is_billed_once(daemon: Daemon, session: str) -> None:
    message = assistant(5, id="m9", usage={"input_tokens": 100, "output_tokens": 5})

    first = daemon.call("session/append", session_id=session, messages=[message])["token_usage"]
    second = daemon.call("session/append", session_id=session, messages=[message])["token_usage"]

    assert first["total_tokens"] == second["total_tokens"] == 105


# --- usage that is odd ------------------------------------------------------------------------------


def test_a_report_of_nothing_at_all_is_no_measurement(daemon: Daemon, session: str) -> None:
    answer = daemon.call(
        "session/append",
        session_id=session,
        messages=[assistant(5)],
        usage={"prompt_tokens": 0, "completion_tokens": 0},
    )

    assert answer["token_usage"]["current_context_tokens"] == 15
    assert answer["token_usage"]["current_context_source"] == "estimated"


def test_an_absurd_report_does_not_stop_the_session(daemon: Daemon, session: str) -> None:
    daemon.call("session/append", session_id=session, messages=turns(6, 100))
    absurd = daemon.call(
        "session/append",
        session_id=session,
        messages=[assistant(5)],
        usage={"input_tokens": 2**52, "output_tokens": 1},
    )

    begun = daemon.call("turn/begin", session_id=session)

    assert absurd["decision"]["kind"] == "over"
    assert begun["token_usage"]["current_context_tokens"] < 2000
    assert daemon.call("turn/begin", session_id=session)["compaction"] is None


# --- the rest of the codes --------------------------------------------------------------------------


def test_what_cannot_fit_says_what_takes_the_room(daemon: Daemon) -> None:
    session = daemon.call(
        "session/start",
        system_prompt="x" * 2000,
        tools=[{"name": "run", "description": "y" * 400, "input_schema": {"type": "object"}}],
        compaction={"context_window": 1000, **CHARS4},
    )["session_id"]
    appended = daemon.call("session/append", session_id=session, messages=[*turns(2, 20), user(400)])

    error = polite(daemon, daemon.refusal("turn/begin", session_id=session), 1008)
    target = polite(daemon, daemon.refusal("session/compact", session_id=session, target_tokens=300), 1008)

    assert appended["decision"]["kind"] == "over"
    for one in (error, target):
        floor = one.data["floor"]
        assert floor["system"] == 500
        assert 100 < floor["tools"] < 130
        assert floor["last_request"] == 400
        assert floor["summary"] > 0
        assert "500" in one.message
    assert len(daemon.call("session/context", session_id=session)["messages"]) == 5


def test_the_newest_request_alone_may_be_too_large(daemon: Daemon) -> None:
    session = daemon.call("session/start", compaction={"context_window": 1000, **CHARS4})["session_id"]
    daemon.call("session/append", session_id=session, messages=[*turns(2, 20), user(1200)])

    error = polite(daemon, daemon.refusal("turn/begin", session_id=session), 1008)

    assert error.data["floor"]["last_request"] == 1200


def test_asking_for_a_model_where_there_is_none_falls_back_or_says_so(daemon: Daemon) -> None:
    session = daemon.call("session/start", compaction={"context_window": 100_000, **CHARS4})["session_id"]
    daemon.call("session/append", session_id=session, messages=turns(6, 300))

    done = daemon.call("session/compact", session_id=session, keep_recent=700, strategy="summarize")

    assert done["compacted"] is True
    assert done["strategy"] == "extract", "a strategy that fails gives way to the next"


RAW: dict[str, tuple[bytes, object, int]] = {
    "no JSON": (b'{"jsonrpc": "2.0", "id": 5, ', None, -32700),
    "a text": (b'"hello"', None, -32600),
    "a batch": (b'[{"jsonrpc":"2.0","id":71,"method":"daemon/ping"}]', None, -32600),
    "no method": (b'{"jsonrpc":"2.0","id":72}', 72, -32600),
    "another version": (b'{"jsonrpc":"1.0","id":73,"method":"daemon/ping"}', 73, -32600),
    "an unknown method": (b'{"jsonrpc":"2.0","id":74,"method":"session/fly"}', 74, -32601),
    "a text document": (b'{"jsonrpc":"2.0","id":"75","method":"textDocument/hover"}', "75", -32601),
}


@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_what_is_no_request_of_ours_is_answered_once_and_the_next_one_too(spawn: Spawn, framing: str) -> None:
    daemon = spawn(framing=framing)
    daemon.call("daemon/ping")
    for body, id, code in RAW.values():
        before = daemon.now
        daemon.send(body)
        assert daemon.call("daemon/ping") == {}
        answers = [got.value for got in daemon.received[before + 1 : -1]]
        assert [(one["id"], one["error"]["code"]) for one in answers] == [(id, code)], body


@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_a_frame_above_the_limit_is_answered_and_skipped(spawn: Spawn, framing: str) -> None:
    from e2e.client import SERVE

    daemon = spawn(framing=framing, command=(*SERVE, "--frame-limit", "4096"))
    session = daemon.call("session/start")["session_id"]

    error = polite(
        daemon,
        daemon.refusal("session/append", session_id=session, messages=[user(0, content="x" * 8192)]),
        1009,
    )

    assert error.data["limit_bytes"] == 4096
    assert daemon.call("session/append", session_id=session, messages=[TEXT])["entry_ids"] == ["e1"]


def test_nesting_beyond_all_measure_is_refused_with_its_id(daemon: Daemon, session: str) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    params = b'{"session_id":%s,"messages":[{"role":"user","content":"x","meta":{"deep":%s}}]}' % (
        encoded(session),  # type: ignore[arg-type]
        deep,
    )

    error = daemon.refused(daemon.ask_raw("session/append", params))

    polite(daemon, error, error.code)
    assert error.code in (1009, -32700, -32602)
    assert len(daemon.call("session/context", session_id=session)["messages"]) == 2


def test_a_lone_surrogate_becomes_a_sign_of_replacement(daemon: Daemon, session: str) -> None:
    params = b'{"session_id":%s,"messages":[{"role":"user","content":"a\\ud83db"}]}' % encoded(session)  # type: ignore[arg-type]

    answer = daemon.call_raw("session/append", params)

    assert answer["entry_ids"] == ["e3"]
    content = daemon.call("session/context", session_id=session)["messages"][-1]["content"]
    assert content == "a�b"
