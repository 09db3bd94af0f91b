"""OpenClaw: with its own compaction, and with compactd. Its gateway is a program of its own, which
tests/frameworks/openclaw/setup.sh installs.

`python -m benchmarks.frameworks.with_openclaw [REGEX]` has a longer conversation in 64,000 tokens, and
prints one line of JSON for each way.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.frameworks.measure import have
from benchmarks.frameworks.runners import COMPACTD_WINDOW, LOOK_UPS, Ask, Runner, Start
from benchmarks.frameworks.with_openai_agents import MODEL
from tests.frameworks.openclaw.gateway import Gateway, packages
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
    Runner(
        NAME,
        f"compactd's plugin, `midTurnPrecheck`, {LOOK_UPS} look-ups",
        "compactd",
        agent("compactd", CHECKED),
        LOOK_UPS,
    ),
)


def main() -> None:
    """Have the longer conversation each way. The summaries of the model keep all facts, or none."""
    own = agent("legacy", UNAUDITED | CHECKED, window=LONG_WINDOW)
    compactd = agent("compactd", CHECKED, window=LONG_WINDOW)
    ways = (
        (Runner(NAME, "its own compaction", "own", own), True),
        (Runner(NAME, "its own compaction, useless summaries", "own", own), False),
        (Runner(NAME, "compactd", "compactd", compactd), True),
        (Runner(NAME, f"compactd, {LOOK_UPS} look-ups", "compactd", compactd, LOOK_UPS), True),
    )
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    for runner, keeps in ways:
        if not wanted.search(runner.name):
            continue
        with Provider(talk(*LONG), window=LONG_WINDOW, recalls=runner.recalls, keeps=keeps) as provider:
            had = have(runner, provider)
        found = {**asdict(had.totals), "all_facts": len(had.talk.facts), "faults": len(had.faults)}
        print(json.dumps({"name": runner.name, "error": had.error, **found}), flush=True)


if __name__ == "__main__":
    main()
