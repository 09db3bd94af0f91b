"""Agents of LangChain and deepagents in a small window, with `CompactdMiddleware`."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import signal
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from compactd.client.events import own_command
from compactd.integrations.frameworks.engine import CompactdWarning, engine_of
from compactd.integrations.frameworks.langchain import CompactdMiddleware, compactd_summarizer
from tests.frameworks.langchain import agents
from tests.frameworks.langchain.agents import Scripted
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import Provider
from tests.frameworks.support.talk import SYSTEM, TOOLS

WINDOW = 8_000
STEPS = 400


def config(thread: str | None = None) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread or uuid4().hex}, "recursion_limit": STEPS}


def ask(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


# --- the conversation of the test kit ------------------------------------------------------------------


@pytest.mark.parametrize("model", [agents.openai, agents.responses, agents.anthropic])
def test_forty_tool_turns_fit_into_a_small_window(model: Callable[[Provider], Any]) -> None:
    with Provider(recalls=3) as provider:
        middleware = CompactdMiddleware(context_window=WINDOW)
        agent = create_agent(
            model(provider),
            list(TOOLS),
            system_prompt=SYSTEM,
            middleware=[middleware],
            checkpointer=InMemorySaver(),
        )
        run = config()
        for request in provider.asks():
            agent.invoke(ask(request), run)
    assert broken(provider) == []
    assert (provider.totals.rejections, provider.totals.tasks, provider.totals.turns) == (0, 5, 40)
    assert provider.totals.recalls == 3
    state = middleware.session(run["configurable"]["thread_id"]).state()
    assert state.compaction.count >= 1
    # The agent's own state keeps everything.
    assert sum(isinstance(each, ToolMessage) for each in agent.get_state(run).values["messages"]) > 40


async def test_streamed_and_asynchronous_runs_fit_too() -> None:
    with Provider() as provider:
        agent = create_agent(
            agents.openai(provider),
            list(TOOLS),
            system_prompt=SYSTEM,
            middleware=[CompactdMiddleware(context_window=WINDOW)],
            checkpointer=InMemorySaver(),
        )
        run = config()
        for request in provider.asks():
            async for _ in agent.astream(ask(request), run, stream_mode="messages"):
                pass
    assert broken(provider) == []
    assert provider.totals.tasks == 5


def test_a_deep_agent_has_no_second_summary() -> None:
    with Provider() as provider:
        agent = create_deep_agent(
            agents.openai(provider),
            list(TOOLS),
            system_prompt=SYSTEM,
            middleware=[CompactdMiddleware(context_window=WINDOW, name="SummarizationMiddleware")],
            checkpointer=InMemorySaver(),
        )
        run = config()
        for request in provider.asks():
            agent.invoke(ask(request), run)
    assert broken(provider) == []
    assert (provider.totals.summaries, provider.totals.tasks) == (0, 5)


@pytest.mark.parametrize(("model", "most_rejections"), [(agents.openai, 1), (agents.responses, 8)])
def test_an_unknown_window_is_found_by_rejections(
    model: Callable[[Provider], Any], most_rejections: int
) -> None:
    """Chat Completions names the window in the first one. Responses never does, so each cycle has one."""
    with Provider() as provider:
        name = f"unknown-{uuid4().hex}"
        unknown = model(provider).model_copy(update={"profile": None, "model_name": name})
        agent = create_agent(
            unknown,
            list(TOOLS),
            system_prompt=SYSTEM,
            middleware=[CompactdMiddleware()],
            checkpointer=InMemorySaver(),
        )
        run = config()
        for request in provider.asks():
            agent.invoke(ask(request), run)
    assert provider.totals.tasks == 5
    assert 1 <= provider.totals.rejections <= most_rejections


def test_the_summarizer_of_langchains_own_middleware_asks_no_model() -> None:
    with Provider() as provider:
        model = agents.openai(provider)
        own = SummarizationMiddleware(
            model,
            trigger=("fraction", 0.75),
            keep=("fraction", 0.25),
            trim_tokens_to_summarize=None,
            summarizer=compactd_summarizer(),
        )
        agent = create_agent(
            model, list(TOOLS), system_prompt=SYSTEM, middleware=[own], checkpointer=InMemorySaver()
        )
        run = config()
        for request in provider.asks():
            agent.invoke(ask(request), run)
    assert (provider.totals.rejections, provider.totals.summaries, provider.totals.tasks) == (0, 0, 5)


# --- scripted models -----------------------------------------------------------------------------------


@tool
def read(number: int) -> str:
    """Reads a file."""
    return "\n".join(f"{number}:{line} the value is {line * 7919 % 1000}" for line in range(60))


def reads(turns: int, fail: Callable[[int], Exception | None] = lambda _: None) -> Scripted:
    """Return a model that reads `turns` files and says that it is done."""

    def answer(number: int, _: Any) -> AIMessage | Exception:
        if error := fail(number):
            return error
        if number <= turns:
            call = {"type": "tool_call", "name": "read", "args": {"number": number}, "id": f"c{number}"}
            return AIMessage("", tool_calls=[call])
        return AIMessage("done")

    return Scripted(answer=answer)


def agent_of(model: Any, middleware: CompactdMiddleware, **more: Any) -> Any:
    return create_agent(model, [read], middleware=[middleware], checkpointer=InMemorySaver(), **more)


def test_an_overflow_that_langchain_does_not_recognise_is_recovered() -> None:
    class Refused(Exception):
        status_code = 400
        body = {"error": {"message": "prompt is too long: 9000 tokens > 8000 maximum"}}

    model = reads(20, lambda number: Refused("bad request") if number == 12 else None)
    middleware = CompactdMiddleware(context_window=WINDOW)
    run = config()
    agent_of(model, middleware).invoke(ask("Read the files."), run)
    sizes = [sum(len(str(each.content)) for each in seen) for seen in model.seen]
    assert sizes[12] < sizes[11]
    assert model.seen[12][-1].content == model.seen[11][-1].content
    assert middleware.session(run["configurable"]["thread_id"]).state().compaction.count >= 1


def test_langchains_own_overflow_error_needs_no_text() -> None:
    model = reads(20, lambda number: ContextOverflowError("oops") if number == 12 else None)
    agent_of(model, CompactdMiddleware(context_window=WINDOW)).invoke(ask("Read the files."), config())
    assert len(model.seen) == 21


def test_another_failure_is_raised_at_once() -> None:
    model = reads(3, lambda number: ValueError("no") if number == 2 else None)
    with pytest.raises(ValueError, match="no"):
        agent_of(model, CompactdMiddleware(context_window=WINDOW)).invoke(ask("Read the files."), config())
    assert len(model.seen) == 2


def test_a_provider_that_refuses_everything_ends_after_four_attempts() -> None:
    model = reads(0, lambda _: ContextOverflowError("prompt is too long"))
    with pytest.raises(ContextOverflowError):
        agent_of(model, CompactdMiddleware(context_window=WINDOW)).invoke(ask("Read the files."), config())
    assert len(model.seen) <= 4


def test_killing_the_daemon_between_any_two_steps_loses_nothing() -> None:
    def killed(number: int) -> None:
        if number in (3, 9):
            os.kill(engine_of().demand(lambda client: client.pid), signal.SIGKILL)

    model = reads(14, killed)
    middleware = CompactdMiddleware(context_window=WINDOW)
    run = config()
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompactdWarning)
        result = agent_of(model, middleware).invoke(ask("Read the files."), run)
    assert result["messages"][-1].content == "done"
    session = middleware.session(run["configurable"]["thread_id"])
    assert "12:59 the value is" in session.recall("12:59", ())
    assert session.state().message_count == 1 + 2 * 14 + 1 or session.state().compaction.count >= 1


def test_an_agent_without_a_daemon_goes_on_with_one_warning() -> None:
    model = reads(5)
    middleware = CompactdMiddleware(context_window=WINDOW, command=["/nonexistent/compactd"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = agent_of(model, middleware).invoke(ask("Read the files."), config())
    assert result["messages"][-1].content == "done"
    assert len(model.seen[-1]) == 11
    assert sum(each.category is CompactdWarning for each in caught) == 1


def test_a_message_that_cannot_be_read_is_named_with_the_versions_that_can() -> None:
    class Renamed(HumanMessage):
        """A message as a later version might have it."""

        @property
        def additional_kwargs(self) -> dict[str, Any]:  # type: ignore[override]
            raise AttributeError("'HumanMessage' object has no attribute 'additional_kwargs'")

    model = reads(2)
    middleware = CompactdMiddleware(context_window=WINDOW, command=[*own_command()])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        agent = create_agent(model, [read], middleware=[middleware])
        result = agent.invoke({"messages": [Renamed("Read the files.")]})
    assert result["messages"][-1].content == "done"
    (warning,) = [str(each.message) for each in caught if each.category is CompactdWarning]
    assert "AttributeError" in warning
    assert "tested with langchain 1.5" in warning


def test_an_interrupt_is_resumed() -> None:
    model = reads(3)
    approval = HumanInTheLoopMiddleware(interrupt_on={"read": True})
    agent = create_agent(
        model,
        [read],
        middleware=[CompactdMiddleware(context_window=WINDOW), approval],
        checkpointer=InMemorySaver(),
    )
    run = config()
    result = agent.invoke(ask("Read the files."), run)
    for _ in range(3):
        assert result["__interrupt__"]
        result = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), run)
    assert result["messages"][-1].content == "done"


def test_a_thread_that_goes_back_in_time_gets_the_view_of_then() -> None:
    model = reads(20)
    middleware = CompactdMiddleware(context_window=WINDOW)
    agent = agent_of(model, middleware)
    run = config()
    agent.invoke(ask("Read the files."), run)
    early = [each for each in agent.get_state_history(run) if len(each.values.get("messages", ())) == 7][-1]
    model.seen.clear()
    agent.invoke(None, early.config)
    assert len(model.seen[0]) == 7
    assert model.seen[0] == early.values["messages"]


def test_messages_that_the_host_removes_are_not_sent() -> None:
    model = reads(3)
    agent = agent_of(model, CompactdMiddleware(context_window=WINDOW))
    run = config()
    agent.invoke(ask("Read the files."), run)
    messages = agent.get_state(run).values["messages"]
    agent.update_state(run, {"messages": [RemoveMessage(each.id) for each in messages[1:]]})
    agent.invoke(ask("And now?"), run)
    assert [each.content for each in model.seen[-1]] == ["Read the files.", "And now?"]


def test_outputs_are_shortened_where_it_is_wanted() -> None:
    @tool
    def check() -> str:
        """Runs the tests."""
        return "\n".join(f"tests/test_{number}.py::test_it PASSED" for number in range(400))

    def answer(number: int, _: Any) -> AIMessage:
        call = {"type": "tool_call", "name": "check", "args": {}, "id": "c1"}
        return AIMessage("", tool_calls=[call]) if number == 1 else AIMessage("done")

    sizes = {}
    for level in ("off", "observe", "default"):
        model = Scripted(answer=answer)
        middleware = CompactdMiddleware(context_window=100_000, reduce=level)  # type: ignore[arg-type]
        agent = create_agent(model, [check], middleware=[middleware], checkpointer=InMemorySaver())
        agent.invoke(ask("Run the tests."), config())
        sizes[level] = len(model.seen[1][-1].content)
        model.seen.clear()
    assert sizes["off"] == sizes["observe"] > 2 * sizes["default"]


def test_a_run_without_a_thread_has_a_session_in_memory() -> None:
    model = reads(20)
    agent = create_agent(model, [read], middleware=[CompactdMiddleware(context_window=WINDOW)])
    agent.invoke(ask("Read the files."), {"recursion_limit": STEPS})
    assert max(len(seen) for seen in model.seen) < 41
    engine_of().close()
    stored = engine_of().demand(lambda client: client.session_list()).sessions
    assert not any(each.session_id.startswith("langchain:run:") for each in stored)


def test_two_agents_with_one_thread_each_get_their_own_messages() -> None:
    thread = uuid4().hex
    middleware = CompactdMiddleware(context_window=WINDOW)
    models = [reads(10), reads(10)]
    made = [agent_of(model, middleware) for model in models]

    def run(at: int) -> int:
        made[at].invoke(ask(f"Read the files, {at}."), config(thread))
        return len(models[at].seen)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, range(2))) == [11, 11]
    for at, model in enumerate(models):
        assert all(seen[0].content == f"Read the files, {at}." or len(seen) < 21 for seen in model.seen)
        assert model.seen[-1][-1].content.startswith("10:0")


def test_fifty_threads_share_one_middleware() -> None:
    middleware = CompactdMiddleware(context_window=WINDOW)

    def run(_: int) -> str:
        model = reads(3)
        result: str = (
            agent_of(model, middleware).invoke(ask("Read the files."), config())["messages"][-1].content
        )
        return result

    with ThreadPoolExecutor(50) as pool:
        assert set(pool.map(run, range(50))) == {"done"}


def test_copies_and_pickles_work_like_the_original() -> None:
    for middleware in (
        copy.deepcopy(CompactdMiddleware(context_window=WINDOW)),
        pickle.loads(pickle.dumps(CompactdMiddleware(context_window=WINDOW))),
    ):
        model = reads(20)
        agent_of(model, middleware).invoke(ask("Read the files."), config())
        assert len(model.seen[-1]) < 41


def test_two_event_loops_in_one_process() -> None:
    middleware = CompactdMiddleware(context_window=WINDOW)

    async def run() -> str:
        result = await agent_of(reads(12), middleware).ainvoke(ask("Read the files."), config())
        return str(result["messages"][-1].content)

    assert [asyncio.run(run()) for _ in range(2)] == ["done", "done"]


def test_a_sub_agent_has_a_session_of_its_own() -> None:
    sub_model = reads(3)
    middleware = CompactdMiddleware(context_window=WINDOW)
    sub = create_agent(sub_model, [read], middleware=[middleware])

    @tool
    def delegate(task: str) -> str:
        """Gives a task to another agent."""
        return str(sub.invoke(ask(task))["messages"][-1].content)

    def answer(number: int, _: Any) -> AIMessage:
        call = {"type": "tool_call", "name": "delegate", "args": {"task": "Read."}, "id": "d1"}
        return AIMessage("", tool_calls=[call]) if number == 1 else AIMessage("all done")

    model = Scripted(answer=answer)
    agent = create_agent(model, [delegate], middleware=[middleware], checkpointer=InMemorySaver())
    run = config()
    assert agent.invoke(ask("Delegate."), run)["messages"][-1].content == "all done"
    thread = run["configurable"]["thread_id"]
    sessions = engine_of().demand(lambda client: client.session_list()).sessions
    ours = [each.session_id for each in sessions if thread in each.session_id]
    assert sorted(len(each.split("/")) for each in ours) == [1, 2]


def test_parallel_calls_keep_their_results() -> None:
    def answer(number: int, _: Any) -> AIMessage:
        if number > 15:
            return AIMessage("done")
        calls = [
            {
                "type": "tool_call",
                "name": "read",
                "args": {"number": number * 10 + at},
                "id": f"c{number}-{at}",
            }
            for at in range(3)
        ]
        return AIMessage("", tool_calls=calls)

    model = Scripted(answer=answer)
    agent_of(model, CompactdMiddleware(context_window=WINDOW)).invoke(ask("Read the files."), config())
    for seen in model.seen:
        calls = [call["id"] for each in seen if isinstance(each, AIMessage) for call in each.tool_calls]
        results = [each.tool_call_id for each in seen if isinstance(each, ToolMessage)]
        assert sorted(calls) == sorted(results)


def test_the_tool_finds_what_was_compacted() -> None:
    def answer(number: int, _: Any) -> AIMessage:
        name, args = ("read", {"number": number}) if number < 25 else ("recall", {"query": "2:33 the value"})
        if number > 25:
            return AIMessage("done")
        return AIMessage(
            "", tool_calls=[{"type": "tool_call", "name": name, "args": args, "id": f"c{number}"}]
        )

    model = Scripted(answer=answer)
    agent_of(model, CompactdMiddleware(context_window=WINDOW)).invoke(ask("Read the files."), config())
    assert f"(tool) 2:33 the value is {33 * 7919 % 1000}" in model.seen[25][-1].content


def test_without_recall_the_agent_has_no_further_tool() -> None:
    assert CompactdMiddleware(recall=False).tools == ()
    assert [each.name for each in CompactdMiddleware().tools] == ["recall"]
