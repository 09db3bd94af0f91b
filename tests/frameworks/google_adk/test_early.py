"""Turns that are sent to the daemon before ADK makes the next request."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec
import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.models import LlmRequest, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from compactd.integrations.frameworks.engine import engine_of
from compactd.integrations.frameworks.google_adk import CompactdPlugin, early
from compactd.integrations.frameworks.google_adk.sessions import session_name
from compactd.protocol.wire import HistoryResult
from tests.frameworks.google_adk.agents import (
    APP,
    Scripted,
    call,
    calls,
    read,
    reads,
    results,
    runner_of,
    said,
    talked,
    text,
)

WINDOW = 200_000
TURNS = 5


class Watch:
    """An agent's instruction, which ADK asks for before it makes the contents of a request."""

    def __init__(self, is_early: Callable[[int], bool]) -> None:
        """`is_early`: whether a turn is sent before the request of this number, from 0. It is waited for."""
        self._is_early = is_early
        self.seen: list[bool] = []

    async def __call__(self, context: ReadonlyContext) -> str:
        mirror = engine_of().known(session_name(context.session))
        tries = 3_000 if self._is_early(len(self.seen)) else 20
        while tries and not (mirror is not None and mirror.has_early_answers):
            tries -= 1
            await asyncio.sleep(0.01)
        self.seen.append(tries > 0)
        return "Be careful."


def never(_: int) -> bool:
    return False


def history(session: Any) -> HistoryResult:
    mirror = engine_of().known(session_name(session))
    assert mirror is not None
    return engine_of().demand(lambda client: client.session_history(session_id=mirror._session or ""))


def branches(session: Any) -> int:
    return sum(entry.kind == "branch" for entry in history(session).entries)


def everything(session: Any) -> str:
    return msgspec.json.encode(history(session)).decode()


def with_ids(turns: int) -> Scripted:
    """Like `reads`, of a provider that gives ids to calls."""

    def answer(number: int, _: Any) -> list[types.Part]:
        if number % (turns + 1) == 0:
            return [text("done")]
        parts = [call("read", number=number * 10 + at) for at in range(2)]
        for at, part in enumerate(parts):
            assert part.function_call is not None
            part.function_call.id = f"call_{number}_{at}"
        return parts

    return Scripted(answer=answer)


# --- what is sent ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("model", "first"),
    # Whether a model is shown the ids that ADK gives is not known before the second turn.
    [(reads, 2), (with_ids, 1)],
)
def test_a_turn_is_with_the_daemon_before_the_next_request(
    model: Callable[[int], Scripted], first: int, streams: bool
) -> None:
    watch = Watch(lambda at: at % (TURNS + 1) > 0 and at >= first)
    plugin, scripted = CompactdPlugin(context_window=WINDOW), model(TURNS)
    runner = runner_of(scripted, plugin, instruction=watch)
    session = talked(runner, "Read the files.", "Again.", streams=streams)
    assert watch.seen == [at % (TURNS + 1) > 0 and at >= first for at in range(2 * TURNS + 2)]
    assert [len(seen) for seen in scripted.seen] == [
        *range(1, 2 * TURNS + 2, 2),
        *range(2 * TURNS + 3, 4 * TURNS + 4, 2),
    ]
    state = plugin.session(session).state()
    assert (state.message_count, branches(session)) == (4 * TURNS + 4, 0)


def test_a_model_that_is_shown_the_ids_of_adk_gets_the_same() -> None:
    """As LiteLLM's and Claude's models are."""
    from google.adk.models.lite_llm import LiteLlm

    class Shown(LiteLlm):
        answer: Any
        seen: list[Any] = []

        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            self.seen.append(list(llm_request.contents))
            yield LlmResponse(content=types.ModelContent(self.answer(len(self.seen), llm_request)))

    watch = Watch(lambda at: at > 1)
    model = Shown(model="openai/scripted", answer=reads(TURNS).answer)
    session = talked(runner_of(model, CompactdPlugin(context_window=WINDOW), instruction=watch), "Read.")
    assert all((each.id or "").startswith("adk-") for each in calls(model.seen[-1]))
    assert watch.seen == [at > 1 for at in range(TURNS + 1)]
    assert branches(session) == 0


# --- what is not ----------------------------------------------------------------------------------------


class RedactingRequests(BasePlugin):
    async def before_model_callback(self, *, callback_context: Any, llm_request: LlmRequest) -> None:
        for response in results(llm_request.contents):
            response.response = {"result": "removed"}


class RedactingEvents(BasePlugin):
    async def on_event_callback(self, *, invocation_context: Any, event: Event) -> Event | None:
        if not event.get_function_responses():
            return None
        changed = event.model_copy(deep=True)
        for response in changed.get_function_responses():
            response.response = {"result": "removed"}
        return changed


@pytest.mark.parametrize("other", [RedactingRequests, RedactingEvents])
@pytest.mark.parametrize("is_first", [True, False])
def test_the_daemon_does_not_see_what_another_plugin_removes(other: type[BasePlugin], is_first: bool) -> None:
    watch = Watch(never)
    own, another = CompactdPlugin(context_window=WINDOW), other("redacting")
    model = reads(TURNS)
    session = talked(
        runner_of(model, *((another, own) if is_first else (own, another)), instruction=watch), "Read."
    )
    assert "removed" in said(model.seen[-1])
    if is_first or other is RedactingEvents:
        assert "the value is" not in everything(session)
    assert watch.seen == [False] * (TURNS + 1)
    assert branches(session) == 0


class Editing(BaseTool):
    """Edits each request that it is in, after the first turns."""

    def __init__(self, after: int) -> None:
        super().__init__(name="editing", description="Edits.")
        self._after = after

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        for response in results(llm_request.contents)[self._after :]:
            response.response = {"result": "edited"}


@pytest.mark.parametrize("after", [0, 2])
def test_a_request_that_says_something_else_after_all_loses_nothing(after: int) -> None:
    watch, model = Watch(lambda at: at in range(2, after + 2) or at == 2), reads(8)
    plugin = CompactdPlugin(context_window=WINDOW)
    runner = runner_of(model, plugin, tools=[read, Editing(after)], instruction=watch)
    session = talked(runner, "Read the files.", "Again.")
    # The first one that is wrong is the last one.
    assert [at for at, was in enumerate(watch.seen) if was] == [2, *range(3, after + 2)]
    assert [len(seen) for seen in model.seen] == [*range(1, 18, 2), *range(19, 36, 2)]
    assert said(model.seen[-1]).count("edited") == 16 - after
    assert branches(session) <= 1
    assert plugin.session(session).state().message_count == 36


def test_an_agent_without_history_is_served_within_its_turn() -> None:
    watch, model = Watch(lambda at: at in (2, 3, 6, 7)), reads(3)
    plugin = CompactdPlugin(context_window=WINDOW)
    session = talked(
        runner_of(model, plugin, include_contents="none", instruction=watch), "Read the files.", "Again."
    )
    assert [len(seen) for seen in model.seen] == [1, 3, 5, 7, 1, 3, 5, 7]
    assert [len(calls(seen)) for seen in model.seen] == [0, 1, 2, 3] * 2
    assert watch.seen == [at in (2, 3, 6, 7) for at in range(8)]
    assert "Again." in everything(session)
    assert (plugin.session(session).state().message_count, branches(session)) == (8, 0)


def test_a_transfer_is_left_to_the_next_request() -> None:
    turns = [
        [call("read", number=1)],
        [call("read", number=2)],
        [call("transfer_to_agent", agent_name="helper")],
        [text("all done")],
    ]
    watch = Watch(lambda at: at == 2)
    helper = LlmAgent(name="helper", model=reads(3), tools=[read], description="Reads.")
    root = LlmAgent(
        name="root",
        model=Scripted(answer=lambda number, _: turns[number - 1]),
        tools=[read],
        sub_agents=[helper],
        instruction=watch,
    )
    plugin = CompactdPlugin(context_window=WINDOW)
    session = talked(InMemoryRunner(app=App(name=APP, root_agent=root, plugins=[plugin])), "Do it.")
    assert watch.seen == [False, False, True]
    mirror = engine_of().known(session_name(session))
    assert mirror is not None
    assert not mirror.has_early_answers
    assert "transfer_to_agent" not in everything(session)
    assert branches(session) == 0


def final(number: int, tool_context: ToolContext) -> str:
    """Says something to the user."""
    tool_context.actions.skip_summarization = True
    return "said"


def slow(number: int) -> None:
    """Returns later."""


@pytest.mark.parametrize("tool", [final, slow])
def test_results_that_no_request_follows_wait_for_one(tool: Any) -> None:
    turns = [
        [call("read", number=1)],
        [call("read", number=2)],
        [call(tool.__name__, number=3), call("read", number=4)],
        [text("done")],
        [text("done")],
    ]
    watch = Watch(lambda at: at == 2)
    model = Scripted(answer=lambda number, _: turns[number - 1])
    plugin = CompactdPlugin(context_window=WINDOW)
    tools = [read, final, LongRunningFunctionTool(slow)]
    session = talked(runner_of(model, plugin, tools=tools, instruction=watch), "Read.", "Go on.")
    assert watch.seen[:3] == [False, False, True]
    assert not any(watch.seen[3:])
    assert branches(session) == 0
    assert len(calls(model.seen[-1])) == 4


def test_a_call_that_is_never_answered_leaves_nothing_behind() -> None:
    model = Scripted(answer=lambda number, _: [call("slow", number=number)])
    runner = runner_of(model, CompactdPlugin(context_window=WINDOW), tools=[LongRunningFunctionTool(slow)])
    talked(runner, "Begin.")
    gc.collect()
    assert not early._turns
