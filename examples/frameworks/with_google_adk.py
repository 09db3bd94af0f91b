"""An agent of Google's ADK that makes 40 tool calls in a window of 8,000 tokens. The model is a script, so it
needs no key and no network.

python examples/frameworks/with_google_adk.py
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from compactd.integrations.frameworks.google_adk import CompactdPlugin

CALLS = 40
WINDOW = 8_000
USER = "someone"


def read_meter(number: int) -> str:
    """Read a meter in the cellar."""
    rows = [f"meter {number}, hour {hour:02}: {(number * 37 + hour * 11) % 97} kWh" for hour in range(24)]
    return "\n".join(rows)


class Script(BaseLlm):
    """A model that reads all meters, looks one up, and is done."""

    sizes: list[int] = []

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer the next request."""
        self.sizes.append(len(llm_request.contents))
        yield LlmResponse(content=types.ModelContent([self._answer(len(self.sizes), llm_request)]))

    def _answer(self, number: int, request: LlmRequest) -> types.Part:
        if number <= CALLS:
            return types.Part.from_function_call(name="read_meter", args={"number": number})
        if number == CALLS + 1:
            return types.Part.from_function_call(name="recall", args={"query": "meter 3, hour 07"})
        (part,) = request.contents[-1].parts or ()
        assert part.function_response is not None
        found = str((part.function_response.response or {})["result"])
        (line,) = [each for each in found.splitlines() if "meter 3, hour 07" in each]
        return types.Part.from_text(text=f"All meters are read. The record says: {line}")


async def main() -> None:
    """Run the agent, and say what it did."""
    logging.getLogger("google_adk").setLevel(logging.ERROR)  # a script reports no usage
    script = Script(model="script")
    plugin = CompactdPlugin(context_window=WINDOW)
    agent = LlmAgent(
        name="caretaker", model=script, instruction="You look after the cellar.", tools=[read_meter]
    )
    runner = InMemoryRunner(app=App(name="cellar", root_agent=agent, plugins=[plugin]))
    session = await runner.session_service.create_session(app_name="cellar", user_id=USER)
    answer = ""
    words = types.UserContent("Read all meters.")
    async for event in runner.run_async(user_id=USER, session_id=session.id, new_message=words):
        if event.is_final_response() and event.content and event.content.parts:
            answer = event.content.parts[0].text or ""

    stored = await runner.session_service.get_session(app_name="cellar", user_id=USER, session_id=session.id)
    assert stored is not None
    state = plugin.session(stored).state()
    used, window = state.token_usage.current_context_tokens, state.token_usage.context_window
    print(f"events in the session: {len(stored.events)}; in the largest request: {max(script.sizes)}")
    print(f"context at the end: {used:,} of {window:,} tokens, after {state.compaction.count} compactions")
    print(f"answer: {answer}")


if __name__ == "__main__":
    asyncio.run(main())
