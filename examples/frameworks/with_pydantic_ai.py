"""An agent of Pydantic AI that makes 40 tool calls in a window of 8,000 tokens. The model is a script, so it
needs no key and no network.

python examples/frameworks/with_pydantic_ai.py
"""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from compactd.integrations.frameworks.pydantic_ai import CompactdCapability

CALLS = 40
WINDOW = 8_000


def read_meter(number: int) -> str:
    """Read a meter in the cellar."""
    rows = [f"meter {number}, hour {hour:02}: {(number * 37 + hour * 11) % 97} kWh" for hour in range(24)]
    return "\n".join(rows)


class Script:
    """A model that reads all meters, looks one up, and is done."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        self.sizes.append(len(messages))
        number = len(self.sizes)
        if number <= CALLS:
            return ModelResponse([ToolCallPart("read_meter", {"number": number})])
        if number == CALLS + 1:
            return ModelResponse([ToolCallPart("recall", {"query": "meter 3, hour 07"})])
        found = messages[-1].parts[0]
        assert isinstance(found, ToolReturnPart)
        (line,) = [each for each in str(found.content).splitlines() if "meter 3, hour 07" in each]
        return ModelResponse([TextPart(f"All meters are read. The record says: {line}")])


def main() -> None:
    """Run the agent, and say what it did."""
    script = Script()
    capability = CompactdCapability[None](context_window=WINDOW)
    agent = Agent(
        FunctionModel(script),
        instructions="You look after the cellar.",
        tools=[read_meter],
        capabilities=[capability],
    )
    result = agent.run_sync("Read all meters.", usage_limits=UsageLimits(request_limit=None))

    state = capability.session(result).state()
    used, window = state.token_usage.current_context_tokens, state.token_usage.context_window
    print(
        f"messages in the history: {len(result.all_messages())}; in the largest request: {max(script.sizes)}"
    )
    print(f"context at the end: {used:,} of {window:,} tokens, after {state.compaction.count} compactions")
    print(f"answer: {result.output}")


if __name__ == "__main__":
    main()
