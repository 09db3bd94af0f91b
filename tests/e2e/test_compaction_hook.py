"""`session/compacting`: the client is asked before a compaction; its four answers and the deadline."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.test_summaries_by_a_model import SUMMARY
from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback
from tests.support.own_loop import MODELS, environment
from tests.support.talk import CHARS4, turns, user

Spawn = Callable[..., Daemon]


def filled(daemon: Daemon, *, hook: bool = True, **settings: Any) -> str:
    started = daemon.call(
        "session/start",
        compaction={**CHARS4, **settings},
        context_window=100_000,
        client={"name": "a test", "compaction_hook": hook},
    )
    name = str(started["session_id"])
    daemon.call("session/append", session_id=name, messages=[*turns(20, 500), user(20)])
    return name


def answering(daemon: Daemon, **body: Any) -> list[dict[str, Any]]:
    """Answers the next `session/compacting`; its params are in the list then."""
    asked: list[dict[str, Any]] = []

    def answer() -> None:
        got = daemon.wait(lambda one: one.value.get("method") == "session/compacting", "session/compacting")
        asked.append(got.value["params"])
        daemon.send(json.dumps({"jsonrpc": "2.0", "id": got.value["id"], **body}).encode())

    threading.Thread(target=answer, daemon=True).start()
    return asked


def compact(daemon: Daemon, name: str) -> dict[str, Any]:
    return dict(daemon.call("session/compact", session_id=name, keep_recent=2000))


def test_the_client_is_shown_the_plan_and_may_say_nothing(spawn: Spawn) -> None:
    daemon = spawn()
    name = filled(daemon)
    asked = answering(daemon, result=None)

    done = compact(daemon, name)

    assert done["compacted"] is True
    plan = asked[0]["plan"]
    assert asked[0]["session_id"] == name
    assert len(plan["removed_entry_ids"]) == done["messages_removed"]
    assert plan["tokens_before"] == done["tokens_before"]
    assert plan["pinned_entry_ids"] == done["pinned_entry_ids"]


def test_the_client_may_cancel_it(spawn: Spawn) -> None:
    daemon = spawn()
    name = filled(daemon)
    before = daemon.call("session/context", session_id=name)
    answering(daemon, result={"cancel": True})

    done = compact(daemon, name)

    assert (done["compacted"], done["compaction_id"]) == (False, None)
    assert "the client cancelled it" in done["reason"]
    assert daemon.call("session/context", session_id=name) == before
    assert "compaction_start" not in [event["type"] for event in daemon.events(name)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"context": ["The build runs on ARM."]}, "The build runs on ARM."),
        ({"instructions": "Look at the error codes."}, "Look at the error codes."),
        ({"prompt": "Sum this up in one line: {messages}"}, "Sum this up in one line:"),
    ],
)
def test_what_the_client_adds_reaches_the_summariser(
    spawn: Spawn, answer: dict[str, Any], words: str
) -> None:
    with Loopback((Answer(text=SUMMARY),)) as server:
        daemon = spawn(env=environment("anthropic", server.base_url))
        name = filled(daemon, model=MODELS["anthropic"])
        answering(daemon, result=answer)

        assert compact(daemon, name)["strategy"] == "summarize"
        assert words in server.requests[0].raw.decode()


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": -32601, "message": "no such method"}},
        {"result": {"cancel": "perhaps"}},
        {"result": 7},
    ],
)
def test_an_answer_that_is_none_lets_it_go_on(spawn: Spawn, body: dict[str, Any]) -> None:
    daemon = spawn()
    name = filled(daemon)
    answering(daemon, **body)

    assert compact(daemon, name)["compacted"] is True


def test_a_client_that_never_answers_is_waited_for_no_longer_than_the_deadline(spawn: Spawn) -> None:
    daemon = spawn()
    name = filled(daemon)
    asked = daemon.ask("session/compact", session_id=name, keep_recent=2000)
    daemon.wait(lambda one: one.value.get("method") == "session/compacting", "session/compacting")

    assert daemon.call("session/append", session_id=name, messages=[user(5)])["entry_ids"]
    assert daemon.result(asked)["compacted"] is True


def test_a_client_that_announced_no_hook_is_not_asked(spawn: Spawn) -> None:
    daemon = spawn()
    name = filled(daemon, hook=False)

    assert compact(daemon, name)["compacted"] is True
    assert not [one for one in daemon.received if one.value.get("method") == "session/compacting"]
