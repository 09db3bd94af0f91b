"""Tools that our own agent offers its model: they run in the editor, which asks the person where it must."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from compactd.bridges import acp_wire as wire
from compactd.bridges.acp_peer import Peer
from compactd.bridges.acp_wire import Refused
from compactd.client.frames import Json

OUTPUT_BYTES = 100_000
"""Of a command's output: its end."""

_PATH: Final = {"type": "string", "description": "Absolute path."}


def _tool(name: str, told: str, required: tuple[str, ...], **properties: object) -> Mapping[str, object]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": told, "input_schema": schema}


READ = _tool(
    "read_file",
    "Reads a text file, with what is not saved in the editor yet.",
    ("path",),
    path=_PATH,
    line={"type": "integer", "description": "First line, from 1."},
    limit={"type": "integer", "description": "Lines at most."},
)
WRITE = _tool(
    "write_file",
    "Writes a text file whole; the person is asked first.",
    ("path", "content"),
    path=_PATH,
    content={"type": "string", "description": "All of the file."},
)
RUN = _tool(
    "run_command",
    "Runs a shell command in the working directory; the person is asked first.",
    ("command",),
    command={"type": "string", "description": "For sh -c."},
)
_KINDS = {"read_file": "read", "write_file": "edit", "run_command": "execute"}
_OPTIONS = (
    {"optionId": "once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow in this session", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
)


def offered(initialize: Mapping[str, Json]) -> tuple[Mapping[str, object], ...]:
    """The tools that a client with these capabilities can run."""
    capabilities = initialize.get("clientCapabilities")
    given = capabilities if isinstance(capabilities, dict) else {}
    fs = given.get("fs")
    files = fs if isinstance(fs, dict) else {}
    return (
        *((READ,) if files.get("readTextFile") is True else ()),
        *((WRITE,) if files.get("writeTextFile") is True else ()),
        *((RUN,) if given.get("terminal") is True else ()),
    )


class Tools:
    """Of one session."""

    def __init__(self, peer: Peer, session_id: str, folder: str) -> None:
        self._peer = peer
        self._id = session_id
        self._folder = folder
        self._allowed: set[str] = set()

    async def run(self, call_id: str, name: str, arguments: Mapping[str, Json]) -> dict[str, object]:
        """A tool's result as the daemon takes it; shown in the editor while it runs."""
        subject = str(arguments.get("command" if name == "run_command" else "path", ""))
        call: dict[str, object] = {
            "toolCallId": call_id,
            "title": f"{name.replace('_', ' ')}: {subject}",
            "kind": _KINDS.get(name, "other"),
            "rawInput": arguments,
        }
        if name != "run_command" and subject.startswith("/"):
            call["locations"] = [{"path": subject}]
        await self._peer.send(wire.update(self._id, "tool_call", {**call, "status": "pending"}))
        try:
            if name != "read_file":
                await self._ask(name, call)
            await self._told(call_id, "in_progress")
            text = await self._done(name, arguments)
        except Refused as refused:
            await self._told(call_id, "failed", str(refused))
            return {"content": str(refused), "is_error": True}
        await self._told(call_id, "completed", text)
        return {"content": text}

    async def _done(self, name: str, arguments: Mapping[str, Json]) -> str:
        match name, arguments:
            case "read_file", {"path": str(path)}:
                given = {each: arguments[each] for each in ("line", "limit") if each in arguments}
                read = await self._peer.ask("fs/read_text_file", self._named(path=path, **given))
                return str(read.get("content", ""))
            case "write_file", {"path": str(path), "content": str(content)}:
                await self._peer.ask("fs/write_text_file", self._named(path=path, content=content))
                return f"{path} is written."
            case "run_command", {"command": str(command)}:
                return await self._ran(command)
            case _:
                raise Refused(wire.INVALID_PARAMS, f"{name} does not take these arguments")

    async def _ran(self, command: str) -> str:
        created = await self._peer.ask(
            "terminal/create",
            self._named(command="sh", args=["-c", command], cwd=self._folder, outputByteLimit=OUTPUT_BYTES),
        )
        terminal = self._named(terminalId=created.get("terminalId"))
        try:
            ended = await self._peer.ask("terminal/wait_for_exit", terminal)
            output = await self._peer.ask("terminal/output", terminal)
        finally:
            await self._peer.ask("terminal/release", terminal)
        code, signal = ended.get("exitCode"), ended.get("signal")
        cut = "(only the end)\n" if output.get("truncated") is True else ""
        return f"{cut}{output.get('output', '')}\n[{f'signal {signal}' if signal else f'exit code {code}'}]"

    async def _ask(self, name: str, call: Mapping[str, object]) -> None:
        """Raises `Refused` where the person does not want it."""
        if name in self._allowed:
            return
        params = self._named(toolCall=call, options=_OPTIONS)
        outcome = (await self._peer.ask("session/request_permission", params)).get("outcome")
        chosen = outcome.get("optionId") if isinstance(outcome, dict) else None
        if chosen == "always":
            self._allowed.add(name)
        elif chosen != "once":
            raise Refused(wire.INTERNAL, "the person did not allow it")

    async def _told(self, call_id: str, status: str, text: str = "") -> None:
        content = (
            {"content": [{"type": "content", "content": {"type": "text", "text": text}}]} if text else {}
        )
        fields = {"toolCallId": call_id, "status": status, **content}
        await self._peer.send(wire.update(self._id, "tool_call_update", fields))

    def _named(self, **fields: object) -> dict[str, object]:
        return {"sessionId": self._id, **fields}
