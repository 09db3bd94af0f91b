"""The agent loop that LiteLLM's users write, in front of the provider on loopback."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import litellm

from compactd.integrations.frameworks.litellm import CompactdLogger
from tests.frameworks.support.plain_agent import BY_NAME, schema
from tests.frameworks.support.provider import MODEL, Provider
from tests.frameworks.support.talk import SYSTEM, TOOLS

WINDOW = 8_000
KEY = "dummy-key"
Ask = Callable[..., Awaitable[Any]]
DEFINITIONS = [
    {
        "type": "function",
        "function": {"name": tool.__name__, "description": tool.__doc__, "parameters": schema(tool)},
    }
    for tool in TOOLS
]


@contextmanager
def registered(**options: Any) -> Iterator[CompactdLogger]:
    """Register a logger for the length of a test."""
    logger = CompactdLogger(**{"context_window": WINDOW, **options})
    before = litellm.callbacks
    litellm.callbacks = [logger]
    try:
        yield logger
    finally:
        litellm.callbacks = before
        for name in ("success_callback", "failure_callback", "_async_success_callback"):
            setattr(litellm, name, [each for each in getattr(litellm, name) if each is not logger])


def openai(provider: Provider) -> dict[str, Any]:
    """Return what a request to Chat Completions contains."""
    return {"model": f"openai/{MODEL}", "api_base": provider.openai_url, "api_key": KEY}


def anthropic(provider: Provider) -> dict[str, Any]:
    """Return what a request to Anthropic's Messages contains."""
    return {"model": f"anthropic/{MODEL}", "api_base": provider.anthropic_url, "api_key": KEY}


def router(provider: Provider, **options: Any) -> litellm.Router:
    """Return a router with the models `small` and `other`, which are the same."""
    deployment = {**openai(provider)}
    models = [{"model_name": name, "litellm_params": dict(deployment)} for name in ("small", "other")]
    return litellm.Router(model_list=models, **options)


class Agent:
    """Messages, and the loop that adds to them. `messages` is what the caller keeps: all of it."""

    def __init__(self, ask: Ask, session_id: str | None = None, **request: Any) -> None:
        self.ask = ask
        self.session_id = session_id or uuid4().hex
        self.request = {"metadata": {"session_id": self.session_id}, "tools": DEFINITIONS, **request}
        self.messages: list[Any] = [{"role": "system", "content": SYSTEM}]
        self.tools: dict[str, Callable[..., str]] = dict(BY_NAME)
        self.recall: Callable[[str], str] | None = None

    async def run(self, text: str) -> str:
        """Give the model a request of the user, and run its tools until it is done."""
        self.messages.append({"role": "user", "content": text})
        while True:
            message = await self.answer()
            self.messages.append(message)
            if not message.tool_calls:
                return str(message.content)
            for call in message.tool_calls:
                self.messages.append(
                    {"role": "tool", "tool_call_id": call.id, "content": self._result(call.function)}
                )

    async def answer(self) -> Any:
        """Ask the model once."""
        response = await self.ask(messages=self.messages, **self.request)
        if not self.request.get("stream"):
            return response.choices[0].message
        chunks = [chunk async for chunk in response]
        whole = litellm.stream_chunk_builder(chunks)
        assert whole is not None
        return whole.choices[0].message  # type: ignore[union-attr]  # of a chat completion

    def _result(self, function: Any) -> str:
        if function.name == "recall" and self.recall is not None:
            return self.recall(function.arguments)
        return self.tools[function.name](**json.loads(function.arguments))
