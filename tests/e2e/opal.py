"""What the tests of Opal's numbers share. Profile `opal` is the spec; `default` has the same numbers."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.client import Daemon
from e2e.talk import CHARS4, Message

BOTH = pytest.mark.parametrize("profile", ["opal", "default"])


def started(daemon: Daemon, profile: str = "opal", window: int | None = 1000, **params: object) -> str:
    """A new session under a profile and a window, counted by characters; its id."""
    compaction: dict[str, object] = {"profile": profile, **CHARS4}
    if window is not None:
        compaction["context_window"] = window
    return str(daemon.call("session/start", compaction=compaction, **params)["session_id"])


def append(daemon: Daemon, session: str, *messages: Message, **more: object) -> dict[str, Any]:
    """The answer to an append of these messages."""
    return dict(daemon.call("session/append", session_id=session, messages=messages, **more))


def report(prompt: int, completion: int) -> dict[str, int]:
    """A usage object as OpenAI's chat API sends it."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
