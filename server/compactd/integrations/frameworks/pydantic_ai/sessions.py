"""Which session of the daemon belongs to a run of an agent, and the work with it that needs no event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread

from compactd.client import Json
from compactd.integrations.frameworks.engine import SessionOptions, engine_of
from compactd.integrations.frameworks.mirror import Mirror

if TYPE_CHECKING:
    from pydantic_ai.tools import RunContext

T = TypeVar("T")

SessionId = str | Callable[["RunContext[Any]"], str | None] | None
PREFIX = "pydantic-ai:"


@dataclass(frozen=True)
class Sessions:
    """How conversations become sessions. Holds options only, so it can be pickled and copied."""

    session_id: SessionId
    persist: bool | None
    context_window: int | None
    compaction: Mapping[str, Json] | None
    working_dir: str | None
    command: tuple[str, ...] | None

    def name(self, context: RunContext[Any]) -> str:
        """Return the id of a run's session: what the user chose, or the framework's conversation."""
        chosen = self.session_id(context) if callable(self.session_id) else self.session_id
        return PREFIX + (chosen or context.conversation_id or context.run_id or "unnamed")

    def mirror(self, name: str) -> Mirror:
        """Return the mirror of the session `name`. Starts nothing."""
        return engine_of(self.command).mirror(name, self.options())

    def options(self) -> SessionOptions:
        """Return how sessions are opened. Raise `ValueError` for settings that do not exist."""
        return SessionOptions(
            client="pydantic-ai",
            context_window=self.context_window,
            compaction=self.compaction,
            working_dir=self.working_dir,
            persist=self.session_id is not None if self.persist is None else self.persist,
        )


def in_thread(work: Callable[[], T]) -> Awaitable[T]:
    """Run blocking work in a thread. If the run is cancelled meanwhile, it does not wait for the work."""
    return anyio.to_thread.run_sync(work, abandon_on_cancel=True)
