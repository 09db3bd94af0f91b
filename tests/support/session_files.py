"""Writes small session files in the formats of several programs, all with the same made-up conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

MODEL = "claude-opus-4-5"
FILLER = "the ledger was balanced and every column added up again before noon; "

Json = Mapping[str, object]


def filler(words: int) -> str:
    """Return about `words` words of text without facts."""
    return FILLER * (words // 12 + 1)


def turn(number: int, words: int = 60) -> list[Json]:
    """Return one turn in OpenAI's shape: a request, a `read` call, its result, an answer."""
    call_id = f"call-{number}"
    path = f"ledger/part{number % 4}.py"
    call = {
        "id": call_id,
        "type": "function",
        "function": {"name": "read", "arguments": json.dumps({"path": path})},
    }
    return [
        {"role": "user", "content": f"Step {number}: check {path}, never touch bank.toml. {filler(words)}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": call_id,
            "content": f"TOTAL_{number} = {number}\n{filler(2 * words)}",
        },
        {"role": "assistant", "content": f"TOTAL_{number} is right in {path}. {filler(words)}"},
    ]


def turns(count: int, words: int = 60) -> list[Json]:
    return [message for number in range(1, count + 1) for message in turn(number, words)]


def write_lines(path: Path, records: Iterable[Json]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def openai(path: Path, count: int, words: int = 60, system: str | None = "Be exact.") -> Path:
    """Write a JSON array of OpenAI messages over many lines, the system prompt first."""
    first = [{"role": "system", "content": system}] if system else []
    path.write_text(json.dumps([*first, *turns(count, words)], indent=1))
    return path


def anthropic(path: Path, count: int, words: int = 60) -> Path:
    """Write a JSON object with `messages` in Anthropic's shape."""
    messages: list[Json] = []
    for number in range(1, count + 1):
        ask, _, result, answer = turn(number, words)
        use = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"path": "ledger/a.py"}}
        got = {"type": "tool_result", "tool_use_id": f"t{number}", "content": result["content"]}
        messages += [
            {"role": "user", "content": ask["content"]},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [got]},
            {"role": "assistant", "content": [{"type": "text", "text": answer["content"]}]},
        ]
    path.write_text(json.dumps({"model": MODEL, "system": "Be exact.", "messages": messages}))
    return path


def neutral(path: Path, count: int, words: int = 60) -> Path:
    """Write messages in compactd's neutral shape, one per line."""
    messages: list[Json] = []
    for number in range(1, count + 1):
        ask, _, result, answer = turn(number, words)
        asked = {"type": "tool_call", "call_id": f"t{number}", "name": "read", "arguments": {"path": "a.py"}}
        got = {"type": "tool_result", "call_id": f"t{number}", "content": result["content"]}
        messages += [
            {"role": "user", "content": ask["content"]},
            {"role": "assistant", "content": [asked]},
            {"role": "tool", "content": [got]},
            {"role": "assistant", "content": answer["content"]},
        ]
    return write_lines(path, messages)


def claude_code(path: Path, records: Iterable[Json]) -> Path:
    """Claude Code's file of (`user` or `assistant`, message, further fields of the record)."""
    lines = [{"type": "summary", "summary": "The ledger", "leafUuid": "u1"}]
    for number, record in enumerate(records, start=1):
        kind = record["message"]["role"]
        about = {
            "type": kind,
            "uuid": f"u{number}",
            "sessionId": "5c5cb639-0000-4000-8000-000000000001",
            "cwd": "/home/someone/ledger",
            "timestamp": f"2026-01-02T03:{number % 60:02d}:00Z",
            "isSidechain": False,
        }
        lines.append({**about, **record})
    return write_lines(path, lines)


def asked(text: str, **fields: object) -> Json:
    return {"message": {"role": "user", "content": text}, **fields}


def answered(number: int, *blocks: Json, usage: Json | None = None) -> Json:
    message = {"id": f"m{number}", "role": "assistant", "model": MODEL, "content": list(blocks)}
    return {"message": message if usage is None else {**message, "usage": usage}}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def used(call_id: str, name: str, **arguments: object) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def got(call_id: str, content: str, *, is_error: bool = False) -> Json:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}
    return {"message": {"role": "user", "content": [block]}}


def reported(tokens: int, *, cached: int = 0, output: int = 10) -> Json:
    """Return the usage report of a request of `tokens`, of which `cached` were read from the cache."""
    return {
        "input_tokens": tokens - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": output,
    }


def pi(path: Path, count: int, words: int = 60) -> Path:
    """Write a session file of pi, one entry per line."""
    lines: list[Json] = [
        {
            "type": "session",
            "id": "ffae836b-0000-4000-8000-000000000002",
            "timestamp": "2026-01-02T03:04:05Z",
            "cwd": "/home/someone/ledger",
            "provider": "anthropic",
            "modelId": MODEL,
        }
    ]
    for number in range(1, count + 1):
        ask, _, result, answer = turn(number, words)
        call = {"type": "toolCall", "id": f"t{number}", "name": "read", "arguments": {"path": "a.py"}}
        gave = [{"type": "text", "text": result["content"]}]
        said = [{"type": "text", "text": answer["content"]}]
        lines += [
            _entry({"role": "user", "content": ask["content"]}),
            _entry({"role": "assistant", "content": [call], "stopReason": "toolUse"}),
            _entry({"role": "toolResult", "toolCallId": f"t{number}", "toolName": "read", "content": gave}),
            _entry({"role": "assistant", "content": said, "stopReason": "stop"}),
        ]
    return write_lines(path, lines)


def _entry(message: Json) -> Json:
    return {"type": "message", "timestamp": "2026-01-02T03:04:05Z", "message": message}
