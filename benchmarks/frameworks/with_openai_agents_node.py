"""OpenAI Agents SDK for TypeScript: with its own session, with the server's truncation, with compactd."""

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
            with NodeAgent("openai_agents", env={"COMPACTD_HOME": home}) as node:
                given = {"url": provider.openai_url, "model": MODEL, "system": SYSTEM, "tools": TOOL_LIST}
                node.call("begin", way=way, **given, **more)

                async def ask(request: str) -> None:
                    await asyncio.to_thread(node.call, "ask", text=request, **session)

                yield ask
                node.call("close")

    return start


NAME = "OpenAI Agents SDK, TypeScript"
RUNNERS = (
    Runner(NAME, "`MemorySession`", "alone", agent("none")),
    Runner(NAME, '`MemorySession`, `truncation: "auto"`', "own", agent("none", truncation="auto")),
    Runner(NAME, "`CompactdSession`", "compactd", agent("run", recall=True)),
    Runner(
        NAME,
        f"`CompactdSession`, {LOOK_UPS} look-ups",
        "compactd",
        agent("run", recall=True),
        recalls=LOOK_UPS,
    ),
)
