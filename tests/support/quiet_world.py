"""The surroundings of a session in a test's own process: no client, and all work is done at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from itertools import count
from typing import TypeVar

from msgspec import Raw, Struct

from compactd.core.models.lookup import Lookup
from compactd.core.models.observed import Key, Observed, in_force, key, observation_of
from compactd.models.catalog import Catalogue
from compactd.models.providers.provider import Provider
from compactd.protocol.errors import NoProvider
from compactd.protocol.messages import Event
from compactd.protocol.settings import GivenSettings
from compactd.session.host import ClientFailed, ClientRef
from compactd.session.loop_limits import LoopLimits

T = TypeVar("T")

CATALOGUE = Catalogue()
_RUNNER = asyncio.Runner()


def done(work: Coroutine[object, object, T]) -> T:
    """Run `work` on the one event loop of these tests. Return its result."""
    return _RUNNER.run(work)


class Quiet:
    """A `World` of its own: its own clock, its own learned windows, no key, no network."""

    def __init__(self) -> None:
        self._ticks = count(1)
        self._learned: dict[Key, Observed] = {}
        self.events: list[Event] = []
        """The events that a client would have got."""

    def now(self) -> float:
        """One second later at each question."""
        return float(next(self._ticks))

    def emit(self, session_id: str, seq: int, event: Event) -> None:
        """Keeps it."""
        self.events.append(event)

    def note_grown(self, session_id: str) -> None:
        """Nothing is prepared in the background."""

    def notice(self, session_id: str, text: str) -> None:
        """Nobody reads it."""

    async def in_worker(self, work: Callable[[], T]) -> T:
        """Run `work` at once, in this thread."""
        return work()

    async def run_compute(self, work: Callable[[], T], tokens: int) -> T:
        """Do the same as `in_worker`."""
        return await self.in_worker(work)

    async def read_settings(self, working_dir: str | None) -> None:
        """There are none."""

    def layers(self, session_id: str, working_dir: str | None) -> tuple[tuple[str, GivenSettings], ...]:
        """Nothing is set outside."""
        return ()

    def switch(self, names: Sequence[str]) -> str | None:
        """Nothing is switched."""
        return None

    def lookup(self, model: str | None, base_url: str | None) -> Lookup | None:
        """The packaged registry's answer."""
        return None if model is None else CATALOGUE.lookup(model, None, base_url)

    async def read_keys(self) -> None:
        """There are none."""

    def provider(self, model: str, base_url: str | None) -> tuple[Provider, str]:
        """There is none."""
        raise NoProvider("no provider here")

    async def ask_client(
        self, session_id: str, first: ClientRef | None, method: str, params: Struct, timeout_s: float
    ) -> tuple[Raw, ClientRef]:
        """There is none."""
        raise ClientFailed("there is no client", is_gone=True)

    async def loop_limits(self) -> LoopLimits:
        """The defaults."""
        return LoopLimits()

    def observed_window(self, found: Lookup, base_url: str | None) -> Observed | None:
        """Return the window that a rejection taught this world."""
        return in_force(self._learned.get(key(found.model, found.provider, base_url)), found, self.now())

    async def ask_server(self, model: str | None, base_url: str | None) -> None:
        """There is none."""

    def learn(
        self,
        found: Lookup,
        base_url: str | None,
        window: int,
        *,
        requested: int | None,
        sent: int,
        is_own: bool,
    ) -> Observed | None:
        """Keeps it while the test lasts."""
        one = observation_of(found, base_url, window, "rejection", self.now())
        if one is not None:
            self._learned[one.key] = one
        return one
