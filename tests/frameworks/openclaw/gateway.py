"""OpenClaw itself for tests: its gateway, headless, against the provider on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from tests.frameworks.environment import variables
from tests.frameworks.node.driving import (
    COMMAND,
    TOOL_LIST,
    command_of,
    daemons_of,
    descendants,
    node,
)
from tests.frameworks.openclaw.building import HERE, built
from tests.frameworks.support.talk import SYSTEM, TOOLS

TOKEN = "loopback"
START_S = 180
"""Seconds until a gateway answers, on a busy machine."""
WINDOWS = {"loopback-1": 200_000, "small": 16_000, "tight": 12_000}
"""The models of the provider, and the windows that OpenClaw's configuration says they have. OpenClaw's own
prompt takes 2,000 tokens."""
Json = dict[str, Any]
UseTool = Callable[[str, Json, str], str]


def packages() -> Path | None:
    """Return the folder in which setup.sh installed OpenClaw; None if it did not."""
    key = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()[:12]
    cache = os.environ.get("COMPACTD_TEST_CACHE") or Path.home() / ".cache" / "compactd-tests"
    place = Path(cache) / f"openclaw-{key}"
    return place if (place / ".installed").exists() else None


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class OpenClawError(Exception):
    """What the gateway answered instead of a reply."""


class Gateway:
    """A gateway in a folder of its own. Use it with `with`. Each of its sessions is a conversation."""

    def __init__(
        self,
        folder: Path,
        *,
        engine: str = "compactd",
        options: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        api: str = "openai-completions",
        windows: Mapping[str, int] = WINDOWS,
        provider_url: str | None = None,
    ) -> None:
        """`engine`: what has the slot `contextEngine`. `options`: those of the plugin. `config`: what is
        added to OpenClaw's configuration, section by section. `windows`: the models with their windows; the
        first one is used by default. Without `provider_url`, the provider must be at `provider_port`."""
        self.folder = folder
        self.windows = windows
        self.provider_port = free_port()
        url = provider_url or f"http://127.0.0.1:{self.provider_port}/v1"
        self.port = free_port()
        self.use_tool: UseTool = lambda name, given, _session: next(
            tool for tool in TOOLS if tool.__name__ == name
        )(given["number"])
        self._tools = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.env = {
            **{name: value for name, value in variables().items() if not name.endswith("_API_KEY")},
            "HOME": str(folder / "home"),
            "OPENCLAW_STATE_DIR": str(folder / "state"),
            "OPENCLAW_CONFIG_PATH": str(folder / "openclaw.json"),
            "OPENCLAW_DISABLE_BONJOUR": "1",
            "COMPACTD_HOME": str(folder / "data"),
            "NO_COLOR": "1",
        }
        for name in ("home", "state", "workspace"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "workspace" / "AGENTS.md").write_text(SYSTEM)
        self._configure(engine, options or {}, config or {}, api, url)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """Return what the gateway has written so far."""
        path = self.folder / "gateway.log"
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def _configure(
        self,
        engine: str,
        options: Mapping[str, Any],
        config: Mapping[str, Any],
        api: str,
        url: str,
    ) -> None:
        models = [
            {
                "id": name,
                "name": name,
                "reasoning": False,
                "input": ["text"],
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                "contextWindow": window,
                "maxTokens": 1_000,
            }
            for name, window in self.windows.items()
        ]
        tools = {"url": f"http://127.0.0.1:{self._tools.server_address[1]}", "tools": TOOL_LIST}
        whole: Json = {
            "gateway": {
                "mode": "local",
                "port": self.port,
                "bind": "loopback",
                "auth": {"mode": "token", "token": TOKEN},
                "http": {"endpoints": {"chatCompletions": {"enabled": True}}},
            },
            "agents": {
                "defaults": {
                    "model": {"primary": f"loop/{next(iter(self.windows))}"},
                    "models": {f"loop/{name}": {} for name in self.windows},
                    "skipBootstrap": True,
                    "workspace": str(self.folder / "workspace"),
                }
            },
            "models": {
                "mode": "replace",
                "providers": {"loop": {"baseUrl": url, "apiKey": "none", "api": api, "models": models}},
            },
            "tools": {
                "allow": ["inspect_part", "weigh_part", "recall"],
                "toolSearch": False,
                "codeMode": False,
            },
            "plugins": {
                "load": {"paths": [str(HERE / "inspection"), str(built())]},
                "allow": ["inspection", "compactd"],
                "slots": {"contextEngine": engine},
                "entries": {
                    "inspection": {"enabled": True, "config": tools},
                    "compactd": {"enabled": True, "config": {"command": COMMAND, **options}},
                },
            },
        }
        (self.folder / "openclaw.json").write_text(json.dumps(merged(whole, config)))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                output = gateway.use_tool(asked["name"], asked["given"], asked.get("session") or "")
                self.send_response(200)
                self.end_headers()
                self.wfile.write(output.encode())

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def __enter__(self) -> Gateway:
        threading.Thread(target=self._tools.serve_forever, daemon=True).start()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._tools.shutdown()
        self._tools.server_close()

    def program(self, *arguments: str) -> list[str]:
        place = packages()
        assert place is not None
        return [node(), str(place / "node_modules" / "openclaw" / "openclaw.mjs"), *arguments]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "gateway.log").open("ab") as log:
            # In a session of its own: it must not take this terminal.
            self._process = subprocess.Popen(
                self.program("gateway", "run"),
                env=self.env,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        for _ in range(START_S * 4):
            if self._process.poll() is not None:
                raise OpenClawError(self.log[-4_000:])
            try:
                found = httpx.get(
                    f"http://127.0.0.1:{self.port}/v1/models", headers=self._headers(), timeout=5
                )
                if found.status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.25)
        raise OpenClawError(f"it does not answer: {self.log[-4_000:]}")

    def stop(self) -> None:
        """End it: the program that was started, and the gateway, which is its child."""
        if self._process is None:
            return
        started = [self._process.pid, *descendants(self._process.pid)]
        for pid in started:
            if pid == self._process.pid or command_of(pid).startswith(b"openclaw-gateway"):
                os.kill(pid, signal.SIGTERM)
        self._process.wait(60)
        deadline = time.monotonic() + 60
        while any(command_of(pid) for pid in started) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in started:
            if command_of(pid):
                os.kill(pid, signal.SIGKILL)
        self._process = None

    def ask(self, text: str, session: str, *, model: str = "loopback-1", stream: bool = False) -> str:
        """Give the agent a request, and return its reply."""
        body = {"model": "openclaw", "stream": stream, "messages": [{"role": "user", "content": text}]}
        headers = {
            **self._headers(),
            "x-openclaw-session-key": f"agent:main:{session}",
            "x-openclaw-model": f"loop/{model}",
        }
        url = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        done = httpx.post(url, json=body, headers=headers, timeout=240)
        if done.status_code != 200:
            raise OpenClawError(done.text)
        if not stream:
            reply: str = done.json()["choices"][0]["message"]["content"]
            return reply
        lines = [line[6:] for line in done.text.splitlines() if line.startswith("data: {")]
        return "".join(json.loads(line)["choices"][0]["delta"].get("content") or "" for line in lines)

    def run(self, *arguments: str) -> str:
        """Run a command of OpenClaw's, and return what it prints. Raises `OpenClawError` if it fails."""
        done = self._run(*arguments)
        if done.returncode != 0:
            raise OpenClawError(done.stdout + done.stderr)
        return done.stdout

    def run_any(self, *arguments: str) -> str:
        """Run a command of OpenClaw's that may fail, and return all that it prints."""
        done = self._run(*arguments)
        return done.stdout + done.stderr

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.program(*arguments),
            env=self.env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            start_new_session=True,
        )

    def session_id(self, session: str) -> str:
        """Return OpenClaw's id of a conversation."""
        listed = json.loads(self.run("sessions", "list", "--json"))["sessions"]
        found: str = next(each["sessionId"] for each in listed if each["key"] == f"agent:main:{session}")
        return found

    def daemons(self) -> list[int]:
        """Return the processes of its daemons. OpenClaw starts itself again as a child."""
        assert self._process is not None
        return daemons_of(self._process.pid)

    def kill_daemons(self) -> None:
        for pid in self.daemons():
            os.kill(pid, signal.SIGKILL)

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {TOKEN}"}


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> Json:
    """Return `one` with what `other` has, section by section."""
    done = dict(one)
    for name, value in other.items():
        inner = done.get(name)
        done[name] = (
            merged(inner, value) if isinstance(value, Mapping) and isinstance(inner, Mapping) else value
        )
    return done
