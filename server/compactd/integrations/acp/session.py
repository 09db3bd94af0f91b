"""One session that passes through the proxy, mirrored in the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec
from msgspec import Raw

from compactd.client.asynchronous import AsyncClient
from compactd.client.events import RpcError
from compactd.client.frames import Json
from compactd.formats.messages.neutral import decode_message
from compactd.integrations.acp import links, wire
from compactd.integrations.acp.handover import handover_text
from compactd.integrations.acp.turns import Turn
from compactd.integrations.acp.updates import Update
from compactd.protocol.errors import SessionLocked
from compactd.protocol.messages import TokenUsage

DAEMON_S = 5.0
"""The agent's answer waits no longer for the mirror."""
MOST_TOKENS = 2**53
"""An agent that tells more, or less than none, is not believed."""


class Mirrored:
    """What the proxy knows of one session, by the id that the client knows it by."""

    def __init__(self, session_id: str, opened: Raw, environ: Mapping[str, str]) -> None:
        """`opened`: the params of the client's request that opened it."""
        self.id = session_id
        self.mirror = links.mirror_of(environ, session_id, opened)
        self.opened = opened
        self.choices: dict[str, tuple[str, dict[str, Raw]]] = {}
        """Mode, model and settings as they were chosen last: (method, params)."""
        self._environ = environ
        link = links.read(environ, self.mirror)
        self.agent_id = session_id if link is None else link.agent_id
        self.is_due = link is not None and link.is_due
        self.gauge: tuple[int, int] | None = None
        """(used, size) as the agent told them last. Tokens."""
        self.is_running = False
        self.is_compacting = False
        self._is_open = False
        self._turns = 0
        self._turn: Turn | None = None
        self._replay = Turn(is_replay=True)
        """What an agent replays of a session that it loads. It is left out if an earlier run mirrored the
        session, because then the prompts are stored as the person gave them. So the proxy never saw a prompt
        of the replay that is stored: who typed it is the agent's account alone."""

    @property
    def holds_turn(self) -> bool:
        """Whether a turn, running or ended, is not stored yet."""
        return self._turn is not None

    async def open(self, client: AsyncClient, start: Mapping[str, object]) -> TokenUsage:
        """Opens the mirror. Stores what the agent replayed, unless an earlier run mirrored it.

        Raises what the client raises. It can be called again after that.
        """
        folder = wire.string(wire.fields(self.opened).get("cwd"))
        more = {} if folder is None else {"working_dir": folder}
        started = await client.call("session/start", {"session_id": self.mirror, **more, **start})
        count = started.get("message_count")
        self._turns = count if isinstance(count, int) else 0
        replayed = [] if self._turns else self._replay.messages("t0")
        usage = msgspec.convert(started["token_usage"], TokenUsage)
        if replayed and started.get("read_only") is not True:
            usage = (await client.session_append(session_id=self.mirror, messages=replayed)).token_usage
        self._is_open = started.get("read_only") is not True
        return usage

    def asked(self, content: list[dict[str, Json]]) -> None:
        """A prompt goes to the agent; `content` as `prompt_content` gives it."""
        self._turn = self._turn or Turn()
        self._turn.asked(content)
        self.is_running = True

    def take(self, update: Update) -> None:
        """The agent said something."""
        if update.session_update == "usage_update":
            used, size = update.used, update.size
            if used is not None and size is not None and 0 <= used < MOST_TOKENS and 0 < size < MOST_TOKENS:
                self.gauge = (used, size)
        elif self._turn is not None:
            self._turn.take(update)
        elif not self._is_open:
            self._replay.take(update)

    async def ended(self, client: AsyncClient, start: Mapping[str, object]) -> TokenUsage:
        """The turn is over: stores it. If the mirror could not be opened for writing before, it is opened now
        and gets the turns since then.

        Raises what the client raises, `TimeoutError` after `DAEMON_S`.
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

    def moved(self, agent_id: str, *, is_due: bool) -> None:
        """Another session of the agent's stands behind it. Raises `OSError` where that cannot be kept."""
        links.write(self._environ, self.mirror, links.Link(agent_id=agent_id, is_due=is_due))
        self.agent_id, self.is_due = agent_id, is_due

    def delivered(self) -> None:
        """The summary went out with a prompt."""
        self.moved(self.agent_id, is_due=False)

    async def handover(self, client: AsyncClient) -> str:
        """The context after the compaction, as text for an agent's new session. Raises what the client
        raises, and `CompactdError`."""
        context = await client.session_context(session_id=self.mirror)
        return handover_text([decode_message(bytes(raw)) for raw in context.messages])
