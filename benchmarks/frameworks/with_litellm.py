"""LiteLLM: alone, with its ways to make messages shorter, and with compactd."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import litellm

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
from tests.frameworks.support.plain_agent import BY_NAME, schema
from tests.frameworks.support.provider import MODEL, Provider

litellm.suppress_debug_info = True
Request = dict[str, Any]
Change = Callable[[Request], Request]
"""Returns a request with other messages."""
DEFINITIONS = [
    {
        "type": "function",
        "function": {"name": tool.__name__, "description": tool.__doc__, "parameters": schema(tool)},
    }
    for tool in TOOLS
]


def loop(change: Change = dict, *, with_compactd: bool = False) -> Start:
    """Return a way to run the loop that LiteLLM's documentation shows for tools."""

    @asynccontextmanager
    async def start(provider: Provider) -> AsyncIterator[Ask]:
        session = uuid4().hex
        tools: list[Any] = list(DEFINITIONS)
        functions: dict[str, Callable[[str], str]] = {name: _runs(tool) for name, tool in BY_NAME.items()}
        callbacks: list[Any] = []
        if with_compactd:
            from compactd.integrations.frameworks.litellm import CompactdLogger

            logger = CompactdLogger(context_window=COMPACTD_WINDOW, persist=False)
            recall = logger.recall_tool(session)
            callbacks.append(logger)
            tools.append(recall.definition)
            functions[recall.name] = recall
        litellm.callbacks = callbacks
        messages: list[Any] = [{"role": "system", "content": SYSTEM}]

        async def ask(request: str) -> None:
            messages.append({"role": "user", "content": request})
            while True:
                given = {"messages": messages, "tools": tools, "metadata": {"session_id": session}}
                response = await litellm.acompletion(
                    model=f"openai/{MODEL}", api_base=provider.openai_url, api_key=KEY, **change(given)
                )
                message = response.choices[0].message
                messages.append(message)
                if not message.tool_calls:
                    return
                for call in message.tool_calls:
                    output = functions[call.function.name](call.function.arguments)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": output})

        yield ask

    return start


def _runs(tool: Callable[..., str]) -> Callable[[str], str]:
    return lambda arguments: tool(**json.loads(arguments))


def trimmed(request: Request) -> Request:
    """Trim the messages, as `litellm.utils.trim_messages` does."""
    messages = litellm.utils.trim_messages(_plain(request["messages"]), max_tokens=TRIGGER)
    return {**request, "messages": messages}


def compressed(request: Request) -> Request:
    """Put stubs in place of messages, with the tool that gets them back, as `litellm.compress` does."""
    done = litellm.compress(_plain(request["messages"]), MODEL, compression_trigger=TRIGGER)
    return {**request, "messages": done["messages"], "tools": [*request["tools"], *done["tools"]]}


def _plain(messages: list[Any]) -> list[dict[str, Any]]:
    """Return dictionaries, whose content is a text: what both functions can read."""
    plain = [each if isinstance(each, dict) else each.model_dump(exclude_none=True) for each in messages]
    return [{"content": "", **each} for each in plain]


NAME = "LiteLLM"
RUNNERS = (
    Runner(NAME, "`acompletion`", "alone", loop()),
    Runner(NAME, "`trim_messages`, 6,000 tokens", "own", loop(trimmed)),
    Runner(NAME, "`compress`, from 6,000 tokens", "own", loop(compressed)),
    Runner(NAME, "`CompactdLogger`", "compactd", loop(with_compactd=True)),
    Runner(
        NAME,
        f"`CompactdLogger`, {LOOK_UPS} look-ups",
        "compactd",
        loop(with_compactd=True),
        recalls=LOOK_UPS,
    ),
)
