"""Whatever the server, tools and clients do: each prompt ends, exactly once.

(docs/dev/behaviour.md, laws 1, 3, 4; the contract's events.)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.properties.loop_answers import AGAIN, ANY, MOST_REQUESTS, PATIENCE
from tests.properties.loop_events import problems_of_events, tools_asked
from tests.properties.loop_requests import problems_of
from tests.support.client import Daemon
from tests.support.examples import examples
from tests.support.loopback import Loopback, Seen, Step
from tests.support.own_loop import MODELS, TOOLS, WIRES, Talk, environment
from tests.support.talk import CHARS4, turns, user

WINDOW = 4_000

TOOL_RESULTS: tuple[Any, ...] = (
    {"content": "done"},
    {"content": "done"},
    {"content": ""},
    {"content": [{"type": "text", "text": "done"}]},
    {"content": "it failed", "is_error": True},
    {"content": "x" * 40_000},
    {"content": 5},
    {"content": None},
    {"content": [{"type": "image"}]},
    {"content": [{"type": "text"}]},
    {"is_error": "yes"},
    [],
    "text",
    "refused",
    "never",
)

ACTIONS = st.sampled_from(("prompt", "prompt", "wait", "abort", "abort", "append", "compact", "state"))


class Loop:
    """One daemon and one server that all examples share, each with a session and a model of its own."""

    def __init__(self, daemon: Daemon, server: Loopback) -> None:
        self.daemon = daemon
        self.server = server
        self.script: list[Step] = []
        self.then: Step | None = None
        self.numbers = count()

    def reply(self, seen: Seen) -> Step:
        """The script's next step; after the last one `then`."""
        assert self.then is not None
        return self.script.pop(0) if self.script else self.then


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    home = tmp_path_factory.mktemp("answers") / "home"
    holder: list[Loop] = []
    with Loopback(window=WINDOW, reply=lambda seen: holder[0].reply(seen)) as server:
        env = {name: value for wire in WIRES for name, value in environment(wire, server.base_url).items()}
        with Daemon(home, env={**env, **PATIENCE}) as daemon:
            holder.append(Loop(daemon, server))
            yield holder[0]


@settings(
    max_examples=examples(60),
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(
    wire=st.sampled_from(WIRES),
    script=st.lists(ANY, max_size=7),
    then=AGAIN,
    filled=st.sampled_from((0, 0, 4, 14)),
    tools=st.lists(st.sampled_from(TOOL_RESULTS), min_size=1, max_size=4),
    actions=st.lists(ACTIONS, max_size=5),
)
def test_every_prompt_ends_once_after_a_bounded_number_of_valid_requests(
    loop: Loop,
    wire: str,
    script: list[Step],
    then: Step,
    filled: int,
    tools: list[Any],
    actions: list[str],
) -> None:
    loop.script, loop.then = list(script), then
    loop.server.requests.clear()
    # Waiting for an event scans all received messages. The daemon is idle now, so they can be dropped.
    loop.daemon.received.clear()
    daemon, number = loop.daemon, next(loop.numbers)
    name = f"s{number}"
    given_results = count()

    def tool(called: str, arguments: Any) -> Any:
        result = tools[next(given_results) % len(tools)]
        if result == "refused":
            raise LookupError("there is no such tool")
        return None if result == "never" else result

    daemon.call(
        "session/start",
        session_id=name,
        model=f"{MODELS[wire]}-{number}",
        tools=TOOLS,
        durability="os",
        compaction={**CHARS4, "context_window": WINDOW},
    )
    talk = Talk(daemon, name, tool)
    if filled:
        daemon.call("session/append", session_id=name, messages=turns(filled, 100))

    words: list[str] = []
    for action in (*actions, "prompt"):
        match action:
            case "prompt":
                words.append(f"words {len(words)}")
                turn = talk.prompt(words[-1])
            case "wait" if words:
                # What waits behind an abort waits for the next prompt.
                words.append(f"words {len(words)}")
                talk.ask(words[-1])
            case "abort":
                daemon.call("agent/abort", session_id=name)
            case "append":
                daemon.call("session/append", session_id=name, messages=[user(20)])
            case "compact":
                answer = daemon.answer(daemon.ask("session/compact", session_id=name, strategy="extract"))
                assert answer.value.get("error", {"code": 1002})["code"] in (1002, 1008), answer
            case "state":
                daemon.call("agent/state", session_id=name)
    talk.end(turn)
    state = daemon.call("agent/state", session_id=name)
    talk.stop()

    events = daemon.events(name)
    asked = [got.value["params"] for got in daemon.received if got.value.get("method") == "tool/execute"]
    assert problems_of_events(events) == []
    assert tools_asked(events, asked) == []
    assert (state["status"], state["queued"]) == ("idle", 0)
    kinds = [event["type"] for event in events]
    assert kinds.count("agent_start") == len(words) == kinds.count("agent_end") + kinds.count("error")
    assert [event for event in events if event["type"] == "error" and event["code"] == -32603] == []
    assert len(loop.server.requests) <= len(words) * MOST_REQUESTS
    assert [found for seen in loop.server.requests if (found := problems_of(seen))] == []
    history = daemon.call("session/history", session_id=name)["entries"]
    texts = [entry["message"]["content"] for entry in history if entry["kind"] == "message"]
    assert [text for text in texts if text in words] == words
    daemon.call("session/close", session_id=name)
