"""Handlers that start and stop the daemon's own agent loop."""

from __future__ import annotations

from compactd.core.history.entries import Unqueued
from compactd.daemon.handlers import decode
from compactd.daemon.handlers.base import HandlerGroup
from compactd.daemon.rpc.request import Request
from compactd.daemon.sharing.client import Client
from compactd.protocol import wire
from compactd.session.host import acting


class AgentHandlers(HandlerGroup):
    """Handlers of the methods that send prompts to the agent loop, stop it, or drop a queued prompt."""

    async def agent_prompt(self, params: wire.PromptParams, request: Request) -> wire.PromptResult:
        """Start a turn with the user's prompt, or queue the prompt if a turn runs.

        Answers as soon as the prompt is on disk, before the model has answered. Raises `InvalidParams` if the
        prompt is empty.
        """
        session = self._sessions.get(params.session_id)
        message, raw = decode.prompt_of(params)
        async with session.queue.hold():
            await self._daemon.modules.load("compactd.agent.loop", "compactd.compaction.run")
            await self._daemon.read_keys()
        from compactd.agent.loop import agent_of

        prompted = agent_of(session).prompt(message, raw)
        client = acting.get()
        if isinstance(client, Client):
            self._daemon.clients.note_prompt(session.id, client)
            client.watch()
        await session.wait_durable(prompted.number)
        return wire.PromptResult(turn_id=prompted.turn_id, queued=prompted.queued)

    async def agent_abort(self, params: wire.SessionParams, request: Request) -> wire.AbortResult:
        """Stop the running turn. Answers at once and does not wait for the provider."""
        session = self._sessions.get(params.session_id)
        return wire.AbortResult(aborted=session.agent_loop is not None and await session.agent_loop.abort())

    async def prompt_drop(self, params: wire.DropParams, request: Request) -> wire.DropResult:
        """Remove a queued prompt, and answer once the removal is on disk.

        `dropped` is false if there is no such prompt, or if its turn has already started.
        """
        session = self._sessions.get(params.session_id)
        session.require_journal()
        is_taken_up = session.agent_loop is not None and session.agent_loop.turn_id == params.prompt_id
        if is_taken_up or params.prompt_id not in session.state.queued:
            return wire.DropResult(dropped=False)
        await session.wait_durable(session.write(Unqueued(at=self._daemon.now(), turn_id=params.prompt_id)))
        session.prompters.pop(params.prompt_id, None)
        return wire.DropResult(dropped=True)
