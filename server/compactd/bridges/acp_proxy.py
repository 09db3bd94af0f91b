"""`compactd acp -- AGENT`: between an ACP client and an ACP agent.

Lines pass as they are. Looked at are prompts, updates and what opens a session; changed are ids of sessions
that were compacted, prompts that carry a summary, and lists of commands, which ours are added to.

An agent cannot be told to forget. `/compact` opens a new session in it, and the next prompt carries our
summary and the newest messages there; the client goes on with the id it knows.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET, Raw, Struct

from compactd.bridges import acp_commands as commands
from compactd.bridges import acp_wire as wire
from compactd.bridges.acp_session import DAEMON_S, Mirrored
from compactd.bridges.acp_turns import Update, prompt_text
from compactd.bridges.acp_wire import Id, Line
from compactd.client.asynchronous import AsyncClient
from compactd.client.frames import Json
from compactd.client.told import DaemonGone, RpcError
from compactd.messages import TokenUsage
from compactd.programs import resolved_command

CHOICES = ("session/set_mode", "session/set_config_option", "session/set_model")
OPENING = ("session/new", "session/load", "session/resume", "session/fork")
OWN_ID = "compactd-"
NEW_SESSION_S = 60.0
END_S = 10.0
"""How long an agent may take to end once its input has."""


class _Asked(Struct, frozen=True):
    """A request of the client's that the agent has not answered."""

    method: str
    params: Raw
    session: Mirrored | None


class Proxy:
    """Two pipes, and what is known of the sessions that pass through them."""

    def __init__(
        self,
        client: AsyncClient,
        to_client: wire.Out,
        start: Mapping[str, object],
        environ: Mapping[str, str],
    ) -> None:
        """`start`: what is told of each session's model, as params of `session/start`."""
        self._client = client
        self._to_client = to_client
        self._start = start
        self._environ = environ
        self._to_agent: asyncio.StreamWriter | None = None
        self._asked: dict[Id, _Asked] = {}
        self._own: dict[str, asyncio.Future[Line]] = {}
        self._last_own = 0
        self._by_client: dict[str, Mirrored] = {}
        self._by_agent: dict[str, Mirrored] = {}
        self._takes_compactions = False
        self._closes_sessions = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, command: Sequence[str], from_client: asyncio.StreamReader) -> int:
        """Until the agent ends; its exit code. Raises `OSError` where it cannot be started."""
        program = resolved_command(command[0], self._environ.get("PATH"), Path.cwd())
        process = await asyncio.create_subprocess_exec(
            program,
            *command[1:],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=wire.MOST_LINE,
            env=dict(self._environ),
        )
        from_agent, self._to_agent = process.stdout, process.stdin
        assert from_agent is not None
        up = asyncio.create_task(self._up(from_client))
        down = asyncio.create_task(self._down(from_agent))
        try:
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
            if self._to_agent is not None:
                self._to_agent.close()
            async with asyncio.timeout(END_S):
                await down
                return await process.wait()
        except TimeoutError:
            process.kill()
            return await process.wait()
        finally:
            for task in (up, down, *self._tasks):
                task.cancel()
            if process.returncode is None:
                process.kill()

    # --- from the client to the agent -----------------------------------------------------------------

    async def _up(self, reader: asyncio.StreamReader) -> None:
        while data := await wire.next_line(reader):
            line = wire.line_of(data)
            if line is not None and isinstance(line.method, str) and isinstance(line.params, Raw):
                passed = await self._from_client(line, line.method, line.params, data)
            else:
                passed = data
            if passed:
                await self._pass(passed)

    async def _from_client(self, line: Line, method: str, params: Raw, data: bytes) -> bytes:
        """What goes on to the agent; nothing where it is ours to answer."""
        given = wire.table(params)
        name = given.get("sessionId")
        session = self._by_client.get(name) if isinstance(name, str) else None
        if method in OPENING and isinstance(name, str) and session is None and method != "session/fork":
            session = Mirrored(name, params, self._environ)
        if isinstance(line.id, int | str):
            self._asked[line.id] = _Asked(method, params, session)
        if method == "initialize":
            self._takes_compactions = wire.takes_compactions(given)
        if session is None:
            return data
        self._know(session)
        if method == "session/prompt" and isinstance(line.id, int | str):
            return await self._prompted(session, line.id, given, data)
        if method in CHOICES:
            session.choices[f"{method} {given.get('configId', '')}"] = (method, given)
        return _renamed(data, session.agent_id) if session.agent_id != session.id else data

    async def _prompted(
        self, session: Mirrored, request_id: Id, given: dict[str, Json], data: bytes
    ) -> bytes:
        found = commands.command_of(given.get("prompt"))
        if found is not None:
            self._asked.pop(request_id, None)
            self._soon(self._command(session, request_id, *found))
            return b""
        if session.is_compacting:
            self._asked.pop(request_id, None)
            busy = wire.Failure(wire.INTERNAL, "a compaction is running: ask again when it has ended")
            await self._to_client.write(wire.refusal(request_id, busy))
            return b""
        session.asked(prompt_text(given.get("prompt")))
        if session.agent_id == session.id and not session.is_due:
            return data
        prompt = given.get("prompt")
        blocks = list(prompt) if isinstance(prompt, list) else []
        if session.is_due:
            with contextlib.suppress(RpcError, DaemonGone, TimeoutError, OSError):
                blocks = [{"type": "text", "text": await session.handover(self._client)}, *blocks]
                session.delivered()
        return wire.request(
            request_id, "session/prompt", given | {"sessionId": session.agent_id, "prompt": blocks}
        )

    # --- from the agent to the client -----------------------------------------------------------------

    async def _down(self, reader: asyncio.StreamReader) -> None:
        while data := await wire.next_line(reader):
            line = wire.line_of(data)
            if line is None:
                await self._to_client.write(data)
            elif isinstance(line.method, str):
                await self._to_client.write(self._from_agent(line, line.method, data))
            elif isinstance(line.id, str) and line.id in self._own:
                self._own.pop(line.id).set_result(line)
            else:
                await self._answered(line, data)

    def _from_agent(self, line: Line, method: str, data: bytes) -> bytes:
        """What goes on to the client."""
        if not isinstance(line.params, Raw):
            return data
        given = _named(line.params)
        session = self._by_agent.get(given.session_id)
        if session is None:
            return data
        if method == "session/update":
            update = _update(given.update)
            if update is not None:
                session.take(update)
                if update.session_update == "available_commands_update":
                    return wire.update(session.id, update.session_update, _with_ours(given.update))
        return data if session.id == given.session_id else _renamed(data, session.id)

    async def _answered(self, line: Line, data: bytes) -> None:
        asked = self._asked.pop(line.id, None) if isinstance(line.id, int | str) else None
        if asked is None or line.error is not UNSET:
            if asked is not None and asked.session is not None and asked.method == "session/prompt":
                await asked.session.ended(self._client)
            await self._to_client.write(data)
            return
        match asked.method:
            case "initialize":
                capabilities = wire.table(line.result).get("agentCapabilities")
                inner = capabilities.get("sessionCapabilities") if isinstance(capabilities, dict) else None
                self._closes_sessions = isinstance(inner, dict) and isinstance(inner.get("close"), dict)
                await self._to_client.write(data)
            case "session/new" | "session/fork":
                name = wire.table(line.result).get("sessionId")
                session = Mirrored(name, asked.params, self._environ) if isinstance(name, str) else None
                await self._opened(session, data)
            case "session/load" | "session/resume":
                await self._opened(asked.session, data)
            case "session/prompt" if asked.session is not None:
                usage = await asked.session.ended(self._client)
                await self._gauge(asked.session, usage)
                await self._to_client.write(data)
            case _:
                await self._to_client.write(data)

    async def _opened(self, session: Mirrored | None, data: bytes) -> None:
        if session is None:
            await self._to_client.write(data)
            return
        self._know(session)
        usage: TokenUsage | None = None
        with contextlib.suppress(RpcError, DaemonGone, TimeoutError):
            async with asyncio.timeout(DAEMON_S):
                usage = await session.open(self._client, self._start)
        await self._to_client.write(data)
        ours: dict[str, object] = {"availableCommands": commands.COMMANDS}
        await self._to_client.write(wire.update(session.id, "available_commands_update", ours))
        await self._gauge(session, usage)

    # --- what is ours ---------------------------------------------------------------------------------

    async def _command(self, session: Mirrored, request_id: Id, name: commands.Name, rest: str) -> None:
        try:
            match name:
                case "compact":
                    text = await self._compact(session, rest)
                case "context":
                    text = await commands.context(self._client, session.mirror, session.gauge)
                case "sessions":
                    text = await commands.sessions(self._client, session.mirror)
        except (RpcError, DaemonGone, TimeoutError, OSError, wire.Refused) as error:
            text = f"compactd could not do that: {error}"
        await self._to_client.write(wire.said(session.id, text))
        await self._to_client.write(wire.answer(request_id, {"stopReason": "end_turn"}))

    async def _compact(self, session: Mirrored, focus: str) -> str:
        if session.is_running or session.is_compacting:
            return "The agent is at work: ask again when it has ended."
        session.is_compacting = True
        try:
            result = await commands.compacted(self._client, session.mirror, focus)
            if not result.compacted:
                return commands.told(result)
            try:
                await self._move(session)
            except (wire.Refused, TimeoutError, OSError):
                await self._client.session_undo(session_id=session.mirror)
                raise
        finally:
            session.is_compacting = False
        if self._takes_compactions:
            summary = [{"type": "text", "text": result.summary}]
            name = result.compaction_id or "compaction"
            await self._to_client.write(wire.compaction(session.id, name, "completed", summary=summary))
        state = await self._client.agent_state(session_id=session.mirror)
        if session.gauge is not None:
            size = session.gauge[1]
            session.gauge = None
            await self._to_client.write(wire.usage(session.id, result.tokens_after, size))
        else:
            await self._gauge(session, state.token_usage)
        return commands.told(result)

    async def _move(self, session: Mirrored) -> None:
        """To a new session of the agent's, with the same modes and settings."""
        opened = wire.table(session.opened)
        opened.pop("sessionId", None)
        answer = await self._ask_agent("session/new", opened)
        agent_id = answer.get("sessionId")
        if not isinstance(agent_id, str):
            raise wire.Refused(wire.INTERNAL, "the agent opened no new session")
        old = session.agent_id
        session.moved(agent_id, is_due=True)
        self._know(session)
        for method, params in session.choices.values():
            with contextlib.suppress(wire.Refused):
                await self._ask_agent(method, params | {"sessionId": agent_id})
        if self._closes_sessions:
            with contextlib.suppress(wire.Refused):
                await self._ask_agent("session/close", {"sessionId": old})

    async def _ask_agent(self, method: str, params: Mapping[str, object]) -> dict[str, Json]:
        self._last_own += 1
        request_id = f"{OWN_ID}{self._last_own}"
        waiting: asyncio.Future[Line] = asyncio.get_running_loop().create_future()
        self._own[request_id] = waiting
        await self._pass(wire.request(request_id, method, params))
        async with asyncio.timeout(NEW_SESSION_S):
            line = await waiting
        if line.error is not UNSET:
            message = wire.table(line.error).get("message")
            raise wire.Refused(wire.INTERNAL, f"the agent refused {method}: {message}")
        return wire.table(line.result)

    async def _gauge(self, session: Mirrored, usage: TokenUsage | None) -> None:
        """Tells how full the context is, unless the agent does it itself."""
        if session.gauge is None and usage is not None and usage.context_window:
            used = usage.current_context_tokens or 0
            await self._to_client.write(wire.usage(session.id, used, usage.context_window))

    async def _pass(self, line: bytes) -> None:
        if self._to_agent is not None:
            self._to_agent.write(line)
            with contextlib.suppress(OSError):
                await self._to_agent.drain()

    def _know(self, session: Mirrored) -> None:
        self._by_client[session.id] = session
        self._by_agent[session.agent_id] = session

    def _soon(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _renamed(data: bytes, session_id: str) -> bytes:
    """The same line with another session's id."""
    whole = msgspec.json.decode(data, type=dict[str, Raw])
    fields = msgspec.json.decode(whole["params"], type=dict[str, Raw])
    fields["sessionId"] = Raw(msgspec.json.encode(session_id))
    whole["params"] = Raw(msgspec.json.encode(fields))
    return msgspec.json.encode(whole).replace(b"\n", b" ") + b"\n"


class _Named(Struct, frozen=True, rename="camel"):
    session_id: str = ""
    update: Raw = Raw(b"null")


def _named(params: Raw) -> _Named:
    try:
        return msgspec.json.decode(params, type=_Named)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Named()


def _update(raw: Raw) -> Update | None:
    try:
        return msgspec.json.decode(raw, type=Update)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _with_ours(update: Raw) -> dict[str, Json]:
    fields = wire.table(update)
    fields.pop("sessionUpdate", None)
    theirs = fields.get("availableCommands")
    names = [one["name"] for one in commands.COMMANDS]
    kept: list[Json] = [
        one
        for one in (theirs if isinstance(theirs, list) else [])
        if not (isinstance(one, dict) and one.get("name") in names)
    ]
    kept.extend(commands.COMMANDS)
    return {**fields, "availableCommands": kept}
