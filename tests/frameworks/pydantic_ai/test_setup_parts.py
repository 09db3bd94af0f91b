"""What sets a conversation up stays in force after a compaction: changed instructions, found tools, loads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai import messages as pai
from pydantic_ai.capabilities import AbstractCapability, Capability
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from compactd.integrations.frameworks.pydantic_ai import CompactdCapability
from tests.frameworks.pydantic_ai.agents import NO_LIMIT, results, summaries
from tests.frameworks.pydantic_ai.scripted import Script, read, text_of

SMALL = 8_000
TURNS = 20


def refund(amount: int) -> str:
    """Refund money."""
    return f"refunded {amount}"


class Refunds:
    """A model that first gets at the tool `refund`, then reads files, and refunds at last."""

    def __init__(self, first: pai.ToolCallPart) -> None:
        self.first = first
        self.sent: list[list[pai.ModelMessage]] = []
        self.texts: list[str] = []

    def __call__(self, messages: list[pai.ModelMessage], info: AgentInfo) -> pai.ModelResponse:
        self.sent.append(messages)
        self.texts.append(text_of(messages))
        number = len(self.sent)
        if number == 1:
            return pai.ModelResponse(parts=[self.first])
        if number < TURNS:
            return pai.ModelResponse(parts=[pai.ToolCallPart("read", {"path": f"file{number}"})])
        if number == TURNS:
            names = [tool.name for tool in info.function_tools]
            assert "refund" in names
            return pai.ModelResponse(parts=[pai.ToolCallPart("refund", {"amount": 3})])
        return pai.ModelResponse(parts=[pai.TextPart("done")])


@dataclass
class Phases(AbstractCapability[None]):
    """Instructions that change with every sixth request."""

    id: str | None = "phases"

    def get_instructions(self) -> Any:
        def phase(ctx: RunContext[None]) -> pai.InstructionPart:
            return pai.InstructionPart(
                content=f"This is phase {ctx.run_step // 6}.", name="phase", on_change="append"
            )

        return phase


def test_the_newest_change_of_instructions_is_in_every_request() -> None:
    script = Script(turns=26)
    agent = script.agent(CompactdCapability(context_window=SMALL), Phases())

    agent.run_sync("go", usage_limits=NO_LIMIT)

    for step, (sent, info) in enumerate(zip(script.sent, script.infos, strict=True), 1):
        told = f"{info.instructions}\n{text_of(sent)}"
        newest = max(told.rfind(f"This is phase {number}.") for number in range(9))
        assert (step, told[newest:].split(".")[0]) == (step, f"This is phase {step // 6}")
    assert summaries(script.sent[-1])


def test_a_tool_that_was_found_stays_available() -> None:
    later: FunctionToolset[None] = FunctionToolset()
    later.add_function(refund, defer_loading=True)
    model = Refunds(pai.ToolCallPart("search_tools", {"queries": ["refund"]}))
    agent = Agent(
        FunctionModel(model),
        tools=[read],
        toolsets=[later],
        capabilities=[CompactdCapability(context_window=SMALL)],
    )

    result = agent.run_sync("go", usage_limits=NO_LIMIT)

    assert results(result.all_messages())[-1].content == "refunded 3"
    assert summaries(model.sent[-1])


def test_a_loaded_capability_keeps_its_instructions() -> None:
    refunds: Capability[None] = Capability(
        id="refunds",
        description="Refunds",
        instructions="Refund only after 3 days.",
        tools=[refund],
        defer_loading=True,
    )
    model = Refunds(pai.ToolCallPart("load_capability", {"id": "refunds"}))
    agent = Agent(
        FunctionModel(model), tools=[read], capabilities=[CompactdCapability(context_window=SMALL), refunds]
    )

    result = agent.run_sync("go", usage_limits=NO_LIMIT)

    assert results(result.all_messages())[-1].content == "refunded 3"
    assert "only after 3 days" in model.texts[-1]
    assert summaries(model.sent[-1])


def test_two_of_its_kind_are_one() -> None:
    script = Script(turns=14)
    one: CompactdCapability[None] = CompactdCapability(context_window=SMALL)

    result = script.agent(one, CompactdCapability(reduce="observe")).run_sync("go", usage_limits=NO_LIMIT)

    assert [tool.name for tool in script.infos[0].function_tools] == ["read", "recall"]
    assert summaries(script.sent[-1])
    assert summaries(result.all_messages()) == []
