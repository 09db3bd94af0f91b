"""`create_deep_agent`: with its default, which summarises, and with compactd in that place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from deepagents import create_deep_agent
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.frameworks.runners import COMPACTD_WINDOW, SYSTEM, TOOLS, Ask, Runner, Start
from benchmarks.frameworks.with_langchain import asks, chat
from tests.frameworks.support.provider import Provider


def agent(*, is_compactds: bool) -> Start:
    """Return a way to run `create_deep_agent`."""

    @asynccontextmanager
    async def start(provider: Provider) -> AsyncIterator[Ask]:
        yield asks(
            create_deep_agent(
                chat(provider),
                list(TOOLS),
                system_prompt=SYSTEM,
                middleware=_compactd() if is_compactds else (),
                checkpointer=InMemorySaver(),
            )
        )

    return start


def _compactd() -> Sequence[Any]:
    from compactd.integrations.frameworks.langchain import CompactdMiddleware

    return (
        CompactdMiddleware(context_window=COMPACTD_WINDOW, persist=False, name="SummarizationMiddleware"),
    )


NAME = "deepagents"
RUNNERS = (
    Runner(NAME, "`create_deep_agent`", "own", agent(is_compactds=False)),
    Runner(NAME, "`CompactdMiddleware` in its place", "compactd", agent(is_compactds=True)),
)
