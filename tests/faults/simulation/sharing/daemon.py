"""The real shared daemon on the simulated disk, clock and workers, with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

from msgspec import Raw

from compactd.daemon.app import Daemon
from compactd.models.providers.provider import (
    Finished,
    ModelFailed,
    ModelRequest,
    Provider,
    ProviderFailure,
    StreamEvent,
    TextChunk,
)
from compactd.protocol.messages import Event, Message, Text, ToolCall
from compactd.session.loop_limits import LoopLimits
from compactd.session.manager import Sessions
from compactd.session.memory import release_free_memory, settle
from tests.faults.simulation.history import HOME, NoTrees
from tests.faults.simulation.loop import Loop
from tests.faults.simulation.machine import Machine
from tests.faults.simulation.sharing.link import Link
from tests.faults.simulation.watched import Reference, WatchedStore

T = TypeVar("T")

TOOL_S = 60.0
DELAYS = (*(0.0, 0.01, 0.5) * 5, 3.0, 20.0)
"""Seconds until the next piece of an answer."""
STALL_S = 2_000.0
"""Seconds for which a stalled answer takes; a person would give up."""

OnEmit = Callable[[str, int, Event], None]


class ScriptedModel:
    """A provider whose answers the dice choose: text in pieces, tool calls, a long silence, a failure."""

    name = "openai"
    shape = "openai"

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self._calls = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """See `Provider.stream`."""
        dice, text = self._dice, ""
        for _ in range(int(dice.random() * 4)):
            await asyncio.sleep(dice.choice(DELAYS))
            piece = "so we went on " * dice.choice((1, 1, 20))
            text += piece
            yield TextChunk(piece)
        kind = dice.random()
        if kind < 0.08:
            await asyncio.sleep(STALL_S)
        elif kind < 0.12:
            failure = ProviderFailure(cause="status", provider=self.name, status=500, text="it is broken")
            raise ModelFailed("it is broken", failure, None, 1)
        calls = []
        for _ in range(dice.choice((0, 0, 1, 1, 2))):
            self._calls += 1
            calls.append(ToolCall(call_id=f"call-{self._calls}", name="run", arguments=Raw(b'{"x":1}')))
        content = (*((Text(text=text),) if text else ()), *calls)
        yield Finished(
            message=Message(role="assistant", content=content),
            usage=None,
            stop_reason="tool_use" if calls else "stop",
            raw_stop="",
        )

    def compaction(self) -> Provider | None:
        """There is none."""
        return None


class Store(WatchedStore):
    """A store that says when a session is deleted."""

    def __init__(
        self, home: Path, machine: Machine, reference: Reference, on_deleted: Callable[[str], None]
    ) -> None:
        super().__init__(home, machine, reference)
        self._on_deleted = on_deleted

    async def delete(self, session_id: str) -> None:
        """See `Store.delete`."""
        await super().delete(session_id)
        self._on_deleted(session_id)


class SimulatedDaemon(Daemon):
    """The daemon, except for what would leave the simulation: real threads, settings files, keys, and the
    reading ahead, whose slices end by the real clock.
    """

    def __init__(
        self,
        loop: Loop,
        store: WatchedStore,
        dice: Random,
        started_at: float,
        on_emit: OnEmit,
    ) -> None:
        super().__init__(
            {"COMPACTD_HOME": str(HOME), "XDG_CONFIG_HOME": str(HOME / "config")}, is_shared=True
        )
        self._loop = loop
        self._started_at = started_at
        self._on_emit = on_emit
        self._model = ScriptedModel(dice)
        self._all = Sessions(self, store, lambda _: NoTrees())  # type: ignore[arg-type, return-value]
        self._sessions = self._all

    @property
    def sessions(self) -> Sessions:
        """The sessions, on the simulated disk."""
        return self._all

    def now(self) -> float:
        """Return the simulated time. It is later at each question."""
        self._started_at += 0.25
        return self._started_at + self._loop.time()

    def emit(self, session_id: str, seq: int, event: Event) -> None:
        """Note the event, and send it."""
        self._on_emit(session_id, seq, event)
        super().emit(session_id, seq, event)

    async def in_worker(self, work: Callable[[], T]) -> T:
        """Run `work` in the simulation's order."""
        if isinstance(work, partial) and work.func in (settle, release_free_memory):
            raise RuntimeError("nothing of this process's memory is the simulation's")
        return await self._loop.run_in_executor(None, work)

    async def read_settings(self, working_dir: str | None) -> None:
        """There are none."""

    async def read_keys(self) -> None:
        """The model needs none."""

    async def loop_limits(self) -> LoopLimits:
        """Short ones."""
        return LoopLimits(tool_s=TOOL_S, steps=4)

    def provider(self, model: str, base_url: str | None) -> tuple[Provider, str]:
        """The scripted model, whatever the name is."""
        return self._model, "scripted"  # type: ignore[return-value]

    async def _load_engine(self, answered: asyncio.Event) -> None:
        """Nothing is loaded or read ahead."""

    def accept(self, link: Link) -> Awaitable[int]:
        """Connect a client. Return what serves it until it ends, as `connect` does for two descriptors."""
        client = self.clients.add()
        link.connect(client, lambda: self.clients.on_gone(client))
        client.connect(link)  # type: ignore[arg-type]
        return self._serve(client)
