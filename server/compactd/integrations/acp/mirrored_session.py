"""One ACP session that passes through the proxy, and its mirror in the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec import Raw

from compactd.client.asynchronous import AsyncClient
from compactd.client.events import RpcError
from compactd.client.frames import Json
from compactd.formats.messages.neutral import decode_message
from compactd.integrations.acp import acp_lines, links
from compactd.integrations.acp.handover import handover_text
from compactd.integrations.acp.turn_messages import Turn
from compactd.integrations.acp.updates import Update
from compactd.protocol.errors import SessionLocked
from compactd.protocol.messages import TokenUsage
from compactd.protocol.wire import StartResult

DAEMON_S = 5.0
"""The most seconds for which an answer of the agent is held back while the daemon opens or updates the
mirror.
"""
MAX_REPORTED_TOKENS = 2**53
"""A usage report of the agent is ignored if one of its token counts is negative or not below this number."""


class MirroredSession:
    """What the proxy knows about one session. `id` is its id for the ACP client, `agent_id` its id for the
    agent, and `mirror` the id of its copy in the daemon.
    """

    def __init__(self, session_id: str, opened: Raw, environ: Mapping[str, str]) -> None:
        """Create the record of a session. `opened`: the params of the ACP client's request that opened it."""
        self.id = session_id
        self.mirror = links.mirror_of(environ, session_id, opened)
        self.opened = opened
        self.choices: dict[str, tuple[str, dict[str, Raw]]] = {}
        """The client's last requests that chose a mode, a model or another setting, as (method, params), by
        method and setting.
        """
        self._environ = environ
        link = links.read(environ, self.mirror)
        self.agent_id = session_id if link is None else link.agent_id
        self.is_due = link is not None and link.is_due
        self.gauge: tuple[int, int] | None = None
        """The agent's last report: (tokens in the context, size of the window). None before the first report,
        and after a compaction.
        """
        self.is_running = False
        self.is_compacting = False
        self._is_open = False
        self._turns = 0
        self._turn: Turn | None = None
        self._replay = Turn(is_replay=True)
        """The messages that the agent replays when it loads a session. If an earlier run mirrored the
        session, the replay is ignored, because the mirror has the prompts as the user typed them. For a
        replayed prompt, only the agent says that the user typed it.
        """

    @property
    def has_unstored_turn(self) -> bool:
        """Whether a turn, running or ended, is not stored yet."""
        return self._turn is not None

    async def open(self, client: AsyncClient, start: Mapping[str, object]) -> TokenUsage:
        """Open the mirror and return its token usage. Store what the agent replayed, unless an earlier run
        mirrored the session.

        Raise what `client` raises. After an error, `open` can be called again.
        """
        folder = acp_lines.decode_as(acp_lines.fields(self.opened).get("cwd"), str)
        more = {} if folder is None else {"working_dir": folder}
        given = {"session_id": self.mirror, **more, **start}
        started = await client.ask("session/start", given, StartResult)
        self._turns = started.message_count
        replayed = [] if self._turns else self._replay.messages("t0")
        usage = started.token_usage
        if replayed and not started.read_only:
            usage = (await client.session_append(session_id=self.mirror, messages=replayed)).token_usage
        self._is_open = not started.read_only
        return usage

    def begin_turn(self, content: list[dict[str, Json]]) -> None:
        """Record a prompt that is sent to the agent. `content`: the result of `prompt_content`."""
        self._turn = self._turn or Turn()
        self._turn.add_prompt(content)
        self.is_running = True

    def take(self, update: Update) -> None:
        """Record an update of the agent."""
        if update.session_update == "usage_update":
            used, size = update.used, update.size
            if (
                used is not None
                and size is not None
                and 0 <= used < MAX_REPORTED_TOKENS
                and 0 < size < MAX_REPORTED_TOKENS
            ):
                self.gauge = (used, size)
        elif self._turn is not None:
            self._turn.take(update)
        elif not self._is_open:
            self._replay.take(update)

    async def end_turn(self, client: AsyncClient, start: Mapping[str, object]) -> TokenUsage:
        """Store the turn that ended in the mirror, and return the mirror's token usage.

        If the mirror could not be opened for writing before, it is opened now and gets the turns that are not
        stored yet. Raise what `client` raises, and `TimeoutError` after `DAEMON_S`.
        """
        self.is_running = False
        async with asyncio.timeout(DAEMON_S):
            if not self._is_open:
                await self.open(client, start)
            turn, self._turn = self._turn, None
            messages = [] if turn is None else turn.messages(f"t{self._turns + 1}")
            if not messages:
                return (await client.agent_state(session_id=self.mirror)).token_usage
            try:
                appended = await client.session_append(session_id=self.mirror, messages=messages)
            except RpcError as error:
                if error.code == SessionLocked.code:
                    self._is_open, self._turn = False, turn
                raise
            self._turns += 1
            return appended.token_usage

    def move_to(self, agent_id: str, *, is_due: bool) -> None:
        """Record that the session continues in another session of the agent. `is_due`: whether the summary
        must still be sent to the agent. Raise `OSError` if this cannot be stored.
        """
        links.write(self._environ, self.mirror, links.Link(agent_id=agent_id, is_due=is_due))
        self.agent_id, self.is_due = agent_id, is_due

    async def handover(self, client: AsyncClient) -> str:
        """Return the context after the compaction as text for a new session of the agent.

        Raise what `client` raises, and `CompactdError`.
        """
        context = await client.session_context(session_id=self.mirror)
        return handover_text([decode_message(bytes(raw)) for raw in context.messages])
