"""pi without a screen: its RPC mode with a fake provider, compactd's extension, and its own home."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.editors.agents import PATIENCE_S, ROOT, Json, Lines, environment, node, packages
from tests.support.loopback import Loopback

EXTENSION = ROOT / "integrations" / "pi"
WINDOW = 8_000
RESERVE = 2_000
KEEP = 300
SUMMARISER = "context summarization assistant"
"""A phrase in the system prompt of the requests by which pi lets a model write a summary."""


def cli() -> list[str]:
    return [node(), str(packages("pi") / "@earendil-works/pi-coding-agent/dist/bundle/cli.js")]


class Pi:
    """One pi process. Use it with `with`."""

    def __init__(
        self,
        home: Path,
        server: Loopback,
        *,
        env: Mapping[str, str] | None = None,
        args: tuple[str, ...] = (),
        keep: int = KEEP,
    ) -> None:
        self.home, self.server = home, server
        self.work = home / "work"
        settled = settle(home, server, keep=keep)
        self._lines = Lines(
            [*cli(), "--mode", "rpc", "--session-dir", str(home / "sessions"), "-e", str(EXTENSION),
             "--provider", "mock", "--model", "mock-1", *args],
            cwd=self.work,
            env={**settled, **(env or {})},
            log=home / "stderr",
        )  # fmt: skip
        self._next = self._begin = 0

    def __enter__(self) -> Pi:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()

    def close(self) -> int:
        return self._lines.close()

    @property
    def pid(self) -> int:
        return self._lines.process.pid

    def ask(self, text: str) -> None:
        """A prompt, to its end: retries and compactions included."""
        self.command("prompt", message=text)
        self._lines.until(lambda seen: seen.get("type") == "agent_settled", "agent_settled")

    def command(self, kind: str, **params: Any) -> Json:
        """The response to one RPC command."""
        self._next += 1
        wanted = f"c{self._next}"
        self._lines.write({"id": wanted, "type": kind, **params})
        return self._lines.until(
            lambda seen: seen.get("type") == "response" and seen.get("id") == wanted, f"answer to {kind}"
        )

    def compact(self) -> Json:
        """A manual compaction: what pi says it did."""
        answer = self.command("compact")
        assert answer["success"], (answer, self._lines.said())
        data: Json = answer["data"]
        return data

    def slash(self, words: str, command: str = "compactd") -> str:
        """A command of an extension, ours, and the line that it tells."""
        told = len(self.told)
        self.command("prompt", message=f"/{command} {words}")
        if len(self.told) == told:
            self._lines.until(lambda seen: seen.get("method") == "notify", "a line for the person")
        return self.told[-1]

    def new_session(self) -> None:
        """Another conversation in the same process."""
        assert self.command("new_session")["success"]
        self._begin = len(self._lines.seen)

    def since_new(self, kind: str) -> list[Json]:
        """Events of this conversation."""
        return [seen for seen in self._lines.seen[self._begin :] if seen.get("type") == kind]

    @property
    def told(self) -> list[str]:
        """Return the notifications that the user has seen."""
        return [
            str(seen["message"]) for seen in self._lines.seen[self._begin :] if seen.get("method") == "notify"
        ]

    @property
    def gauges(self) -> list[str]:
        return [
            str(seen["statusText"])
            for seen in self._lines.seen
            if seen.get("method") == "setStatus" and seen.get("statusText")
        ]


def settle(home: Path, server: Loopback, *, keep: int) -> dict[str, str]:
    """pi's own files, and the environment it runs in."""
    (home / "work").mkdir(parents=True, exist_ok=True)
    agent = home / "agent"
    agent.mkdir(exist_ok=True)
    model = {"id": "mock-1", "contextWindow": WINDOW, "maxTokens": 1_000}
    provider = {
        "baseUrl": f"{server.base_url}/v1",
        "api": "openai-completions",
        "apiKey": "x",
        "models": [model],
    }
    (agent / "models.json").write_text(json.dumps({"providers": {"mock": provider}}))
    compaction = {"enabled": True, "reserveTokens": RESERVE, "keepRecentTokens": keep}
    (agent / "settings.json").write_text(json.dumps({"compaction": compaction, "retry": {"baseDelayMs": 10}}))
    more = {"PI_CODING_AGENT_DIR": str(agent), "PI_OFFLINE": "1", "PI_TELEMETRY": "0"}
    return environment(home, {**more, "COMPACTD_PI_DEADLINE_S": str(PATIENCE_S)})
