"""DeepSeek and Moonshot want the model's reasoning before a tool call sent back; OpenAI and others do not.

Sources: `core/models/lookup.py`, `WANT_REASONING`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.loopback import Answer, Call, Loopback
from tests.support.own_loop import QUICK, TOOLS, Talk
from tests.support.talk import CHARS4

LOOKS = Answer(
    text="Let me look.", thinking="It is in a.py.", calls=(Call("read", '{"path": "a.py"}', "c1"),)
)
AGAIN = Answer(calls=(Call("read", '{"path": "b.py"}', "c2"),))


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def environment(server: Loopback) -> dict[str, str]:
    """Keys and addresses of all three."""
    names = ("DEEPSEEK", "MOONSHOT", "OPENAI")
    urls = {f"{name}_BASE_URL": f"{server.base_url}/v1" for name in names}
    return {**QUICK, **urls, **{f"{name}_API_KEY": "key-of-the-test" for name in names}}


def asked_with_tools(daemon: Daemon, model: str) -> str:
    started = daemon.call("session/start", model=model, tools=TOOLS, compaction=CHARS4)
    talk = Talk(daemon, started["session_id"])
    assert talk.ask("Look")["stop_reason"] == "stop"
    talk.stop()
    return talk.id


def reasoning(messages: list[dict[str, Any]]) -> list[Any]:
    """Return `reasoning_content` of each assistant message; `...` if a message has no such field."""
    return [m.get("reasoning_content", ...) for m in messages if m["role"] == "assistant"]


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("deepseek/deepseek-v4-pro", ["It is in a.py.", ""]),
        ("moonshotai/kimi-k2.6", ["It is in a.py.", ""]),
        ("openai-chat/gpt-4o", [..., ...]),
    ],
)
def test_thinking_before_a_call_goes_back_to_those_who_want_it(
    spawn: Spawn, server: Loopback, model: str, shown: list[Any]
) -> None:
    server.play(LOOKS, AGAIN, Answer(text="Done."))
    daemon = spawn(env=environment(server))

    session = asked_with_tools(daemon, model)

    assert reasoning(server.requests[2].body["messages"]) == shown
    context = daemon.call("session/context", session_id=session, format="openai")["messages"]
    assert reasoning(context) == [*shown, ...]
