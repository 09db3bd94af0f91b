from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import pytest
from agents import Agent, Model, RunConfig, Runner, RunState, SQLiteSession, function_tool, handoff
from agents.extensions import handoff_filters
from agents.run_config import CallModelData, ModelInputData
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses import Response, ResponseCreatedEvent, ResponseError, ResponseFailedEvent

from compactd.core.text.summary_format import LEAD
from compactd.integrations.frameworks.engine import CompactdWarning, close_engines, engine_of
from compactd.integrations.frameworks.openai_agents import (
    CompactdSession,
    compactd_input_filter,
    compactd_model,
    compactd_recall,
    compactd_reduce,
    compactd_run_config,
)
from tests.frameworks.openai_agents.talking import ask, inspector, kill_daemon, model_of, provider_of
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import MODEL, Provider
from tests.frameworks.support.talk import TOOLS, talk

SMALL = talk(lots=2, parts=7)
WINDOW = 8_000
BROKEN = (sys.executable, "-c", "raise SystemExit(3)")


@pytest.fixture(autouse=True)
def own_daemon() -> Iterator[None]:
    """A daemon for each test: the client starts one again only a few times in a minute."""
    yield
    close_engines()


def fresh(**options: Any) -> CompactdSession:
    return CompactdSession(uuid4().hex, **{"context_window": WINDOW, **options})


def sessions_of(name: str) -> list[str]:
    """Return the daemon's sessions of one conversation."""
    known = engine_of().demand(lambda client: client.session_list().sessions)
    return sorted(each.session_id for each in known if name in each.session_id)


# --- 40 tool turns in a window of 8,000 tokens --------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", ["responses", "chat"])
def test_forty_tool_turns_in_a_small_window_are_never_refused(wire: str, stream: bool) -> None:
    session = fresh()

    async def script(provider: Provider) -> None:
        async with provider_of(provider, wire) as models:
            config = session.run_config(RunConfig(model_provider=models))
            for request in provider.asks():
                await ask(inspector(recall=True), request, session, config, stream=stream)

    with Provider(recalls=2) as provider:
        asyncio.run(script(provider))

    assert broken(provider) == []
    assert (provider.totals.tasks, provider.totals.turns, provider.totals.recalls) == (5, 40, 2)
    items = asyncio.run(session.original_items())
    outputs = [item["output"] for item in items if item.get("type") == "function_call_output"]
    assert [output for output in outputs if output.startswith("Report")] == [
        use.output for use in provider.talk.uses
    ]
    # One session followed the whole conversation, and its bill is the provider's.
    assert sessions_of(session.session_id) == [session.mirror.name]
    state = asyncio.run(session.state())
    assert state.token_usage.prompt_tokens == provider.totals.input_tokens
    assert state.compaction.count > 0


def test_a_single_request_may_have_all_the_tool_turns() -> None:
    one = talk(lots=1, parts=40)
    session = fresh()

    async def script(provider: Provider) -> None:
        async with provider_of(provider) as models:
            config = session.run_config(RunConfig(model_provider=models))
            for request in provider.asks():
                await ask(inspector(), request, session, config)

    with Provider(one) as provider:
        asyncio.run(script(provider))

    assert broken(provider) == []
    assert (provider.totals.tasks, provider.totals.turns) == (1, 40)


# --- a turn is sent before the next request asks for it -----------------------------------------------------


def test_the_daemon_has_a_turn_before_the_next_request_is_prepared() -> None:
    session = fresh(context_window=100_000)
    found: list[bool] = []

    def before(data: CallModelData[Any]) -> ModelInputData:
        name = f"openai-agents:{session.session_id}"
        newest: Any = data.model_data.input[-1]
        if "output" in newest:
            told = engine_of().demand(lambda client: client.call("session/history", {"session_id": name}))
            found.append(newest["call_id"] in json.dumps(told["entries"]))
        return data.model_data

    async def script(provider: Provider) -> None:
        async with provider_of(provider) as models:
            config = session.run_config(RunConfig(model_provider=models, call_model_input_filter=before))
            await ask(inspector(), provider.talk.requests[0], session, config)

    with Provider(talk(lots=1, parts=5)) as provider:
        asyncio.run(script(provider))

    assert broken(provider) == []
    assert found == [True] * 5


@pytest.mark.parametrize("window", [WINDOW, 100_000])
def test_a_run_that_stops_at_a_tools_result_goes_on_and_is_billed_once(window: int) -> None:
    session = fresh(context_window=window)

    async def script(provider: Provider) -> None:
        async with provider_of(provider) as models:
            config = session.run_config(RunConfig(model_provider=models))
            agent = inspector()
            agent.tool_use_behavior = "stop_on_first_tool"
            for request in provider.asks():
                await ask(agent, request, session, config)
                state = await session.state()
                assert state.token_usage.prompt_tokens == provider.totals.input_tokens
                await ask(inspector(), "Go on.", session, config)

    with Provider(SMALL, window=window) as provider:
        asyncio.run(script(provider))

    assert [each for each in broken(provider) if "newest" not in each] == []
    state = asyncio.run(session.state())
    assert state.token_usage.prompt_tokens == provider.totals.input_tokens
    assert (state.compaction.count > 0) == (window == WINDOW)
    assert sessions_of(session.session_id) == [session.mirror.name]


@pytest.mark.parametrize("named", [True, False])
def test_the_filter_alone_works_with_any_session(named: bool) -> None:
    async def script(provider: Provider) -> None:
        session = SQLiteSession("plain")
        own = uuid4().hex
        filter_ = compactd_input_filter(own if named else None, context_window=WINDOW)
        async with provider_of(provider) as models:
            config = RunConfig(model_provider=models, call_model_input_filter=filter_)
            for request in provider.asks():
                await ask(inspector(), request, session, config)
        items = await session.get_items()
        assert len([item for item in items if item.get("type") == "function_call"]) == len(provider.talk.uses)
        assert sessions_of(own) == ([f"openai-agents:{own}"] if named else [])

    with Provider(SMALL) as provider:
        asyncio.run(script(provider))

    assert broken(provider) == []
    assert provider.totals.tasks == 2


def test_runs_without_a_session_know_nothing_of_each_other() -> None:
    """Two people may begin with the same words."""
    config = compactd_run_config(context_window=WINDOW)

    async def one(secret: str, query: str) -> str:
        model = ScriptedModel(
            [
                [function_call("recall", json.dumps({"query": query}), call_id="r1")],
                [assistant_message("ok")],
            ]
        )
        agent = Agent(name="a", model=model, tools=[compactd_recall()])
        history = [{"role": "user", "content": "Hello"}, {"role": "user", "content": secret}]
        await Runner.run(agent, history, run_config=config)
        return str(model.calls[1].input[-1]["output"])

    async def script() -> None:
        assert "plum" in await one("My word is plum.", "My word")
        found = await asyncio.create_task(one("My word is pear.", "My word"))
        assert "pear" in found
        assert "plum" not in found

    asyncio.run(script())


def test_a_daemon_that_fails_in_a_run_leaves_it_with_what_it_was_given() -> None:
    session = fresh()
    agent = Agent(name="a")

    async def script() -> None:
        await session.add_items(
            [{"role": "user", "content": f"Request {n} " + "word " * 300} for n in range(40)]
        )
        items = [*await session.get_items(), {"role": "user", "content": "Now"}]
        broken_ = CompactdSession(session.session_id, context_window=WINDOW, command=BROKEN)
        filter_: Any = broken_.run_config().call_model_input_filter
        sent = await filter_(CallModelData(ModelInputData(items, "System"), agent, None))
        assert (sent.input, sent.instructions) == (items, "System")

    with pytest.warns(CompactdWarning):
        asyncio.run(script())


def test_a_filter_may_take_the_session_from_the_context() -> None:
    names: list[str] = []

    def chosen(data: CallModelData[Any]) -> str:
        names.append(data.context["chat"])
        return str(data.context["chat"])

    async def script() -> None:
        chat = uuid4().hex
        model = ScriptedModel([[assistant_message("Hello")]])
        config = RunConfig(call_model_input_filter=compactd_input_filter(chosen, context_window=WINDOW))
        await Runner.run(Agent(name="a", model=model), "Hi", context={"chat": chat}, run_config=config)
        assert sessions_of(chat) == [f"openai-agents:{chat}"]

    asyncio.run(script())
    assert len(names) == 1


def test_with_room_for_all_of_it_the_provider_receives_what_it_would_without_compactd() -> None:
    async def script(provider: Provider, session: Any, config: Any) -> list[Any]:
        async with provider_of(provider) as models:
            for request in provider.asks():
                await ask(inspector(), request, session, config(RunConfig(model_provider=models)))
        return [seen.body for seen in provider.requests]

    name = uuid4().hex
    own = CompactdSession(name, context_window=1_000_000)
    with Provider(SMALL, window=None) as one, Provider(SMALL, window=None) as two:
        without = asyncio.run(script(one, SQLiteSession(name), lambda base: base))
        with_it = asyncio.run(script(two, own, own.run_config))

    assert with_it == without


def test_a_conversation_that_the_server_holds_is_left_alone() -> None:
    model = ScriptedModel(
        [[function_call("inspect_part", '{"number": 1}', call_id="c1")], [assistant_message("Done")]]
    )
    agent = Agent(name="a", model=compactd_model(model), tools=[function_tool(TOOLS[0])])
    name = uuid4().hex
    config = compactd_run_config(session_id=name, context_window=WINDOW)

    asyncio.run(Runner.run(agent, "Inspect", run_config=config, auto_previous_response_id=True))

    assert sessions_of(name) == [f"openai-agents:{name}"]
    assert [item.get("type") for item in model.calls[1].input] == ["function_call_output"]


def test_runs_at_the_same_time_do_not_disturb_each_other() -> None:
    shared = fresh()

    async def one(number: int, session: CompactdSession) -> list[Any]:
        steps: list[Any] = [
            [function_call("inspect_part", f'{{"number": {n}}}', call_id=f"c{number}_{n}")] for n in range(12)
        ]
        model = ScriptedModel([*steps, [assistant_message(f"Done {number}")]])
        agent = Agent(name=f"agent {number}", model=model, tools=[function_tool(TOOLS[0])])
        await ask(agent, f"Inspect {number}", session, session.run_config())
        assert model.calls[-1].input[-1]["call_id"] == f"c{number}_11"
        return list(model.calls)

    async def script() -> None:
        await asyncio.gather(*(one(number, fresh()) for number in range(8)))
        await asyncio.gather(*(one(number, shared) for number in range(8, 11)))

    asyncio.run(script())

    items = asyncio.run(shared.original_items())
    assert len(items) == 3 * (1 + 24 + 1)


# --- a provider that rejects ------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("seam", ["provider", "model", "plain config"])
def test_a_rejected_request_is_sent_again_smaller(seam: str, stream: bool) -> None:
    session = fresh(context_window=100_000)

    async def script(provider: Provider) -> None:
        async with AsyncExitStack() as stack:
            if seam == "model":
                model: Any = compactd_model(await stack.enter_async_context(model_of(provider)))
                config = session.run_config()
            else:
                model = MODEL
                base = RunConfig(model_provider=await stack.enter_async_context(provider_of(provider)))
                config = (
                    session.run_config(base)
                    if seam == "provider"
                    else compactd_run_config(base, session_id=session.session_id, context_window=100_000)
                )
            for request in provider.asks():
                await ask(inspector(model), request, session, config, stream=stream)

    with Provider(SMALL) as provider:
        asyncio.run(script(provider))

    assert provider.totals.tasks == 2
    # The first rejection teaches compactd the window.
    assert 1 <= provider.totals.rejections <= 2
    assert [fault for fault in broken(provider) if "refused" not in fault and "tokens" not in fault] == []


class Overflow(Exception):
    """As OpenAI's SDK raises it."""

    status_code = 400
    code = "context_length_exceeded"


class FailsInStream(Model):
    """A model whose first stream begins, and then reports an overflow. The next one is another model's."""

    def __init__(self, then: ScriptedModel) -> None:
        self.then = then
        self.inputs: list[Any] = []

    async def get_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream_response(self, system: Any, items: Any, *rest: Any, **named: Any) -> Any:
        self.inputs.append(items)
        if len(self.inputs) > 1:
            async for event in self.then.stream_response(system, items, *rest, **named):
                yield event
            return
        # The SDK's list of codes has none for this. Its client takes what comes.
        error = ResponseError.model_construct(
            code="context_length_exceeded", message="Your input exceeds the context window"
        )
        about: dict[str, Any] = {
            "id": "r",
            "created_at": 1,
            "model": "m",
            "object": "response",
            "output": [],
            "tools": [],
        }
        about |= {"parallel_tool_calls": False, "tool_choice": "auto", "status": "failed"}
        answer = Response(**about, error=error)
        yield ResponseCreatedEvent(response=answer, sequence_number=0, type="response.created")
        yield ResponseFailedEvent(response=answer, sequence_number=1, type="response.failed")


def test_an_overflow_within_a_stream_is_hidden_until_an_answer_begins() -> None:
    session = fresh(context_window=100_000)
    model = FailsInStream(ScriptedModel([[assistant_message("Here I am")]]))
    kinds: list[str] = []

    async def script() -> None:
        await session.add_items(
            [{"role": "user", "content": f"Request {n} " + "word " * 400} for n in range(100)]
        )
        agent = Agent(name="a", model=compactd_model(model))
        result = Runner.run_streamed(agent, "Hi", session=session, run_config=session.run_config())
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                kinds.append(event.data.type)
        assert result.final_output == "Here I am"

    asyncio.run(script())

    assert "response.failed" not in kinds
    assert kinds.count("response.created") <= 1
    assert len(model.inputs[1]) < len(model.inputs[0])


def test_an_overflow_of_another_run_is_not_answered_with_this_runs_items() -> None:
    session = fresh(context_window=100_000)
    inner = ScriptedModel([Overflow("too long"), [assistant_message("42")]])
    outer = ScriptedModel(
        [[function_call("oracle", '{"input": "What is it?"}', call_id="o1")], [assistant_message("Sorry")]]
    )
    oracle = Agent(name="oracle", model=compactd_model(inner)).as_tool(
        "oracle", "Knows it.", run_config=RunConfig()
    )
    agent = Agent(name="outer", model=compactd_model(outer), tools=[oracle])

    async def script() -> None:
        await session.add_items(
            [{"role": "user", "content": f"Request {n} " + "word " * 400} for n in range(100)]
        )
        await ask(agent, "Ask the oracle", session, session.run_config())

    asyncio.run(script())

    assert len(inner.calls) == 1
    assert "error" in outer.calls[1].input[-1]["output"].lower()


def test_items_that_stay_are_the_hosts_own_objects() -> None:
    session = fresh()
    agent = Agent(name="a")

    async def script() -> None:
        await session.add_items(
            [{"role": "user", "content": f"Request {n} " + "word " * 300} for n in range(40)]
        )
        items = [*await session.get_items(), {"role": "user", "content": "Now"}]
        filter_: Any = session.run_config().call_model_input_filter
        sent = await filter_(CallModelData(ModelInputData(items, None), agent, None))
        assert sent.input[0]["content"].startswith(LEAD)
        kept = {id(item) for item in items}
        assert [id(item) in kept for item in sent.input[1:]] == [True] * (len(sent.input) - 1)

    asyncio.run(script())


def test_another_error_is_the_hosts() -> None:
    session = fresh()
    model = ScriptedModel([RuntimeError("the wire is cut")])

    with pytest.raises(RuntimeError, match="the wire is cut"):
        asyncio.run(ask(Agent(name="a", model=compactd_model(model)), "Hi", session, session.run_config()))


# --- the daemon fails -------------------------------------------------------------------------------------


def test_without_a_daemon_the_agent_does_its_work_with_all_items() -> None:
    session = fresh(command=BROKEN)
    small = talk(lots=1, parts=3)

    async def script(provider: Provider) -> None:
        async with provider_of(provider) as models:
            config = session.run_config(RunConfig(model_provider=models))
            for request in provider.asks():
                await ask(inspector(), request, session, config)

    with Provider(small) as provider, pytest.warns(CompactdWarning) as caught:
        asyncio.run(script(provider))

    assert len(caught) == 1
    assert broken(provider) == []
    assert provider.totals.tasks == 1


@pytest.mark.parametrize("moment", ["before the request", "in a tool"])
@pytest.mark.parametrize("turn", [1, 5, 11])
def test_a_daemon_that_is_killed_in_a_run_costs_nothing(moment: str, turn: int) -> None:
    session = fresh()
    count = 0

    def maybe_kill() -> None:
        nonlocal count
        count += 1
        if count == turn:
            kill_daemon()

    def before(data: CallModelData[Any]) -> ModelInputData:
        maybe_kill()
        return data.model_data

    async def script(provider: Provider) -> None:
        async with provider_of(provider) as models:
            base = RunConfig(
                model_provider=models,
                call_model_input_filter=before if moment == "before the request" else None,
            )
            config = session.run_config(base)
            agent = inspector(after_tool=maybe_kill if moment == "in a tool" else lambda: None)
            for request in provider.asks():
                await ask(agent, request, session, config)

    with Provider(SMALL) as provider:
        asyncio.run(script(provider))

    assert count >= turn
    assert broken(provider) == []
    assert provider.totals.tasks == 2
    assert sessions_of(session.session_id) == [session.mirror.name]
    items = asyncio.run(session.original_items())
    assert len([item for item in items if item.get("type") == "function_call_output"]) == len(SMALL.uses)


# --- interruptions, handoffs, agents as tools ---------------------------------------------------------------

RESUME = """
import asyncio, json, sys
from agents import Runner, RunState
from compactd.integrations.frameworks.openai_agents import CompactdSession
from tests.frameworks.openai_agents.test_runs import approving

async def main():
    session = CompactdSession(sys.argv[1], context_window=8_000)
    model, agent = approving(["yes"])
    state = await RunState.from_json(agent, json.loads(sys.stdin.read()))
    for interruption in state.get_interruptions():
        state.approve(interruption)
    result = await Runner.run(agent, state, session=session, run_config=session.run_config())
    print(json.dumps([result.final_output, model.calls[0].input, await session.original_items()]))

asyncio.run(main())
"""


def approving(steps: list[str]) -> tuple[ScriptedModel, Agent[Any]]:
    """Return an agent whose tool needs an approval, and its model: `call`, or words."""

    @function_tool(needs_approval=True)
    def delete(name: str) -> str:
        """Delete something."""
        return f"deleted {name}"

    made = [
        [function_call("delete", '{"name": "all"}', call_id="approve_me")]
        if step == "call"
        else [assistant_message(step)]
        for step in steps
    ]
    model = ScriptedModel(made)
    return model, Agent(name="careful", model=model, tools=[delete, compactd_recall()])


def test_an_interrupted_run_goes_on_in_another_process() -> None:
    session = fresh()
    _, agent = approving(["call"])
    filling = [
        item
        for number in range(30)
        for item in (
            {"role": "user", "content": f"Request {number} " + "word " * 200},
            {"role": "assistant", "content": f"Answer {number} " + "word " * 200},
        )
    ]

    async def interrupted() -> str:
        await session.add_items(filling)
        result = await ask(agent, "Delete all", session, session.run_config())
        assert len(result.interruptions) == 1
        return json.dumps(result.to_state().to_json())

    stored = asyncio.run(interrupted())
    name = session.mirror.name
    close_engines()
    done = subprocess.run(
        [sys.executable, "-c", RESUME, session.session_id],
        input=stored.encode(),
        capture_output=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr.decode()
    words, sent, items = json.loads(done.stdout)
    assert words == "yes"
    assert sent[0]["content"].startswith(LEAD)
    assert [item["type"] for item in sent if "call_id" in item] == ["function_call", "function_call_output"]
    assert items[: len(filling)] == filling
    assert sessions_of(session.session_id) == [name]


def test_a_handoff_goes_on_in_the_same_session() -> None:
    session = fresh()
    helper = ScriptedModel([[assistant_message("I took over.")], [assistant_message("Still me.")]])
    first = ScriptedModel([[function_call("transfer_to_helper", "{}", call_id="h1")]])
    second = Agent(name="helper", instructions="You help.", model=helper, tools=[function_tool(TOOLS[0])])
    agent = Agent(name="desk", instructions="You are the desk.", model=first, handoffs=[second])

    async def script() -> None:
        result = await ask(agent, "Help me", session, session.run_config())
        assert result.last_agent is second
        await ask(second, "And now?", session, session.run_config())

    asyncio.run(script())

    assert [item.get("role", item.get("type")) for item in helper.calls[1].input] == [
        "user",
        "function_call",
        "function_call_output",
        "assistant",
        "user",
    ]
    assert sessions_of(session.session_id) == [session.mirror.name]


@pytest.mark.parametrize("way", ["nested history", "filter"])
def test_a_handoff_that_rewrites_the_history_leaves_the_session_whole(way: str) -> None:
    session = fresh()
    helper = ScriptedModel([[assistant_message("I took over.")], [assistant_message("Still me.")]])
    first = ScriptedModel(
        [[assistant_message("Good.")], [function_call("transfer_to_helper", "{}", call_id="h1")]]
    )
    second = Agent(name="helper", model=helper)
    agent = Agent(
        name="desk",
        model=first,
        handoffs=[
            handoff(second, input_filter=handoff_filters.remove_all_tools if way == "filter" else None)
        ],
    )

    async def script() -> None:
        base = RunConfig(nest_handoff_history=way == "nested history")
        await ask(agent, "Hello", session, session.run_config(base))
        await ask(agent, "Help me", session, session.run_config(base))
        await ask(second, "And now?", session, session.run_config(base))

    asyncio.run(script())

    items = asyncio.run(session.original_items())
    assert [item["content"] for item in items if item.get("role") == "user"] == [
        "Hello",
        "Help me",
        "And now?",
    ]
    assert helper.calls[1].input[-1]["content"] == "And now?"
    assert len([item for item in helper.calls[1].input if item.get("role") == "user"]) >= 2


def test_an_agent_that_is_a_tool_has_a_session_of_its_own() -> None:
    session = fresh()
    inner = ScriptedModel([[assistant_message("42")], [assistant_message("43")]])
    outer = ScriptedModel(
        [
            [
                function_call("oracle", '{"input": "What is it?"}', call_id="o1"),
                function_call("oracle", '{"input": "And then?"}', call_id="o2"),
            ],
            [assistant_message("It is 42.")],
        ]
    )
    oracle = Agent(name="oracle", model=inner).as_tool("oracle", "Knows it.")
    agent = Agent(name="outer", model=outer, tools=[oracle])

    asyncio.run(ask(agent, "Ask the oracle", session, session.run_config()))

    assert [len(call.input) for call in inner.calls] == [1, 1]
    own = sessions_of(session.session_id)
    assert own[0] == session.mirror.name
    assert [name.startswith(f"{session.mirror.name}/") for name in own[1:]] == [True, True]
    items = asyncio.run(session.original_items())
    assert [item.get("output") for item in items if item.get("type") == "function_call_output"] in (
        ["42", "43"],
        ["43", "42"],
    )
    asyncio.run(session.clear_session())
    assert sessions_of(session.session_id) == []


# --- tools ------------------------------------------------------------------------------------------------


def test_recall_finds_what_the_conversation_lost() -> None:
    session = fresh()
    model = ScriptedModel(
        [[function_call("recall", '{"query": "access code"}', call_id="r1")], [assistant_message("ZX-81")]]
    )
    agent = Agent(name="a", model=model, tools=[compactd_recall()])

    async def script() -> None:
        await session.add_items(
            [
                {"role": "user", "content": "The access code is ZX-81."},
                {"role": "assistant", "content": "Noted."},
                *({"role": "user", "content": f"Request {n} " + "word " * 300} for n in range(40)),
            ]
        )
        await ask(agent, "What is the code?", session, session.run_config())

    asyncio.run(script())

    assert model.calls[0].input[0]["content"].startswith(LEAD)
    assert "ZX-81" in model.calls[1].input[-1]["output"]


@pytest.mark.parametrize("arguments", ["", "{", "5", '{"query": 5, "entry_ids": "e1"}', '{"entry_ids": [1]}'])
def test_recall_answers_whatever_the_model_gives(arguments: str) -> None:
    session = fresh()
    model = ScriptedModel([[function_call("recall", arguments, call_id="r1")], [assistant_message("ok")]])

    asyncio.run(
        ask(Agent(name="a", model=model, tools=[compactd_recall()]), "Hi", session, session.run_config())
    )

    assert isinstance(model.calls[1].input[-1]["output"], str)


@pytest.mark.parametrize("level", ["default", "observe", None])
def test_a_long_output_is_shortened_only_where_a_tool_asks_for_it(level: Any) -> None:
    log = "".join(f"2026-01-01 12:00:{n % 60:02} INFO worker {n} is ready\n" for n in range(2_000))
    guardrails = [] if level is None else [compactd_reduce(level)]

    @function_tool(tool_output_guardrails=guardrails)
    def read_log(path: str) -> str:
        """Read a log."""
        return log

    session = fresh(context_window=200_000)
    model = ScriptedModel(
        [[function_call("read_log", '{"path": "a.log"}', call_id="l1")], [assistant_message("ok")]]
    )

    asyncio.run(ask(Agent(name="a", model=model, tools=[read_log]), "Read it", session, session.run_config()))

    output = model.calls[1].input[-1]["output"]
    assert (len(output) < len(log) // 2) == (level == "default")
    assert output == log or level == "default"


def test_the_state_of_a_run_can_be_stored_without_a_session() -> None:
    """Only the filter's own state would stand in the way."""
    _, agent = approving(["call", "done"])
    config = compactd_run_config(context_window=WINDOW)

    async def script() -> str:
        result = await Runner.run(agent, "Delete all", run_config=config)
        state = await RunState.from_json(agent, json.loads(json.dumps(result.to_state().to_json())))
        for interruption in state.get_interruptions():
            state.approve(interruption)
        return str((await Runner.run(agent, state, run_config=config)).final_output)

    assert asyncio.run(script()) == "done"
