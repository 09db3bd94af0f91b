"""Sessions that are moved from one daemon to another, and how to compare them."""

from __future__ import annotations

from typing import Any

from tests.support.client import Daemon
from tests.support.talk import CHARS4, assistant, call, result, turns, user

FORMATS = ("neutral", "openai", "openai_responses", "anthropic", "gemini")
READABLE = ("neutral", "openai", "anthropic", "gemini")
TOOLS = [{"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}]


def seen(daemon: Daemon, session: str) -> dict[str, Any]:
    """Return what a client sees of a session, except its id, its event numbers and the sources of its
    settings."""
    state = daemon.call("agent/state", session_id=session)
    return {
        "contexts": [daemon.call("session/context", session_id=session, format=name) for name in FORMATS],
        "history": daemon.call("session/history", session_id=session),
        "compactions": state["compaction"]["history"],
        "usage": state["token_usage"],
        "model": state["model"],
        "pinned": daemon.call("session/pin", session_id=session, entry_ids=[])["pinned_entry_ids"],
    }


def export(daemon: Daemon, session: str, format: str = "compactd") -> str:
    return str(daemon.call("session/export", session_id=session, format=format)["content"])


SETTINGS = {"context_window": 100_000, "prune_minimum": 10, "prune_protect": 10, **CHARS4}
"""The settings of the session `rich`. An exported file carries only sizes, within bounds: the importing
client must give the other settings again."""

PROMPT_IS_TOLD = "the file contains a system prompt of 9 characters"


def again(daemon: Daemon, answer: dict[str, Any]) -> str:
    """Return the id of the imported session, after giving it the settings that a file may not bring."""
    daemon.call("session/start", session_id=answer["session_id"], compaction=SETTINGS)
    return str(answer["session_id"])


def rich(daemon: Daemon, **more: Any) -> str:
    """Start a session with all kinds of entries. Return its id."""
    params = {
        "model": "anthropic/claude-sonnet-4-5",
        "system_prompt": "You help.",
        "tools": TOOLS,
        "title": "A title",
        "compaction": SETTINGS,
        **more,
    }
    session = str(daemon.call("session/start", **params)["session_id"])
    odd = {"role": "user", "content": "Ünï \u2028 \U0001f600\nlines", "id": "m1", "meta": {"mine": [1.50]}}
    work = [
        call("t1", "read", path="a.py"),
        result("t1", 900),
        call("t1", "read", path="b.py"),
        result("t1", 90),
    ]
    usage = {"input_tokens": 1500, "output_tokens": 20}
    daemon.call("session/append", session_id=session, messages=[odd, *work, *turns(6, 200)])
    daemon.call("session/pin", session_id=session, entry_ids=["e6"])
    daemon.call("session/compact", session_id=session, keep_recent=900)
    daemon.call("turn/end", session_id=session, messages=[assistant(20)], usage=usage)
    daemon.call("session/compact", session_id=session, keep_recent=300)
    daemon.call("session/undo", session_id=session)
    daemon.call("session/branch", session_id=session, entry_id="e16")
    daemon.call("session/append", session_id=session, messages=[user(30), assistant(10, "t9")])
    return session
