"""A loop on LiteLLM that makes 40 tool calls in a window of 8,000 tokens. The model is a script, so it needs
no key and no network.

python examples/frameworks/with_litellm.py
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import litellm

from compactd.integrations.frameworks.litellm import CompactdLogger

CALLS = 40
WINDOW = 8_000
SESSION = "cellar"
READ_METER = {
    "type": "function",
    "function": {
        "name": "read_meter",
        "description": "Reads a meter in the cellar.",
        "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}},
    },
}


def read_meter(arguments: str) -> str:
    """Read a meter. `arguments`: JSON, as the model wrote it."""
    number = json.loads(arguments)["number"]
    rows = [f"meter {number}, hour {hour:02}: {(number * 37 + hour * 11) % 97} kWh" for hour in range(24)]
    return "\n".join(rows)


class Script(litellm.CustomLLM):
    """A model that reads all meters, looks one up, and is done."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    async def acompletion(self, *_: Any, messages: list[Any], **__: Any) -> Any:
        """Answer a request, and note how many messages it has."""
        self.sizes.append(len(messages))
        answers = len(self.sizes)
        if answers <= CALLS:
            said = _call("read_meter", number=answers)
        elif answers == CALLS + 1:
            said = _call("recall", query="meter 3, hour 07")
        else:
            (line,) = [each for each in messages[-1]["content"].splitlines() if "meter 3, hour 07" in each]
            said = {"role": "assistant", "content": f"All meters are read. The record says: {line}"}
        return litellm.ModelResponse(choices=[{"message": said}])


def _call(name: str, **given: Any) -> dict[str, Any]:
    arguments = json.dumps(given)
    call = {
        "id": f"{name}-{arguments}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
    return {"role": "assistant", "content": None, "tool_calls": [call]}


async def main() -> None:
    """Run the loop, and say what it did."""
    model = Script()
    litellm.custom_provider_map = [{"provider": "script", "custom_handler": model}]
    logger = CompactdLogger(context_window=WINDOW, persist=False)
    litellm.callbacks = [logger]
    recall = logger.recall_tool(SESSION)
    functions = {"read_meter": read_meter, recall.name: recall}

    messages: list[Any] = [
        {"role": "system", "content": "You look after the cellar."},
        {"role": "user", "content": "Read all meters."},
    ]
    while True:
        response = await litellm.acompletion(
            model="script/cellar",
            messages=messages,
            tools=[READ_METER, recall.definition],
            metadata={"session_id": SESSION},
        )
        message = response.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            output = functions[call.function.name](call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": output})

    state = logger.session(SESSION).state()
    used, window = state.token_usage.current_context_tokens, state.token_usage.context_window
    print(f"messages in the loop's list: {len(messages)}; in the largest request: {max(model.sizes)}")
    print(f"context at the end: {used:,} of {window:,} tokens, after {state.compaction.count} compactions")
    print(f"the last answer: {messages[-1].content}")


if __name__ == "__main__":
    asyncio.run(main())
