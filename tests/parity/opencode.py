"""Helpers for the tests of docs/specs-evmts-opencode.md, "opencode.md"."""

from __future__ import annotations

from typing import Any

from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback
from tests.support.own_loop import Talk
from tests.support.talk import Message, assistant, call, result, turns, user
from tests.support.wire import MODEL, append, started

GO_ON = "Continue if you have next steps"
MARK = "[pruned: "

SUMMARY = "We made the parser faster in src/scan.py. Next we run the benchmark; the grammar must not change."
"""A summary as a model writes it that is asked for a prompt to continue with."""

DUE = {"model_auto_compact_token_limit": 3999}
"""Settings under which 4000 tokens are due."""


def filled(daemon: Daemon, *messages: Message, window: int | None = 100_000, **settings: Any) -> str:
    """Start a session under `opencode` with these messages, or with 20 of 200 tokens each."""
    session = started(daemon, "opencode", window, settings=settings)
    append(daemon, session, *(messages or turns(10, 200)))
    return session


def usage(input: int, output: int, *, reasoning: int = 0, read: int = 0, write: int = 0) -> dict[str, Any]:
    """The spec's `TokenCounts`."""
    return {
        "input": input,
        "output": output,
        "reasoning": reasoning,
        "cache": {"read": read, "write": write},
    }


def finished(daemon: Daemon, counts: dict[str, Any], model: str = MODEL) -> dict[str, Any]:
    """The decision after an answer with this report, in a new session of this model."""
    session = started(daemon, "opencode", model=model, persist=False)
    return dict(append(daemon, session, user(5), assistant(5), usage=counts)["decision"])


TWO_TURNS = turns(2, 5)
"""The active conversation."""


def outputs(*sizes: int, first: int = 0, tool: str = "read") -> list[Message]:
    """A turn with a call and its result of so many tokens, oldest first, for each."""
    return [
        message
        for n, size in enumerate(sizes, first)
        for message in (user(5), call(f"c{n}", tool, path=f"{n}.py"), result(f"c{n}", size, seed=n))
    ]


def with_output(daemon: Daemon, *messages: Message, **settings: Any) -> str:
    """A session with room for all of it."""
    return filled(daemon, *messages, *TWO_TURNS, window=400_000, **settings)


def pruned(daemon: Daemon, session: str) -> list[str]:
    """The entries that `turn/begin` pruned."""
    begun = daemon.call("turn/begin", session_id=session)
    entries = daemon.call("session/history", session_id=session)["entries"]
    ids = [entry["entry_id"] for entry in entries if "pruned_at" in entry]
    assert begun["compaction"] is None
    assert bool(begun["pruned"]) is bool(ids)
    return ids


def by_a_model(daemon: Daemon, server: Loopback, *messages: Message, **settings: Any) -> str:
    """A session whose summaries a model writes."""
    server.play(Answer(text=SUMMARY, input_tokens=9000, output_tokens=200))
    return filled(daemon, *messages, model=MODEL, **settings)


def talk(daemon: Daemon, **settings: Any) -> Talk:
    """A session whose loop the daemon runs, with 20 messages of 200 tokens in it."""
    session = started(daemon, "opencode", 100_000, settings=settings, model=MODEL)
    append(daemon, session, *turns(10, 200))
    return Talk(daemon, session)
