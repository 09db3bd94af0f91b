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
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path

from msgspec import UNSET, Raw, Struct

from compactd._runtime.programs import resolve_command
from compactd.client.asynchronous import AsyncClient
from compactd.client.events import DaemonGone, RpcError
from compactd.client.frames import ErrorObject, Json
from compactd.integrations.acp import acp_lines, commands
from compactd.integrations.acp.acp_lines import Id, RpcMessage
from compactd.integrations.acp.mirrored_session import DAEMON_S, MirroredSession
from compactd.integrations.acp.turn_messages import prompt_content, typed_text
from compactd.integrations.acp.updates import NamedSession, Update, add_commands
from compactd.integrations.mcp.recall_text import mark_controls
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import TokenUsage

CHOICES = ("session/set_mode", "session/set_config_option", "session/set_model")
OPENING = ("session/new", "session/load", "session/resume", "session/fork")
FAILURES = (CompactdError, RpcError, DaemonGone, TimeoutError, OSError)
"""Errors of the daemon, or of the connection to it."""
NEW_SESSION_S = 60.0
END_S = 10.0
"""Seconds that an agent may take to exit after its input is closed."""


class _PendingRequest(Struct, frozen=True):
    """A request of the client that the agent has not answered yet."""

    method: str
    params: Raw
    session: MirroredSession | None


class Proxy:
    """The proxy's connections to the ACP client and to the agent, and the sessions whose messages it passes
    on.
    """

    def __init__(
        self,
        client: AsyncClient,
        to_client: acp_lines.Out,
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
        self._asked: dict[Id, _PendingRequest] = {}
        self._own: dict[str, asyncio.Future[RpcMessage]] = {}
        self._last_own = 0
        # The random part ensures that no request of the client has the same id.
        self._own_id = f"compactd-{secrets.token_hex(8)}-"
        self._log = acp_lines.Log()
        self._by_client: dict[str, MirroredSession] = {}
        self._by_agent: dict[str, MirroredSession] = {}
        self._takes_compactions = False
        self._closes_sessions = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, command: Sequence[str], from_client: asyncio.StreamReader) -> int:
        """Start the agent `command` and pass lines on until it exits. Return its exit code. Raise `OSError`
        if the agent cannot be started.
        """
        program = resolve_command(command[0], self._environ.get("PATH"), Path.cwd())
        process = await asyncio.create_subprocess_exec(
            program,
            *command[1:],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=acp_lines.MAX_LINE_BYTES,
            env=dict(self._environ),
        )
        from_agent, self._to_agent = process.stdout, process.stdin
        assert from_agent is not None
        up = asyncio.create_task(
            self._forward(from_client, self._on_client_line, self._send_to_agent, "editor", "agent")
        )
        down = asyncio.create_task(
            self._forward(from_agent, self._on_agent_line, self._to_client.write, "agent", "editor")
        )
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

    async def _forward(
        self,
        reader: asyncio.StreamReader,
        handle: Callable[[RpcMessage, bytes, bytes], Awaitable[tuple[bytes, ...]]],
        send: Callable[[bytes], Awaitable[None]],
        source: str,
        target: str,
    ) -> None:
        """Send the lines that `handle` returns for each line of `reader`. Whatever a line contains, the
        editor's session continues: a line that is no message or fails is passed on unchanged.

        `handle` gets the message, the bytes from which it was decoded, and the line itself.
        """
        while data := await acp_lines.next_line(reader):
            line, readable = acp_lines.read_line(data)
            passed: tuple[bytes, ...] = (data,)
            if line is None:
                self._log.write(
                    f"a line of {len(data):,} bytes from the {source} is not a valid ACP message; it is "
                    f"passed on to the {target} unchanged"
                )
            else:
                try:
                    passed = await handle(line, readable, data)
                except Exception as error:
                    self._log.write(
                        f"{type(error).__name__} while reading a line from the {source}; the line is passed "
                        f"on to the {target} unchanged"
                    )
            for one in passed:
                await send(one)

    # --- from the client to the agent -----------------------------------------------------------------

    async def _on_client_line(self, line: RpcMessage, readable: bytes, data: bytes) -> tuple[bytes, ...]:
        """Return the lines to send to the agent for `line`, a message of the client; none if compactd answers
        it itself.
        """
        if not isinstance(line.method, str) or not isinstance(line.params, Raw):
            return (data,)
        passed = await self._from_client(line, line.method, line.params, readable)
        if not passed:
            return ()
        return (data if passed is readable else passed,)

    async def _from_client(self, line: RpcMessage, method: str, params: Raw, data: bytes) -> bytes:
        """Return the line to send to the agent for `data`, the client's request or notification `line`:
        `data` itself if nothing is changed, empty if compactd answers the request itself.
        """
        given = acp_lines.fields(params)
        name = acp_lines.decode_as(given.get("sessionId"), str)
        session = None if name is None else self._by_client.get(name)
        if method in OPENING and name is not None and session is None and method != "session/fork":
            session = MirroredSession(name, params, self._environ)
        if isinstance(line.id, int | str):
            self._asked[line.id] = _PendingRequest(method, params, session)
        if method == "initialize":
            self._takes_compactions = acp_lines.accepts_compactions(acp_lines.decode_object(params))
        if session is None:
            return data
        self._remember_session(session)
        if method == "session/prompt" and isinstance(line.id, int | str):
            return await self._on_prompt(session, line.id, given, data)
        if method in CHOICES:
            option = acp_lines.decode_as(given.get("configId"), str) or ""
            session.choices[f"{method} {option}"] = (method, given)
        return (
            acp_lines.replace_params(data, {"sessionId": session.agent_id})
            if session.agent_id != session.id
            else data
        )

    async def _on_prompt(
        self, session: MirroredSession, request_id: Id, given: Mapping[str, Raw], data: bytes
    ) -> bytes:
        blocks = acp_lines.decode_as(given.get("prompt"), list[Raw])
        found = commands.command_of(typed_text(blocks or ()))
        if found is not None:
            self._asked.pop(request_id, None)
            self._run_soon(self._command(session, request_id, *found))
            return b""
        if session.is_compacting:
            self._asked.pop(request_id, None)
            busy = ErrorObject(
                acp_lines.INTERNAL,
                "a compaction of this session is running; send the prompt again when it has ended",
            )
            self._run_soon(self._to_client.write(acp_lines.answer_line(request_id, busy)))
            return b""
        session.begin_turn(prompt_content(blocks or ()))
        if session.agent_id == session.id and not session.is_due:
            return data
        changes: dict[str, object] = {"sessionId": session.agent_id}
        if not session.is_due or blocks is None:
            return acp_lines.replace_params(data, changes)
        try:
            before = {"type": "text", "text": await session.handover(self._client)}
        except FAILURES as error:
            self._log.write(
                f"{type(error).__name__} while reading the session's summary; it will be sent to the agent "
                "with the next prompt"
            )
            return acp_lines.replace_params(data, changes)
        passed = acp_lines.replace_params(data, {**changes, "prompt": [before, *blocks]})
        with contextlib.suppress(OSError):
            session.move_to(session.agent_id, is_due=False)
        return passed

    # --- from the agent to the client -----------------------------------------------------------------

    async def _on_agent_line(self, line: RpcMessage, readable: bytes, data: bytes) -> tuple[bytes, ...]:
        """Return the lines to send to the client for `line`, a message of the agent; none if it answers one
        of the proxy's own requests.
        """
        if isinstance(line.method, str):
            passed = self._from_agent(line, line.method, readable)
            return (data if passed is readable else passed,)
        if isinstance(line.id, str) and line.id in self._own:
            waiting = self._own.pop(line.id)
            if not waiting.done():
                waiting.set_result(line)
            return ()
        return await self._on_answer(line, data)

    def _from_agent(self, line: RpcMessage, method: str, data: bytes) -> bytes:
        """Return the line to send to the client for `data`, the agent's request or notification `line`:
        `data` itself if nothing is changed.
        """
        if not isinstance(line.params, Raw):
            return data
        given = acp_lines.decode_as(line.params, NamedSession) or NamedSession()
        session = self._by_agent.get(given.session_id)
        if session is None:
            return data
        changes: dict[str, object] = {}
        if session.id != given.session_id:
            changes["sessionId"] = session.id
        if method == "session/update":
            update = acp_lines.decode_as(given.update, Update)
            if update is None:
                self._log.write(
                    "an update from the agent that cannot be read is not stored; it is passed on to the "
                    "editor unchanged"
                )
            else:
                session.take(update)
                if update.session_update == "available_commands_update":
                    changes["update"] = add_commands(given.update)
        return acp_lines.replace_params(data, changes) if changes else data

    async def _on_answer(self, line: RpcMessage, data: bytes) -> tuple[bytes, ...]:
        """Return the lines to send to the client for `data`, an answer of the agent: `data` itself, and
        compactd's own lines before or after it.
        """
        asked = self._asked.pop(line.id, None) if isinstance(line.id, int | str) else None
        if asked is None or line.error is not UNSET:
            if asked is not None and asked.session is not None and asked.method == "session/prompt":
                await self._end_turn(asked.session)
            return (data,)
        match asked.method:
            case "initialize":
                capabilities = acp_lines.decode_object(line.result).get("agentCapabilities")
                inner = capabilities.get("sessionCapabilities") if isinstance(capabilities, dict) else None
                self._closes_sessions = isinstance(inner, dict) and isinstance(inner.get("close"), dict)
                return (data,)
            case "session/new" | "session/fork":
                name = acp_lines.decode_as(acp_lines.fields(line.result).get("sessionId"), str)
                session = None if name is None else MirroredSession(name, asked.params, self._environ)
                return (data,) if session is None else await self._on_opened(session, data)
            case "session/load" | "session/resume":
                return (data,) if asked.session is None else await self._on_opened(asked.session, data)
            case "session/prompt" if asked.session is not None:
                return (*self._gauge(asked.session, await self._end_turn(asked.session)), data)
            case _:
                return (data,)

    async def _end_turn(self, session: MirroredSession) -> TokenUsage | None:
        """Store the turn that ended in the session's mirror, and return the mirror's token usage. If that
        fails or takes too long, write a log line and return None.
        """
        try:
            return await session.end_turn(self._client, self._start)
        except (RpcError, DaemonGone, TimeoutError) as error:
            fate = (
                "the turn is stored in compactd's copy of the session after the next turn"
                if session.has_unstored_turn
                else "the turn may be missing in compactd's copy of the session"
            )
            self._log.write(f"{type(error).__name__} at the end of a turn; {fate}")
            return None

    async def _on_opened(self, session: MirroredSession, data: bytes) -> tuple[bytes, ...]:
        self._remember_session(session)
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
        told = acp_lines.update_line(session.id, "available_commands_update", ours)
        return (data, told, *self._gauge(session, usage))

    # --- commands and requests of compactd ------------------------------------------------------------

    async def _command(
        self, session: MirroredSession, request_id: Id, name: commands.CommandName, rest: str
    ) -> None:
        try:
            match name:
                case "compact":
                    text = await self._compact(session, rest)
                case "context":
                    text = await commands.context(self._client, session.mirror, session.gauge)
                case "sessions":
                    text = await commands.sessions(self._client, session.mirror)
        except (*FAILURES, ValueError, acp_lines.RequestRefused) as error:
            text = f"compactd failed: {mark_controls(str(error))}"
        await self._to_client.write(acp_lines.text_update(session.id, text))
        await self._to_client.write(acp_lines.answer_line(request_id, {"stopReason": "end_turn"}))

    async def _compact(self, session: MirroredSession, focus: str) -> str:
        if session.is_running or session.is_compacting:
            return "The agent is working. Use /compact again when it has finished."
        session.is_compacting = True
        try:
            result = await commands.compact_session(self._client, session.mirror, focus)
            if not result.compacted:
                return commands.describe_compaction(result)
            try:
                await self._move(session)
            except (acp_lines.RequestRefused, TimeoutError, OSError):
                await self._client.session_undo(session_id=session.mirror)
                raise
        finally:
            session.is_compacting = False
        if self._takes_compactions:
            summary = [{"type": "text", "text": result.summary}]
            name = result.compaction_id or "compaction"
            await self._to_client.write(
                acp_lines.compaction_line(session.id, name, "completed", summary=summary)
            )
        state = await self._client.agent_state(session_id=session.mirror)
        if session.gauge is not None:
            told = acp_lines.usage_lines(session.id, result.tokens_after, session.gauge[1])
            session.gauge = None
        else:
            told = self._gauge(session, state.token_usage)
        for line in told:
            await self._to_client.write(line)
        return commands.describe_compaction(result)

    async def _move(self, session: MirroredSession) -> None:
        """Continue `session` in a new session of the agent, with the same modes and settings."""
        opened = acp_lines.fields(session.opened)
        opened.pop("sessionId", None)
        answer = await self._ask_agent("session/new", opened)
        agent_id = answer.get("sessionId")
        if not isinstance(agent_id, str):
            raise acp_lines.RequestRefused(
                acp_lines.INTERNAL,
                "the agent did not open the new session into which the compacted conversation should move",
            )
        old = session.agent_id
        session.move_to(agent_id, is_due=True)
        self._remember_session(session)
        for method, params in session.choices.values():
            with contextlib.suppress(acp_lines.RequestRefused):
                await self._ask_agent(method, {**params, "sessionId": agent_id})
        if self._closes_sessions:
            with contextlib.suppress(acp_lines.RequestRefused):
                await self._ask_agent("session/close", {"sessionId": old})

    async def _ask_agent(self, method: str, params: Mapping[str, object]) -> dict[str, Json]:
        self._last_own += 1
        request_id = f"{self._own_id}{self._last_own}"
        waiting: asyncio.Future[RpcMessage] = asyncio.get_running_loop().create_future()
        self._own[request_id] = waiting
        try:
            await self._send_to_agent(acp_lines.request_line(request_id, method, params))
            async with asyncio.timeout(NEW_SESSION_S):
                line = await waiting
        finally:
            self._own.pop(request_id, None)
        if line.error is not UNSET:
            message = acp_lines.decode_object(line.error).get("message")
            raise acp_lines.RequestRefused(acp_lines.INTERNAL, f"the agent refused {method}: {message}")
        return acp_lines.decode_object(line.result)

    def _gauge(self, session: MirroredSession, usage: TokenUsage | None) -> tuple[bytes, ...]:
        """Return a line that tells the client how full the context is; nothing if the agent reports that
        itself, or if the window is unknown.
        """
        if session.gauge is not None or usage is None:
            return ()
        return acp_lines.usage_lines(session.id, usage.current_context_tokens, usage.context_window)

    async def _send_to_agent(self, line: bytes) -> None:
        if self._to_agent is not None:
            self._to_agent.write(line)
            with contextlib.suppress(OSError):
                await self._to_agent.drain()

    def _remember_session(self, session: MirroredSession) -> None:
        self._by_client[session.id] = session
        self._by_agent[session.agent_id] = session

    def _run_soon(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
