"""What goes wrong around an agent: dead daemons, edited histories, copies, threads, event loops."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from pydantic_ai import ModelRequestContext, RunContext
from pydantic_ai import messages as pai
from pydantic_ai.capabilities import AbstractCapability, ProcessHistory

from compactd.integrations.frameworks.engine import CompactdWarning, close_engines, engine_of
from compactd.integrations.frameworks.history import Setup
from compactd.integrations.frameworks.pydantic_ai import CompactdCapability, compactd_history_processor
from compactd.integrations.frameworks.pydantic_ai.messages import units_of
from tests.frameworks.pydantic_ai.agents import NO_LIMIT, agent_of, have, is_summary, results, summaries
from tests.frameworks.pydantic_ai.scripted import Script, faults, text_of
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import Provider
from tests.frameworks.support.talk import talk

SMALL = 8_000


@pytest.fixture(autouse=True)
def own_daemon() -> Iterator[None]:
    """A daemon that dies often is not started again for a while."""
    yield
    close_engines()


def kill_the_daemon() -> None:
    with suppress(Exception):
        os.kill(engine_of().demand(lambda client: client.pid), signal.SIGKILL)


def stored_in(session: str) -> int:
    """Return how many messages a session has."""
    history = engine_of().demand(lambda client: client.session_history(session_id=session))
    return sum(entry.kind == "message" for entry in history.entries)


class Killer(AbstractCapability[None]):
    """Kills the daemon at one of the steps of an agent, counted from 1."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at
        self.count = 0

    def step(self) -> None:
        self.count += 1
        if self.count == self.at:
            kill_the_daemon()

    async def before_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        self.step()
        return request_context

    async def after_model_request(
        self, ctx: RunContext[None], *, request_context: ModelRequestContext, response: pai.ModelResponse
    ) -> pai.ModelResponse:
        self.step()
        return response

    async def after_tool_execute(
        self, ctx: RunContext[None], *, call: pai.ToolCallPart, tool_def: Any, args: Any, result: Any
    ) -> Any:
        self.step()
        return result

    async def after_run(self, ctx: RunContext[None], *, result: Any) -> Any:
        self.step()
        return result


@pytest.mark.parametrize("persist", [False, True])
def test_a_daemon_that_is_killed_at_any_step_costs_nothing(persist: bool) -> None:
    short = talk(lots=1, parts=4)
    at, steps = 1, 2
    while at <= steps:
        with Provider(short, window=3_000) as provider:
            killer = Killer(at)
            capability = CompactdCapability(
                session_id=f"killed-{persist}-{at}", context_window=3_000, persist=persist
            )
            result = have(agent_of("chat", provider, killer, capability), provider)

            assert (at, broken(provider, is_summary)) == (at, [])
            assert (at, provider.totals.turns) == (at, 4)
        units = units_of(result.all_messages())
        assert capability.session(result).prepare(units.history(), Setup(context_window=3_000))
        session = capability.session(result).name
        assert stored_in(session) >= len(units.keys)
        close_engines()
        steps = killer.count
        at += 1 if persist else 2
    assert steps > 12


@pytest.mark.parametrize(
    "command",
    [("/no/such/program",), (sys.executable, "-c", "print('no daemon')"), (sys.executable, "-c", "")],
)
def test_without_a_daemon_the_agent_goes_on_and_warns_once(command: tuple[str, ...]) -> None:
    script = Script(turns=4)
    capability = CompactdCapability(context_window=SMALL, command=command, reduce="default")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = script.agent(capability).run_sync("go")
        again = script.agent(capability).run_sync("go on", message_history=result.all_messages())

    own = [one for one in caught if issubclass(one.category, CompactdWarning)]
    assert (result.output, again.output, len(own)) == ("done", "done", 1)
    assert text_of(script.sent[-1]).count("contents of") == 8


def test_copies_and_pickles_work_like_the_original() -> None:
    capability = CompactdCapability(context_window=SMALL, compaction={"keep_messages": 4})
    processor = compactd_history_processor(context_window=SMALL)
    Script().agent(capability).run_sync("go", usage_limits=NO_LIMIT)

    copies = [copy.deepcopy(capability), pickle.loads(pickle.dumps(capability)), copy.copy(capability)]

    assert copies == [capability] * 3
    assert pickle.loads(pickle.dumps(processor)) == copy.deepcopy(processor) == processor
    for each in [*copies, ProcessHistory(copy.deepcopy(processor))]:
        script = Script(turns=15)
        assert script.agent(each).run_sync("go", usage_limits=NO_LIMIT).output == "done"
        assert summaries(script.sent[-1])


def test_asyncio_run_twice_in_one_process() -> None:
    script = Script(turns=15)
    agent = script.agent(CompactdCapability(context_window=SMALL))

    async def have_one(history: list[pai.ModelMessage] | None) -> list[pai.ModelMessage]:
        result = await agent.run("go", message_history=history, usage_limits=NO_LIMIT)
        return result.all_messages()

    first = asyncio.run(have_one(None))
    second = asyncio.run(have_one(first))

    assert len(results(second)) == 30
    assert summaries(script.sent[-1])
    assert [faults(sent) for sent in script.sent] == [[]] * 32


@pytest.mark.parametrize("session_id", [None, "shared"])
def test_fifty_threads(session_id: str | None) -> None:
    before = threading.active_count()

    def have_one(number: int) -> tuple[str, int]:
        turns = 13 if session_id is None else 4
        script = Script(turns, call_id=f"call-{number}-{{}}".format)
        agent = script.agent(CompactdCapability(session_id, context_window=SMALL, persist=False))
        output = agent.run_sync(f"request {number}", usage_limits=NO_LIMIT).output
        mixed = [sent for sent in script.sent if f"request {number}" not in text_of(sent) or faults(sent)]
        return output, len(mixed)

    with ThreadPoolExecutor(50) as pool:
        outcomes = list(pool.map(have_one, range(50)))

    assert outcomes == [("done", 0)] * 50
    assert threading.active_count() <= before + 50


def test_a_forked_child_starts_a_daemon_of_its_own() -> None:
    agent = Script(turns=13).agent(CompactdCapability(context_window=SMALL))
    agent.run_sync("go", usage_limits=NO_LIMIT)

    child = os.fork()
    if child == 0:
        script = Script(turns=13)
        done = script.agent(CompactdCapability(context_window=SMALL)).run_sync("go", usage_limits=NO_LIMIT)
        engine_of().close()
        os._exit(0 if done.output == "done" and summaries(script.sent[-1]) else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert agent.run_sync("go on", usage_limits=NO_LIMIT).output == "done"


# --- histories that change behind our back --------------------------------------------------------------


def conversation(turns: int = 12) -> tuple[CompactdCapability[None], list[pai.ModelMessage]]:
    capability = CompactdCapability[None](context_window=SMALL)
    agent = Script(turns).agent(capability)
    return capability, agent.run_sync("the first request", usage_limits=NO_LIMIT).all_messages()


def test_an_edited_result_is_what_the_model_sees() -> None:
    capability, history = conversation(turns=4)
    request = history[-2]
    part = request.parts[0]
    assert isinstance(part, pai.ToolReturnPart)
    part.content = "edited: nothing to see"
    script = Script(turns=1)

    script.agent(capability).run_sync("go on", message_history=history)

    assert "edited: nothing to see" in text_of(script.sent[0])
    assert "contents of file4.py" not in text_of(script.sent[0])


def test_a_truncated_history_stays_truncated() -> None:
    capability, history = conversation()
    script = Script(turns=14)

    result = script.agent(capability).run_sync("go on", message_history=history[-6:], usage_limits=NO_LIMIT)

    assert "the first request" not in text_of([m for sent in script.sent for m in sent])
    assert summaries(script.sent[-1])
    assert result.output == "done"
    assert [faults(sent) for sent in script.sent] == [[]] * 15


def test_a_history_that_goes_another_way_keeps_the_old_branch() -> None:
    capability, history = conversation(turns=4)
    one, other = Script(turns=1), Script(turns=1)

    first = one.agent(capability).run_sync("this way", message_history=history)
    second = other.agent(capability).run_sync("that way", message_history=history)

    assert "this way" not in text_of(other.sent[-1])
    assert capability.session(first).name == capability.session(second).name
    session = capability.session(second).name
    history = engine_of().demand(lambda client: client.session_history(session_id=session))
    said = {b"this way": False, b"that way": True}
    for words, is_in_context in said.items():
        found = [e.in_context for e in history.entries if e.message and words in bytes(e.message)]
        assert (words, found) == (words, [is_in_context])


def test_calls_whose_ids_repeat_keep_their_results() -> None:
    script = Script(turns=16, call_id=lambda _: "same")
    agent = script.agent(CompactdCapability(context_window=SMALL))

    result = agent.run_sync("go", usage_limits=NO_LIMIT)

    assert result.output == "done"
    assert [faults(sent) for sent in script.sent] == [[]] * 17
    assert summaries(script.sent[-1])
    assert "contents of file16.py" in text_of(script.sent[-1])


def test_calls_without_results_and_results_without_calls() -> None:
    history: list[pai.ModelMessage] = [
        pai.ModelRequest(parts=[pai.UserPromptPart("hello")]),
        pai.ModelResponse(parts=[pai.ToolCallPart("read", {"path": "lost"}, tool_call_id="lost")]),
        pai.ModelRequest(parts=[pai.ToolReturnPart("read", "stray", tool_call_id="stray")]),
        pai.ModelResponse(parts=[]),
        pai.ModelResponse(parts=[pai.TextPart("so what")]),
    ]
    script = Script(turns=15)

    result = script.agent(CompactdCapability(context_window=SMALL)).run_sync(
        "go", message_history=history, usage_limits=NO_LIMIT
    )

    assert result.output == "done"
    assert [faults(sent) for sent in script.sent[-5:]] == [[]] * 5
    assert summaries(script.sent[-1])


def test_two_agents_on_one_session_id_each_see_their_own_history() -> None:
    capability = CompactdCapability[None]("both", context_window=SMALL, persist=False)
    one, other = Script(turns=9), Script(turns=9)
    histories: list[list[pai.ModelMessage] | None] = [None, None]

    for _ in range(3):
        for at, script in enumerate((one, other)):
            run = script.agent(capability).run_sync(
                f"I am number {at}", message_history=histories[at], usage_limits=NO_LIMIT
            )
            histories[at] = run.all_messages()

    assert "number 1" not in text_of(one.sent[-1])
    assert "number 0" not in text_of(other.sent[-1])
    assert summaries(one.sent[-1])
    assert summaries(other.sent[-1])


def test_a_cancelled_run_ends_at_once() -> None:
    script = Script(turns=50)
    agent = script.agent(CompactdCapability(context_window=SMALL))

    async def cancelled() -> None:
        task = asyncio.create_task(agent.run("go", usage_limits=NO_LIMIT))
        while len(script.sent) < 5:
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())

    again = Script(turns=1)
    assert again.agent(CompactdCapability(context_window=SMALL)).run_sync("go").output == "done"
