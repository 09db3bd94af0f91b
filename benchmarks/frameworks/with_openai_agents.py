"""OpenAI Agents SDK: with its sessions, with the server's truncation, with its compaction session, with
compactd."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from agents import (
    Agent,
    ModelSettings,
    OpenAIResponsesModel,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from agents import Runner as Loop
from agents.memory import OpenAIResponsesCompactionSession
from openai import AsyncOpenAI

from benchmarks.frameworks.runners import COMPACTD_WINDOW, KEY, LOOK_UPS, SYSTEM, TOOLS, Ask, Runner, Start
from tests.frameworks.support.provider import Provider

MODEL = "gpt-loopback"
"""The compaction session takes only names that begin so."""
TURNS = 100

Settings = dict[str, Any]
MakeSession = Callable[[AsyncOpenAI], tuple[Any, Settings]]
"""Return a session, and further arguments for each run."""


def agent(session: MakeSession, *, is_compactds: bool = False, **settings: Any) -> Start:
    """Return a way to run an agent with a session. `settings` are the model's."""

    @asynccontextmanager
    async def start(provider: Provider) -> AsyncIterator[Ask]:
        set_tracing_disabled(True)
        async with AsyncOpenAI(api_key=KEY, base_url=provider.openai_url, max_retries=0) as client:
            model = OpenAIResponsesModel(MODEL, client)
            tools = [function_tool(tool) for tool in TOOLS]
            made = Agent(
                name="inspector",
                instructions=SYSTEM,
                tools=[*tools, *(_recall() if is_compactds else ())],
                model=_wrapped(model) if is_compactds else model,
                model_settings=ModelSettings(**settings),
            )
            opened, more = session(client)

            async def ask(request: str) -> None:
                await Loop.run(made, request, session=opened, max_turns=TURNS, **more)

            yield ask

    return start


def _sqlite(client: AsyncOpenAI) -> tuple[Any, Settings]:
    return SQLiteSession("lots"), {}


def _compacting(client: AsyncOpenAI) -> tuple[Any, Settings]:
    stored = SQLiteSession("lots")
    session = OpenAIResponsesCompactionSession(
        "lots", stored, client=client, model=MODEL, compaction_mode="input"
    )
    return session, {}


def _compactd(client: AsyncOpenAI) -> tuple[Any, Settings]:
    from compactd.integrations.frameworks.openai_agents import CompactdSession

    session = CompactdSession(uuid4().hex, context_window=COMPACTD_WINDOW)
    return session, {"run_config": session.run_config()}


def _recall() -> list[Any]:
    from compactd.integrations.frameworks.openai_agents import compactd_recall

    return [compactd_recall()]


def _wrapped(model: OpenAIResponsesModel) -> Any:
    from compactd.integrations.frameworks.openai_agents import compactd_model

    return compactd_model(model)


NAME = "OpenAI Agents SDK"
RUNNERS = (
    Runner(NAME, "`SQLiteSession`", "alone", agent(_sqlite)),
    Runner(NAME, '`SQLiteSession`, `truncation="auto"`', "own", agent(_sqlite, truncation="auto")),
    Runner(NAME, "`OpenAIResponsesCompactionSession`", "own", agent(_compacting)),
    Runner(NAME, "`CompactdSession`", "compactd", agent(_compactd, is_compactds=True)),
    Runner(
        NAME,
        f"`CompactdSession`, {LOOK_UPS} look-ups",
        "compactd",
        agent(_compactd, is_compactds=True),
        recalls=LOOK_UPS,
    ),
)
