"""OpenClaw: with its own compaction, and with compactd. Its gateway is a program of its own, which
tests/frameworks/openclaw/setup.sh installs.

`python -m benchmarks.frameworks.with_openclaw` has a longer conversation in 64,000 tokens, and prints one
line of JSON for each way.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.frameworks.runners import COMPACTD_WINDOW, LOOK_UPS, Ask, Runner, Start
from benchmarks.frameworks.with_openai_agents import MODEL
from tests.frameworks.openclaw.gateway import Gateway, packages
from tests.frameworks.support.laws import broken, is_marked
from tests.frameworks.support.provider import Provider
from tests.frameworks.support.talk import talk

LONG_WINDOW = 64_000
LONG = (8, 25)
"""Requests and tool turns for each: about 130,000 tokens."""
CHECKED = {"midTurnPrecheck": {"enabled": True}}
UNAUDITED = {"qualityGuard": {"enabled": False}}
"""OpenClaw drops a summary without the headings that it asks for. This conversation's model writes none."""


def agent(engine: str, compaction: dict[str, Any], *, window: int = COMPACTD_WINDOW, **options: Any) -> Start:
    """Return a way to run OpenClaw's gateway. `compaction`: OpenClaw's settings; `options`: the plugin's."""

    @asynccontextmanager
    async def start(provider: Provider) -> AsyncIterator[Ask]:
        if packages() is None:
            raise ImportError("OpenClaw is not installed: sh tests/frameworks/openclaw/setup.sh")
        config = {"agents": {"defaults": {"compaction": compaction}}}
        session = uuid4().hex
        with tempfile.TemporaryDirectory(prefix="openclaw-") as folder:
            given: dict[str, Any] = {"config": config, "options": options, "windows": {MODEL: window}}
            gateway = Gateway(Path(folder), engine=engine, provider_url=provider.openai_url, **given)
            with gateway:

                async def ask(request: str) -> None:
                    await asyncio.to_thread(gateway.ask, request, session, model=MODEL)

                yield ask

    return start


NAME = "OpenClaw"
RUNNERS = (
    Runner(NAME, "its own compaction", "own", agent("legacy", UNAUDITED)),
    Runner(NAME, "its own compaction, `midTurnPrecheck`", "own", agent("legacy", UNAUDITED | CHECKED)),
    Runner(NAME, "compactd's plugin", "compactd", agent("compactd", {})),
    Runner(NAME, "compactd's plugin, `midTurnPrecheck`", "compactd", agent("compactd", CHECKED)),
    Runner(NAME, f"the same, {LOOK_UPS} look-ups", "compactd", agent("compactd", CHECKED), LOOK_UPS),
)


def main() -> None:
    """Have the longer conversation each way. The summaries of the model keep all facts, or none."""
    own = agent("legacy", UNAUDITED | CHECKED, window=LONG_WINDOW)
    compactd = agent("compactd", CHECKED, window=LONG_WINDOW)
    ways = (
        ("its own compaction", own, 0, True),
        ("its own compaction, useless summaries", own, 0, False),
        ("compactd", compactd, 0, True),
        (f"compactd, {LOOK_UPS} look-ups", compactd, LOOK_UPS, True),
    )
    for name, start, recalls, keeps in ways:
        with Provider(talk(*LONG), window=LONG_WINDOW, recalls=recalls, keeps=keeps) as provider:
            error = asyncio.run(_talk(start, provider))
            faults = [fault for fault in broken(provider, is_marked) if " refused: " not in fault]
            found = {**asdict(provider.totals), "all_facts": len(provider.talk.facts), "faults": len(faults)}
        print(json.dumps({"name": name, "error": error, **found}), flush=True)


async def _talk(start: Start, provider: Provider) -> str:
    error = ""
    async with start(provider) as ask:
        for request in provider.asks():
            try:
                await ask(request)
            except Exception as raised:
                error = error or str(raised)
    return error


if __name__ == "__main__":
    sys.exit(main())
