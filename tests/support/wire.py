"""Shared by the tests of the specs: sessions under a profile, usage reports of a size, a model's summary."""

from __future__ import annotations

import json
from typing import Any

from tests.support.client import Daemon
from tests.support.own_loop import MODELS
from tests.support.talk import CHARS4, Message

PROFILES = ("default", "opal", "go-agent", "klaude", "evmts", "opencode")

MODEL = MODELS["anthropic"]
"""A model whose requests arrive at the fixture `server`."""

SUMMARY = """## Goal
- Make the parser faster.
## Constraints & Preferences
- Never change the grammar.
## Progress
### Done
- [x] The profile was read.
### In Progress
- [ ] The tokenizer is being rewritten.
### Blocked
(none)
## Key Decisions
- **Tables**: they are quicker than branches.
## Next Steps
1. Run the benchmark.
## Critical Context
- The slow function is `scan`.
"""
"""A summary as a model writes it with the sections that it is asked for."""

OVERFLOW = {
    "status": 400,
    "body": '{"error":{"type":"invalid_request_error","message":"prompt is too long for this model"}}',
}
"""A provider's refusal that names no figures."""


def started(
    daemon: Daemon, profile: str, window: int | None = None, *, settings: Any = None, **params: object
) -> str:
    """A new session under a profile and a window, counted by characters; its id."""
    compaction: dict[str, object] = {"profile": profile, **CHARS4, **(settings or {})}
    if window is not None:
        compaction["context_window"] = window
    return str(daemon.call("session/start", compaction=compaction, **params)["session_id"])


def append(daemon: Daemon, session: str, *messages: Message, **more: object) -> dict[str, Any]:
    """The answer to an append of these messages."""
    return dict(daemon.call("session/append", session_id=session, messages=messages, **more))


def compact(daemon: Daemon, session: str, **params: object) -> dict[str, Any]:
    """The result of `session/compact`."""
    return dict(daemon.call("session/compact", session_id=session, **params))


def begin(daemon: Daemon, session: str) -> dict[str, Any] | None:
    """Call `turn/begin`. Return its compaction; None if none was due."""
    done = daemon.call("turn/begin", session_id=session)["compaction"]
    return None if done is None else dict(done)


def view(daemon: Daemon, session: str) -> list[Message]:
    """The messages that the next model request must contain."""
    return list(daemon.call("session/context", session_id=session)["messages"])


def state(daemon: Daemon, session: str) -> dict[str, Any]:
    """The answer of `agent/state`."""
    return dict(daemon.call("agent/state", session_id=session))


def report(prompt: int, completion: int = 0) -> dict[str, int]:
    """A usage object as OpenAI's chat API sends it."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def journal(daemon: Daemon, session: str) -> list[dict[str, Any]]:
    """The records of a session's file, oldest first."""
    path = next(daemon.home.rglob(f"{session}-*.jsonl"))
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
