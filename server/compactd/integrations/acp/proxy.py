"""`compactd acp -- AGENT`: a proxy between an ACP client and an ACP agent.

Most lines pass unchanged. The proxy reads prompts, updates and requests that open sessions. It changes the
ids of sessions that were compacted, prompts that carry a summary, and lists of commands, to which it adds its
own.

ACP has no way to tell an agent to forget. `/compact` therefore opens a new session in the agent, and the next
prompt carries compactd's summary and the newest messages into it. The client keeps using the id it knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path

from msgspec import UNSET, Raw, Struct

from compactd._runtime.programs import resolved_command
from compactd.client.asynchronous import AsyncClient
from compactd.client.events import DaemonGone, RpcError
from compactd.client.frames import Json
from compactd.integrations.acp import commands, wire
from compactd.integrations.acp.session import DAEMON_S, Mirrored
from compactd.integrations.acp.turns import prompt_content, typed_text
from compactd.integrations.acp.updates import named, update_of, with_ours
from compactd.integrations.acp.wire import Id, Line
from compactd.integrations.mcp.recall_text import plain
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import TokenUsage

CHOICES = ("session/set_mode", "session/set_config_option", "session/set_model")
OPENING = ("session/new", "session/load", "session/resume", "session/fork")
FAILURES = (CompactdError, RpcError, DaemonGone, TimeoutError, OSError)
"""Errors of the daemon, or of the connection to it."""
NEW_SESSION_S = 60.0
END_S = 10.0
"""Seconds that an agent may take to exit after its input is closed."""


class _Asked(Struct, frozen=True):
    """A request of the client that the agent has not answered yet."""

    method: str
    params: Raw
    session: Mirrored | None


class Proxy:
    """The proxy's connections to the ACP client and to the agent, and the sessions whose messages it passes
    on.
    """

    def __init__(
        self,
        client: AsyncClient,
        to_client: wire.Out,
        start: Mapping[str, object],
        environ: Mapping[str, str],
    ) -> None:
        """Create the proxy. `client`: the connection to the daemon. `to_client`: the pipe to the ACP client.
        `start`: the model of each session, as params of `session/start`.
        """
        self._client = client
        self._to_client = to_client
        self._start = start
        self._environ = environ
        self._to_agent: asyncio.StreamWriter | None = None
        self._asked: dict[Id, _Asked] = {}
        self._own: dict[str, asyncio.Future[Line]] = {}
        self._last_own = 0
        # The random part ensures that no request of the client has the same id.
        self._own_id = f"compactd-{secrets.token_hex(8)}-"
        self._log = wire.Log()
        self._by_client: dict[str, Mirrored] = {}
        self._by_agent: dict[str, Mirrored] = {}
        self._takes_compactions = False
        self._closes_sessions = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, command: Sequence[str], from_client: asyncio.StreamReader) -> int:
        """Start the agent `command` and pass lines on until it exits. Return its exit code. Raise `OSError`
        if the agent cannot be started.
        """
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
            try:
                passed = await self._looked_at(data)
            except Exception as error:
                # Whatever a line contains, the editor's session continues.
                self._log.write(
                    f"{type(error).__name__} while reading a line from the editor; the line is passed on to "
                    "the agent unchanged"
                )
                passed = data
            if passed:
                await self._pass(passed)

    async def _looked_at(self, data: bytes) -> bytes:
        """Return the line to send to the agent for `data`, a line of the client; empty if compactd answers
        the line itself.
        """
        line, readable = wire.read_line(data)
        if line is None:
            self._log.write(
                f"a line of {len(data):,} bytes from the editor is not a valid ACP message; it is passed on "
                "to the agent unchanged"
            )
            return data
        if not isinstance(line.method, str) or not isinstance(line.params, Raw):
            return data
        passed = await self._from_client(line, line.method, line.params, readable)
        return data if passed is readable else passed

    async def _from_client(self, line: Line, method: str, params: Raw, data: bytes) -> bytes:
        """Return the line to send to the agent: `data` itself if nothing is changed."""
        given = wire.fields(params)
        name = wire.string(given.get("sessionId"))
        session = None if name is None else self._by_client.get(name)
        if method in OPENING and name is not None and session is None and method != "session/fork":
            session = Mirrored(name, params, self._environ)
        if isinstance(line.id, int | str):
            self._asked[line.id] = _Asked(method, params, session)
        if method == "initialize":
            self._takes_compactions = wire.takes_compactions(wire.table(params))
        if session is None:
            return data
        self._know(session)
        if method == "session/prompt" and isinstance(line.id, int | str):
            return await self._prompted(session, line.id, given, data)
        if method in CHOICES:
            session.choices[f"{method} {wire.string(given.get('configId')) or ''}"] = (method, given)
        return wire.changed(data, {"sessionId": session.agent_id}) if session.agent_id != session.id else data

    async def _prompted(
        self, session: Mirrored, request_id: Id, given: Mapping[str, Raw], data: bytes
    ) -> bytes:
        blocks = wire.elements(given.get("prompt"))
        found = commands.command_of(typed_text(blocks or ()))
        if found is not None:
            self._asked.pop(request_id, None)
            self._soon(self._command(session, request_id, *found))
            return b""
        if session.is_compacting:
            self._asked.pop(request_id, None)
            busy = wire.Failure(
                wire.INTERNAL,
                "a compaction of this session is running; send the prompt again when it has ended",
            )
            self._soon(self._to_client.write(wire.refusal(request_id, busy)))
            return b""
        session.asked(prompt_content(blocks or ()))
        if session.agent_id == session.id and not session.is_due:
            return data
        changes: dict[str, object] = {"sessionId": session.agent_id}
        if not session.is_due or blocks is None:
            return wire.changed(data, changes)
        try:
            before = {"type": "text", "text": await session.handover(self._client)}
        except FAILURES as error:
            self._log.write(
                f"{type(error).__name__} while reading the session's summary; it will be sent to the agent "
                "with the next prompt"
            )
            return wire.changed(data, changes)
        passed = wire.changed(data, {**changes, "prompt": [before, *blocks]})
        with contextlib.suppress(OSError):
            session.delivered()
        return passed

    # --- from the agent to the client -----------------------------------------------------------------

    async def _down(self, reader: asyncio.StreamReader) -> None:
        while data := await wire.next_line(reader):
            try:
                passed = await self._heard(data)
            except Exception as error:
                # Whatever a line contains, the editor's session continues.
                self._log.write(
                    f"{type(error).__name__} while reading a line from the agent; the line is passed on to "
                    "the editor unchanged"
                )
                passed = (data,)
            for line in passed:
                await self._to_client.write(line)

    async def _heard(self, data: bytes) -> tuple[bytes, ...]:
        """Return the lines to send to the client for `data`, a line of the agent; none if the line answers
        one of the proxy's own requests.
        """
        line, readable = wire.read_line(data)
        if line is None:
            self._log.write(
                f"a line of {len(data):,} bytes from the agent is not a valid ACP message; it is passed on "
                "to the editor unchanged"
            )
            return (data,)
        if isinstance(line.method, str):
            passed = self._from_agent(line, line.method, readable)
            return (data if passed is readable else passed,)
        if isinstance(line.id, str) and line.id in self._own:
            waiting = self._own.pop(line.id)
            if not waiting.done():
                waiting.set_result(line)
            return ()
        return await self._answered(line, data)

    def _from_agent(self, line: Line, method: str, data: bytes) -> bytes:
        """Return the line to send to the client: `data` itself if nothing is changed."""
        if not isinstance(line.params, Raw):
            return data
        given = named(line.params)
        session = self._by_agent.get(given.session_id)
        if session is None:
            return data
        changes: dict[str, object] = {}
        if session.id != given.session_id:
            changes["sessionId"] = session.id
        if method == "session/update":
            update = update_of(given.update)
            if update is None:
                self._log.write(
                    "an update from the agent that cannot be read is not stored; it is passed on to the "
                    "editor unchanged"
                )
            else:
                session.take(update)
                if update.session_update == "available_commands_update":
                    changes["update"] = with_ours(given.update)
        return wire.changed(data, changes) if changes else data

    async def _answered(self, line: Line, data: bytes) -> tuple[bytes, ...]:
        """Return the lines to send to the client for `data`, an answer of the agent. `data` is
        one of them.
        """
        asked = self._asked.pop(line.id, None) if isinstance(line.id, int | str) else None
        if asked is None or line.error is not UNSET:
            if asked is not None and asked.session is not None and asked.method == "session/prompt":
                await self._ended(asked.session)
            return (data,)
        match asked.method:
            case "initialize":
                capabilities = wire.table(line.result).get("agentCapabilities")
                inner = capabilities.get("sessionCapabilities") if isinstance(capabilities, dict) else None
                self._closes_sessions = isinstance(inner, dict) and isinstance(inner.get("close"), dict)
                return (data,)
            case "session/new" | "session/fork":
                name = wire.string(wire.fields(line.result).get("sessionId"))
                session = None if name is None else Mirrored(name, asked.params, self._environ)
                return (data,) if session is None else await self._opened(session, data)
            case "session/load" | "session/resume":
                return (data,) if asked.session is None else await self._opened(asked.session, data)
            case "session/prompt" if asked.session is not None:
                return (*self._gauge(asked.session, await self._ended(asked.session)), data)
            case _:
                return (data,)

    async def _ended(self, session: Mirrored) -> TokenUsage | None:
        """Store the turn that ended in the session's mirror, and return the mirror's token usage. If that
        fails or takes too long, write a log line and return None.
        """
        try:
            return await session.ended(self._client, self._start)
        except (RpcError, DaemonGone, TimeoutError) as error:
            fate = (
                "the turn is stored in compactd's copy of the session after the next turn"
                if session.holds_turn
                else "the turn may be missing in compactd's copy of the session"
            )
            self._log.write(f"{type(error).__name__} at the end of a turn; {fate}")
            return None

    async def _opened(self, session: Mirrored, data: bytes) -> tuple[bytes, ...]:
        self._know(session)
        usage: TokenUsage | None = None
        try:
            async with asyncio.timeout(DAEMON_S):
                usage = await session.open(self._client, self._start)
        except (RpcError, DaemonGone, TimeoutError) as error:
            self._log.write(
                f"{type(error).__name__} while opening compactd's copy of a session; the conversation is "
                "stored from its next turn on"
            )
        ours: dict[str, object] = {"availableCommands": commands.COMMANDS}
        told = wire.update(session.id, "available_commands_update", ours)
        return (data, told, *self._gauge(session, usage))

    # --- commands and requests of compactd ------------------------------------------------------------

    async def _command(self, session: Mirrored, request_id: Id, name: commands.Name, rest: str) -> None:
        try:
            match name:
                case "compact":
                    text = await self._compact(session, rest)
                case "context":
                    text = await commands.context(self._client, session.mirror, session.gauge)
                case "sessions":
                    text = await commands.sessions(self._client, session.mirror)
        except (*FAILURES, ValueError, wire.Refused) as error:
            text = f"compactd failed: {plain(str(error))}"
        await self._to_client.write(wire.said(session.id, text))
        await self._to_client.write(wire.answer(request_id, {"stopReason": "end_turn"}))

    async def _compact(self, session: Mirrored, focus: str) -> str:
        if session.is_running or session.is_compacting:
            return "The agent is working. Use /compact again when it has finished."
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
            for line in self._gauge(session, state.token_usage):
                await self._to_client.write(line)
        return commands.told(result)

    async def _move(self, session: Mirrored) -> None:
        """Continue `session` in a new session of the agent, with the same modes and settings."""
        opened = wire.fields(session.opened)
        opened.pop("sessionId", None)
        answer = await self._ask_agent("session/new", opened)
        agent_id = answer.get("sessionId")
        if not isinstance(agent_id, str):
            raise wire.Refused(
                wire.INTERNAL,
                "the agent did not open the new session into which the compacted conversation should move",
            )
        old = session.agent_id
        session.moved(agent_id, is_due=True)
        self._know(session)
        for method, params in session.choices.values():
            with contextlib.suppress(wire.Refused):
                await self._ask_agent(method, {**params, "sessionId": agent_id})
        if self._closes_sessions:
            with contextlib.suppress(wire.Refused):
                await self._ask_agent("session/close", {"sessionId": old})

    async def _ask_agent(self, method: str, params: Mapping[str, object]) -> dict[str, Json]:
        self._last_own += 1
        request_id = f"{self._own_id}{self._last_own}"
        waiting: asyncio.Future[Line] = asyncio.get_running_loop().create_future()
        self._own[request_id] = waiting
        try:
            await self._pass(wire.request(request_id, method, params))
            async with asyncio.timeout(NEW_SESSION_S):
                line = await waiting
        finally:
            self._own.pop(request_id, None)
        if line.error is not UNSET:
            message = wire.table(line.error).get("message")
            raise wire.Refused(wire.INTERNAL, f"the agent refused {method}: {message}")
        return wire.table(line.result)

    def _gauge(self, session: Mirrored, usage: TokenUsage | None) -> tuple[bytes, ...]:
        """Return an update that shows how full the context is; empty if the agent itself reports that."""
        if session.gauge is not None or usage is None or not usage.context_window:
            return ()
        return (wire.usage(session.id, usage.current_context_tokens or 0, usage.context_window),)

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
