"""What an agent gets from compactd besides its view, and how that fits the framework's other features."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolReturn,
    models,
    tools,
)
from pydantic_ai import messages as pai
from pydantic_ai.capabilities import AbstractCapability, ModelFallback
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import InMemoryConversationStore
from pydantic_ai.exceptions import ModelContextWindowExceededError, ModelHTTPError, UsageLimitExceeded
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from compactd.integrations.frameworks.engine import engine_of
from compactd.integrations.frameworks.pydantic_ai import CompactdCapability
from compactd.integrations.frameworks.pydantic_ai.errors import request_error
from compactd.integrations.frameworks.pydantic_ai.requests import model_name
from compactd.integrations.frameworks.pydantic_ai.versions import incompatible, missing_in
from tests.frameworks.pydantic_ai.agents import NO_LIMIT, results, summaries
from tests.frameworks.pydantic_ai.scripted import Script, faults, read, text_of

SMALL = 8_000
LOG = "\n".join(f"2026-11-28 12:00:{at % 60:02} INFO worker {at}: request done in 12 ms" for at in range(900))


def log() -> str:
    """Read the log."""
    return LOG + "\nERROR database is gone\n"


class Once:
    """A model that calls one tool once, with given arguments, and then says what it got."""

    def __init__(self, tool: str, args: dict[str, Any]) -> None:
        self.tool, self.args = tool, args
        self.got = ""

    def __call__(self, messages: list[pai.ModelMessage], info: AgentInfo) -> pai.ModelResponse:
        given = results(messages[-1:])
        if given:
            self.got = given[0].model_response_str()
            return pai.ModelResponse(parts=[pai.TextPart("done")])
        return pai.ModelResponse(parts=[pai.ToolCallPart(self.tool, self.args)])


# --- recall and reduced outputs -------------------------------------------------------------------------


def test_recall_finds_what_is_no_longer_in_the_view() -> None:
    script = Script(turns=16)
    capability = CompactdCapability[None](context_window=SMALL)
    history = script.agent(capability).run_sync("go", usage_limits=NO_LIMIT).all_messages()
    assert "line 7 of file2.py: value" not in text_of(script.sent[-1])
    asks = Once("recall", {"query": "line 7 of file2.py"})

    Agent(FunctionModel(asks), capabilities=[capability]).run_sync("what is in it?", message_history=history)

    assert "line 7 of file2.py: value" in asks.got
    assert "(tool)" in asks.got


def test_the_recall_tool_has_another_name_or_is_left_out() -> None:
    named, without = Script(turns=0), Script(turns=0)

    named.agent(CompactdCapability(recall="look_back")).run_sync("go")
    without.agent(CompactdCapability(recall=False)).run_sync("go")

    assert [tool.name for tool in named.infos[0].function_tools] == ["read", "look_back"]
    assert [tool.name for tool in without.infos[0].function_tools] == ["read"]


@pytest.mark.parametrize("level", ["default", "strong"])
def test_a_reduced_output_can_be_read_whole(level: Any) -> None:
    asks = Once("log", {})
    capability = CompactdCapability[None]("reduced-" + level, reduce=level, persist=False)
    agent = Agent(FunctionModel(asks), tools=[log], capabilities=[capability])

    result = agent.run_sync("read the log")

    assert len(asks.got) < len(LOG) / 2
    assert "ERROR database is gone" in asks.got
    assert asks.got in text_of(result.all_messages())
    reference = asks.got.split("expand ")[1].split("]")[0].split(" ")[0].rstrip(",.")
    assert "worker 450" in capability.session(result).recall("worker 450", [reference])


@pytest.mark.parametrize("level", ["off", "observe"])
def test_outputs_stay_whole_unless_asked_otherwise(level: Any) -> None:
    asks = Once("log", {})

    Agent(FunctionModel(asks), tools=[log], capabilities=[CompactdCapability(reduce=level)]).run_sync("go")

    assert asks.got == log()


def test_a_tools_metadata_stays_with_its_reduced_output() -> None:
    def noted() -> ToolReturn[str]:
        """Read the log."""
        return ToolReturn(return_value=log(), metadata={"lines": 901})

    def counted() -> dict[str, int]:
        """Count."""
        return {"lines": 901}

    capability = CompactdCapability[None](reduce="strong")
    asks, counts = Once("noted", {}), Once("counted", {})

    result = Agent(FunctionModel(asks), tools=[noted], capabilities=[capability]).run_sync("go")
    Agent(FunctionModel(counts), tools=[counted], capabilities=[capability]).run_sync("go")

    part = results(result.all_messages())[0]
    assert part.metadata == {"lines": 901}
    assert len(part.model_response_str()) < len(LOG) / 2
    assert counts.got == '{"lines":901}'


# --- other features of the framework --------------------------------------------------------------------


class Verdict(BaseModel):
    is_good: bool


def test_structured_output_after_a_compaction() -> None:
    script = Script(turns=14)

    def judge(messages: list[pai.ModelMessage], info: AgentInfo) -> pai.ModelResponse:
        said = script.answer(messages, info)
        if said.text:
            return pai.ModelResponse(parts=[pai.ToolCallPart(info.output_tools[0].name, {"is_good": True})])
        return said

    agent = Agent(
        FunctionModel(judge),
        output_type=Verdict,
        tools=[read],
        capabilities=[CompactdCapability(context_window=SMALL)],
    )

    assert agent.run_sync("judge it", usage_limits=NO_LIMIT).output == Verdict(is_good=True)
    assert summaries(script.sent[-1])


def test_a_run_that_pauses_for_approval_goes_on() -> None:
    script = Script(turns=12)
    agent: Agent[None, Any] = Agent(
        script.model(),
        output_type=[str, DeferredToolRequests],
        capabilities=[CompactdCapability(context_window=SMALL)],
    )
    agent.tool_plain(requires_approval=True)(read)
    result = agent.run_sync("go", usage_limits=NO_LIMIT)

    while isinstance(result.output, DeferredToolRequests):
        approved = DeferredToolResults(
            approvals={call.tool_call_id: True for call in result.output.approvals}
        )
        result = agent.run_sync(
            message_history=result.all_messages(), deferred_tool_results=approved, usage_limits=NO_LIMIT
        )

    assert result.output == "done"
    assert len(results(result.all_messages())) == 12
    assert summaries(script.sent[-1])
    assert [faults(sent) for sent in script.sent] == [[]] * 13


def test_an_agent_as_a_tool_has_a_session_of_its_own() -> None:
    capability = CompactdCapability[None](context_window=SMALL)
    inner = Script(turns=14)
    helper = inner.agent(capability)

    async def ask_helper(ctx: RunContext[None]) -> str:
        """Ask the helper."""
        result = await helper.run("the inner request", usage_limits=NO_LIMIT)
        return f"{result.output} in {result.conversation_id}"

    asks = Once("ask_helper", {})
    outer = Agent(FunctionModel(asks), tools=[ask_helper], capabilities=[capability])

    result = outer.run_sync("the outer request")

    inner_id = asks.got.rsplit(" ", 1)[1]
    assert capability.session(inner_id).name != capability.session(result).name
    assert summaries(inner.sent[-1])
    assert "the outer request" not in text_of(inner.sent[-1])


async def test_streamed_runs_and_events() -> None:
    script = Script(turns=14)
    agent = script.agent(CompactdCapability(context_window=SMALL))

    async with agent.run_stream("go", usage_limits=NO_LIMIT) as streamed:
        output = await streamed.get_output()
    async with agent.iter("go on", message_history=streamed.all_messages(), usage_limits=NO_LIMIT) as run:
        nodes = [node async for node in run]

    assert output == "done"
    assert nodes
    assert summaries(script.sent[-1])
    assert [faults(sent) for sent in script.sent] == [[]] * 30


async def test_a_conversation_store_keeps_everything_and_branches() -> None:
    store = InMemoryConversationStore()
    script = Script(turns=14)
    agent = script.agent(CompactdCapability(context_window=SMALL))
    conversation = Conversation(conversation_id="stored")

    for request in ("first", "second"):
        result = await agent.run(request, conversation=conversation, usage_limits=NO_LIMIT)
        await store.save(result)
        conversation = await store.load("stored") or conversation
    assert len(conversation.messages) == 2 * 30
    branched = await store.branch("stored", at=30, expected_revision=conversation.revision)
    other = await agent.run("another way", conversation=branched, usage_limits=NO_LIMIT)
    await store.save(other)
    forked = await agent.run("a fork", conversation=await store.fork("stored", at=30), usage_limits=NO_LIMIT)

    assert "second" not in text_of(script.sent[-1])
    assert len((await store.load("stored") or conversation).messages) == 60
    assert forked.conversation_id != "stored"
    assert summaries(forked.all_messages()) == summaries(other.all_messages()) == []
    assert [faults(sent) for sent in script.sent] == [[]] * 60


def test_instructions_and_tools_count() -> None:
    def tool() -> str:
        return ""

    tool.__doc__ = "Remember this rule well. " * 900
    plain, ruled, tooled = Script(turns=8), Script(turns=8), Script(turns=8)
    capability = CompactdCapability[None](context_window=SMALL)

    plain.agent(capability).run_sync("go", usage_limits=NO_LIMIT)
    ruled.agent(capability, instructions=tool.__doc__).run_sync("go", usage_limits=NO_LIMIT)
    tooled.agent(capability, tools=[read, tool]).run_sync("go", usage_limits=NO_LIMIT)

    assert summaries(plain.sent[-2]) == []
    assert summaries(ruled.sent[-2])
    assert summaries(tooled.sent[-2])


def test_only_named_sessions_are_stored() -> None:
    one, other = CompactdCapability[None]("a-name"), CompactdCapability[None]()
    results = [Script(turns=1).agent(each).run_sync("go") for each in (one, other)]

    listed = engine_of().demand(lambda client: client.session_list()).sessions

    sizes = {session.session_id: session.bytes for session in listed}
    names = [one.session(results[0]).name, other.session(results[1]).name]
    assert [sizes[name] > 0 for name in names] == [True, False]


def test_the_output_limit_is_lowered_to_what_fits() -> None:
    script = Script(turns=3)
    agent = script.agent(CompactdCapability(context_window=SMALL), model_settings={"max_tokens": 100_000})

    agent.run_sync("go")

    asked = [(info.model_settings or {}).get("max_tokens") for info in script.infos]
    assert all(tokens is not None and tokens <= 100_000 for tokens in asked)


# --- failed requests ------------------------------------------------------------------------------------


class Picky:
    """A model that refuses what is longer than its window, with a provider's error."""

    def __init__(self, script: Script, most_chars: int, error: Exception) -> None:
        self.script, self.most_chars, self.error = script, most_chars, error
        self.refused = 0

    def __call__(self, messages: list[pai.ModelMessage], info: AgentInfo) -> pai.ModelResponse:
        if len(text_of(messages)) > self.most_chars:
            self.refused += 1
            raise self.error
        return self.script.answer(messages, info)


TOO_LONG = ModelHTTPError(
    400,
    "loopback",
    {"error": {"code": "context_length_exceeded", "message": "maximum context length is 8000 tokens"}},
)


@pytest.mark.parametrize(
    "error",
    [
        TOO_LONG,
        ModelContextWindowExceededError("loopback", "too long"),
        ValueError("prompt is too long: 9000 tokens > 8000 maximum"),
    ],
)
def test_an_overflow_of_any_class_is_recovered_from(error: Exception) -> None:
    engine_of().demand(lambda client: client.models_forget(all=True))
    script = Script(turns=14)
    picky = Picky(script, 24_000, error)
    agent = Agent(FunctionModel(picky), tools=[read], capabilities=[CompactdCapability()])

    result = agent.run_sync("go", usage_limits=NO_LIMIT)

    assert result.output == "done"
    assert picky.refused > 0
    assert len(results(result.all_messages())) == 14


@pytest.mark.parametrize("status", [401, 429, 500])
def test_other_errors_reach_the_caller_untouched(status: int) -> None:
    error = ModelHTTPError(status, "loopback", {"error": {"message": "no"}})
    agent = Agent(
        FunctionModel(Picky(Script(), 0, error)), capabilities=[CompactdCapability(context_window=SMALL)]
    )

    with pytest.raises(ModelHTTPError) as caught:
        agent.run_sync("go")

    assert caught.value is error


def test_a_request_that_nothing_makes_fit_ends_with_the_providers_error() -> None:
    picky = Picky(Script(), 0, TOO_LONG)
    agent = Agent(FunctionModel(picky), capabilities=[CompactdCapability(context_window=SMALL)])

    with pytest.raises(ModelHTTPError):
        agent.run_sync("go")

    assert picky.refused <= 4


def test_the_frameworks_own_limits_are_no_overflow() -> None:
    agent = Script(turns=14).agent(CompactdCapability(context_window=SMALL))

    with pytest.raises(UsageLimitExceeded):
        agent.run_sync("go", usage_limits=UsageLimits(request_limit=3))

    assert request_error(UsageLimitExceeded("limit")) is None
    group = ExceptionGroup(
        "all failed", [ModelHTTPError(500, "a"), ModelContextWindowExceededError("b", "no")]
    )
    found = request_error(group)
    assert found is not None
    assert found.code == "context_length_exceeded"


def test_fallbacks_get_a_view_of_their_own() -> None:
    script = Script(turns=14)
    down = FunctionModel(Picky(Script(), 0, ModelHTTPError(503, "down")))
    capability: AbstractCapability[None] = CompactdCapability(context_window=SMALL)
    chain = Agent(down, tools=[read], capabilities=[capability, ModelFallback(script.model())])
    model = Agent(FallbackModel(down, script.model()), tools=[read], capabilities=[capability])

    for agent in (chain, model):
        assert agent.run_sync("go", usage_limits=NO_LIMIT).output == "done"
        assert summaries(script.sent[-1])

    assert model_name(FallbackModel(down, script.model())) == model_name(down)


# --- other versions of the framework --------------------------------------------------------------------


def test_a_renamed_field_is_named_with_the_tested_version() -> None:
    @dataclass
    class ModelRequest:
        pieces: list[str]

    renamed = SimpleNamespace(**{**vars(pai), "ModelRequest": ModelRequest})
    given = {"messages": renamed, "models": models, "tools": tools}

    missing = missing_in(given, AbstractCapability)

    assert missing == "its ModelRequest has no field 'conversation_id'"
    assert "2.68.0" in str(incompatible(missing))
    assert missing_in({**given, "messages": pai}, AbstractCapability) is None
    assert missing_in({**given, "messages": pai}, object) is not None
