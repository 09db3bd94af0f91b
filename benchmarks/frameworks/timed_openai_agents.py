"""Times the OpenAI Agents SDK between two calls of the model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents import Runner as Loop
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from benchmarks.frameworks.clock import DONE, EARLIER, REQUEST, Clock, call_id, history
from benchmarks.frameworks.runners import BIG_WINDOW, SYSTEM, TOOLS, Timed
from benchmarks.frameworks.with_openai_agents import TURNS


class Clocked(Model):
    """A model that does the next step of the script at once."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        """Return the next step."""
        step = self.clock.called()
        if step is None:
            text = ResponseOutputText(annotations=[], text=DONE, type="output_text")
            item: Any = ResponseOutputMessage(
                id="msg_1", content=[text], role="assistant", status="completed", type="message"
            )
        else:
            item = ResponseFunctionToolCall(**_call(step))
        answer = ModelResponse(output=[item], usage=Usage(), response_id=None)
        self.clock.answered()
        return answer

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Nothing is streamed here."""
        raise NotImplementedError


def _call(step: Any) -> dict[str, Any]:
    arguments = json.dumps({"number": step.number})
    return {"type": "function_call", "call_id": call_id(step), "name": step.name, "arguments": arguments}


def _history() -> list[Any]:
    items: list[Any] = [{"role": "user", "content": EARLIER}]
    for step in history():
        items += [
            _call(step),
            {"type": "function_call_output", "call_id": call_id(step), "output": step.output},
        ]
    return [*items, {"role": "assistant", "content": DONE}]


def _timed(
    session: Callable[[], tuple[Any, dict[str, Any]]], wrap: Callable[[Model], Model] = lambda model: model
) -> Callable[[Clock, bool], Any]:
    async def run(clock: Clock, is_long: bool) -> None:
        set_tracing_disabled(True)
        opened, more = session()
        if is_long:
            await opened.add_items(_history())
        agent = Agent(
            name="inspector",
            instructions=SYSTEM,
            tools=[function_tool(tool) for tool in TOOLS],
            model=wrap(Clocked(clock)),
        )
        clock.begin()
        await Loop.run(agent, REQUEST, session=opened, max_turns=TURNS, **more)

    return run


def _sqlite() -> tuple[Any, dict[str, Any]]:
    return SQLiteSession("lots"), {}


def _filtered() -> tuple[Any, dict[str, Any]]:
    # A filter that changes nothing: what the SDK itself takes for one.
    return SQLiteSession("lots"), {
        "run_config": RunConfig(call_model_input_filter=lambda data: data.model_data)
    }


def _compactd() -> tuple[Any, dict[str, Any]]:
    from compactd.integrations.frameworks.openai_agents import CompactdSession

    session = CompactdSession(uuid4().hex, context_window=BIG_WINDOW)
    return session, {"run_config": session.run_config()}


def _wrapped(model: Model) -> Model:
    from compactd.integrations.frameworks.openai_agents import compactd_model

    return compactd_model(model)


TIMED = (
    Timed("OpenAI Agents SDK", "`SQLiteSession`", "alone", _timed(_sqlite)),
    Timed("OpenAI Agents SDK", "`SQLiteSession`, a filter that changes nothing", "own", _timed(_filtered)),
    Timed("OpenAI Agents SDK", "`CompactdSession`", "compactd", _timed(_compactd, _wrapped)),
)
