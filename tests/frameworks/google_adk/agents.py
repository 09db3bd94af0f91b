"""Agents of ADK whose model is a script, or Gemini's client with the provider on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from google import genai
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.models import BaseLlm, Gemini, LlmRequest, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import BaseSessionService, Session
from google.genai import types

from tests.frameworks.support.provider import MODEL, Provider
from tests.frameworks.support.talk import SYSTEM, TOOLS

APP = "an_app"
USER = "someone"
LINES = 60

Answer = Callable[[int, LlmRequest], list[types.Part] | Exception]


class Scripted(BaseLlm):
    """A model that answers what a function says, and keeps what it was sent."""

    model: str = "scripted-1"
    answer: Any
    seen: list[Any] = []

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.seen.append(list(llm_request.contents))
        said = self.answer(len(self.seen), llm_request)
        if isinstance(said, Exception):
            raise said
        if stream:
            for part in said:
                yield LlmResponse(content=types.ModelContent([part]), partial=True)
        yield LlmResponse(content=types.ModelContent(said))


def read(number: int) -> str:
    """Reads a file."""
    return "\n".join(f"{number}:{line} the value is {line * 7919 % 1000}" for line in range(LINES))


def call(name: str, **arguments: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


def text(words: str) -> types.Part:
    return types.Part(text=words)


def reads(turns: int, fail: Callable[[int], Exception | None] = lambda _: None) -> Scripted:
    """Return a model that reads `turns` files and says that it is done, again and again."""

    def answer(number: int, _: Any) -> list[types.Part] | Exception:
        if error := fail(number):
            return error
        return [text("done")] if number % (turns + 1) == 0 else [call("read", number=number)]

    return Scripted(answer=answer)


def runner_of(model: BaseLlm, *plugins: BasePlugin, **options: Any) -> Runner:
    """Return a runner of one agent with a script or a model of ADK's."""
    options.setdefault("tools", [read])
    agent = LlmAgent(name="reader", model=model, **options)
    return InMemoryRunner(app=App(name=APP, root_agent=agent, plugins=list(plugins)))


async def new_session(runner: Runner, session_id: str | None = None) -> Session:
    return await runner.session_service.create_session(
        app_name=runner.app_name, user_id=USER, session_id=session_id or uuid4().hex
    )


async def ask(runner: Runner, session: Session, words: str, *, streams: bool = False) -> list[Event]:
    """Have a run, and return its events."""
    mode = StreamingMode.SSE if streams else StreamingMode.NONE
    return [
        event
        async for event in runner.run_async(
            user_id=session.user_id,
            session_id=session.id,
            new_message=types.UserContent(words),
            run_config=RunConfig(streaming_mode=mode),
        )
    ]


def talked(runner: Runner, *words: str, streams: bool = False) -> Session:
    """Have a new session with these requests, in an event loop of its own. Return the session."""

    async def talk() -> Session:
        session = await new_session(runner)
        for each in words:
            await ask(runner, session, each, streams=streams)
        return await stored(runner.session_service, session)

    return asyncio.run(talk())


async def stored(service: BaseSessionService, session: Session) -> Session:
    """Return the session as it is now."""
    found = await service.get_session(
        app_name=session.app_name, user_id=session.user_id, session_id=session.id
    )
    assert found is not None
    return found


@asynccontextmanager
async def gemini(provider: Provider) -> AsyncIterator[Gemini]:
    """Give ADK's model with Google's own client, for the provider on loopback."""
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=provider.gemini_url))
    try:
        yield Gemini(model=MODEL, client=client)
    finally:
        await client.aio.aclose()


def have(provider: Provider, *plugins: BasePlugin, streams: bool = False, **options: Any) -> Session:
    """Have the whole conversation of `support/talk.py`. Return the session at its end."""

    async def talk() -> Session:
        async with gemini(provider) as model:
            options.setdefault("instruction", SYSTEM)
            runner = runner_of(model, *plugins, tools=list(TOOLS), **options)
            session = await new_session(runner)
            for words in provider.asks():
                await ask(runner, session, words, streams=streams)
            return await stored(runner.session_service, session)

    return asyncio.run(talk())


def said(contents: Sequence[types.Content]) -> str:
    """Return all that contents say."""
    parts = [part for content in contents for part in content.parts or ()]
    return "\n".join(str(part.text or part.function_call or part.function_response) for part in parts)


def results(contents: Sequence[types.Content | None]) -> list[types.FunctionResponse]:
    parts = [part for content in contents if content for part in content.parts or ()]
    return [part.function_response for part in parts if part.function_response]


def calls(contents: Sequence[types.Content | None]) -> list[types.FunctionCall]:
    parts = [part for content in contents if content for part in content.parts or ()]
    return [part.function_call for part in parts if part.function_call]
