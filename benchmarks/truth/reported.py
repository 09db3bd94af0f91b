"""Recorded sessions for the score of the size prediction: messages, and the usage reports between them.

Claude Code's files split one answer into several records, with tool results between them and the same report
on each. Here each answer is one message with its last report, as the program sends it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd.core.tokens.usage import context_size, normalise
from compactd.formats.agents import claude_code, pi
from compactd.formats.files.session_file import SessionFile, unix_seconds
from compactd.formats.messages.base import read_messages
from compactd.protocol.messages import Message, Usage

ASIDE_PERCENT = 40
"""The percentage of sessions that are held out, chosen by the hash of their name before any tuning."""

LEAST_REPORTS = 3

_CLINE_FIELDS = ("type", "text", "id", "name", "input", "tool_use_id", "content", "thinking", "signature")


class Step(Struct, frozen=True, kw_only=True):
    """A message, with the report of the request that it answers."""

    message: Message
    usage: Usage | None = None
    named_output: bool = False
    model: str | None = None


class Recorded(Struct, frozen=True, kw_only=True):
    """One session, oldest message first."""

    name: str
    steps: tuple[Step, ...]
    is_aside: bool


def is_aside(name: str) -> bool:
    """Return whether the session of this name is held out."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % 100 < ASIDE_PERCENT


def recorded(folder: Path) -> list[Recorded]:
    """The sessions of `folder`'s MANIFEST.json that hold at least `LEAST_REPORTS` reports."""
    found = []
    for row in json.loads((folder / "MANIFEST.json").read_text("utf-8")):
        path = folder / row["file"]
        match row["format"]:
            # The manifest has one file of Claude Code's under the name of the agent it was about.
            case "claude-code" | "gemini-cli":
                steps = _merged(_read(claude_code.read, path, _by_uuid(path, "model")), _by_uuid(path, "id"))
            case "pi":
                steps = _read(pi.read, path, _pi_models(path))
            case "cline":
                steps = _cline(path)
            case _:
                continue
        if sum(step.usage is not None for step in steps) >= LEAST_REPORTS:
            found.append(Recorded(name=row["name"], steps=tuple(steps), is_aside=is_aside(row["name"])))
    return found


def _read(read: Callable[[bytes], SessionFile], path: Path, models: dict[str, str]) -> list[Step]:
    steps = []
    for message, _ in read(path.read_bytes()).messages:
        usage, named = (None, False) if message.usage is None else normalise(message.usage)
        model = models.get(message.id or "") or models.get(str(message.created_at))
        steps.append(_step(message, usage, named, model))
    return steps


def _step(message: Message, usage: Usage | None, named: bool, model: str | None) -> Step:
    if usage is None or context_size(usage) == 0:
        return Step(message=message)
    return Step(message=message, usage=usage, named_output=named, model=model)


def _records(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in path.read_bytes().split(b"\n"):
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _by_uuid(path: Path, field: str) -> dict[str, str]:
    """Record id → a field of the answer that it is a part of."""
    return {
        record["uuid"]: record["message"][field]
        for record in _records(path)
        if record.get("type") == "assistant" and record.get("message", {}).get(field)
    }


def _merged(steps: list[Step], answers: dict[str, str]) -> list[Step]:
    merged: list[Step] = []
    places: dict[str, int] = {}
    for step in steps:
        answer = answers.get(step.message.id or "") if step.message.role == "assistant" else None
        if answer is None or answer not in places:
            if answer is not None:
                places[answer] = len(merged)
            merged.append(step)
            continue
        first = merged[places[answer]]
        message = replace(first.message, content=(*first.message.content, *step.message.content))
        merged[places[answer]] = replace(first if step.usage is None else step, message=message)
    return merged


def _pi_models(path: Path) -> dict[str, str]:
    return {
        record.get("id") or str(unix_seconds(record.get("timestamp"))): record["message"]["model"]
        for record in _records(path)
        if record.get("type") == "message" and "model" in record["message"]
    }


def _cline(path: Path) -> list[Step]:
    """Messages in Anthropic's shape, files beside texts, and `metrics`, whose input includes the cache."""
    steps = []
    for record in json.loads(path.read_text("utf-8"))["messages"]:
        blocks = []
        for block in record["content"]:
            if block["type"] == "file":
                block = {"type": "text", "text": f"{block['path']}\n{block['content']}"}
            block = {name: value for name, value in block.items() if name in _CLINE_FIELDS}
            if block["type"] == "tool_result" and not isinstance(block.get("content"), str):
                block["content"] = json.dumps(block.get("content"))
            blocks.append(block)
        raw = Raw(json.dumps({"role": record["role"], "content": blocks}).encode())
        metrics, usage = record.get("metrics"), None
        if metrics is not None:
            usage = Usage(input_tokens=metrics["inputTokens"], output_tokens=metrics["outputTokens"])
        model = record.get("modelInfo", {}).get("id")
        steps += [_step(message, usage, True, model) for message, _ in read_messages([raw], "anthropic")]
    return steps
