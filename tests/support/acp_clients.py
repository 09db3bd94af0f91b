"""An ACP client, written with the official SDK, that talks to `compactd acp` and records what it receives."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import acp
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    CreateTerminalResponse,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
)

from tests.support.command_line import COMPACTD, TIMEOUT_S, environment

SDK_AGENT = Path(__file__).with_name("acp_sdk_agent.py")
PLAIN_AGENT = Path(__file__).with_name("acp_plain_agent.py")


class Editor(acp.Client):
    """An ACP client with files in a dict, a terminal that echoes, and a user who always chooses `choice`."""

    def __init__(self) -> None:
        self.updates: list = []
        self.files: dict[str, str] = {}
        self.asked: list[str] = []
        self.choice = "once"
        """What the user chooses. `options` is what the agent offered last."""
        self.options: dict[str, str] = {}
        self.permissions: list[str] = []
        self._news = asyncio.Event()

    async def session_update(self, session_id, update, **_) -> None:
        self.updates.append((session_id, update))
        self._news.set()

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(tool_call.title)
        self.permissions.append(tool_call.title)
        self.options = {option.option_id: option.name for option in options}
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.choice))

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):
        return ReadTextFileResponse(content=self.files[path])

    async def write_text_file(self, session_id, path, content, **_) -> None:
        self.files[path] = content

    async def create_terminal(self, session_id, command, args=None, **_):
        self.asked.append(f"{command} {args}")
        return CreateTerminalResponse(terminal_id="t1")

    async def wait_for_terminal_exit(self, session_id, terminal_id, **_):
        return WaitForTerminalExitResponse(exit_code=0)

    async def terminal_output(self, session_id, terminal_id, **_):
        return TerminalOutputResponse(output="echoed", truncated=False)

    async def release_terminal(self, session_id, terminal_id, **_) -> None:
        self.asked.append("released")

    def of(self, kind: str) -> list:
        return [update for _, update in self.updates if update.session_update == kind]

    @property
    def used(self) -> list[int]:
        return [update.used for update in self.of("usage_update")]

    @property
    def text(self) -> str:
        return "".join(update.content.text for update in self.of("agent_message_chunk"))

    async def until(self, is_there: Callable[[], bool]) -> None:
        """Waits for what may come behind an answer."""
        async with asyncio.timeout(TIMEOUT_S):
            while not is_there():
                self._news.clear()
                await self._news.wait()


class Talk:
    """One session."""

    def __init__(self, connection: acp.Agent, editor: Editor, session_id: str) -> None:
        self.connection = connection
        self.editor = editor
        self.id = session_id

    async def say(self, text: str) -> str:
        """Gives a prompt; its stop reason."""
        answer = await self.connection.prompt(session_id=self.id, prompt=[acp.text_block(text)])
        return str(answer.stop_reason)

    async def command(self, text: str) -> str:
        """Send a compactd slash command. Return what the agent answers."""
        before = len(self.editor.text)
        assert await self.say(text) == "end_turn"
        await self.editor.until(lambda: len(self.editor.text) > before)
        return self.editor.text[before:]


@asynccontextmanager
async def talking(
    home: Path, *options: str, env: Mapping[str, str] = {}, load: str | None = None
) -> AsyncIterator[Talk]:
    """A session through `compactd acp OPTIONS`."""
    editor = Editor()
    command, *arguments = COMPACTD
    spawned = acp.spawn_agent_process(
        editor, command, *arguments, "acp", *options, env=environment(home, env), cwd=home
    )
    async with asyncio.timeout(TIMEOUT_S), spawned as (connection, _):
        capabilities = ClientCapabilities(
            fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
        )
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=capabilities)
        if load is None:
            session_id = (await connection.new_session(cwd=str(home), mcp_servers=[])).session_id
        else:
            session_id = load
            await connection.load_session(cwd=str(home), session_id=load, mcp_servers=[])
        yield Talk(connection, editor, session_id)


def before(agent: Path, log: Path, *more: str) -> tuple[str, ...]:
    """Options for a proxy before an agent."""
    return ("--", sys.executable, str(agent), str(log), *more)
