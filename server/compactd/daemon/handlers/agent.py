"""The daemon's own loop, as clients drive it."""

from __future__ import annotations

from collections.abc import Mapping

from compactd.core.history.entries import Unqueued
from compactd.daemon.handlers import decode
from compactd.daemon.handlers.base import Area, Handler
from compactd.daemon.rpc.request import Request
from compactd.protocol import wire


class PromptingHandlers(Area):
    """Starts and stops the loop."""

    def by_method(self) -> Mapping[str, Handler]:
        """The handler of each method."""
        return {
            "agent/prompt": self.agent_prompt,
            "agent/abort": self.agent_abort,
            "prompt/drop": self.prompt_drop,
        }

    async def agent_prompt(self, params: wire.PromptParams, request: Request) -> wire.PromptResult:
        """Answered once the prompt is durable."""
        session = self._sessions.get(params.session_id)
        message, raw = decode.prompt_of(params)
        # In the session's line: what comes after this prompt stays behind it.
        await session.queue.run(self._ready)
        from compactd.agent.loop import agent_of

        prompted = agent_of(session).prompt(message, raw)
        self._daemon.watch_client()
        await session.durable(prompted.number)
        return wire.PromptResult(turn_id=prompted.turn_id, queued=prompted.queued)

    async def _ready(self) -> None:
        await self._daemon.modules.load("compactd.agent.loop", "compactd.compaction.run")
        await self._daemon.read_keys()

    async def agent_abort(self, params: wire.SessionParams, request: Request) -> wire.AbortResult:
        """At once, whatever the provider does."""
        session = self._sessions.get(params.session_id)
        return wire.AbortResult(aborted=session.agent is not None and await session.agent.abort())

    async def prompt_drop(self, params: wire.DropParams, request: Request) -> wire.DropResult:
        """One that waits, durably."""
        session = self._sessions.get(params.session_id)
        session.writable()
        is_taken_up = session.agent is not None and session.agent.turn_id == params.prompt_id
        if is_taken_up or params.prompt_id not in session.fold.queued:
            return wire.DropResult(dropped=False)
        await session.durable(session.write(Unqueued(at=self._daemon.now(), turn_id=params.prompt_id)))
        session.prompters.pop(params.prompt_id, None)
        return wire.DropResult(dropped=True)
