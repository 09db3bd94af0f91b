"""Unusual but valid messages: they are stored unchanged, and repaired only in what the model gets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.refusals import polite
from tests.support.client import Daemon
from tests.support.talk import CHARS4, Message, assistant, call, result, turns, user
from tests.support.views import originals_in_order, problems_of_providers


def context_of(daemon: Daemon, *messages: Message) -> tuple[dict[str, Any], bytes]:
    """Return (context, bytes of the history) of a new session with these messages."""
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
