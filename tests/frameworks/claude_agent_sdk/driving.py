"""The real Claude Code, driven by the SDK that contains it, against the provider on loopback."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ResultMessage,
    SessionStore,
    create_sdk_mcp_server,
    query,
    tool,
)

from compactd.integrations.frameworks.claude_agent_sdk import CompactdSessionStore
from tests.frameworks.environment import ROOT
from tests.frameworks.support.talk import SYSTEM, Talk, ToolUse, inspect_part, talk, weigh_part

MODEL = "claude-opus-4-6"
PREFIX = "mcp__factory__"
"""What Claude Code puts before the name of a tool."""
KEY = "dummy-key-0123456789-0123456789-0123456789"


@dataclass(frozen=True)
class McpUse(ToolUse):
    """A call of a tool with Claude Code's name for it."""

    @property
    def fact(self) -> str:
        return ToolUse(self.name.removeprefix(PREFIX), self.number).fact

    @property
    def output(self) -> str:
        return ToolUse(self.name.removeprefix(PREFIX), self.number).output


def claude_talk(lots: int, parts: int) -> Talk:
    """The conversation of all frameworks, with Claude Code's names of the tools."""
    made = talk(lots, parts)
    return replace(
        made,
        lots=tuple(
            replace(
                lot,
                turns=tuple(
                    tuple(McpUse(PREFIX + use.name, use.number) for use in turn) for turn in lot.turns
                ),
            )
            for lot in made.lots
        ),
    )


@tool("inspect_part", "Inspect one machine part.", {"number": int})
async def _inspect(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": inspect_part(arguments["number"])}]}


@tool("weigh_part", "Weigh one machine part.", {"number": int})
async def _weigh(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": weigh_part(arguments["number"])}]}


def environment(home: Path, url: str) -> dict[str, str]:
    """Return what Claude Code's process gets: a home folder of its own, and the provider on loopback."""
    return {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",
        "NO_PROXY": "127.0.0.1,localhost",
    }


class Person:
    """Someone who runs Claude Code with a session store. Each prompt is a process of its own."""

    def __init__(self, home: Path, url: str) -> None:
        """`url`: of the provider on loopback."""
        self.home, self.url = home, url
        self.work = home / "work"
        for folder in (self.work, home / ".claude"):
            folder.mkdir(parents=True, exist_ok=True)
        self.env = environment(home, url)
        self.session: str | None = None

    async def ask(self, prompt: str, store: SessionStore, **options: Any) -> str:
        """Give Claude Code a prompt, in the same session as the last one. Return its last words."""
        given: Mapping[str, Any] = {"resume": self.session, **options}
        said = ""
        async for message in query(
            prompt=prompt,
            options=ClaudeAgentOptions(
                session_store=store,
                system_prompt=SYSTEM,
                model=MODEL,
                cwd=self.work,
                env=self.env,
                tools=[],
                setting_sources=[],
                mcp_servers={"factory": create_sdk_mcp_server("factory", tools=[_inspect, _weigh])},
                allowed_tools=[PREFIX + "inspect_part", PREFIX + "weigh_part"],
                stderr=lambda line: None,
                **given,
            ),
        ):
            if isinstance(message, ResultMessage):
                assert not message.is_error, message
                self.session, said = message.session_id, message.result or ""
        return said

    @property
    def transcripts(self) -> list[Path]:
        """Claude Code's own files of this person."""
        return sorted((self.home / ".claude" / "projects").rglob("*.jsonl"))

    def delete_transcripts(self) -> None:
        for path in self.transcripts:
            path.unlink()


def bundled() -> Path:
    """Return the Claude Code in the SDK's package. Skip the test if this platform's package has none."""
    found = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    if not found.exists():
        assert os.environ.get("COMPACTD_TEST_AGENTS") != "all", "the SDK's package contains no Claude Code"
        pytest.skip("the SDK's package contains no Claude Code")
    return found


async def _ask_alone(home: str, url: str, session: str, prompt: str, limit: str) -> None:
    person = Person(Path(home), url)
    person.session = session
    store = CompactdSessionStore(compact_on_load=int(limit) or "never")
    print(await person.ask(prompt, store))


def ask_in_new_process(person: Person, prompt: str, limit: int = 0) -> str:
    """Give Claude Code a prompt like `Person.ask`, from a process of its own that has only the store."""
    given = (str(person.home), person.url, str(person.session), prompt, str(limit))
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, *given],
        capture_output=True, text=True, timeout=120, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout


if __name__ == "__main__":
    asyncio.run(_ask_alone(*sys.argv[1:]))
