"""An agent of the OpenAI Agents SDK with compactd, offline: a scripted model works through 30 reports.

    pip install 'compactd[openai-agents]'
    python examples/frameworks/with_openai_agents.py

It needs no key and no network. The window is small on purpose, so that compactd has something to do.
"""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any
from uuid import uuid4

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

from compactd.integrations.frameworks.openai_agents import CompactdSession, compactd_recall

REPORTS = 30
WINDOW = 8_000


@function_tool
def read_report(number: int) -> str:
    """Read a report of the inspection."""
    drawn = random.Random(number)
    lines = [f"gauge {drawn.randrange(900)}: {drawn.uniform(1, 9):.3f} mm, steady" for _ in range(40)]
    lines.insert(20, f"The seal code of part {number} is K-{drawn.randrange(10_000, 99_999)}.")
    return "\n".join(lines)


def scripted(sizes: list[int]) -> ScriptedModel:
    """Return a model that reads each report, then looks up what it has forgotten, and answers."""

    def noted(step: Any) -> ModelStep:
        def respond(call: ModelCall) -> Any:
            sizes.append(len(json.dumps(call.input)) // 4)
            return step(call) if callable(step) else step

        return ModelStep.respond(respond)

    def answer(call: ModelCall) -> Any:
        found = [line for line in call.input[-1]["output"].splitlines() if "seal code of part 2 is" in line]
        return [assistant_message(found[0].strip() if found else "I do not know it.")]

    reads = [
        [function_call("read_report", json.dumps({"number": number}), call_id=f"call_{number}")]
        for number in range(1, REPORTS + 1)
    ]
    look_up = [function_call("recall", '{"query": "seal code of part 2 is"}', call_id="call_recall")]
    return ScriptedModel([noted(step) for step in (*reads, look_up, answer)])


async def main() -> None:
    """Run the agent and print what compactd did."""
    set_tracing_disabled(True)
    sizes: list[int] = []
    agent = Agent(
        name="inspector",
        instructions="You inspect machine parts.",
        model=scripted(sizes),
        tools=[read_report, compactd_recall()],
    )
    session = CompactdSession(f"example-{uuid4().hex[:8]}", context_window=WINDOW)

    result = await Runner.run(
        agent,
        f"Read reports 1 to {REPORTS}. Then tell me the seal code of part 2.",
        session=session,
        run_config=session.run_config(),
        max_turns=REPORTS + 5,
    )

    items = await session.original_items()
    state = await session.state()
    print(f"The answer:            {result.final_output}")
    print(f"Model requests:        {len(sizes)}, the largest about {max(sizes):,} tokens of {WINDOW:,}")
    print(f"The whole conversation: {len(items)} items, about {len(json.dumps(items)) // 4:,} tokens")
    print(f"Compactions:           {state.compaction.count}, without a model call")
    await session.clear_session()


if __name__ == "__main__":
    asyncio.run(main())
