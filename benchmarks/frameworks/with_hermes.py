"""Hermes Agent: without compaction, with its own compressor, and with compactd. It has an environment of its
own (tests/frameworks/hermes/setup.sh).

`python -m benchmarks.frameworks.with_hermes` has a longer conversation in 64,000 tokens, the smallest window
that Hermes accepts, and prints one line of JSON for each way. In the 8,000 of the other frameworks, Hermes
believes that it has 64,000, until an error names the window.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any
from uuid import uuid4

from benchmarks.frameworks.runners import COMPACTD_WINDOW, LOOK_UPS, Ask, Runner, Start
from tests.frameworks.support.laws import broken, is_marked
from tests.frameworks.support.provider import Provider
from tests.frameworks.support.talk import talk

SMALLEST = 64_000
LONG = (8, 25)
"""Requests and tool turns for each: about 130,000 tokens."""


def agent(engine: str = "compressor", *, host: dict[str, Any] | None = None, **options: Any) -> Start:
    """Return a way to run Hermes' agent with a configuration. `options`: those of compactd's plugin."""

    @asynccontextmanager
    async def start(provider: Provider) -> AsyncIterator[Ask]:
        os.environ.setdefault("HERMES_HOME", tempfile.mkdtemp(prefix="hermes-"))
        from tests.frameworks.hermes.agents import agent_of, configure

        configure(engine, host=host, **options)
        made = agent_of(provider.openai_url, uuid4().hex)
        messages: list[Any] = []

        async def ask(request: str) -> None:
            nonlocal messages
            with contextlib.redirect_stdout(io.StringIO()):
                done = made.run_conversation(request, conversation_history=messages or None)
            messages = done["messages"]
            if not done["completed"]:
                raise RuntimeError(done.get("error") or "not completed")

        yield ask

    return start


NAME = "Hermes Agent"
_SMALL = {"context_window": COMPACTD_WINDOW, "persist": False}
RUNNERS = (
    Runner(NAME, "`AIAgent`", "alone", agent(host={"compression": {"enabled": False}})),
    Runner(NAME, "its own compressor", "own", agent()),
    Runner(NAME, "`CompactdEngine`", "compactd", agent("compactd", **_SMALL)),
    Runner(NAME, f"`CompactdEngine`, {LOOK_UPS} look-ups", "compactd", agent("compactd", **_SMALL), LOOK_UPS),
)


def main() -> None:
    """Have the longer conversation each way. The compressor's summaries keep all facts, or none."""
    ways = (
        ("its own compressor", agent(), 0, True),
        ("its own compressor, useless summaries", agent(), 0, False),
        ("compactd", agent("compactd", persist=False), 0, True),
        (f"compactd, {LOOK_UPS} look-ups", agent("compactd", persist=False), LOOK_UPS, True),
    )
    for name, start, recalls, keeps in ways:
        with Provider(talk(*LONG), window=SMALLEST, recalls=recalls, keeps=keeps) as provider:
            error = asyncio.run(_talk(start, provider))
            faults = [fault for fault in broken(provider, is_marked) if "no such path" not in fault]
            found = {**asdict(provider.totals), "all_facts": len(provider.talk.facts), "faults": len(faults)}
        print(json.dumps({"name": name, "error": error, **found}), flush=True)


async def _talk(start: Start, provider: Provider) -> str:
    error = ""
    async with start(provider) as ask:
        for request in provider.asks():
            try:
                await ask(request)
            except RuntimeError as raised:
                error = error or str(raised)
    return error


if __name__ == "__main__":
    sys.exit(main())
