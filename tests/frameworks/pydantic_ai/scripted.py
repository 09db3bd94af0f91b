"""A model that plays a script, without a provider: it calls a tool in each turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai import messages as pai
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

LINES = 40


def read(path: str) -> str:
    """Read a file."""
    lines = (f"line {at} of {path}: value {at * 7919 % 1000} is set by f{at}" for at in range(LINES))
    return f"contents of {path}\n" + "\n".join(lines)


class Script:
    """Calls `read` `turns` times, then says `done`, again and again."""

    def __init__(self, turns: int = 12, call_id: Callable[[int], str] = "call-{}".format) -> None:
        self.turns = turns
        self.sent: list[list[pai.ModelMessage]] = []
        self.infos: list[AgentInfo] = []
        self._call_id = call_id
        self._number = 0

    def model(self) -> FunctionModel:
        return FunctionModel(self.answer, stream_function=self.stream)

    def agent(self, *capabilities: AbstractCapability[Any], **options: Any) -> Agent[None, Any]:
        options.setdefault("tools", [read])
        return Agent(self.model(), capabilities=list(capabilities), **options)

    def answer(self, messages: list[pai.ModelMessage], info: AgentInfo) -> pai.ModelResponse:
        call = self._next(messages, info)
        return pai.ModelResponse(parts=[pai.TextPart("done") if call is None else call])

    async def stream(
        self, messages: list[pai.ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        call = self._next(messages, info)
        if call is None:
            yield "do"
            yield "ne"
        else:
            yield {0: DeltaToolCall(call.tool_name, call.args_as_json_str(), tool_call_id=call.tool_call_id)}

    def _next(self, messages: list[pai.ModelMessage], info: AgentInfo) -> pai.ToolCallPart | None:
        self.sent.append(list(messages))
        self.infos.append(info)
        self._number += 1
        if self._number % (self.turns + 1) == 0:
            return None
        path = f"file{self._number}.py"
        return pai.ToolCallPart("read", {"path": path}, tool_call_id=self._call_id(self._number))


def text_of(messages: Sequence[pai.ModelMessage]) -> str:
    """Return all that messages say."""
    return "\n".join(
        str(getattr(part, "content", getattr(part, "args", "")))
        for message in messages
        for part in message.parts
    )


def faults(messages: Sequence[pai.ModelMessage]) -> list[str]:
    """Return what a provider would refuse in messages: calls and results that do not belong together."""
    found: list[str] = []
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, pai.ModelResponse):
            found += [f"no result of {call}" for call in waiting]
            waiting = [part.tool_call_id for part in message.tool_calls]
            continue
        for part in message.parts:
            if not isinstance(part, pai.ToolReturnPart):
                continue
            if part.tool_call_id in waiting:
                waiting.remove(part.tool_call_id)
            else:
                found.append(f"no call of {part.tool_call_id}")
    return found + [f"no result of {call}" for call in waiting]
