"""What a test looks at of a session, and the laws that every view keeps (docs/dev/behaviour.md, "Laws")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.support.client import Daemon
from tests.support.rules import (
    anthropic_messages,
    gemini_contents,
    neutral_shape,
    openai_chat,
    openai_responses,
)
from tests.support.talk import Message, encoded

FORMATS = ("neutral", "openai", "openai_responses", "anthropic", "gemini")


@dataclass(frozen=True)
class Seen:
    """A session as a client sees it: all of it, byte for byte where the bytes are the user's."""

    context: bytes
    """The answer to `session/context`, without its id."""
    history: bytes
    """The answer to `session/history`, without its id."""
    state: dict[str, Any]
    """The result of `agent/state`, without settings."""


def seen(daemon: Daemon, session: str) -> Seen:
    """The session as it is now."""
    asked = [daemon.ask(method, session_id=session) for method in ("session/context", "session/history")]
    context, history = (_without_id(daemon.answer(one).body) for one in asked)
    state = daemon.call("agent/state", session_id=session)
    return Seen(context, history, {name: state[name] for name in ("message_count", "token_usage", "budget")})


def _without_id(body: bytes) -> bytes:
    _, result, rest = body.partition(b'"result":')
    assert result, body[:500]
    return rest


def originals_in_order(history: bytes, messages: Iterable[Message]) -> int:
    """Return how many of `messages`, from the first on, are in the history byte for byte and in order."""
    at = found = 0
    for message in messages:
        written = b'"message":' + encoded(message)
        at = history.find(written, at)
        if at < 0:
            break
        at += len(written)
        found += 1
    return found


def problems_of_providers(daemon: Daemon, session: str) -> dict[str, list[str]]:
    """Check law 1: return what each provider would refuse in the next request, by format; empty if
    nothing."""
    found = {}
    for name in FORMATS:
        context = daemon.call("session/context", session_id=session, format=name)
        match name:
            case "openai":
                problems = openai_chat.problems(context["messages"], context.get("tools"))
            case "openai_responses":
                problems = openai_responses.problems(
                    context["messages"], context.get("system"), context.get("tools")
                )
            case "anthropic":
                problems = anthropic_messages.problems(
                    context["messages"], context.get("system"), context.get("tools")
                )
            case "gemini":
                problems = gemini_contents.problems(
                    context["messages"], context.get("system"), context.get("tools")
                )
            case _:
                problems = neutral_shape.problems(context["messages"])
        if problems:
            found[name] = problems
    return found


def newest_request(messages: Iterable[Message]) -> Message | None:
    """Law 6: the last user message with text that is no tool result and not synthetic."""
    newest = None
    for message in messages:
        if message["role"] != "user" or (message.get("meta") or {}).get("synthetic"):
            continue
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if any(block["type"] == "text" and block["text"].strip() for block in blocks):
            newest = message
    return newest
