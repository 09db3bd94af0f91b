"""AI SDK: alone, with its own `pruneMessages`, with compactd."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from benchmarks.frameworks.runners import COMPACTD_WINDOW, LOOK_UPS, SYSTEM, Ask, Runner, Start
from benchmarks.frameworks.with_openai_agents import MODEL
from tests.frameworks.node.driving import COMMAND, TOOL_LIST, NodeAgent
from tests.frameworks.support.provider import Provider


def agent(way: str, **more: Any) -> Start:
    """Return a way to run an agent in a process of Node. `way`: how compactd gets its requests."""

    @asynccontextmanager
    async def start(provider: Provider) -> AsyncIterator[Ask]:
        with tempfile.TemporaryDirectory() as home:
            session = {
                "session": uuid4().hex,
                "options": {"contextWindow": COMPACTD_WINDOW, "command": COMMAND},
            }
            with NodeAgent("ai_sdk", env={"COMPACTD_HOME": home}) as node:
                given = {"url": provider.openai_url, "model": MODEL, "system": SYSTEM, "tools": TOOL_LIST}
                node.call("begin", way=way, **given, **more)

                async def ask(request: str) -> None:
                    await asyncio.to_thread(node.call, "ask", text=request, **session)

                yield ask
                node.call("close")

    return start


NAME = "AI SDK"
PRUNE = {"toolCalls": "before-last-14-messages"}
"""Seven tool turns stay: about 5,000 tokens."""
RUNNERS = (
    Runner(NAME, "`generateText`", "alone", agent("none")),
    Runner(NAME, "`pruneMessages` in `prepareStep`", "own", agent("none", prune=PRUNE)),
    Runner(NAME, "`compactdModel`", "compactd", agent("model", recall=True)),
    Runner(
        NAME,
        f"`compactdModel`, {LOOK_UPS} look-ups",
        "compactd",
        agent("model", recall=True),
        recalls=LOOK_UPS,
    ),
)
