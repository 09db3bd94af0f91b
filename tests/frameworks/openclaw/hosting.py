"""A host that loads the plugin instead of OpenClaw, and messages as OpenClaw has them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from compactd.client import Client
from tests.frameworks.environment import variables
from tests.frameworks.node.driving import COMMAND, Json, daemons_of, node
from tests.frameworks.openclaw.building import HERE, built

WINDOW = 8_000
REPORT = "\n".join(f"{at}: all is as it was before, in every respect" for at in range(40))


class Host:
    """A process with the plugin. Use it with `with`."""

    def __init__(self, home: Path, *copies: Path) -> None:
        """`copies`: folders with the plugin, which is loaded from each."""
        entries = [str(each / "dist" / "openclaw" / "src" / "index.js") for each in copies or (built(),)]
        self._process = subprocess.Popen(
            [node(), str(HERE / "drive.mjs"), *entries],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**variables(), "COMPACTD_HOME": str(home)},
        )
        self.home = home
        self.warnings: list[str] = []

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def call(self, on: str, **given: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"on": on, **given}) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            frame = json.loads(line)
            if "warning" in frame:
                self.warnings.append(frame["warning"])
            elif "error" in frame:
                raise AssertionError(frame["error"])
            else:
                return frame["result"]
        raise AssertionError("the program ended")

    def engine(self, call: str, **params: Any) -> Any:
        return self.call(
            "engine", call=call, params={"sessionId": "s1", "sessionKey": "agent:main:main", **params}
        )

    def assemble(self, messages: list[Json], *, pending: int | None = None, **params: Any) -> list[Json]:
        """Return what a request gets: at the beginning of a turn, or with so many tokens of the turn."""
        limits: Json = {"promptTokenBudget": WINDOW - 1_000, "maxOutputTokens": 1_000}
        budget = WINDOW - 1_000
        if pending is not None:
            limits = {"promptTokenBudget": WINDOW, "maxOutputTokens": None}
            budget = WINDOW - pending
        settings = {"model": {"provider": "loop", "resolved": "m"}, "limits": limits}
        given = {"messages": messages, "tokenBudget": budget, "runtimeSettings": settings, **params}
        found: list[Json] = self.engine("assemble", **given)["messages"]
        return found

    def daemons(self) -> list[int]:
        return daemons_of(self._process.pid)

    def stored(self, session: str = "s1") -> list[Json]:
        with Client(env={**os.environ, "COMPACTD_HOME": str(self.home)}) as client:
            client.session_start(session_id=f"openclaw:{session}", read_only=True)
            entries = client.call("session/history", {"session_id": f"openclaw:{session}"})["entries"]
        return [entry["message"] for entry in entries if "message" in entry]

    def sessions(self) -> dict[str, Any]:
        with Client(env={**os.environ, "COMPACTD_HOME": str(self.home)}) as client:
            return {each.session_id: each for each in client.session_list().sessions}


def logged(log: Path) -> list[str]:
    """Return the command of a daemon whose requests are written to a file."""
    return ["sh", "-c", f"tee -a {shlex.quote(str(log))} | {shlex.join(COMMAND)}"]


def user(text: str, at: int, **more: Any) -> Json:
    return {"role": "user", "content": text, "timestamp": at, **more}


def call(number: int, *, at: int | None = None, dash: str = "") -> Json:
    block = {"type": "toolCall", "id": f"call{dash}{number}", "name": "look", "arguments": {"number": number}}
    return {"role": "assistant", "content": [block], "timestamp": at or 10 * number}


def result(number: int, text: str = REPORT, *, dash: str = "") -> Json:
    return {
        "role": "toolResult",
        "toolCallId": f"call{dash}{number}",
        "toolName": "look",
        "content": [{"type": "text", "text": f"{number}: {text}"}],
        "isError": False,
        "timestamp": 10 * number + 1,
    }


def turn(first: int, count: int, text: str = "Look at everything.") -> list[Json]:
    calls = [each for number in range(first, first + count) for each in (call(number), result(number))]
    return [
        user(text, 10 * first - 5),
        *calls,
        {**call(first + count), "content": [{"type": "text", "text": "Done."}]},
    ]


def summaries(messages: list[Json]) -> list[Json]:
    return [message for message in messages if message["role"] == "compactionSummary"]
