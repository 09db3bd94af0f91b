"""Summaries for ADK's own `EventsCompactionConfig`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.genai import types

from compactd.integrations.frameworks.engine import engine_of
from compactd.integrations.frameworks.google_adk.contents import history_of
from compactd.integrations.frameworks.google_adk.sessions import CLIENT
from compactd.integrations.frameworks.google_adk.versions import TESTED
from compactd.integrations.frameworks.summary import summary_of


class CompactdSummarizer(BaseEventsSummarizer):
    """Writes a summary of events without asking a model.

        EventsCompactionConfig(summarizer=CompactdSummarizer(), token_threshold=…, event_retention_size=…)

    ADK decides which events a summary replaces. So there is no recall and no undo: for these, use
    `CompactdPlugin`. If the daemon fails, nothing is summarised.
    """

    def __init__(self, *, target_tokens: int | None = None, command: Sequence[str] | None = None) -> None:
        """`target_tokens`: the length of a summary, about. `command`: the one that starts the daemon;
        default: this Python's `compactd serve`.
        """
        self._target_tokens = target_tokens
        self._command = None if command is None else tuple(command)

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        """Return an event with a summary of all `events`; None if they say nothing, or after a failure."""
        contents = [content for event in events if (content := _said(event)) is not None]
        if not contents:
            return None
        text = await asyncio.to_thread(self._summary, contents)
        if not text:
            return None
        compaction = EventCompaction(
            start_timestamp=events[0].timestamp,
            end_timestamp=events[-1].timestamp,
            compacted_content=types.Content(role="model", parts=[types.Part(text=text)]),
        )
        return Event(author="user", actions=EventActions(compaction=compaction), invocation_id=Event.new_id())

    def _summary(self, contents: Sequence[types.Content]) -> str | None:
        history = history_of(contents)
        return engine_of(self._command).attempt(
            lambda client: summary_of(client, history, CLIENT, self._target_tokens), TESTED
        )


def _said(event: Event) -> types.Content | None:
    """Return what an event says: an earlier summary, or its content."""
    compaction = event.actions.compaction if event.actions else None
    return compaction.compacted_content if compaction is not None else event.content
