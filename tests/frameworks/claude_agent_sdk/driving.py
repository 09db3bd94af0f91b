"""The real Claude Code, driven by the SDK that contains it, against the provider on loopback."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ResultMessage,
    SessionStore,
    create_sdk_mcp_server,
    query,
    tool,
)

from tests.frameworks.support.provider import Provider
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

    def __init__(self, home: Path, provider: Provider, **more: str) -> None:
        self.home, self.provider = home, provider
        self.work = home / "work"
        self.work.mkdir(parents=True)
        (home / ".claude").mkdir()
        self.env = {**environment(home, provider.anthropic_url), **more}
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


def dump(entries: list[Any]) -> str:
    """Show entries for a failed test."""
    return "\n".join(json.dumps(entry)[:300] for entry in entries)


__all__ = ["McpUse", "Person", "claude_talk", "dump", "os"]
