"""Each other error of the contract, over the wire: its text, and that the daemon continues."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.refusals import polite
from tests.support.client import SERVE, Daemon
from tests.support.talk import CHARS4, encoded, turns, user
from tests.support.views import seen

TEXT = {"role": "user", "content": "x"}


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
        assert floor["summary"] > 0
        assert "500" in one.message
    assert error.data["floor"]["last_request"] == 400
    assert target.data["floor"]["last_request"] <= 300 // 3 + 100, "a chosen target condenses the request"
    assert len(daemon.call("session/context", session_id=session)["messages"]) == 5


def test_the_newest_request_alone_may_be_too_large(daemon: Daemon) -> None:
    session = daemon.call("session/start", compaction={"context_window": 1000, **CHARS4})["session_id"]
    daemon.call("session/append", session_id=session, messages=[*turns(2, 20), user(1200)])

    error = polite(daemon, daemon.refusal("turn/begin", session_id=session), 1008)

    assert error.data["floor"]["last_request"] == 1200


@pytest.mark.parametrize("more", [{}, {"dry_run": True}, {"plan_only": True}])
@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"strategy": "summarize"}, "compaction.model"),
        ({"model": "anthropic/claude-sonnet-4-5"}, "ANTHROPIC_API_KEY"),
        ({"strategy": "auto", "model": "anthropic/claude-sonnet-4-5"}, "ANTHROPIC_API_KEY"),
        ({"strategy": "summarize", "model": "nobody-s-model"}, "provider/id"),
    ],
)
def test_asking_for_a_models_summary_without_a_model_that_can_be_asked_says_what_is_missing(
    spawn: Spawn, given: dict[str, str], missing: str, more: dict[str, bool]
) -> None:
    daemon = spawn(env={"ANTHROPIC_API_KEY": ""})
    session = daemon.call("session/start", compaction={"context_window": 100_000, **CHARS4})["session_id"]
    daemon.call("session/append", session_id=session, messages=turns(6, 300))
    before = seen(daemon, session)

    asked = daemon.ask("session/compact", session_id=session, keep_recent=700, **given, **more)

    error = polite(daemon, daemon.refused(asked), 1007)
    assert missing in error.message
    assert seen(daemon, session) == before
    assert daemon.call("session/compact", session_id=session, keep_recent=700)["compacted"] is True


def test_auto_without_a_model_gives_way_and_says_so(daemon: Daemon) -> None:
    session = daemon.call("session/start", compaction={"context_window": 100_000, **CHARS4})["session_id"]
    daemon.call("session/append", session_id=session, messages=turns(6, 300))

    done = daemon.call("session/compact", session_id=session, keep_recent=700, strategy="auto")

    assert (done["compacted"], done["strategy"]) == (True, "extract")
    assert done["reason"] == (
        "no model was asked for a summary: name the model to ask in "
        "`model`, or in the setting `compaction.model`"
    )


def test_settings_that_ask_for_a_model_stop_no_compaction(daemon: Daemon) -> None:
    settings = {"context_window": 4000, "strategy": "summarize", **CHARS4}
    session = daemon.call("session/start", compaction=settings)["session_id"]
    daemon.call("session/append", session_id=session, messages=[*turns(8, 240), user(10)])

    done = daemon.call("turn/begin", session_id=session)["compaction"]

    assert (done["compacted"], done["strategy"]) == (True, "extract")
    assert done["reason"] == "summarize: there is no model to ask"


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
