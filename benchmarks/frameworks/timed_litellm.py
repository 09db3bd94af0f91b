"""Times LiteLLM between two calls of the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import litellm
from litellm.integrations.custom_logger import CustomLogger

from benchmarks.frameworks.clock import DONE, EARLIER, REQUEST, Clock, call_id, history
from benchmarks.frameworks.runners import BIG_WINDOW, SYSTEM, Timed
from benchmarks.frameworks.with_litellm import DEFINITIONS, Change, trimmed
from tests.frameworks.support.plain_agent import BY_NAME

MODEL = "clock/loopback-1"


class Model(litellm.CustomLLM):
    """A model in this process that answers at once."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    async def acompletion(self, *_: Any, **__: Any) -> Any:
        """Return the next call."""
        step = self.clock.called()
        message = {"role": "assistant", "content": DONE} if step is None else _call(step)
        answer = litellm.ModelResponse(choices=[{"message": message}])
        self.clock.answered()
        return answer


def _call(step: Any) -> dict[str, Any]:
    function = {"name": step.name, "arguments": json.dumps({"number": step.number})}
    call = {"id": call_id(step), "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _history() -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": EARLIER}]
    for step in history():
        result = {"role": "tool", "tool_call_id": call_id(step), "content": step.output}
        messages += [_call(step), result]
    return [*messages, {"role": "assistant", "content": DONE}]


def _timed(callbacks: Callable[[], Sequence[Any]], change: Change = dict) -> Callable[[Clock, bool], Any]:
    async def run(clock: Clock, is_long: bool) -> None:
        litellm.custom_provider_map = [{"provider": "clock", "custom_handler": Model(clock)}]
        litellm.callbacks = list(callbacks())
        metadata = {"session_id": uuid4().hex}
        messages = [{"role": "system", "content": SYSTEM}, *(_history() if is_long else [])]
        messages.append({"role": "user", "content": REQUEST})
        clock.begin()
        while True:
            request = change({"messages": messages, "tools": DEFINITIONS, "metadata": metadata})
            message = (await litellm.acompletion(model=MODEL, **request)).choices[0].message
            messages.append(message)
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                output = BY_NAME[call.function.name](**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": output})

    return run


class Nothing(CustomLogger):
    """A callback that changes nothing: what LiteLLM itself takes for one."""

    async def async_pre_call_deployment_hook(self, kwargs: Any, call_type: Any) -> None:
        """Send the request as it is."""


def _compactd() -> list[Any]:
    from compactd.integrations.frameworks.litellm import CompactdLogger

    return [CompactdLogger(context_window=BIG_WINDOW, persist=False)]


TIMED = (
    Timed("LiteLLM", "`acompletion`", "alone", _timed(list)),
    Timed("LiteLLM", "a callback that changes nothing", "own", _timed(lambda: [Nothing()])),
    Timed("LiteLLM", "`trim_messages`, 6,000 tokens", "own", _timed(list, trimmed)),
    Timed("LiteLLM", "`CompactdLogger`", "compactd", _timed(_compactd)),
)
