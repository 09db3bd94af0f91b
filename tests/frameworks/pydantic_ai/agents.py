"""Agents of Pydantic AI for tests: against the provider on loopback, or against a function."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai import messages as pai
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.run import AgentRunResult
from pydantic_ai.usage import UsageLimits

from tests.frameworks.support.provider import MODEL, Provider
from tests.frameworks.support.talk import SYSTEM, TOOLS

WIRES = ("chat", "responses", "anthropic")
NO_LIMIT = UsageLimits(request_limit=None)


def model_of(wire: str, provider: Provider) -> Model:
    """Return the framework's model for the provider on loopback. Its client does not try again by itself."""
    if wire == "anthropic":
        from anthropic import AsyncAnthropic

        own = AsyncAnthropic(base_url=provider.anthropic_url, api_key="none", max_retries=0)
        return AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=own))
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=provider.openai_url, api_key="none", max_retries=0)
    kind = OpenAIChatModel if wire == "chat" else OpenAIResponsesModel
    return kind(MODEL, provider=OpenAIProvider(openai_client=client))


def agent_of(wire: str, provider: Provider, *capabilities: AbstractCapability[Any]) -> Agent[None, str]:
    """Return the agent of the conversation in `support/talk.py`."""
    return Agent(
        model_of(wire, provider), system_prompt=SYSTEM, tools=list(TOOLS), capabilities=list(capabilities)
    )


def have(agent: Agent[None, str], provider: Provider, *, streams: bool = False) -> AgentRunResult[str]:
    """Have the whole conversation. Return the result of its last run."""
    result: AgentRunResult[str] | None = None
    for request in provider.asks():
        result = agent.run_sync(
            request,
            message_history=result.all_messages() if result else None,
            usage_limits=NO_LIMIT,
            event_stream_handler=_read if streams else None,
        )
    assert result is not None
    return result


async def _read(_context: RunContext[None], events: AsyncIterable[pai.AgentStreamEvent]) -> None:
    async for _ in events:
        pass


def is_summary(text: str) -> bool:
    """Return whether the framework marked a user message as a summary."""
    return text.lstrip().startswith("<pyai:conversation_summary>")


def calls(messages: Sequence[pai.ModelMessage]) -> list[pai.ToolCallPart]:
    return [part for message in messages for part in message.parts if isinstance(part, pai.ToolCallPart)]


def results(messages: Sequence[pai.ModelMessage]) -> list[pai.ToolReturnPart]:
    return [part for message in messages for part in message.parts if isinstance(part, pai.ToolReturnPart)]


def summaries(messages: Sequence[pai.ModelMessage]) -> list[pai.CompactionPart]:
    return [part for message in messages for part in message.parts if isinstance(part, pai.CompactionPart)]
