"""A request as the loopback provider received it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.loopback.writing import Json

Wire = Literal["openai", "openai_responses", "anthropic", "gemini", "ollama"]


@dataclass
class Seen:
    """One request as it arrived."""

    wire: str
    """The wire format; empty for a path that no provider has."""
    path: str
    headers: dict[str, str]
    """The headers, with lower-case names."""
    body: Json
    raw: bytes
    tokens: int
    """The size as the server counts: a quarter of the characters of system, tools and messages, rounded
    up."""
    connection: int
    """The how many-th connection it came on, from 1."""
    accepted: bool = True
    """Whether the size was within the window."""
    gone: threading.Event = field(default_factory=threading.Event)
    """The client closed the connection before the answer was whole."""
    over: threading.Event = field(default_factory=threading.Event)
    """The step was played to its end, or to the client's."""

    def was_left(self, timeout_s: float = 5.0) -> bool:
        """Return whether the client closes the connection within that time."""
        return self.gone.wait(timeout_s)


def wire_of(path: str) -> str:
    """Return the wire format that a path belongs to."""
    bare = path.partition("?")[0]
    for ending, wire in (
        ("/chat/completions", "openai"),
        ("/responses", "openai_responses"),
        ("/responses/compact", "openai_responses"),
        ("/v1/messages", "anthropic"),
        (":streamGenerateContent", "gemini"),
        (":generateContent", "gemini"),
        ("/api/chat", "ollama"),
    ):
        if bare.endswith(ending):
            return wire
    return ""


def count_chars(body: Json) -> int:
    """A quarter of the characters that a model would read, rounded up."""
    fields = ("system", "instructions", "systemInstruction", "messages", "input", "contents", "tools")
    return (sum(_chars(body.get(name)) for name in fields) + 3) // 4


def _chars(value: Any) -> int:
    match value:
        case str():
            return len(value)
        case list():
            return sum(map(_chars, value))
        case dict():
            # Names of fields, roles and types are the wire's, not the model's.
            return sum(_chars(inner) for name, inner in value.items() if name not in ("role", "type", "id"))
        case _:
            return 0
