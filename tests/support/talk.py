"""Messages of a known size: four characters are one token, as the estimator `chars4` counts."""

from __future__ import annotations

import json
from typing import Any

Message = dict[str, Any]

CHARS4 = {"estimator": "chars4"}
"""Settings under which sizes are what these functions say."""

CALL_TOKENS = 2
"""The tokens of a call `run {}`, which has five characters."""

_WORDS = "so we went on and looked at it once more until all was well "


def text(tokens: int, seed: int = 0) -> str:
    """Text of exactly so many tokens, without a fact in it."""
    start = seed * 7 % len(_WORDS)
    return (_WORDS * (tokens * 4 // len(_WORDS) + 2))[start : start + tokens * 4 - 1] + "." if tokens else ""


def user(tokens: int, seed: int = 0, **more: Any) -> Message:
    """A person's message."""
    return {"role": "user", "content": text(tokens, seed), **more}


def assistant(tokens: int, *calls: str, seed: int = 0, **more: Any) -> Message:
    """A model's message, with a call `run {}` for each id."""
    said = text(tokens - CALL_TOKENS * len(calls), seed)
    blocks: list[Message] = [{"type": "text", "text": said}] if said else []
    blocks += [{"type": "tool_call", "call_id": call, "name": "run", "arguments": {}} for call in calls]
    return {"role": "assistant", "content": blocks, **more}


def call(call_id: str, name: str, **arguments: Any) -> Message:
    """A model's message that is one call."""
    block = {"type": "tool_call", "call_id": call_id, "name": name, "arguments": arguments}
    return {"role": "assistant", "content": [block]}


def result(call_id: str, tokens: int, seed: int = 0, **more: Any) -> Message:
    """Return a message with a tool's result."""
    block = {"type": "tool_result", "call_id": call_id, "content": text(tokens, seed), **more}
    return {"role": "tool", "content": [block]}


def turns(count: int, tokens: int) -> list[Message]:
    """Return `count` pairs of a user's and an assistant's message, each of `tokens` tokens."""
    return [
        message
        for number in range(count)
        for message in (user(tokens, seed=2 * number), assistant(tokens, seed=2 * number + 1))
    ]


def chars4(value: str) -> int:
    """Return the tokens of a text: code points ÷ 4, rounded up."""
    return (len(value) + 3) // 4


def said(message: Message) -> str:
    """The text of a message, whatever its shape."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def encoded(message: Message) -> bytes:
    """The bytes that `Daemon.ask` sends for a message."""
    return json.dumps(message, ensure_ascii=False).encode()
