"""Turns that are sent to the daemon while Pydantic AI makes the next request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from pydantic_ai import ModelRequestContext, RunContext
from pydantic_ai import messages as pai
from pydantic_ai.capabilities import AbstractCapability

from compactd.integrations.frameworks.engine import close_engines, engine_of
from compactd.integrations.frameworks.pydantic_ai import CompactdCapability, early
from compactd.integrations.frameworks.pydantic_ai.messages import continued, units_of
from tests.frameworks.pydantic_ai.agents import NO_LIMIT
from tests.frameworks.pydantic_ai.scripted import Script

TURNS = 5
NAME = "pydantic-ai:early"


@pytest.fixture(autouse=True)
def own_daemon() -> Iterator[None]:
    yield
    close_engines()


class Watch(AbstractCapability[None]):
    """Notes before each request whether the last turn is with the daemon. Waits for it, except first."""

    def __init__(self, tries: int = 3_000) -> None:
        super().__init__()
        self._tries = tries
        self.seen: list[bool] = []

    async def prepare_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        mirror, tries = engine_of().known(NAME), self._tries if self.seen else 1
        while tries and not (mirror is not None and mirror.has_early_answers):
            tries -= 1
            await asyncio.sleep(0.01)
        self.seen.append(tries > 0)
        return request_context


def compactd(**options: Any) -> CompactdCapability[None]:
    return CompactdCapability(session_id="early", context_window=200_000, persist=False, **options)


def everything() -> str:
    history = engine_of().demand(lambda client: client.session_history(session_id=NAME))
    return msgspec.json.encode(history).decode()


def test_a_turn_is_with_the_daemon_before_the_next_request() -> None:
    watch, script = Watch(), Script(TURNS)
    capability = compactd()
    result = script.agent(watch, capability).run_sync("Read the files.", usage_limits=NO_LIMIT)

    assert watch.seen == [False] + [True] * TURNS
    assert [len(sent) for sent in script.sent] == list(range(1, 2 * TURNS + 2, 2))
    state = capability.session(result).state()
    assert state.message_count == 2 * TURNS + 2
    assert '"kind":"branch"' not in everything()
    assert not early._last


def test_with_a_persistent_history_nothing_is_sent_early() -> None:
    watch = Watch(tries=20)
    Script(2).agent(watch, compactd(persistent=True)).run_sync("Read the files.", usage_limits=NO_LIMIT)
    assert watch.seen == [False] * 3


class Redacting(AbstractCapability[None]):
    """Takes a secret out of what a tool has returned, in each request."""

    async def before_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        request_context.messages = [_redacted(message) for message in request_context.messages]
        return request_context


def _redacted(message: pai.ModelMessage) -> pai.ModelMessage:
    if not isinstance(message, pai.ModelRequest):
        return message
    parts = [
        replace(part, content="removed") if isinstance(part, pai.ToolReturnPart) else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def test_if_another_capability_changes_what_is_sent_only_one_turn_is_sent_early() -> None:
    watch, script, ours = Watch(tries=20), Script(TURNS), compactd()
    agent = script.agent(watch, ours, Redacting())
    agent.run_sync("Read the files.", usage_limits=NO_LIMIT)

    returned = [
        part.content
        for message in script.sent[-1]
        for part in message.parts
        if isinstance(part, pai.ToolReturnPart)
    ]
    assert returned == ["removed"] * TURNS
    assert watch.seen == [False, True] + [False] * (TURNS - 1)


def test_a_history_is_continued_by_an_answer_to_the_same_messages() -> None:
    request = pai.ModelRequest([pai.UserPromptPart("Read.")])
    answer = pai.ModelResponse([pai.ToolCallPart("read", {"path": "a"}, tool_call_id="1")])
    returned = pai.ModelRequest([pai.ToolReturnPart("read", "text", tool_call_id="1")])
    before, whole = units_of([request]), [request, answer, returned]

    assert continued(before, whole) == units_of(whole)
    assert continued(before, [request]) is None
    assert continued(before, [request, returned]) is None
    assert continued(before, [replace(request), answer]) is None
    assert continued(units_of([]), whole) is None
