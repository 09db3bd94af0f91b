"""What a session needs from the process it lives in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from compactd.core.registry import Lookup
from compactd.core.settings import GivenSettings
from compactd.messages import Event

T = TypeVar("T")


class World(Protocol):
    """What a session needs from the process it lives in."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def emit(self, session_id: str, seq: int, event: Event) -> None:
        """Tells the client."""
        ...

    def notice(self, text: str) -> None:
        """Shows a line to the person, where the client can."""
        ...

    async def in_worker(self, work: Callable[[], T]) -> T:
        """What `work` gives back, from another thread."""
        ...

    def layers(self, working_dir: str | None) -> tuple[tuple[str, GivenSettings], ...]:
        """The settings from outside the session, highest first."""
        ...

    def switch(self, names: Sequence[str]) -> str | None:
        """The first of these switches that is on in the environment."""
        ...

    def lookup(self, model: str | None, base_url: str | None) -> Lookup | None:
        """What is known of a model; none where the session names none."""
        ...
