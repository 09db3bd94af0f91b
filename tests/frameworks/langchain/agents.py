"""Agents of LangChain whose model is a script, or the provider on loopback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI

from tests.frameworks.support.provider import MODEL, WINDOW, Provider

KEY = "dummy-key"
Answer = Callable[[int, Sequence[BaseMessage]], AIMessage | Exception]


class Scripted(BaseChatModel):
    """A model that answers what a function says, and keeps what it was sent."""

    answer: Any
    seen: list[Any] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.seen.append(list(messages))
        said = self.answer(len(self.seen), messages)
        if isinstance(said, Exception):
            raise said
        return ChatResult(generations=[ChatGeneration(message=said)])


def openai(provider: Provider) -> ChatOpenAI:
    """Return a model behind Chat Completions."""
    return ChatOpenAI(
        model=MODEL,
        api_key=KEY,
        base_url=provider.openai_url,
        max_retries=0,
        profile={"max_input_tokens": WINDOW},
    )


def responses(provider: Provider) -> ChatOpenAI:
    """Return a model behind the Responses API."""
    return ChatOpenAI(
        model=MODEL, api_key=KEY, base_url=provider.openai_url, max_retries=0, use_responses_api=True
    )


def anthropic(provider: Provider) -> ChatAnthropic:
    """Return a model behind Anthropic's Messages."""
    return ChatAnthropic(
        model=MODEL, api_key=KEY, base_url=provider.anthropic_url, max_retries=0, max_tokens=1_000
    )
