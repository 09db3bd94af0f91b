"""The tools of compactd's ACP agent. They run in the editor, which asks the user for permission if needed.

Files in the session's folder are read without asking, but not through links that lead out of it. Everything
else needs permission. "Always" allows exactly that command or that file again, nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from compactd.client.frames import Json
from compactd.integrations.acp import acp_lines
from compactd.integrations.acp.acp_lines import RequestRefused
from compactd.integrations.acp.peer import Peer
from compactd.integrations.mcp.recall_text import mark_controls

OUTPUT_BYTES = 100_000
"""The most bytes of a command's output; only the end is kept."""

_PATH: Final = {"type": "string", "description": "Absolute path."}


def _tool(name: str, told: str, required: tuple[str, ...], **properties: object) -> Mapping[str, object]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": told, "input_schema": schema}


READ = _tool(
    "read_file",
    "Reads a text file, with what is not saved in the editor yet; outside the working directory the person "
    "is asked first.",
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
_ALWAYS = {
    "read_file": "Always allow reading this file in this session",
    "write_file": "Always allow writing this file in this session",
    "run_command": "Always allow exactly this command in this session",
}


class ToolWork(NamedTuple):
    """What a tool call does."""

    subject: str
    """The command, or the absolute path of the file after following links (see `resolve_path`)."""
    act: Callable[[], Awaitable[str]]
    """The function that does the work and returns the text for the model."""
    is_allowed: bool = False
    """Whether the work needs no permission."""


def offered_tools(initialize: Mapping[str, Json]) -> tuple[Mapping[str, object], ...]:
    """Return the tools that an editor can run. `initialize`: the params of the editor's `initialize`, which
    contain its capabilities.
    """
    capabilities = initialize.get("clientCapabilities")
    given = capabilities if isinstance(capabilities, dict) else {}
    fs = given.get("fs")
    files = fs if isinstance(fs, dict) else {}
    return (
        *((READ,) if files.get("readTextFile") is True else ()),
        *((WRITE,) if files.get("writeTextFile") is True else ()),
        *((RUN,) if given.get("terminal") is True else ()),
    )


def resolve_path(folder: str, path: str) -> tuple[str, bool]:
    """Return (the path to which `path` leads after following links, whether that is in `folder`). The call
    reads the file system, so it may block.

    If the result is in the folder, it begins with `folder` as given, even if `folder` is a link, because the
    editor knows the files by that path. Raise `RequestRefused` if `path` is not a path or its links form a
    circle.
    """
    try:
        root = Path(folder).resolve()
        place = Path(folder, path).resolve()
        if place.resolve() != place:
            raise OSError("links in a circle")
    except (OSError, ValueError, RuntimeError):
        raise RequestRefused(acp_lines.INVALID_PARAMS, "that is no path of a file") from None
    if not place.is_relative_to(root):
        return str(place), False
    return str(Path(folder, place.relative_to(root))), True


class Tools:
    """The tools of one session."""

    def __init__(self, peer: Peer, session_id: str, folder: str) -> None:
        self._peer = peer
        self._id = session_id
        self._folder = folder
        self._allowed: set[tuple[str, str]] = set()
        """(tool, the whole command or the file's path) for each tool call that the user always allows."""

    async def run(self, call_id: str, name: str, arguments: Mapping[str, Json]) -> dict[str, object]:
        """Run a tool and return its result in the form of the daemon's `tool/execute`. The editor shows the
        call while the tool runs.
        """
        given = str(arguments.get("command" if name == "run_command" else "path", ""))
        call: dict[str, object] = {
            "toolCallId": call_id,
            "title": mark_controls(f"{name.replace('_', ' ')}: {given}"),
            "kind": _KINDS.get(name, "other"),
            "rawInput": arguments,
        }
        try:
            work: ToolWork | RequestRefused = await self._work(name, arguments)
        except RequestRefused as refused:
            work = refused
        if isinstance(work, ToolWork) and name != "run_command":
            call["locations"] = [{"path": work.subject}]
            if work.subject != given:
                call["title"] = mark_controls(f"{call['title']} → {work.subject}")
        await self._peer.send(acp_lines.update_line(self._id, "tool_call", {**call, "status": "pending"}))
        try:
            if isinstance(work, RequestRefused):
                raise work
            if not work.is_allowed:
                await self._ask(name, work.subject, call)
            await self._report(call_id, "in_progress")
            text = await work.act()
        except RequestRefused as refused:
            await self._report(call_id, "failed", str(refused))
            return {"content": str(refused), "is_error": True}
        await self._report(call_id, "completed", text)
        return {"content": text}

    async def _work(self, name: str, arguments: Mapping[str, Json]) -> ToolWork:
        """Return the work that a tool call asks for. Raise `RequestRefused` if its arguments are wrong."""
        match name, arguments:
            case "read_file", {"path": str(path)}:
                place, is_inside = await asyncio.to_thread(resolve_path, self._folder, path)
                return ToolWork(place, partial(self._read, place, arguments), is_allowed=is_inside)
            case "write_file", {"path": str(path), "content": str(content)}:
                place, _ = await asyncio.to_thread(resolve_path, self._folder, path)
                return ToolWork(place, partial(self._write, place, content))
            case "run_command", {"command": str(command)}:
                return ToolWork(command, partial(self._run_command, command))
            case _:
                raise RequestRefused(acp_lines.INVALID_PARAMS, f"{name} does not take these arguments")

    async def _read(self, path: str, arguments: Mapping[str, Json]) -> str:
        part = {each: arguments[each] for each in ("line", "limit") if each in arguments}
        read = await self._peer.ask("fs/read_text_file", self._session_field(path=path, **part))
        return str(read.get("content", ""))

    async def _write(self, path: str, content: str) -> str:
        await self._peer.ask("fs/write_text_file", self._session_field(path=path, content=content))
        return f"{path} is written."

    async def _run_command(self, command: str) -> str:
        created = await self._peer.ask(
            "terminal/create",
            self._session_field(
                command="sh", args=["-c", command], cwd=self._folder, outputByteLimit=OUTPUT_BYTES
            ),
        )
        terminal = self._session_field(terminalId=created.get("terminalId"))
        try:
            ended = await self._peer.ask("terminal/wait_for_exit", terminal)
            output = await self._peer.ask("terminal/output", terminal)
        finally:
            await self._peer.ask("terminal/release", terminal)
        code, signal = ended.get("exitCode"), ended.get("signal")
        cut = "(only the end)\n" if output.get("truncated") is True else ""
        return f"{cut}{output.get('output', '')}\n[{f'signal {signal}' if signal else f'exit code {code}'}]"

    async def _ask(self, name: str, subject: str, call: Mapping[str, object]) -> None:
        """Ask the user for permission, unless the user always allows this. Raise `RequestRefused` if the user
        does not allow it.
        """
        allowed = (name, subject)
        if allowed in self._allowed:
            return
        options = (
            {"optionId": "once", "name": "Allow", "kind": "allow_once"},
            {"optionId": "always", "name": _ALWAYS[name], "kind": "allow_always"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once"},
        )
        params = self._session_field(toolCall=call, options=options)
        outcome = (await self._peer.ask("session/request_permission", params)).get("outcome")
        chosen = outcome.get("optionId") if isinstance(outcome, dict) else None
        if chosen == "always":
            self._allowed.add(allowed)
        elif chosen != "once":
            raise RequestRefused(acp_lines.INTERNAL, "the person did not allow it")

    async def _report(self, call_id: str, status: str, text: str = "") -> None:
        content = (
            {"content": [{"type": "content", "content": {"type": "text", "text": text}}]} if text else {}
        )
        fields = {"toolCallId": call_id, "status": status, **content}
        await self._peer.send(acp_lines.update_line(self._id, "tool_call_update", fields))

    def _session_field(self, **fields: object) -> dict[str, object]:
        return {"sessionId": self._id, **fields}
