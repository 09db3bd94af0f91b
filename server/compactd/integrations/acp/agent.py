"""`compactd acp`: an ACP agent for editors that runs the daemon's own agent loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec
from msgspec import Raw

from compactd import __version__
from compactd.client.asynchronous import AsyncClient
from compactd.client.events import Event
from compactd.client.frames import Json
from compactd.core.text.quoting import quote_line
from compactd.formats.messages.neutral import decode_message
from compactd.integrations.acp import acp_lines, commands
from compactd.integrations.acp.acp_lines import RequestRefused
from compactd.integrations.acp.peer import Peer
from compactd.integrations.acp.tools import Tools, offered_tools
from compactd.integrations.acp.turn_messages import prompt_content, typed_text
from compactd.protocol.messages import Document, Text, TokenUsage, ToolCall
from compactd.protocol.wire import StartResult

PROTOCOL = 1
SYSTEM = """\
You are a coding agent in the person's editor. Use the tools to look at files before you speak of them, \
change them only as asked, and say shortly what you did. The working directory is {folder}."""
PAGE = 200
STOPS = {
    "aborted": "cancelled",
    "max_tokens": "max_tokens",
    "length": "max_tokens",
    "refusal": "refusal",
    "steps": "max_turn_requests",
}
"""The daemon's stop reasons -> ACP's stop reasons. Every other reason of the daemon becomes `end_turn`."""


class OwnAgent:
    """The agent side of one ACP connection. Its peer is an editor, the ACP client."""

    def __init__(self, client: AsyncClient, start: Mapping[str, object], system: str | None) -> None:
        """Create the agent. `client`: the connection to the daemon. `start`: the model, as params of
        `session/start`. `system`: the system prompt; None for the default.
        """
        self._client = client
        self._start = start
        self._system = system
        self._initialize: dict[str, Json] = {}
        self._tools: dict[str, Tools] = {}
        self._ends: dict[tuple[str, str], asyncio.Future[Event]] = {}
        self.peer: Peer | None = None

    async def execute(self, params: dict[str, Json]) -> object:
        """Run a tool call in the editor and return its result. `params`: those of the daemon's
        `tool/execute`.
        """
        tools = self._tools.get(str(params.get("session_id")))
        arguments = params.get("arguments")
        if isinstance(arguments, str):
            # A model may write its arguments as a string that contains JSON.
            arguments = acp_lines.decode_as(arguments.encode(), dict)
        if tools is None or not isinstance(arguments, dict):
            return {"content": "The arguments are not an object.", "is_error": True}
        return await tools.run(str(params.get("call_id")), str(params.get("name")), arguments)

    async def watch(self) -> None:
        """Forward the daemon's events to the editor until the daemon is closed."""
        async for event in self._client.events():
            if self.peer is None or event.session_id not in self._tools:
                continue
            for line in self._lines(event):
                await self.peer.send(line)
            if event.type in ("agent_end", "error"):
                end = self._end(event.session_id, str(event.fields.get("turn_id")))
                if not end.done():
                    end.set_result(event)

    def _lines(self, event: Event) -> tuple[bytes, ...]:
        name, fields = event.session_id, event.fields
        takes = acp_lines.accepts_compactions(self._initialize)
        match event.type:
            case "message_delta":
                return (acp_lines.text_update(name, str(fields["delta"])),)
            case "thinking_delta":
                return (acp_lines.text_update(name, str(fields["delta"]), "agent_thought_chunk"),)
            case "usage_update":
                usage = msgspec.convert(fields["usage"], TokenUsage)
                return acp_lines.usage_lines(name, usage.current_context_tokens, usage.context_window)
            case "compaction_start" if takes:
                return (acp_lines.compaction_line(name, str(fields["compaction_id"]), "in_progress"),)
            case "compaction_end" if takes:
                return (_compaction_end(name, fields),)
            case _:
                return ()

    async def handle(self, method: str, params: dict[str, Json]) -> object:
        """Return the answer to a request or notification of the editor. Raise `RequestRefused`, and what the
        daemon's client raises.
        """
        match method:
            case "initialize":
                self._initialize = params
                return _initialize_result()
            case "authenticate":
                return {}
            case "session/new":
                return await self._new(params)
            case "session/load":
                return await self._load(params)
            case "session/prompt":
                return await self._prompt(self._require_session(params), params.get("prompt"))
            case "session/cancel":
                await self._client.agent_abort(session_id=self._require_session(params))
                return None
            case "session/close":
                name = self._require_session(params)
                self._tools.pop(name)
                await self._client.session_close(session_id=name)
                return {}
            case _:
                raise RequestRefused(acp_lines.METHOD_NOT_FOUND, f"compactd does not support {method}")

    async def _new(self, params: dict[str, Json]) -> object:
        started = await self._open(params, None)
        return {"sessionId": started.session_id}

    async def _load(self, params: dict[str, Json]) -> object:
        name = params.get("sessionId")
        if not isinstance(name, str):
            raise RequestRefused(acp_lines.INVALID_PARAMS, "session/load needs the param sessionId")
        await self._open(params, name)
        await self._replay(name)
        return {}

    async def _open(self, params: dict[str, Json], session_id: str | None) -> StartResult:
        folder = params.get("cwd")
        if not isinstance(folder, str):
            raise RequestRefused(acp_lines.INVALID_PARAMS, "the param cwd must be an absolute path")
        given: dict[str, object] = {"tools": offered_tools(self._initialize), "working_dir": folder}
        if session_id is None:
            given |= self._start
            # The folder's name may come from a repository, so it is quoted on one line.
            given["system_prompt"] = self._system or SYSTEM.format(folder=quote_line(folder, "assistant"))
        else:
            given = {"session_id": session_id, "tools": given["tools"]}
            stored = {one.session_id for one in (await self._client.session_list()).sessions}
            if session_id not in stored:
                raise RequestRefused(
                    acp_lines.INVALID_PARAMS, f"there is no stored session with the id {session_id!r}"
                )
        started = await self._client.ask("session/start", given, StartResult)
        peer = self._peer()
        self._tools[started.session_id] = Tools(peer, started.session_id, folder)
        name, ours = started.session_id, {"availableCommands": commands.COMMANDS}
        usage = started.token_usage
        # Sent after the answer, because the editor learns the session's id from the answer.
        peer.after(
            (
                acp_lines.update_line(name, "available_commands_update", ours),
                *acp_lines.usage_lines(name, usage.current_context_tokens, usage.context_window),
            )
        )
        return started

    async def _prompt(self, name: str, prompt: Json) -> object:
        blocks = acp_lines.decode_as(msgspec.json.encode(prompt), list[Raw]) or []
        found = commands.command_of(typed_text(blocks))
        if found is not None:
            await self._peer().send(acp_lines.text_update(name, await self._run_command(name, *found)))
            return {"stopReason": "end_turn"}
        content = prompt_content(blocks)
        if not any(str(block["text"]).strip() for block in content):
            raise RequestRefused(
                acp_lines.INVALID_PARAMS,
                "the prompt contains no text; write some in addition to files or pictures",
            )
        prompted = await self._client.agent_prompt(session_id=name, content=content)
        try:
            event = await self._end(name, prompted.turn_id)
        finally:
            self._ends.pop((name, prompted.turn_id), None)
        if event.type == "error":
            code = event.fields.get("code")
            raise RequestRefused(
                code if isinstance(code, int) else acp_lines.INTERNAL, str(event.fields.get("message"))
            )
        return {"stopReason": STOPS.get(str(event.fields.get("stop_reason")), "end_turn")}

    async def _run_command(self, name: str, command: commands.CommandName, rest: str) -> str:
        match command:
            case "compact":
                return commands.describe_compaction(await commands.compact_session(self._client, name, rest))
            case "context":
                return await commands.context(self._client, name)
            case "sessions":
                return await commands.sessions(self._client, name)

    async def _replay(self, name: str) -> None:
        """Send the stored messages of the session to the editor, as updates."""
        start: str | None = None
        while True:
            page = await self._client.session_history(session_id=name, from_=start, limit=PAGE)
            for entry in page.entries:
                if isinstance(entry.message, Raw):
                    for line in _replay(name, entry.message):
                        await self._peer().send(line)
            start = page.next
            if start is None:
                return

    def _end(self, name: str, turn_id: str) -> asyncio.Future[Event]:
        return self._ends.setdefault((name, turn_id), asyncio.get_running_loop().create_future())

    def _require_session(self, params: dict[str, Json]) -> str:
        name = params.get("sessionId")
        if not isinstance(name, str) or name not in self._tools:
            raise RequestRefused(
                acp_lines.INVALID_PARAMS,
                f"session {name!r} is not open; open it with session/new or session/load",
            )
        return name

    def _peer(self) -> Peer:
        if self.peer is None:
            raise RequestRefused(acp_lines.INTERNAL, "no editor is connected to compactd")
        return self.peer


def _initialize_result() -> dict[str, object]:
    return {
        "protocolVersion": PROTOCOL,
        "agentInfo": {"name": "compactd", "title": "compactd", "version": __version__},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"embeddedContext": True},
            "sessionCapabilities": {"close": {}},
        },
        "authMethods": [],
    }


def _compaction_end(name: str, fields: Mapping[str, Json]) -> bytes:
    compaction_id, status = str(fields["compaction_id"]), str(fields["status"])
    result, error = fields.get("result"), fields.get("error")
    if status == "completed" and isinstance(result, dict):
        summary = [{"type": "text", "text": str(result.get("summary", ""))}]
        return acp_lines.compaction_line(name, compaction_id, "completed", summary=summary)
    if status == "failed" and isinstance(error, dict):
        return acp_lines.compaction_line(name, compaction_id, "failed", error=str(error.get("message", "")))
    return acp_lines.compaction_line(name, compaction_id, "cancelled")


def _replay(name: str, raw: Raw) -> list[bytes]:
    message = decode_message(bytes(raw))
    lines: list[bytes] = []
    kind = "user_message_chunk" if message.role == "user" else "agent_message_chunk"
    for block in message.content:
        if isinstance(block, Text) and message.role in ("user", "assistant"):
            lines.append(acp_lines.text_update(name, block.text, kind))
        elif isinstance(block, Document) and message.role == "user" and block.text:
            file = {"uri": block.title or "file", "text": block.text}
            lines.append(
                acp_lines.update_line(name, kind, {"content": {"type": "resource", "resource": file}})
            )
        elif isinstance(block, ToolCall):
            call = {"toolCallId": block.call_id, "title": block.name, "status": "completed"}
            lines.append(acp_lines.update_line(name, "tool_call", call))
    return lines
