"""Times the AI SDK between two calls of the model."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.frameworks.clock import CALLS, HISTORY, Clock, history, use
from benchmarks.frameworks.runners import SYSTEM, Timed
from benchmarks.frameworks.with_ai_sdk import NAME
from tests.frameworks.environment import variables
from tests.frameworks.node.driving import COMMAND, built, node
from tests.frameworks.support.talk import ToolUse


def _step(of: ToolUse) -> dict[str, Any]:
    return {"name": of.name, "number": of.number, "output": of.output}


def _timed(way: str) -> Callable[[Clock, bool], Awaitable[None]]:
    async def run(clock: Clock, is_long: bool) -> None:
        script = {
            "command": COMMAND,
            "system": SYSTEM,
            "history": [_step(each) for each in history()] if is_long else [],
            "steps": [_step(use(HISTORY + at)) for at in range(CALLS)],
        }
        with tempfile.TemporaryDirectory() as home:
            path = Path(home) / "script.json"
            path.write_text(json.dumps(script))
            program = (node(), str(built() / "timed_ai_sdk.mjs"), way, str(path))
            process = await asyncio.create_subprocess_exec(
                *program, env={**variables(), "COMPACTD_HOME": home}, stdout=asyncio.subprocess.PIPE
            )
            said, _ = await process.communicate()
        measured = json.loads(said.splitlines()[-1])
        clock.asked = 0.0
        clock.calls = [measured["first"] / 1_000]
        for gap in measured["gaps"]:
            clock.answers.append(clock.calls[-1])
            clock.calls.append(clock.calls[-1] + gap / 1_000)

    return run


TIMED = (
    Timed(NAME, "`generateText`", "alone", _timed("alone")),
    Timed(NAME, "`pruneMessages` in `prepareStep`", "own", _timed("pruned")),
    Timed(NAME, "`compactdModel`", "compactd", _timed("compactd")),
)
