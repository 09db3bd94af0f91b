"""Creates stored sessions before a test, with a real daemon."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from tests.editors.terminal import PATIENCE_S
from tests.editors.world import HOSTILE_TITLE, RIGHT_TO_LEFT, World, daemon_command


def said_to_a_daemon(world: World, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The results of `calls` of a daemon that is then ended."""
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(calls)
    ]
    done = subprocess.run(
        [daemon_command(), "serve"], input="\n".join(lines) + "\n", capture_output=True, text=True,
        env={**os.environ, **world.env}, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    answers = {got["id"]: got for got in map(json.loads, done.stdout.splitlines()) if "id" in got}
    for number in range(len(calls)):
        assert "result" in answers[number], answers[number]
    return [answers[number]["result"] for number in range(len(calls))]


def store_hostile(world: World) -> None:
    """A session `evil` whose title and words would like to do something to a screen."""
    said_to_a_daemon(
        world,
        ("session/start", {"session_id": "evil", "title": HOSTILE_TITLE, "model": "openai/gpt-4o"}),
        (
            "session/append",
            {
                "session_id": "evil",
                "messages": [
                    {"role": "user", "content": f"{HOSTILE_TITLE}\n\x1b[2J\x1b[H{RIGHT_TO_LEFT}gone %s %d"},
                    {"role": "assistant", "content": "\x9b31m\r\nbell \x07 and back\x08\x08\u2066"},
                ],
            },
        ),
    )


def store_long(world: World, count: int) -> None:
    """A session `long` of `count` messages."""
    messages = [
        {"role": "user" if number % 2 == 0 else "assistant", "content": f"word {number} " * 30}
        for number in range(count)
    ]
    said_to_a_daemon(
        world,
        (
            "session/start",
            {"session_id": "long", "title": "long", "model": "openai/gpt-4o", "durability": "os"},
        ),
        ("session/append", {"session_id": "long", "messages": messages}),
    )
