"""Reads real session files of Claude Code and pi into neutral messages that a test can append.

The files are not part of this project. They are in `COMPACTD_TEST_DATA`, or in `shared/data` next to the
checkout.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Message = dict[str, Any]

_BESIDE = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def data_folder() -> Path | None:
    """Return the folder of the shared data; None if it does not exist."""
    named = os.environ.get("COMPACTD_TEST_DATA")
    folder = Path(named) if named else _BESIDE
    return folder if (folder / "sessions" / "MANIFEST.json").is_file() else None


def session_files() -> dict[str, tuple[Path, str]]:
    """Return the sessions that this module can read, by name, as (file, format)."""
    folder = data_folder()
    if folder is None:
        return {}
    rows = json.loads((folder / "sessions" / "MANIFEST.json").read_text("utf-8"))
    return {
        row["name"]: (folder / "sessions" / row["file"], row["format"])
        for row in rows
        if row["format"] in _READERS
    }


def read(path: Path, format: str) -> list[Message]:
    """Return the messages of a session file, oldest first."""
    return list(_READERS[format](path))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines that are JSON. In one file, the removal of secrets cut a line in the middle."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            with contextlib.suppress(json.JSONDecodeError):
                yield json.loads(line)


# --- Claude Code ------------------------------------------------------------------------------------


def _claude_code(path: Path) -> Iterator[Message]:
    """Yield the messages of a transcript's main branch. Each block of a model's message has its own line."""
    open_message: Message | None = None
    model_id = None
    seen: set[str] = set()
    for line in _lines(path):
        is_talk = line.get("type") in ("user", "assistant") and not line.get("isSidechain")
        if not is_talk or line["uuid"] in seen:
            continue
        seen.add(line["uuid"])
        message = line["message"]
        content = message["content"]
        if line["type"] == "assistant":
            blocks = [_claude_block(block) for block in _as_blocks(content)]
            if open_message is not None and model_id == message.get("id"):
                open_message["content"] += blocks
            else:
                if open_message is not None:
                    yield open_message
                open_message = {"id": line["uuid"], "role": "assistant", "content": blocks}
                model_id = message.get("id")
            if message.get("usage"):
                open_message["usage"] = message["usage"]
            continue
        if open_message is not None:
            yield open_message
            open_message = None
        written: Message = {"id": line["uuid"], "role": "user", "content": content}
        if not isinstance(content, str):
            written["content"] = [_claude_block(block) for block in content]
        if line.get("isMeta") or line.get("isCompactSummary"):
            written["meta"] = {"synthetic": True}
        yield written
    if open_message is not None:
        yield open_message


def _as_blocks(content: str | list[Any]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _claude_block(block: dict[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "thinking":
            return {"type": "thinking", "text": block["thinking"], "signature": block["signature"]}
        case "redacted_thinking":
            return {"type": "thinking", "redacted": block["data"]}
        case "tool_use":
            return {
                "type": "tool_call",
                "call_id": block["id"],
                "name": block["name"],
                "arguments": block["input"],
            }
        case "tool_result":
            inner = block.get("content", "")
            return {
                "type": "tool_result",
                "call_id": block["tool_use_id"],
                "content": inner if isinstance(inner, str) else [_claude_block(one) for one in inner],
                "is_error": bool(block.get("is_error")),
            }
        case "image" if block["source"]["type"] == "base64":
            source = block["source"]
            return {"type": "image", "media_type": source["media_type"], "data": source["data"]}
        case _:
            return block


# --- pi ---------------------------------------------------------------------------------------------


def _pi(path: Path) -> Iterator[Message]:
    for line in _lines(path):
        if line.get("type") != "message":
            continue
        message = line["message"]
        written: Message = {"created_at": message["timestamp"] / 1000}
        match message["role"]:
            case "user":
                written |= {"role": "user", "content": message["content"]}
            case "assistant":
                written |= {
                    "role": "assistant",
                    "content": [_pi_block(block) for block in message["content"]],
                    "usage": message["usage"],
                    "stop_reason": message["stopReason"],
                }
            case "toolResult":
                block = {
                    "type": "tool_result",
                    "call_id": message["toolCallId"],
                    "name": message["toolName"],
                    "content": message["content"],
                    "is_error": message["isError"],
                }
                written |= {"role": "tool", "content": [block]}
            case "bashExecution":
                text = f"$ {message['command']}\n{message['output']}"
                written |= {"role": "user", "content": text, "meta": {"kind": "bash_execution"}}
        yield written


def _pi_block(block: dict[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "thinking":
            return {
                "type": "thinking",
                "text": block["thinking"],
                "signature": block["thinkingSignature"] or None,
            }
        case "toolCall":
            return {
                "type": "tool_call",
                "call_id": block["id"],
                "name": block["name"],
                "arguments": block["arguments"],
            }
        case _:
            return block


_READERS: dict[str, Callable[[Path], Iterator[Message]]] = {"claude-code": _claude_code, "pi": _pi}
