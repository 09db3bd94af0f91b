"""A client of the daemon's own agent loop: it sends prompts, runs tools, and waits for the end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.support.client import Daemon, Got

WIRES = ("openai", "openai_responses", "anthropic", "gemini", "ollama")

MODELS = {
    "openai": "openai/gpt-4o",
    "openai_responses": "openai-responses/gpt-4o",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "google/gemini-2.5-flash",
    "ollama": "ollama/llama3.1",
}


class Ended(dict[str, Any]):
    """How a turn ended. A missing key raises an error that shows all of it."""

    def __missing__(self, name: str) -> Any:
        raise AssertionError(f"no {name!r} in what ended the turn: {dict(self)}")


Tool = Callable[[str, Any], Any]
"""(name, arguments) -> the result of `tool/execute`."""

TOOLS = [
    {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {}}},
    {"name": "run", "description": "Runs a command.", "input_schema": {"type": "object", "properties": {}}},
]

QUICK = {"COMPACTD_PROVIDERS_RETRY_S": "0.01"}
"""Makes the daemon retry after 10 ms."""


def environment(wire: str, base_url: str) -> dict[str, str]:
    """Return the environment that points the daemon's provider of `wire` to `base_url`."""
    urls = {
        "openai": {"OPENAI_BASE_URL": f"{base_url}/v1", "OPENAI_API_KEY": "key-of-the-test"},
        "openai_responses": {"OPENAI_BASE_URL": f"{base_url}/v1", "OPENAI_API_KEY": "key-of-the-test"},
        "anthropic": {"ANTHROPIC_BASE_URL": base_url, "ANTHROPIC_API_KEY": "key-of-the-test"},
        "gemini": {"GEMINI_BASE_URL": base_url, "GEMINI_API_KEY": "key-of-the-test"},
        "ollama": {"OLLAMA_HOST": base_url},
    }
    return {**QUICK, **urls[wire]}


class Talk:
    """One session of a daemon whose tools this runs."""

    def __init__(self, daemon: Daemon, session_id: str, tool: Tool | None = None) -> None:
        self.daemon = daemon
        self.id = session_id
        self._tool = tool or (lambda name, arguments: {"content": f"{name} is done"})
        self._stopped = threading.Event()
        self.executed: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def prompt(self, text: str) -> str:
        """Gives a prompt; its turn's id."""
        return str(self.daemon.call("agent/prompt", session_id=self.id, text=text)["turn_id"])

    def ask(self, text: str) -> dict[str, Any]:
        """Gives a prompt and waits for how it ends: the `agent_end` or `error` event."""
        return self.end(self.prompt(text))

    def end(self, turn_id: str) -> dict[str, Any]:
        """Wait for the end of a turn. Return how it ended."""
        with_end = self.daemon.wait(
            lambda got: (
                got.value.get("method") == "agent/event"
                and got.value["params"]["session_id"] == self.id
                and got.value["params"]["type"] in ("agent_end", "error")
                and got.value["params"]["turn_id"] == turn_id
            ),
            f"end of {turn_id}",
        )
        return Ended(with_end.value["params"])

    def types(self, after: int = -1) -> list[str]:
        """The events so far, by type, without deltas."""
        told = self.daemon.events(self.id, after=after)
        return [e["type"] for e in told if e["type"] not in ("message_delta", "thinking_delta")]

    def stop(self) -> None:
        """No tool is run any more, from the daemon's next message on."""
        self._stopped.set()

    def _serve(self) -> None:
        at = -1
        while not self._stopped.is_set():
            try:
                got = self.daemon.wait(
                    lambda got, at=at: (  # type: ignore[misc]
                        self._stopped.is_set() or (got.at > at and got.value.get("method") == "tool/execute")
                    ),
                    "tool/execute",
                )
            except (TimeoutError, ValueError):
                return
            at = got.at
            params = got.value.get("params", {})
            if not self._stopped.is_set() and params["session_id"] == self.id:
                threading.Thread(target=self._answer, args=(got,), daemon=True).start()

    def _answer(self, got: Got) -> None:
        params = got.value["params"]
        self.executed.append(params)
        try:
            result = self._tool(params["name"], params["arguments"])
        except LookupError as error:
            body = {"jsonrpc": "2.0", "id": got.value["id"], "error": {"code": 1, "message": str(error)}}
        else:
            if result is None:
                return
            body = {"jsonrpc": "2.0", "id": got.value["id"], "result": result}
        # It may have been killed meanwhile.
        with suppress(OSError, ValueError):
            self.daemon.send(json.dumps(body).encode())
