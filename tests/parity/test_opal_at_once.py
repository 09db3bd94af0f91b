"""docs/specs.md, "opal.md", "Overflow Recovery", 3: "The turn is retried immediately", with a fake clock.

Over the wire, only a clock could tell a wait from a busy machine. Here time passes only if the event loop has
nothing to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from random import Random
from typing import TypeVar

import msgspec
from msgspec import Raw

from compactd.agent.loop import agent_of
from compactd.core.history.append import AppendRequest
from compactd.core.history.entries import ModelSet, Opened, SettingsSet
from compactd.formats.messages.neutral import decode_message, read_messages
from compactd.models.providers.provider import (
    ApiShape,
    Finished,
    ModelFailed,
    ModelRequest,
    Provider,
    ProviderFailure,
    StreamEvent,
)
from compactd.protocol.messages import AgentEnd, CompactionEnd, Message, OverflowDetected, Text
from compactd.session.session import Session
from compactd.storage.memory_journal import MemoryJournal
from tests.faults.simulation.loop import Loop
from tests.support.quiet_world import Quiet
from tests.support.talk import turns

T = TypeVar("T")

REFUSAL = "prompt is too long: 30000 tokens > 20000 maximum"


class Refusing:
    """A provider that refuses the first request as too long, and notes when each one came."""

    name = "anthropic"
    shape: ApiShape = "anthropic"

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.asked_at: list[float] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.asked_at.append(self._loop.time())
        if len(self.asked_at) == 1:
            failure = ProviderFailure(cause="status", provider=self.name, status=400, text=REFUSAL)
            raise ModelFailed(REFUSAL, failure, None, 1)
        answer = Message(role="assistant", content=(Text(text="Now it fits."),))
        yield Finished(message=answer, usage=None, stop_reason="stop", raw_stop="end_turn")


class There(Quiet):
    """A world with that provider, whose workers are the loop's."""

    def __init__(self, loop: Loop, provider: Provider) -> None:
        super().__init__()
        self._loop, self._provider = loop, provider

    async def in_worker(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(None, work)

    def provider(self, model: str, base_url: str | None) -> tuple[Provider, str]:
        return self._provider, model


def test_a_rejected_turn_is_sent_again_without_any_time_between() -> None:
    loop = Loop(Random(1), lambda _: None)
    provider = Refusing(loop)
    world = There(loop, provider)
    entries = (
        Opened(v=1, id="s", at=0.0),
        ModelSet(at=0.0, model="anthropic/claude-sonnet-4-5", context_window=100_000),
        SettingsSet(at=0.0, compaction=Raw(b'{"strategy":"extract"}')),
    )
    journal = MemoryJournal()
    journal.append([msgspec.json.encode(entry) for entry in entries])
    session = Session(world, "s", journal, entries, persistent=False)
    read = tuple(read_messages([Raw(msgspec.json.encode(message)) for message in turns(20, 1000)]))
    session.append(
        AppendRequest(read=read, tokens=tuple(session.count_message(message) for message, _ in read))
    )
    raw = Raw(b'{"role":"user","content":"And now?"}')

    async def talk() -> None:
        agent = agent_of(session)
        agent.prompt(decode_message(raw), raw)
        await agent.wait_ended()

    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(talk())
    finally:
        asyncio.set_event_loop(None)
        loop.abandon()

    kinds = [type(e) for e in world.events if isinstance(e, OverflowDetected | CompactionEnd | AgentEnd)]
    assert kinds == [OverflowDetected, CompactionEnd, AgentEnd]
    first, again = provider.asked_at
    assert again == first
