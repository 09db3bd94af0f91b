"""`compactd_history_processor`: the view of each request for agents that only take a history processor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic_ai import messages as pai
from pydantic_ai.tools import RunContext

from compactd.client import Json
from compactd.integrations.frameworks.pydantic_ai import archive, versions
from compactd.integrations.frameworks.pydantic_ai.messages import opening_text, units_of
from compactd.integrations.frameworks.pydantic_ai.requests import setup_with
from compactd.integrations.frameworks.pydantic_ai.sessions import SessionId, Sessions, in_thread
from compactd.integrations.frameworks.pydantic_ai.shown import shown_history


@dataclass(frozen=True)
class CompactdProcessor:
    """A history processor. Holds options only, so it can be pickled and copied."""

    sessions: Sessions

    async def __call__(
        self, ctx: RunContext[Any], messages: list[pai.ModelMessage]
    ) -> list[pai.ModelMessage]:
        """Return the messages of the next request. The framework makes them the run's history."""
        try:
            name = self.sessions.name(ctx)
            whole = archive.whole_history(name, messages)
            units = units_of(whole)
            manager = ctx.tool_manager
            tools = manager.tool_defs if manager is not None else ()
            instructions = next(
                (m.instructions for m in reversed(whole) if isinstance(m, pai.ModelRequest)), None
            )
            texts = (instructions or "", opening_text(whole))
            setup = setup_with(ctx.model, texts, tools, self.sessions.context_window)
            view = await in_thread(partial(self.sessions.mirror(name).prepare, units.history(), setup))
            if view is None:
                return messages
            if view.is_whole:
                return whole
            shown = shown_history(units, view.items, conversation_id=ctx.conversation_id)
        except Exception as error:
            versions.warn_once(error)
            return messages
        archive.remember(name, shown, whole)
        return shown


def compactd_history_processor(
    session_id: SessionId = None,
    *,
    context_window: int | None = None,
    compaction: Mapping[str, Json] | None = None,
    persist: bool | None = None,
    working_dir: str | None = None,
    command: tuple[str, ...] | None = None,
) -> CompactdProcessor:
    """Return a processor for `ProcessHistory(…)`. The options are those of `CompactdCapability`.

    The framework makes what a processor returns the run's history, so `all_messages()` begins with the
    summary after a compaction. A processor does not see failed requests, tool outputs or the end of a run: no
    recovery from an overflow, no reduced outputs, no recall tool.
    """
    versions.check()
    return CompactdProcessor(Sessions(session_id, persist, context_window, compaction, working_dir, command))
