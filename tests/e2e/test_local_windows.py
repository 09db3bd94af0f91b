"""A model server on this machine is asked for its context window, if the user agreed to that."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Daemon

Spawn = Callable[..., Daemon]


class _LlamaCpp(http.server.BaseHTTPRequestHandler):
    """A server with the answers of llama.cpp (tools/server/README.md, seen 2026-11)."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        known = {"/props": {"default_generation_settings": {"n_ctx": 8192}, "total_slots": 1}}
        body = json.dumps(known.get(self.path, {"error": "not found"})).encode()
        self.send_response(200 if self.path in known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def asked() -> list[str]:
    """The paths that the server was asked for."""
    return []


@pytest.fixture
def base_url(asked: list[str]) -> Iterator[str]:
    handler = type("Handler", (_LlamaCpp,), {"asked": asked})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def start(daemon: Daemon, base_url: str) -> dict[str, Any]:
    model = {"id": "qwen2.5-coder-7b-instruct", "provider": "llama-cpp", "base_url": base_url}
    name = daemon.call("session/start", model=model)["session_id"]
    return dict(daemon.call("agent/state", session_id=name))


def test_with_the_users_consent_the_servers_word_is_the_window(
    spawn: Spawn, home: Path, base_url: str
) -> None:
    config = home.parent / "config" / "compactd"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("[providers]\nask_local = true\nask_s = 30\n")
    daemon = spawn()

    state = start(daemon, base_url)

    assert state["token_usage"]["context_window"] == 8192
    assert state["token_usage"]["context_window_confidence"] == "observed"
    assert "reported by the server" in state["budget"]["window"]["source"]
    found = daemon.call(
        "models/lookup", model="qwen2.5-coder-7b-instruct", provider="llama-cpp", base_url=base_url
    )
    assert (found["context_window"], found["upper_bound"]) == (8192, False)


def test_without_consent_nobody_is_asked(spawn: Spawn, base_url: str, asked: list[str]) -> None:
    state = start(spawn(), base_url)

    assert asked == []
    assert state["token_usage"]["context_window_confidence"] != "observed"


def test_a_server_that_does_not_answer_holds_nothing_up(spawn: Spawn) -> None:
    daemon = spawn(env={"COMPACTD_PROVIDERS_ASK_LOCAL": "1"})

    assert start(daemon, "http://127.0.0.1:9/v1")["status"] == "idle"
