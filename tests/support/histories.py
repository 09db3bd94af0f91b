"""Histories of an agent as a framework holds them: a list that grows, and that is edited and cut behind our
back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compactd.integrations.frameworks.history import History

Said = dict[str, Any]


def history(messages: Sequence[Said]) -> History:
    """Return the history of messages in the neutral form."""
    return History([repr(message) for message in messages], lambda index: dict(messages[index]))


def user(text: str) -> Said:
    return {"role": "user", "content": text}


def call(call_id: str, text: str = "") -> Said:
    """An assistant's message that calls a tool."""
    blocks = [{"type": "text", "text": text}] if text else []
    called = {
        "type": "tool_call",
        "call_id": call_id,
        "name": "read",
        "arguments": {"path": f"src/{call_id}.py"},
    }
    return {"role": "assistant", "content": [*blocks, called]}


def result(call_id: str, text: str) -> Said:
    return {
        "role": "tool",
        "content": [{"type": "tool_result", "call_id": call_id, "name": "read", "content": text}],
    }


def words(count: int, seed: str) -> str:
    """About `count` tokens of text, in lines, different for each `seed`."""
    lines = [
        f"{seed} line {number}: the value is {number * 7919 % 1000}" for number in range(count // 12 + 1)
    ]
    return "\n".join(lines)


def turns(numbers: Iterable[int], tokens: int = 300) -> list[Said]:
    """Return tool calls with their results, numbered."""
    return [
        said
        for number in numbers
        for said in (call(f"c{number}", f"step {number}"), result(f"c{number}", words(tokens, f"f{number}")))
    ]
