"""OpenCode without a screen: `opencode serve` with a fake provider and compactd's plugin in the project."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.editors.agents import PATIENCE_S, ROOT, Json, environment, packages
from tests.editors.terminal import Terminal, wait_for
from tests.support.loopback import Loopback

PLUGIN = ROOT / "integrations" / "opencode" / "compactd.js"
TUI_PLUGIN = PLUGIN.with_name("compactd-tui.js")
WINDOW = 20_000
KEEP = 1_000
"""Tokens of the newest turns that OpenCode keeps unchanged."""
SUMMARISER = "context summarization agent"
"""A phrase in the system prompt of the requests by which OpenCode lets a model write a summary."""
NOWHERE = "http://127.0.0.1:9"


def program() -> str:
    return str(packages("opencode") / "opencode-ai/bin/opencode.exe")


class OpenCode:
    """One OpenCode server. Use it with `with`."""

    def __init__(self, home: Path, server: Loopback, *, env: Mapping[str, str] | None = None) -> None:
        self.home, self.server = home, server
        self.work = home / "work"
        self.log = home / "log"
        self._env = {**settle(home, server), **(env or {})}
        self._log = self.log.open("wb")
        self._process = subprocess.Popen(
            [program(), "serve", "--hostname", "127.0.0.1",
             "--port", "0", "--print-logs"],
            cwd=self.work,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )  # fmt: skip
        # Asked before it listens, it never answers (research: 5 of 5 runs).
        marker = b"server listening on "
        wait_for(lambda: marker in self.log.read_bytes(), "opencode listening", PATIENCE_S)
        self._url = self.log.read_bytes().partition(marker)[2].split()[0].decode()

    def __enter__(self) -> OpenCode:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def call(self, path: str, body: Json | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.loads(answer.read() or b"null")

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @contextmanager
    def sidebar(self, session: Session) -> Iterator[Terminal]:
        """OpenCode's terminal at this server, with our gauge, as docs/opencode.md installs it."""
        folder = self.home / "config" / "opencode"
        shutil.copy(TUI_PLUGIN, folder / TUI_PLUGIN.name)
        (folder / "tui.json").write_text(json.dumps({"plugin": [f"./{TUI_PLUGIN.name}"]}))
        at = ("attach", self._url, "--dir", str(self.work), "--session", session.id)
        # It would outlive its terminal.
        command = ["timeout", "--foreground", "-k", "5", str(4 * PATIENCE_S), program(), *at]
        with Terminal(command, cwd=self.work, env=self._env, columns=160, lines=40) as terminal:
            yield terminal
            terminal.press("C-c")
            terminal.press("C-c")

    def new_session(self) -> Session:
        # With a title of its own no model is asked for one, at a time that nobody knows.
        return Session(self, self.call("/session", {"title": "A test"})["id"])


class Session:
    """One conversation."""

    def __init__(self, host: OpenCode, id: str) -> None:
        self._host, self.id = host, id

    def ask(self, text: str) -> Json:
        """A prompt, and the answer."""
        model = {"providerID": "mock", "modelID": "mock-1"}
        parts = [{"type": "text", "text": text}]
        answer: Json = self._host.call(f"/session/{self.id}/message", {"model": model, "parts": parts})
        return answer

    def compact(self) -> None:
        body = {"providerID": "mock", "modelID": "mock-1"}
        assert self._host.call(f"/session/{self.id}/summarize", body) is True

    def revert(self, message_id: str) -> None:
        self._host.call(f"/session/{self.id}/revert", {"messageID": message_id})

    def messages(self) -> list[Json]:
        given: list[Json] = self._host.call(f"/session/{self.id}/message")
        return given

    def summaries(self) -> list[str]:
        """Return the stored summaries."""
        return [
            "".join(part["text"] for part in message["parts"] if part["type"] == "text")
            for message in self.messages()
            if message["info"].get("summary") is True
        ]


def settle(home: Path, server: Loopback) -> dict[str, str]:
    """OpenCode's own files, with what it would fetch already there, and the environment it runs in. `home`
    may be that of an earlier run."""
    work = home / "work"
    config = {
        "model": "mock/mock-1",
        "small_model": "mock/mock-1",
        "autoupdate": False,
        "share": "disabled",
        "compaction": {"preserve_recent_tokens": KEEP},
        "provider": {
            "mock": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": f"{server.base_url}/v1", "apiKey": "x"},
                "models": {"mock-1": {"limit": {"context": WINDOW, "output": 1_000}}},
            }
        },
    }
    modules = packages("opencode")
    for folder in (work / ".opencode", home / "config" / "opencode"):
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "node_modules").exists():
            (folder / "node_modules").symlink_to(modules)
        shutil.copy(modules.parent / "package-lock.json", folder / "package-lock.json")
        pinned = {"dependencies": {"@opencode-ai/plugin": "1.18.33"}}
        (folder / "package.json").write_text(json.dumps(pinned))
    (work / ".opencode" / "plugin").mkdir(exist_ok=True)
    shutil.copy(PLUGIN, work / ".opencode" / "plugin" / PLUGIN.name)
    (work / "opencode.json").write_text(json.dumps(config))
    disabled = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD")
    return environment(
        home,
        {
            **{f"OPENCODE_DISABLE_{name}": "1" for name in disabled},
            "COMPACTD_OPENCODE_DEADLINE_S": str(PATIENCE_S),
            "npm_config_registry": NOWHERE,
            "npm_config_fetch_retries": "0",
        },
    )
