"""A fake daemon that sends a thousand events per second, for ten seconds, after a prompt."""

from __future__ import annotations

import threading
import time
from itertools import count
from typing import Any

from speaking import introduce, read, write

SECONDS = 10

USAGE: dict[str, Any] = {
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "total_tokens": 0,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "reasoning_tokens": 0,
    "last_prompt_tokens": 0,
    "current_context_tokens": 1000,
    "current_context_source": "estimated",
    "context_window": 8000,
    "context_window_confidence": "fact",
    "threshold_tokens": 6400,
    "percent": 12.5,
    "epoch": 1,
}
COMPACTION = {
    "enabled": True,
    "running": True,
    "count": 0,
    "tokens_saved": 0,
    "history": [],
    "settings": {},
}
ANSWERS: dict[str, Any] = {
    "session/start": {
        "session_id": "s",
        "resumed": False,
        "read_only": False,
        "model": "m/m",
        "context_window": 8000,
        "token_usage": USAGE,
        "message_count": 1,
        "seq": 0,
        "warnings": [],
    },
    "session/list": {"sessions": []},
    "session/history": {"entries": []},
    "session/compact": None,
    "session/expand": None,
    "session/search": None,
    "session/undo": None,
    "session/redo": None,
    "session/import": None,
    "agent/state": {
        "session_id": "s",
        "status": "idle",
        "model": "m/m",
        "message_count": 1,
        "tools": [],
        "token_usage": USAGE,
        "budget": {},
        "compaction": COMPACTION,
        "queued": 0,
    },
    "agent/prompt": {"turn_id": "t", "queued": False},
}
_seq = count(1)


def event(**more: Any) -> None:
    write({"method": "agent/event", "params": {"session_id": "s", "seq": next(_seq), **more}})


def stream() -> None:
    """Most of them text, as when an answer and a compaction stream at once."""
    event(type="compaction_start", compaction_id="c", trigger="manual", message_count=9, tokens_before=1000)
    begun = time.monotonic()
    for n in range(SECONDS * 1000):
        ahead = begun + n / 1000 - time.monotonic()
        if ahead > 0.005:
            time.sleep(ahead)
        if n % 10 == 0:
            event(type="compaction_progress", compaction_id="c", phase="writing", fraction=n % 1000 / 1000)
        elif n % 10 == 5:
            usage = {**USAGE, "current_context_tokens": 1000 + n % 5000, "percent": 12.5 + n % 50}
            event(type="usage_update", usage=usage, context_window=8000)
        else:
            event(type="message_delta", delta=f"word {n} ")
    said = {"role": "assistant", "content": "the stream is over"}
    event(type="message_end", message=said, stop_reason="stop")


introduce("compactd", "9", {"protocol_version": "1.0", "methods": list(ANSWERS)})
while True:
    asked = read()
    if "id" in asked:
        write({"id": asked["id"], "result": ANSWERS.get(asked["method"])})
        if asked["method"] == "agent/prompt":
            threading.Thread(target=stream, daemon=True).start()
