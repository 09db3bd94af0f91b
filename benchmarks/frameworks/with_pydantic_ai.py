"""Pydantic AI: alone, with the history processor of its documentation, with its compaction, and with
compactd."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAICompaction, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.frameworks.runners import COMPACTD_WINDOW, KEY, LOOK_UPS, SYSTEM, TOOLS, Ask, Runner, Start
from tests.frameworks.support.provider import MODEL, Provider

MESSAGES = 10
"""The messages that the processor keeps, and after which the compaction begins."""


def agent(capabilities: Callable[[], Sequence[Any]] = tuple, *, is_responses: bool = False) -> Start:
    """Return a way to run an agent that is given its earlier messages, as the documentation shows it."""

    @asynccontextmanager
    async def start(provider: Provider) -> AsyncIterator[Ask]:
        async with AsyncOpenAI(api_key=KEY, base_url=provider.openai_url, max_retries=0) as client:
            kind = OpenAIResponsesModel if is_responses else OpenAIChatModel
            model = kind(MODEL, provider=OpenAIProvider(openai_client=client))
            made: Agent[None, str] = Agent(
                model, instructions=SYSTEM, tools=list(TOOLS), capabilities=list(capabilities())
            )
            history: list[ModelMessage] = []

            async def ask(request: str) -> None:
                nonlocal history
                done = await made.run(request, message_history=history)
                history = done.all_messages()

            yield ask

    return start


def keep_recent(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Keep the last messages. A result whose call would be cut off keeps it ("Keep only recent messages",
    with the caution that it states: tool calls and their returns must stay together; seen 2026-11)."""
    start = max(0, len(messages) - MESSAGES)
    while start and _has_results(messages[start]):
        start -= 1
    return messages[start:]


def _has_results(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(
        isinstance(part, ToolReturnPart) for part in message.parts
    )


def _compactd() -> Sequence[Any]:
    from compactd.integrations.frameworks.pydantic_ai import CompactdCapability

    return [CompactdCapability(session_id=uuid4().hex, context_window=COMPACTD_WINDOW, persist=False)]


NAME = "Pydantic AI"
RUNNERS = (
    Runner(NAME, "`Agent`", "alone", agent()),
    Runner(
        NAME, "`ProcessHistory`, the last 10 messages", "own", agent(lambda: [ProcessHistory(keep_recent)])
    ),
    Runner(
        NAME,
        "`OpenAICompaction`, after 10 messages",
        "own",
        agent(lambda: [OpenAICompaction(message_count_threshold=MESSAGES)], is_responses=True),
    ),
    Runner(NAME, "`CompactdCapability`", "compactd", agent(_compactd)),
    Runner(
        NAME,
        f"`CompactdCapability`, {LOOK_UPS} look-ups",
        "compactd",
        agent(_compactd),
        recalls=LOOK_UPS,
    ),
)
