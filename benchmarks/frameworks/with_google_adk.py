"""Google ADK: alone, with its plugin and its compaction, and with compactd."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from google import genai
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig
from google.adk.models import Gemini
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.adk.runners import InMemoryRunner
from google.genai import types

from benchmarks.frameworks.runners import (
    COMPACTD_WINDOW,
    KEY,
    LOOK_UPS,
    SYSTEM,
    TOOLS,
    TRIGGER,
    Ask,
    Runner,
    Start,
)
from tests.frameworks.support.provider import MODEL, Provider

INVOCATIONS = 1
"""The requests of the user that the filter keeps."""
EVENTS = 10
"""The newest events that the compaction keeps."""
USER = "someone"


def agent(options: Callable[[], dict[str, Any]] = dict) -> Start:
    """Return a way to run an app of one agent with Gemini's own client."""

    @asynccontextmanager
    async def start(provider: Provider) -> AsyncIterator[Ask]:
        client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=provider.gemini_url))
        made = LlmAgent(
            name="inspector",
            model=Gemini(model=MODEL, client=client),
            instruction=SYSTEM,
            tools=list(TOOLS),
        )
        runner = InMemoryRunner(app=App(name="inspection", root_agent=made, **options()))
        session_id = uuid4().hex
        await runner.session_service.create_session(
            app_name=runner.app_name, user_id=USER, session_id=session_id
        )

        async def ask(request: str) -> None:
            words = types.UserContent(request)
            async for _ in runner.run_async(user_id=USER, session_id=session_id, new_message=words):
                pass

        yield ask
        await client.aio.aclose()

    return start


def _compaction(summarizer: Any = None) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = EventsCompactionConfig(
            summarizer=summarizer, token_threshold=TRIGGER, event_retention_size=EVENTS
        )
    return {"events_compaction_config": config}


def _compactd() -> dict[str, Any]:
    from compactd.integrations.frameworks.google_adk import CompactdPlugin

    return {"plugins": [CompactdPlugin(context_window=COMPACTD_WINDOW)]}


def _summaries() -> dict[str, Any]:
    from compactd.integrations.frameworks.google_adk import CompactdSummarizer

    return _compaction(CompactdSummarizer())


NAME = "Google ADK"
RUNNERS = (
    Runner(NAME, "`LlmAgent`", "alone", agent()),
    Runner(
        NAME,
        "`ContextFilterPlugin`, the last invocation",
        "own",
        agent(lambda: {"plugins": [ContextFilterPlugin(num_invocations_to_keep=INVOCATIONS)]}),
    ),
    Runner(NAME, f"`EventsCompactionConfig`, the last {EVENTS} events", "own", agent(_compaction)),
    Runner(
        NAME,
        f"`EventsCompactionConfig`, the last {EVENTS} events, `CompactdSummarizer`",
        "compactd",
        agent(_summaries),
    ),
    Runner(NAME, "`CompactdPlugin`", "compactd", agent(_compactd)),
    Runner(NAME, f"`CompactdPlugin`, {LOOK_UPS} look-ups", "compactd", agent(_compactd), recalls=LOOK_UPS),
)
