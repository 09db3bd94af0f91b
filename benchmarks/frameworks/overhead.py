"""`python -m benchmarks.frameworks.overhead [REGEX]`: times what a framework does between two calls of the
model, in the frameworks' environment. Prints one line of JSON per agent.

The model is in the same process and answers at once. Each agent gets new processes: one with a history of
200,000 tokens, and one without, because only the first request of a process starts a daemon.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from statistics import median, quantiles
from typing import Any

import msgspec

from benchmarks.frameworks.clock import HISTORY, Clock, history
from benchmarks.frameworks.figures import Timing
from benchmarks.frameworks.runners import Timed
from tests.frameworks.support.reading import tokens_of

MODULES = (
    "timed_langchain",
    "timed_openai_agents",
    "timed_openai_agents_node",
    "timed_ai_sdk",
    "timed_pydantic_ai",
    "timed_google_adk",
    "timed_litellm",
    "timed_hermes",
    "timed_openclaw",
)
ONE = "--one"
PROCESSES = 5
"""Processes for each figure of a first request, which is the median of them."""


def timed(module: str) -> tuple[Timed, ...]:
    """Return the agents of a module that are timed."""
    found: tuple[Timed, ...] = import_module(f"benchmarks.frameworks.{module}").TIMED
    return found


def run_one(module: str, number: int, is_long: bool) -> None:
    """Time one agent in this process, and print what the clock says."""
    warnings.simplefilter("ignore")
    clock = Clock()
    asyncio.run(timed(module)[number].run(clock, is_long))
    print(json.dumps({"first": clock.first_ms, "gaps": clock.gaps_ms}))


def measure(module: str, agents: Mapping[int, Timed]) -> Iterator[Timing]:
    """Time agents of a module, by their number in it. They take turns in new processes, so that a machine
    that becomes slower meanwhile is as slow for all. Leave out those that cannot run.
    """
    runs: dict[int, dict[bool, list[dict[str, Any]]]] = {number: {True: [], False: []} for number in agents}
    for _ in range(PROCESSES):
        for number, one in agents.items():
            for is_long in (True, False):
                if number not in runs:
                    continue
                arguments = (ONE, module, str(number), str(is_long))
                command = [sys.executable, "-m", "benchmarks.frameworks.overhead", *arguments]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode == 0:
                    runs[number][is_long].append(json.loads(done.stdout.splitlines()[-1]))
                else:
                    del runs[number]
                    reason = done.stderr.strip()[-200:]
                    print(f"{one.framework} {one.name}: left out: {reason}", file=sys.stderr)
    for number, found in runs.items():
        one = agents[number]
        gaps = [gap for run in found[True] for gap in run["gaps"]]
        yield Timing(
            framework=one.framework,
            name=one.name,
            kind=one.kind,
            tokens=sum(tokens_of(use.output) for use in history()) + 20 * HISTORY,
            median_ms=median(gaps),
            p95_ms=quantiles(gaps, n=20)[-1],
            first_ms=median(run["first"] for run in found[True]),
            fresh_ms=median(run["first"] for run in found[False]),
            count=len(gaps),
        )


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == [ONE]:
        run_one(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "True")
        return
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    for module in MODULES:
        try:
            agents = timed(module)
        except ModuleNotFoundError:
            continue  # its framework has another environment
        chosen = {at: one for at, one in enumerate(agents) if wanted.search(f"{one.framework} {one.name}")}
        for found in measure(module, chosen):
            print(msgspec.json.encode(found).decode(), flush=True)


if __name__ == "__main__":
    main()
