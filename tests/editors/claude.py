"""Claude Code without a screen: `claude -p` with a fake provider, and its own home."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.editors.agents import CACHE, PATIENCE_S, Json, environment
from tests.support.loopback import Answer, Loopback, Seen

VERSION = "2.1.330"
MODEL = "claude-opus-4-6"
KEY = "dummy-key-0123456789-0123456789-0123456789"


def program() -> str:
    """Return the path of Claude Code: `COMPACTD_TEST_CLAUDE`, or the installed one of the tested version.
    Skip the test if there is none.
    """
    places = CACHE.glob(f"claude-code-{VERSION}-*/node_modules/.bin/claude")
    found = os.environ.get("COMPACTD_TEST_CLAUDE") or next(map(str, places), None)
    if found is None:
        pytest.skip(f"Claude Code {VERSION} is not installed")
    return found


class Claude:
    """A person's Claude Code. Each prompt is a process of its own."""

    def __init__(self, home: Path, server: Loopback) -> None:
        self.home, self.server = home, server
        self.work = home / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.folder = home / ".claude"
        self.folder.mkdir(exist_ok=True)
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        about = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "autoUpdates": False,
            "projects": {str(self.work): trusted},
        }
        (home / ".claude.json").write_text(json.dumps(about))
        off = ("DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY")
        self.env = environment(
            home,
            {
                "ANTHROPIC_BASE_URL": server.base_url,
                "ANTHROPIC_API_KEY": KEY,
                "IS_SANDBOX": "1",
                **dict.fromkeys((*off, "DISABLE_ERROR_REPORTING"), "1"),
            },
        )

    def ask(self, text: str, *options: str) -> None:
        """A prompt, in a new session unless `options` say otherwise."""
        done = subprocess.run(
            [program(), "-p", text, *options, "--model", MODEL],
            cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]

    def go_on(self, session_id: str, text: str) -> None:
        """Resume a session by its id."""
        self.ask(text, "--resume", session_id)


def answers(seen: Seen) -> Answer:
    """Answer any request of Claude Code."""
    return Answer(text="Noted.", count_input=True)


def newest_messages(server: Loopback, prompt: str) -> list[Json]:
    """Return the messages of the newest request with the tools and the text `prompt`."""
    bodies = [seen.body for seen in server.requests if seen.body.get("tools")]
    found: list[Json] = [body["messages"] for body in bodies if prompt in json.dumps(body["messages"])][-1]
    return found
