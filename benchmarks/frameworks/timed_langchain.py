"""Times LangChain and deepagents between two calls of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ConfigDict

from benchmarks.frameworks.clock import DONE, EARLIER, REQUEST, Clock, call_id, history
from benchmarks.frameworks.runners import BIG_WINDOW, SYSTEM, TOOLS, Timed
from benchmarks.frameworks.with_langchain import STEPS


class Clocked(BaseChatModel):
    """A model that does the next step of the script at once."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    clock: Clock

    @property
    def _llm_type(self) -> str:
        return "clocked"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        """Return the model itself. It knows its tools."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        step = self.clock.called()
        said = AIMessage(DONE) if step is None else _call(step)
        self.clock.answered()
        return ChatResult(generations=[ChatGeneration(message=said)])


def _call(step: Any) -> AIMessage:
    call = {"name": step.name, "args": {"number": step.number}, "id": call_id(step), "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def _history() -> list[BaseMessage]:
    messages: list[BaseMessage] = [HumanMessage(EARLIER)]
    for step in history():
        messages += [_call(step), ToolMessage(step.output, tool_call_id=call_id(step), name=step.name)]
    return [*messages, AIMessage(DONE)]


def _timed(graph_of: Callable[[BaseChatModel], Any]) -> Callable[[Clock, bool], Any]:
    async def run(clock: Clock, is_long: bool) -> None:
        messages = _history() if is_long else []
        graph = graph_of(Clocked(clock=clock))
        config = {"configurable": {"thread_id": uuid4().hex}, "recursion_limit": STEPS}
        clock.begin()
        await graph.ainvoke({"messages": [*messages, HumanMessage(REQUEST)]}, config)

    return run


def _agent(middleware: Callable[[BaseChatModel], Sequence[Any]]) -> Callable[[BaseChatModel], Any]:
    return lambda model: create_agent(
        model,
        list(TOOLS),
        system_prompt=SYSTEM,
        middleware=middleware(model),
        checkpointer=InMemorySaver(),
    )


def _deep(middleware: Callable[[], Sequence[Any]]) -> Callable[[BaseChatModel], Any]:
    return lambda model: create_deep_agent(
        model, list(TOOLS), system_prompt=SYSTEM, middleware=middleware(), checkpointer=InMemorySaver()
    )


def _compactd(**more: Any) -> list[Any]:
    from compactd.integrations.frameworks.langchain import CompactdMiddleware

    return [CompactdMiddleware(context_window=BIG_WINDOW, persist=False, **more)]


class Nothing(AgentMiddleware[Any, Any, Any]):
    """A middleware that changes nothing: what LangChain itself takes for one."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Send the request as it is."""
        return await handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Return the tool's output as it is."""
        return await handler(request)


def _summaries(model: BaseChatModel) -> list[Any]:
    return [SummarizationMiddleware(model, trigger=("tokens", BIG_WINDOW))]


TIMED = (
    Timed("LangChain", "`create_agent`", "alone", _timed(_agent(lambda _: ()))),
    Timed("LangChain", "a middleware that changes nothing", "own", _timed(_agent(lambda _: (Nothing(),)))),
    Timed("LangChain", "`SummarizationMiddleware`", "own", _timed(_agent(_summaries))),
    Timed("LangChain", "`CompactdMiddleware`", "compactd", _timed(_agent(lambda _: _compactd()))),
    Timed("deepagents", "`create_deep_agent`", "own", _timed(_deep(tuple))),
    Timed(
        "deepagents",
        "`CompactdMiddleware` in its place",
        "compactd",
        _timed(_deep(lambda: _compactd(name="SummarizationMiddleware"))),
    ),
)
