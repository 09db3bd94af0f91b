"""An agent of LangChain that makes 40 tool calls in a window of 8,000 tokens. The model is a script, so it
needs no key and no network.

python examples/frameworks/with_langchain.py
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from compactd.integrations.frameworks.langchain import CompactdMiddleware

CALLS = 40
WINDOW = 8_000


@tool
def read_meter(number: int) -> str:
    """Reads a meter in the cellar."""
    rows = [f"meter {number}, hour {hour:02}: {(number * 37 + hour * 11) % 97} kWh" for hour in range(24)]
    return "\n".join(rows)


class Script(BaseChatModel):
    """A model that reads all meters, looks one up, and is done."""

    sizes: list[int] = []
    answers: int = 0

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        """Accept any tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.sizes.append(len(messages))
        self.answers += 1
        if self.answers <= CALLS:
            said = _call("read_meter", number=self.answers)
        elif self.answers == CALLS + 1:
            said = _call("recall", query="meter 3, hour 07")
        else:
            (line,) = [each for each in str(messages[-1].content).splitlines() if "meter 3, hour 07" in each]
            said = AIMessage(f"All meters are read. The record says: {line}")
        return ChatResult(generations=[ChatGeneration(message=said)])


def _call(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"{name}-{args}"}])


def main() -> None:
    """Run the agent, and say what it did."""
    model = Script()
    middleware = CompactdMiddleware(context_window=WINDOW, persist=False)
    agent = create_agent(
        model,
        [read_meter],
        system_prompt="You look after the cellar.",
        middleware=[middleware],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "cellar"}, "recursion_limit": 200}
    result = agent.invoke({"messages": [{"role": "user", "content": "Read all meters."}]}, config)

    said = result["messages"]
    state = middleware.session("cellar").state()
    used, window = state.token_usage.current_context_tokens, state.token_usage.context_window
    print(f"messages in the agent's state: {len(said)}; in the largest request: {max(model.sizes)}")
    print(f"context at the end: {used:,} of {window:,} tokens, after {state.compaction.count} compactions")
    print(f"answer: {said[-1].content}")


if __name__ == "__main__":
    main()
