"""Times Pydantic AI between two calls of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from benchmarks.frameworks.clock import DONE, EARLIER, REQUEST, Clock, call_id, history
from benchmarks.frameworks.runners import BIG_WINDOW, SYSTEM, TOOLS, Timed
from benchmarks.frameworks.with_pydantic_ai import keep_recent


def _model(clock: Clock) -> FunctionModel:
    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        step = clock.called()
        said = ModelResponse([TextPart(DONE) if step is None else _call(step)])
        clock.answered()
        return said

    return FunctionModel(answer)


def _call(step: Any) -> ToolCallPart:
    return ToolCallPart(step.name, {"number": step.number}, tool_call_id=call_id(step))


def _history() -> list[ModelMessage]:
    messages: list[ModelMessage] = [ModelRequest([UserPromptPart(EARLIER)])]
    for step in history():
        returned = ToolReturnPart(step.name, step.output, tool_call_id=call_id(step))
        messages += [ModelResponse([_call(step)]), ModelRequest([returned])]
    return [*messages, ModelResponse([TextPart(DONE)])]


def _timed(capabilities: Callable[[], Sequence[Any]]) -> Callable[[Clock, bool], Any]:
    async def run(clock: Clock, is_long: bool) -> None:
        agent: Agent[None, str] = Agent(
            _model(clock), instructions=SYSTEM, tools=list(TOOLS), capabilities=list(capabilities())
        )
        messages = _history() if is_long else []
        clock.begin()
        await agent.run(REQUEST, message_history=messages, usage_limits=UsageLimits(request_limit=None))

    return run


class Nothing(AbstractCapability[Any]):
    """A capability that changes nothing: what Pydantic AI itself takes for one."""

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Send the request as it is."""
        return request_context

    async def after_tool_execute(self, ctx: Any, *, result: Any, **_: Any) -> Any:
        """Return the tool's output as it is."""
        return result


def _compactd() -> list[Any]:
    from compactd.integrations.frameworks.pydantic_ai import CompactdCapability

    return [CompactdCapability(session_id=uuid4().hex, context_window=BIG_WINDOW, persist=False)]


TIMED = (
    Timed("Pydantic AI", "`Agent`", "alone", _timed(tuple)),
    Timed("Pydantic AI", "a capability that changes nothing", "own", _timed(lambda: [Nothing()])),
    Timed(
        "Pydantic AI",
        "`ProcessHistory`, the last 10 messages",
        "own",
        _timed(lambda: [ProcessHistory(keep_recent)]),
    ),
    Timed("Pydantic AI", "`CompactdCapability`", "compactd", _timed(_compactd)),
)
