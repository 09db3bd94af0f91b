"""LangChain's `create_agent`: alone, with its two middlewares for long conversations, and with compactd."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
)
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

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
from tests.frameworks.support.provider import MODEL, WINDOW, Provider

Middleware = Sequence[AgentMiddleware[Any, Any, Any]]
LOW_TRIGGER = 4_000
"""The middleware counts four characters as a token, which is too few for reports with many numbers."""
STEPS = 400
"""The most steps of a graph for one request."""


def chat(provider: Provider) -> ChatOpenAI:
    """Return the model, with its window in the profile, as LangChain's models have it."""
    return ChatOpenAI(
        model=MODEL,
        api_key=KEY,
        base_url=provider.openai_url,
        max_retries=0,
        profile={"max_input_tokens": WINDOW},
    )


def asks(graph: Any) -> Ask:
    """Return what gives a graph a request, in one thread."""
    config = {"configurable": {"thread_id": uuid4().hex}, "recursion_limit": STEPS}

    async def ask(request: str) -> None:
        await graph.ainvoke({"messages": [{"role": "user", "content": request}]}, config)

    return ask


def agent(middleware: Callable[[ChatOpenAI], Middleware]) -> Start:
    """Return a way to run `create_agent` with this middleware."""

    @asynccontextmanager
    async def start(provider: Provider) -> AsyncIterator[Ask]:
        model = chat(provider)
        yield asks(
            create_agent(
                model,
                list(TOOLS),
                system_prompt=SYSTEM,
                middleware=middleware(model),
                checkpointer=InMemorySaver(),
            )
        )

    return start


def _summaries(model: ChatOpenAI) -> Middleware:
    return (SummarizationMiddleware(model, trigger=("tokens", TRIGGER)),)


def _small_summaries(model: ChatOpenAI) -> Middleware:
    return (SummarizationMiddleware(model, trigger=("fraction", 0.75), keep=("fraction", 0.25)),)


def _clearing(trigger: int) -> Callable[[ChatOpenAI], Middleware]:
    return lambda _: (ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=trigger)]),)


def _compactd(model: ChatOpenAI) -> Middleware:
    from compactd.integrations.frameworks.langchain import CompactdMiddleware

    return (CompactdMiddleware(context_window=COMPACTD_WINDOW, persist=False),)


def _compactd_summaries(model: ChatOpenAI) -> Middleware:
    from compactd.integrations.frameworks.langchain import compactd_summarizer

    return (
        SummarizationMiddleware(
            model,
            trigger=("fraction", 0.75),
            keep=("fraction", 0.25),
            trim_tokens_to_summarize=None,
            summarizer=compactd_summarizer(),
        ),
    )


NAME = "LangChain"
RUNNERS = (
    Runner(NAME, "`create_agent`", "alone", agent(lambda _: ())),
    Runner(NAME, "`SummarizationMiddleware`, trigger at 6,000 tokens", "own", agent(_summaries)),
    Runner(NAME, "`SummarizationMiddleware`, keeps a quarter of the window", "own", agent(_small_summaries)),
    Runner(NAME, "`ContextEditingMiddleware`, trigger at 6,000 tokens", "own", agent(_clearing(TRIGGER))),
    Runner(NAME, "`ContextEditingMiddleware`, trigger at 4,000 tokens", "own", agent(_clearing(LOW_TRIGGER))),
    Runner(
        NAME,
        "`SummarizationMiddleware` with `summarizer=compactd_summarizer()`",
        "compactd",
        agent(_compactd_summaries),
    ),
    Runner(NAME, "`CompactdMiddleware`", "compactd", agent(_compactd)),
    Runner(
        NAME,
        f"`CompactdMiddleware`, {LOOK_UPS} look-ups",
        "compactd",
        agent(_compactd),
        recalls=LOOK_UPS,
    ),
)
