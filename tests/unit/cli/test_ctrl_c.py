"""`compactd serve` and `compactd mcp` in a terminal: they say what they wait for, and Ctrl-C ends them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.client import Daemon
from tests.support.terminals import in_terminal

CTRL_C = "\x03"


def test_ctrl_c_ends_the_daemon_quietly_after_it_closed_its_sessions(tmp_path: Path) -> None:
    params = {"session_id": "s", "working_dir": str(tmp_path)}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/start", "params": params})

    screen = in_terminal(
        tmp_path, "serve", typed=(("End it with", request + "\n"), ('"result":', CTRL_C)), columns=400
    )

    assert screen.code == 130, screen.text
    assert "waiting for JSON-RPC messages on standard input" in screen.text
    assert "Traceback" not in screen.text
    with Daemon(tmp_path / "data") as daemon:
        assert daemon.call("session/start", session_id="s")["resumed"] is True


def test_ctrl_c_ends_the_mcp_server_quietly(tmp_path: Path) -> None:
    screen = in_terminal(tmp_path, "mcp", typed=(("Ctrl-C ends it", CTRL_C),), columns=400)

    assert screen.code == 130, screen.text
    assert "waiting for an MCP client's messages on standard input" in screen.text
    assert "Traceback" not in screen.text


def test_nothing_is_said_about_waiting_to_a_program(tmp_path: Path) -> None:
    with Daemon(tmp_path / "home") as daemon:
        daemon.call("daemon/ping")
        assert daemon.stop() == 0
        assert "waiting for" not in daemon.log()
