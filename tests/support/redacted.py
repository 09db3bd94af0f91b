"""Sessions that contain a secret, and a search for it in all places where it could be left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.client import Daemon
from tests.support.talk import CHARS4, Message

MARK = "[redacted]"
SECRET = "sk-live-Zq8vXw3Trn0"
PASTED = {"role": "user", "content": f"Always log in with {SECRET} as `root`, pin 1234 5678."}


def started(daemon: Daemon, messages: list[Message], **params: Any) -> str:
    given = {"compaction": {"context_window": 100_000, **CHARS4}, **params}
    session = str(daemon.call("session/start", **given)["session_id"])
    daemon.call("session/append", session_id=session, messages=messages)
    return session


def on_disk(home: Path, text: str) -> list[str]:
    """Names of the files of the data folder that hold these bytes."""
    files = [path for path in home.rglob("*") if path.is_file()]
    assert files
    return [path.name for path in files if text.encode() in _bytes_of(path)]


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # a file beside, renamed in between
        return b""


def everything(daemon: Daemon, session: str) -> str:
    """Return what every reading method says about a session, as one text."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("session/context", {}),
        ("session/context", {"format": "openai"}),
        ("session/context", {"format": "anthropic"}),
        ("session/context", {"format": "gemini"}),
        ("session/history", {}),
        ("session/search", {"query": "a"}),
        ("session/export", {"format": "compactd"}),
        ("session/export", {"format": "neutral"}),
        ("agent/state", {}),
        ("session/configure", {}),
    ]
    answers = [daemon.call(method, session_id=session, **params) for method, params in asked]
    return json.dumps([*answers, daemon.call("session/list")], ensure_ascii=False)


def journal_lines(daemon: Daemon, session: str) -> list[str]:
    exported = daemon.call("session/export", session_id=session, format="compactd")
    return str(exported["content"]).splitlines()
