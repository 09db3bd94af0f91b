"""`python -m benchmarks.frameworks.measure [REGEX]`: has the conversation with each runner whose name
matches, in the frameworks' environment, and prints what the provider saw: one line of JSON per runner."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module

import msgspec

from benchmarks.frameworks.figures import Outcome
from benchmarks.frameworks.runners import Runner
from tests.frameworks.support.laws import broken, is_marked
from tests.frameworks.support.provider import WINDOW, Provider, Totals
from tests.frameworks.support.talk import Talk

MODULES = (
    "with_langchain",
    "with_deepagents",
    "with_openai_agents",
    "with_openai_agents_node",
    "with_ai_sdk",
    "with_pydantic_ai",
    "with_google_adk",
    "with_litellm",
    "with_hermes",
    "with_openclaw",
)
"""The frameworks' modules here, in the order of the table."""
TOLD_CHARS = 120


@dataclass(frozen=True)
class Had:
    """A conversation that was had."""

    talk: Talk
    totals: Totals
    faults: tuple[str, ...]
    """What is wrong in its requests, refusals left out."""
    error: str
    """The first error that the framework raised; empty if there was none."""


def runners() -> list[Runner]:
    """Return all ways to run an agent that are known here, of the frameworks in this environment."""
    found: list[Runner] = []
    for name in MODULES:
        with contextlib.suppress(ModuleNotFoundError):
            found += import_module(f"benchmarks.frameworks.{name}").RUNNERS
    return found


def have(runner: Runner, provider: Provider) -> Had:
    """Have the whole conversation. After an error, the user goes on with the next request.

    Raises `ImportError` if the runner needs an adapter that is not there.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = asyncio.run(_talk(runner, provider))
    mark = is_marked if runner.kind == "compactd" else _takes_all(provider.talk)
    # Some ask a local server what it is, at paths of other servers, before they send a request.
    accepted = (" refused: ", " no such path: ")
    faults = tuple(fault for fault in broken(provider, mark) if not any(kind in fault for kind in accepted))
    return Had(provider.talk, provider.totals, faults, error)


def outcome(runner: Runner, window: int = WINDOW) -> Outcome:
    """Have the conversation with a runner, and return what it came to. If it had a model write summaries, it
    is had again with a model whose summaries keep no fact."""
    with Provider(window=window, recalls=runner.recalls) as provider:
        had = have(runner, provider)
    least = had.totals.facts
    if had.totals.summaries:
        with Provider(window=window, recalls=runner.recalls, keeps=False) as provider:
            least = have(runner, provider).totals.facts
    return Outcome(
        framework=runner.framework,
        name=runner.name,
        kind=runner.kind,
        window=window,
        lots=len(had.talk.lots),
        all_turns=sum(len(lot.turns) for lot in had.talk.lots),
        all_facts=len(had.talk.facts),
        least_facts=least,
        faults=len({fault.partition(":")[0] for fault in had.faults}),
        error=had.error[:TOLD_CHARS],
        **asdict(had.totals),
    )


async def _talk(runner: Runner, provider: Provider) -> str:
    error = ""
    async with runner.start(provider) as ask:
        for request in provider.asks():
            try:
                await ask(request)
            except Exception as raised:
                error = error or f"{type(raised).__name__}: {raised}"
    return error


def _takes_all(talk: Talk) -> Callable[[str], bool]:
    """Take every text of a user message for a summary that is not the user's: other frameworks mark theirs in
    their own ways, or not at all."""
    return lambda text: not any(request in text for request in talk.requests)


def main() -> None:
    """Print the outcome of each runner whose framework and name match."""
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    for runner in runners():
        title = f"{runner.framework} {runner.name}"
        if not wanted.search(title):
            continue
        try:
            line = msgspec.json.encode(outcome(runner)).decode()
        except ImportError as missing:
            print(f"{title}: left out: {missing}", file=sys.stderr, flush=True)
        else:
            print(line, flush=True)


if __name__ == "__main__":
    main()
