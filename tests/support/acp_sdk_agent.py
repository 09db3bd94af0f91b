"""An ACP agent written with the official SDK: `python acp_sdk_agent.py FILE [gauge]`.

It answers each prompt with a long tool output and a line, and writes what it was asked to FILE. With `gauge`
it also reports usage.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import acp
from acp.schema import (
    AgentCapabilities,
    AvailableCommand,
    AvailableCommandsUpdate,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    SetSessionModeResponse,
    UsageUpdate,
)

WINDOW = 50_000


class Recording(acp.Agent):
    def __init__(self, log: Path, tells_usage: bool) -> None:
        self._log = log
        self._tells_usage = tells_usage
        self._sizes: dict[str, int] = {}

    def on_connect(self, conn) -> None:
        self._conn = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        return InitializeResponse(
            protocol_version=protocol_version, agent_capabilities=AgentCapabilities(load_session=True)
        )

    async def new_session(self, cwd, mcp_servers=None, **_):
        name = f"s{len(self._sizes) + 1}"
        self._sizes[name] = 0
        self._note(did="new", session=name, cwd=cwd)
        return NewSessionResponse(session_id=name)

    async def load_session(self, cwd, session_id, mcp_servers=None, **_):
        self._sizes[session_id] = 0
        self._note(did="load", session=session_id)
        await self._conn.session_update(session_id, acp.update_user_message(acp.text_block("an old prompt")))

    async def set_session_mode(self, session_id, mode_id, **_):
        self._note(did="mode", session=session_id, mode=mode_id)
        return SetSessionModeResponse()

    async def prompt(self, prompt, session_id, **_):
        text = "\n".join(block.text for block in prompt)
        self._note(did="prompt", session=session_id, text=text)
        number = text.rsplit(" ", 1)[-1]
        said = self._conn.session_update
        if text.endswith("commands"):
            mine = [
                AvailableCommand(name="fly", description="Flies"),
                AvailableCommand(name="compact", description="-"),
            ]
            await said(
                session_id,
                AvailableCommandsUpdate(session_update="available_commands_update", available_commands=mine),
            )
        long = "\n".join(
            f"row {number}.{row}: the quick brown fox reads ledger_{row}.py" for row in range(120)
        )
        await said(
            session_id,
            acp.start_tool_call("call-1", "Read ledger", kind="read", raw_input={"path": "ledger.py"}),
        )
        block = acp.tool_content(acp.text_block(long))
        await said(session_id, acp.update_tool_call("call-1", status="completed", content=[block]))
        for part in (f"Step {number} is done, ", f"TOTAL_{number} is right."):
            await said(session_id, acp.update_agent_message(acp.text_block(part)))
        self._sizes[session_id] += len(text) + len(long)
        if self._tells_usage:
            used = self._sizes[session_id] // 4
            await said(session_id, UsageUpdate(session_update="usage_update", used=used, size=WINDOW))
        return PromptResponse(stop_reason="end_turn")

    def _note(self, **what) -> None:
        with self._log.open("a") as file:
            file.write(json.dumps(what) + "\n")


if __name__ == "__main__":
    asyncio.run(acp.run_agent(Recording(Path(sys.argv[1]), "gauge" in sys.argv)))
