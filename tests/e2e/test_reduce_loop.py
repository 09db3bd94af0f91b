"""Tool results in the daemon's own loop, with the setting `reduce_loop`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.loopback import Answer, Call, Loopback
from tests.support.outputs import hits, log, original
from tests.support.own_loop import MODELS, TOOLS, Talk, environment


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def talked(spawn: Spawn, server: Loopback, **settings: Any) -> Talk:
    daemon = spawn(env=environment("anthropic", server.base_url))
    started = daemon.call("session/start", model=MODELS["anthropic"], tools=TOOLS, **settings)
    talk = Talk(daemon, started["session_id"], lambda name, arguments: {"content": log()})
    server.play(Answer(calls=(Call("run", "{}"), Call("run", id="call_2"))), Answer(text="Done."))
    assert talk.ask("Start the workers.")["type"] == "agent_end"
    talk.stop()
    return talk


def test_the_model_gets_reduced_results_and_the_originals_are_kept(spawn: Spawn, server: Loopback) -> None:
    talk = talked(spawn, server, reduce={"loop": True, "level": "strong"})

    sent = str(server.requests[-1].body)
    assert "worker 100 " not in sent
    counts = talk.daemon.call("agent/state", session_id=talk.id)["reductions"]
    assert counts["count"] == 2
    found = hits(talk.daemon, talk.id, "worker 100 is")
    assert [original(talk.daemon, talk.id, entry) for entry in found] == [log(), log()]
    assert all(f"expand {entry}]" in sent for entry in found)


def test_results_are_sent_whole_unless_the_setting_says_otherwise(spawn: Spawn, server: Loopback) -> None:
    talk = talked(spawn, server)

    assert "worker 100 " in str(server.requests[-1].body)
    assert "reductions" not in talk.daemon.call("agent/state", session_id=talk.id)
