"""A compaction is prepared while the daemon is idle: a model is asked before the compaction is due, and the
turn that needs the compaction uses the answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.test_summaries_by_a_model import SUMMARY
from tests.support.client import PATIENCE_S, Daemon
from tests.support.loopback import Answer, Loopback
from tests.support.loopback.script import Step
from tests.support.loopback.seen import Seen
from tests.support.own_loop import MODELS, environment
from tests.support.talk import CHARS4, assistant, turns, user

Spawn = Callable[..., Daemon]

WINDOW = 50_000
"""The threshold is 40,000 tokens, the mark 36,000."""

ANSWER = Answer(text=SUMMARY, input_tokens=9_000, output_tokens=200)


class Asked:
    """A provider, and whether it has been asked."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.server = Loopback(reply=self._reply)

    def _reply(self, seen: Seen) -> Step:
        self.event.set()
        return ANSWER


def filled(daemon: Daemon, **settings: Any) -> str:
    """Start a session, begin a turn, and append 37,000 tokens."""
    compaction = {**CHARS4, "model": MODELS["anthropic"], **settings}
    name = str(daemon.call("session/start", compaction=compaction, context_window=WINDOW)["session_id"])
    daemon.call("turn/begin", session_id=name)
    daemon.call("session/append", session_id=name, messages=turns(37, 500))
    return name


@pytest.mark.parametrize("is_pinned", [False, True])
def test_the_turn_uses_the_answer_that_came_before_it(spawn: Spawn, is_pinned: bool) -> None:
    asked = Asked()
    with asked.server as server:
        daemon = spawn(env=environment("anthropic", server.base_url))
        name = filled(daemon)
        assert asked.event.wait(PATIENCE_S)
        if is_pinned:
            entry_id = daemon.call("session/history", session_id=name)["entries"][0]["entry_id"]
            daemon.call("session/pin", session_id=name, entry_ids=[entry_id])
        daemon.call("session/append", session_id=name, messages=[user(2_000), assistant(1_500)])

        begun = daemon.call("turn/begin", session_id=name)

    done = begun["compaction"]
    assert (done["compacted"], done["strategy"]) == (True, "summarize")
    assert done.get("prepared", False) is not is_pinned
    assert len(server.requests) == (2 if is_pinned else 1)
    assert done["kept_messages"] >= 2
    assert done["tokens_after"] < 36_000
    assert done["usage"]["input_tokens"] == 9_000
    ends = [e for e in daemon.events(name) if e["type"] in ("compaction_start", "compaction_end")]
    assert [e["type"] for e in ends] == ["compaction_start", "compaction_end"]
    assert ends[1]["result"]["compaction_id"] == ends[0]["compaction_id"]


def test_without_it_the_model_is_asked_when_the_compaction_is_due(spawn: Spawn) -> None:
    asked = Asked()
    with asked.server as server:
        daemon = spawn(env=environment("anthropic", server.base_url))
        name = filled(daemon, prepare="off")
        daemon.call("session/append", session_id=name, messages=[user(2_000), assistant(1_500)])

        begun = daemon.call("turn/begin", session_id=name)

    assert begun["compaction"]["strategy"] == "summarize"
    assert "prepared" not in begun["compaction"]
    assert len(server.requests) == 1
