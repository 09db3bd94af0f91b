"""Tool outputs that can be reduced, and calls to a daemon about them."""

from __future__ import annotations

from typing import Any

from tests.support.client import Daemon

Json = dict[str, Any]


def log(lines: int = 200, word: str = "worker") -> str:
    """Return an output of which much can be left out. Each line has a number of its own."""
    return "\n".join(f"2026-11-02 10:00:{at % 60:02} INFO {word} {at} is ready" for at in range(lines))


def calling(call_id: str, command: str = "make serve") -> Json:
    """Return an assistant message with one call of a shell."""
    block = {"type": "tool_call", "call_id": call_id, "name": "bash", "arguments": {"command": command}}
    return {"role": "assistant", "content": [block]}


def answering(call_id: str, content: Any, **more: Any) -> Json:
    """Return a tool message with the result of a call."""
    return {
        "role": "tool",
        "content": [{"type": "tool_result", "call_id": call_id, "content": content}],
        **more,
    }


def reduce(daemon: Daemon, session: str, content: str, **more: Any) -> Json:
    """Return the result of `session/reduce` for an output of a shell."""
    given = {"name": "bash", "arguments": {"command": "make serve"}, **more}
    result: Json = daemon.call("session/reduce", session_id=session, content=content, **given)
    return result


def original(daemon: Daemon, session: str, entry_id: str) -> str:
    """Return the text of the original of a reduced output."""
    (entry,) = daemon.call("session/expand", session_id=session, entry_id=entry_id)["entries"]
    (block,) = entry["message"]["content"]
    return str(block["content"])


def shown(message: Json) -> str:
    """Return the text of a message's only tool result."""
    (block,) = message["content"]
    return str(block["content"])


def hits(daemon: Daemon, session: str, query: str) -> list[str]:
    """Return the entries that contain a text, newest first."""
    found = daemon.call("session/search", session_id=session, query=query)["hits"]
    return [hit["entry_id"] for hit in found]
