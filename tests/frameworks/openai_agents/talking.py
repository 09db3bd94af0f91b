"""An agent of the SDK's that has the conversation of `support.talk` with the provider on loopback."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from agents import (
    Agent,
    Model,
    OpenAIChatCompletionsModel,
    OpenAIProvider,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    Tool,
    function_tool,
)
from openai import AsyncOpenAI

from compactd.integrations.frameworks.engine import engine_of
from compactd.integrations.frameworks.openai_agents import compactd_recall
from tests.frameworks.support.provider import MODEL, Provider
from tests.frameworks.support.talk import SYSTEM, TOOLS

TURNS = 100


@asynccontextmanager
async def provider_of(provider: Provider, wire: str = "responses") -> AsyncIterator[OpenAIProvider]:
    """Yield the SDK's provider of models for the provider on loopback."""
    async with AsyncOpenAI(api_key="none", base_url=provider.openai_url, max_retries=0) as client:
        yield OpenAIProvider(openai_client=client, use_responses=wire == "responses")


@asynccontextmanager
async def model_of(provider: Provider, wire: str = "responses") -> AsyncIterator[Model]:
    """Yield the SDK's model for the provider on loopback."""
    async with AsyncOpenAI(api_key="none", base_url=provider.openai_url, max_retries=0) as client:
        kind: Any = OpenAIResponsesModel if wire == "responses" else OpenAIChatCompletionsModel
        yield kind(MODEL, client)


def inspector(
    model: str | Model = MODEL,
    *,
    tools: Sequence[Tool] = (),
    after_tool: Callable[[], None] = lambda: None,
    recall: bool = False,
) -> Agent[Any]:
    """Return the agent. `after_tool` is called at the end of each tool."""

    def made(tool: Callable[[int], str]) -> Tool:
        def use(number: int) -> str:
            output = tool(number)
            after_tool()
            return output

        use.__doc__ = tool.__doc__
        return function_tool(use, name_override=tool.__name__)

    own = [compactd_recall()] if recall else []
    return Agent(name="inspector", instructions=SYSTEM, model=model, tools=[*map(made, TOOLS), *own, *tools])


async def ask(
    agent: Agent[Any], request: Any, session: Any, config: RunConfig | None, *, stream: bool = False
) -> Any:
    """Run the agent, streamed or not, and return the result."""
    if not stream:
        return await Runner.run(agent, request, session=session, run_config=config, max_turns=TURNS)
    result = Runner.run_streamed(agent, request, session=session, run_config=config, max_turns=TURNS)
    async for _ in result.stream_events():
        pass
    return result


def kill_daemon() -> None:
    """Kill the daemon of this process, as an out-of-memory killer does."""
    os.kill(engine_of().demand(lambda client: client.pid), signal.SIGKILL)
