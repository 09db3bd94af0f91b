"""Gemini CLI without a screen: `gemini -p` with a fake provider, compactd's hooks, and its own home."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.editors.agents import PATIENCE_S, environment, node, packages
from tests.support.loopback import Answer, Loopback, Seen

SNAPSHOT = "state_snapshot"
"""A word in the requests by which Gemini CLI lets its model compress the conversation."""
SUMMARY = f"<{SNAPSHOT}>The work goes on.</{SNAPSHOT}>"
"""The model's summary, which loses every fact."""


SOON = 0.0001
"""A threshold, as a share of the window, that each prompt exceeds."""
MODEL = "gemini-2.5-flash"
"""The model is named, because otherwise Gemini CLI asks another model which one should answer."""


class Model:
    """A provider whose summaries lose every fact. Other requests are answered by a script."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.server = Loopback(reply=self._reply)

    def _reply(self, seen: Seen) -> Answer:
        if is_compression(seen):
            return Answer(text=SUMMARY, count_input=True)
        # In addition to the conversation, gemini-cli asks smaller models which model should answer.
        is_turn = "streamGenerateContent" in seen.path
        return self.answers.pop(0) if is_turn and self.answers else Answer(text="Noted.", count_input=True)

    @property
    def turns(self) -> list[Seen]:
        """The requests for an answer."""
        return [seen for seen in self.server.requests if "streamGenerateContent" in seen.path]

    @property
    def compressions(self) -> int:
        """Return how often a summary was asked for. Gemini CLI checks each summary by a second request."""
        return sum(map(is_compression, self.server.requests))


def is_compression(seen: Seen) -> bool:
    return SNAPSHOT in json.dumps(seen.body.get("systemInstruction"))


def said(seen: Seen) -> str:
    return json.dumps(seen.body["contents"], ensure_ascii=False)


class Gemini:
    """A person's Gemini CLI. Each prompt is a process of its own."""

    def __init__(self, home: Path, model: Model) -> None:
        self.home, self.model = home, model
        self.work = home / "work"
        self.work.mkdir(parents=True)
        self.settings = home / ".gemini" / "settings.json"
        self.settings.parent.mkdir()
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "model": {"compressionThreshold": SOON, "disableLoopDetection": True},
            "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
            "privacy": {"usageStatisticsEnabled": False},
        }
        self.settings.write_text(json.dumps(settings))
        self.env = environment(
            home,
            {
                "GEMINI_API_KEY": "x",
                "GOOGLE_GEMINI_BASE_URL": model.server.base_url,
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
            },
        )
        self._program = [node(), str(packages("gemini") / "@google/gemini-cli/bundle/gemini.js")]
        self._begun = False

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
        return done.stdout

    def install(self) -> None:
        """Our hooks. A busy machine must not decide: they have time."""
        self.run("compactd", "install", "gemini-cli")
        given = self.settings.read_text()
        given = given.replace("hook gemini-cli", "hook gemini-cli --deadline 30").replace("10000", "60000")
        self.settings.write_text(given)

    def compress_no_more(self) -> None:
        self.settings.write_text(self.settings.read_text().replace(str(SOON), "0.9"))

    def ask(self, text: str) -> str:
        resumed = ("--resume", "latest") if self._begun else ()
        self._begun = True
        return self.run(*self._program, *resumed, "--model", MODEL, "-p", text)

    def go_on(self, session_id: str, text: str) -> str:
        """Resume a session by its id."""
        return self.run(*self._program, "--resume", session_id, "--model", MODEL, "-p", text)
