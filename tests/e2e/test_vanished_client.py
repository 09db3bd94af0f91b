"""The client disappears while a model answers a prompt: the stream ends, and the session stays valid."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import PATIENCE_S, SERVE, Daemon, environment
from tests.support.loopback import Answer, Loopback, Seen, Stall, Step
from tests.support.own_loop import MODELS
from tests.support.own_loop import environment as wired

GONE_S = 50.0
"""Less than the 60 s that running work has after a mere end of the input."""


class Client:
    """A client of pipes, whose ends can be closed one by one."""

    def __init__(self, home: Path, server: Loopback) -> None:
        env = environment(home, wired("anthropic", server.base_url))
        self.process = subprocess.Popen(
            SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def send(self, method: str, **params: Any) -> None:
        """A request."""
        body = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        self.stdin.write(json.dumps(body).encode() + b"\n")
        self.stdin.flush()

    def until(self, kind: str) -> dict[str, Any]:
        """Reads up to an event of this type."""
        for line in self.stdout:
            params = json.loads(line).get("params", {})
            if params.get("type") == kind:
                return dict(params)
        raise AssertionError(f"no {kind}")

    def prompt(self, text: str) -> None:
        """Opens the session, and asks the model."""
        self.send("session/start", session_id="s", model=MODELS["anthropic"])
        self.send("agent/prompt", session_id="s", text=text)


@pytest.fixture
def clients() -> Iterator[list[Client]]:
    """Yield a list for the clients of a test. They are ended with it."""
    made: list[Client] = []
    yield made
    for client in made:
        client.process.kill()
        client.process.wait()
        for stream in (client.stdin, client.stdout):
            if not stream.closed:
                stream.close()


@pytest.mark.parametrize("says", ["", "The answer is"], ids=["silent", "begun"])
def test_a_client_that_closed_its_output_ends_the_models_stream(
    home: Path, spawn: Spawn, clients: list[Client], says: str
) -> None:
    with Loopback() as server:
        server.play(Stall(says))
        client = Client(home, server)
        clients.append(client)
        client.prompt("Hello")
        client.until("message_delta" if says else "message_start")
        Daemon.asked(spawn(home.parent / "other"), server.requests)

        # Its input stays open: nothing else tells the daemon.
        client.stdout.close()

        assert client.process.wait(GONE_S) == 0, "what runs has 60 s after the end of the input alone"
        assert server.requests[0].was_left()
    after = spawn()
    after.call("session/start", session_id="s")
    entries = after.call("session/history", session_id="s")["entries"]
    assert [entry["message"]["content"] for entry in entries] == (["Hello", says] if says else ["Hello"])


def test_a_client_whose_process_died_ends_the_models_stream(home: Path, clients: list[Client]) -> None:
    with (
        Loopback() as server,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as parent,
    ):
        server.play(Stall("The answer is"))
        client = Client(home, server)
        clients.append(client)
        client.send("initialize", processId=parent.pid, rootUri=None, capabilities={})
        client.prompt("Hello")
        client.until("message_delta")

        parent.kill()

        assert client.process.wait(GONE_S) == 0
        assert server.requests[0].was_left()


def test_a_mere_end_of_the_input_lets_the_model_answer(home: Path, clients: list[Client]) -> None:
    may_answer = threading.Event()

    def reply(seen: Seen) -> Step:
        may_answer.wait(PATIENCE_S)
        return Answer(text="Good morning.")

    with Loopback(reply=reply) as server:
        client = Client(home, server)
        clients.append(client)
        client.prompt("Hello")
        client.until("message_start")
        client.stdin.close()
        may_answer.set()

        assert client.until("agent_end")["stop_reason"] == "stop"
        assert client.process.wait(GONE_S) == 0
