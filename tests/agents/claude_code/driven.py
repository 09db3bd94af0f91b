"""Claude Code without a screen: `claude -p` with a model on loopback and a home folder of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tests.editors.agents import PATIENCE_S, Json, environment, packages
from tests.support.loopback import Answer, Call, Loopback, Overflow, Seen
from tests.support.loopback.script import Step

HERE = Path(__file__).parent
VERSIONS = tuple(sorted(folder.name for folder in HERE.glob("2.*")))
"""The pinned versions, oldest first."""
OLDEST, DOCUMENTED, NEWEST = VERSIONS
MCP_WAITS = ("MCP_CONNECT_TIMEOUT_MS", "CLAUDE_CODE_MCP_STARTUP_WAIT_MS")
MODEL = "claude-opus-4-6"
THRESHOLD = 167_000
"""The prompt tokens from which Claude Code compacts by itself, with this model and its window of 200,000."""
EVENTS = ("SessionStart", "UserPromptSubmit", "PreCompact", "PostCompact", "SubagentStop", "Stop")
KEY = "dummy-key-0123456789-0123456789-0123456789"
TOO_LONG = Overflow(requested=205_000, limit=200_000)
SUMMARY = (
    "<analysis>\nThe user asked for work.\n</analysis>\n\n"
    "<summary>\n1. Primary Request and Intent: the work goes on.\n</summary>"
)
"""A summary that loses every fact, in the form in which Claude Code asks for it."""


def program(version: str) -> str:
    """Return the path of a version's program. Skip the test if it is not installed."""
    return str(packages(f"claude-code-{version}", HERE / version) / ".bin" / "claude")


def says(text: str, tokens: int | None = None) -> Answer:
    """Return an answer of the model after a prompt of so many tokens; by default, as many as it had."""
    return _sized(Answer(text=text), tokens)


def uses(name: str, tokens: int | None = None, **arguments: object) -> Answer:
    """Return a tool call of the model."""
    return _sized(Answer(calls=(Call(name, json.dumps(arguments)),)), tokens)


def runs(command: str, tokens: int | None = None) -> Answer:
    """Return a call of the tool Bash."""
    return uses("Bash", tokens, command=command, description="Run it")


def _sized(answer: Answer, tokens: int | None) -> Answer:
    if tokens is None:
        return replace(answer, count_input=True, chunk_chars=200)
    return replace(answer, input_tokens=3, cache_read=tokens - 3, chunk_chars=200)


class Model:
    """A provider that answers by a script. `scripts` contains the answers in a conversation whose first
    message contains the key. The key of the main conversation is empty."""

    def __init__(self) -> None:
        self.scripts: dict[str, list[Step]] = {"": []}
        self.summary: str | Step = SUMMARY
        """The answer to a request for a summary. A list in `summaries` is used up first."""
        self.summaries: list[str | Step] = []
        self.turns: list[Seen] = []
        """The requests of the main conversation."""
        self.inner: list[Seen] = []
        """The requests of sub-agents."""
        self.asked: list[Seen] = []
        """The requests for a summary."""
        self.server = Loopback(reply=self._reply)
        self._numbers = 0

    def play(self, *answers: Step) -> None:
        self.scripts[""].extend(answers)

    def _reply(self, seen: Seen) -> Step:
        self._numbers += 1
        step = self._step(seen)
        if isinstance(step, Answer):
            calls = tuple(
                replace(call, id=f"toolu_{self._numbers:020}{at}") for at, call in enumerate(step.calls)
            )
            model = str(seen.body.get("model"))
            return replace(step, id=f"msg_{self._numbers:020}", model=model, calls=calls)
        return step

    def _step(self, seen: Seen) -> Step:
        if is_for_summary(seen):
            self.asked.append(seen)
            summary = self.summaries.pop(0) if self.summaries else self.summary
            return says(summary) if isinstance(summary, str) else summary
        if not seen.body.get("tools"):
            return says('{"title": "Work"}')
        first = text_of(seen.body["messages"][0])
        key = next((key for key in self.scripts if key and key in first), "")
        (self.inner if key else self.turns).append(seen)
        script = self.scripts[key]
        return script.pop(0) if script else says("Noted.")

    @property
    def last(self) -> str:
        """All that the newest request of the main conversation contains as messages."""
        return said(self.turns[-1])


def is_for_summary(seen: Seen) -> bool:
    """Return whether Claude Code asks for a summary: the last message names the two tags of one."""
    messages = seen.body.get("messages") or [{}]
    last = text_of(messages[-1])
    return "<analysis>" in last and "<summary>" in last


def said(seen: Seen) -> str:
    """Return the words of all messages of a request."""
    return "\n".join(map(text_of, seen.body["messages"]))


def text_of(message: Json) -> str:
    """Return the words of one message: texts, tool calls and results."""
    return "\n".join(_texts(message.get("content", "")))


def _texts(content: object) -> Iterator[str]:
    match content:
        case str():
            yield content
        case list():
            for block in content:
                yield from _texts(block)
        case {"type": "text", "text": str(text)}:
            yield text
        case {"type": "tool_result", **rest}:
            yield from _texts(rest.get("content"))
        case {"type": "tool_use", "input": given}:
            yield json.dumps(given, ensure_ascii=False)


class Ran(NamedTuple):
    """What a run of `claude -p` printed."""

    code: int
    rows: list[Json]
    err: str

    @property
    def events(self) -> list[str]:
        """The names of the events whose hooks ran, in the order in which they answered."""
        return [row["hook_event"] for row in self.rows if row.get("subtype") == "hook_response"]

    def answers(self, event: str) -> list[Json]:
        """What hooks answered at an event."""
        return [row for row in self.rows if row.get("subtype") == "hook_response"
                and row["hook_event"] == event]  # fmt: skip


class ClaudeCode:
    """A person's Claude Code. Each prompt is a process of its own."""

    def __init__(self, home: Path, model: Model, version: str, **variables: str) -> None:
        self.home, self.model, self.version = home, model, version
        self.program = program(version)
        self.work = home / "work"
        self.work.mkdir(parents=True)
        self.folder = home / ".claude"
        self.folder.mkdir()
        self.settings = self.folder / "settings.json"
        same = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
        self.env = environment(
            home,
            {
                **same,
                "ANTHROPIC_BASE_URL": model.server.base_url,
                "ANTHROPIC_API_KEY": KEY,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                "DISABLE_ERROR_REPORTING": "1",
                "DISABLE_TELEMETRY": "1",
                "IS_SANDBOX": "1",
                # `-p` waits for MCP servers; by default at most 5 seconds, which a busy machine may need.
                "MCP_CONNECTION_NONBLOCKING": "0",
                **dict.fromkeys(MCP_WAITS, str(int(1_000 * PATIENCE_S))),
                **variables,
            },
        )
        self._begun = False
        project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        begun = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "bypassPermissionsModeAccepted": True,
            "autoUpdates": False,
            "projects": {str(self.work): project},
        }
        (home / ".claude.json").write_text(json.dumps(begun))

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command, cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
        return done

    def claude(self, *arguments: str) -> str:
        """Run `claude ARGUMENTS`. Return what it prints."""
        return self.run(self.program, *arguments).stdout

    def compactd(self, *arguments: str) -> str:
        """Run `compactd ARGUMENTS` as this person. Return what it prints."""
        return self.run(sys.executable, "-m", "compactd", *arguments).stdout

    def install(self, *options: str, deadline_s: float = 30) -> None:
        """Install compactd's hooks. Their deadline is long, so that a busy machine changes no result."""
        self.compactd("install", "claude-code", *options)
        longer = f"hook claude-code --deadline {deadline_s:g}"
        text = self.settings.read_text()
        text = text.replace("hook claude-code", longer).replace('"timeout": 10', '"timeout": 60')
        self.settings.write_text(text)

    def record_events(self) -> None:
        """Add a hook to the settings that stores each event, for `events`."""
        folder = self.home / "events"
        folder.mkdir()
        command = f'cat > "$(mktemp {folder}/$(date +%s.%N).XXXXXX)"'
        settings = json.loads(self.settings.read_text()) if self.settings.exists() else {}
        for event in EVENTS:
            group = {"hooks": [{"type": "command", "command": command}]}
            settings.setdefault("hooks", {}).setdefault(event, []).append(group)
        self.settings.write_text(json.dumps(settings, indent=2))

    @property
    def events(self) -> list[Json]:
        """The events since `record_events`, oldest first."""
        return [json.loads(path.read_text()) for path in sorted((self.home / "events").iterdir())]

    def ask(self, prompt: str, *options: str, check: bool = True, resume: bool = True) -> Ran:
        """Give Claude Code a prompt, in the same session as the last one."""
        again = ("--continue",) if self._begun and resume else ()
        self._begun = True
        done = self.run(
            self.program, "-p", prompt, *again, "--output-format", "stream-json", "--verbose",
            "--include-hook-events", "--model", MODEL, "--allowedTools", "Bash(echo:*)", "Read",
            *options, check=check,
        )  # fmt: skip
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return Ran(done.returncode, rows, done.stderr)

    def compact(self, wishes: str = "") -> Ran:
        """Type `/compact`."""
        return self.ask(f"/compact {wishes}".rstrip())

    @property
    def transcript(self) -> Path:
        """The transcript of the newest session."""
        project = re.sub(r"[^A-Za-z0-9]", "-", str(self.work))
        found = (self.folder / "projects" / project).glob("*.jsonl")
        return max(found, key=lambda path: path.stat().st_mtime)

    @property
    def rows(self) -> list[Json]:
        """The rows of the transcript."""
        return [json.loads(line) for line in self.transcript.read_text("utf-8").splitlines()]

    def compactions(self) -> int:
        """Return how many compactions the transcript contains."""
        return sum(row.get("subtype") == "compact_boundary" for row in self.rows)

    def state(self) -> Json:
        """Return what compactd's hook knows about the session."""
        (file,) = (self.home / "compactd" / "hooks").glob("*.json")
        return json.loads(file.read_text())


def given(seen: Seen) -> list[str]:
    """Return the texts that compactd's hooks added to a request, word for word."""
    begin = "SessionStart hook additional context: "
    found = []
    for message in seen.body["messages"]:
        for text in _texts(message.get("content", "")):
            found += [
                part.partition("</system-reminder>")[0].strip()
                for part in text.split("<system-reminder>")[1:]
                if "[compactd]" in part
            ]
    return [text.removeprefix(begin) for text in found]
