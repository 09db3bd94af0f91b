"""Reads session files of other agents as records, which the retention metric is computed from.

The engine's own readers (`compactd.formats`) repair messages, follow branches and keep more. These readers
take each message unchanged and nothing else, so that figures stay comparable message by message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from benchmarks.retention.records import META, SUMMARY, Call, Json, Record

Object = dict[str, Json]

_BY_PROGRAM = ("<command-", "<local-command", "Caveat: The messages below")
_FENCED = re.compile(r"```\w+\n(.*?)```", re.DOTALL)


def read(file: Path, format: str) -> tuple[Record, ...]:
    """The messages of a file, oldest first; one without anything in it is none.

    Raises `KeyError` for a format that is not among `FORMATS`.
    """
    found = (
        record
        for record in FORMATS[format](file)
        if record.text or record.calls or record.role == "tool" or record.kind == _THOUGHT
    )
    return tuple(
        replace(record, at=at, kind="" if record.kind == _THOUGHT else record.kind)
        for at, record in enumerate(found)
    )


_THOUGHT = "thought"
"""An answer of which only the thinking was recorded: it has its place, and no text."""


def _record(role: str, text: str, **fields: object) -> Record:
    return Record(at=0, role=role, text=text, **fields)


def time_of(given: Json) -> float | None:
    """Return a recorded time in seconds since 1970; None if there is none."""
    if not isinstance(given, str) or not given:
        return None
    try:
        return datetime.fromisoformat(given.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def _json_lines(file: Path) -> Iterator[Object]:
    for line in file.read_text("utf-8", errors="replace").split("\n"):
        try:
            found = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(found, dict):
            yield found


def _text(content: Json) -> str:
    """The text of content blocks, one a line."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = []
    for block in [content] if isinstance(content, dict) else content:
        if isinstance(block, str):
            parts.append(block)
            continue
        match block.get("type"):
            case "text" | "input_text" | "output_text":
                parts.append(block.get("text") or "")
            case "image" | "input_image":
                parts.append("[image]")
            case "file":
                parts.append(f"<file path={block.get('path')}>\n{block.get('content', '')}\n</file>")
            case "tool_result":
                parts.append(_text(block.get("content")))
            case _ if isinstance(block.get("text"), str):
                parts.append(block["text"])
    return "\n".join(parts)


def _arguments(given: Json) -> Object:
    if given is None or isinstance(given, dict):
        return given or {}
    try:
        found = json.loads(given)
    except (TypeError, ValueError):
        return {"raw": given}
    return found if isinstance(found, dict) else {"value": found}


def _call(id: str, name: str, arguments: Json) -> Call:
    return Call(id, name, _arguments(arguments))


def _claude_code(file: Path) -> Iterator[Record]:
    tools: dict[str, str] = {}
    seen: set[Json] = set()
    said: Record | None = None
    answer: Json = None
    for line in _json_lines(file):
        if line.get("isSidechain") or line.get("type") not in ("user", "assistant"):
            continue
        if line.get("uuid") in seen:
            continue
        seen.add(line.get("uuid"))
        message = line.get("message") or {}
        content = message.get("content")
        if line["type"] == "assistant":
            if message.get("model") == "<synthetic>":
                continue
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
            part = replace(_claude_answer(blocks), time=time_of(line.get("timestamp")))
            tools.update((call.call_id, call.name) for call in part.calls)
            if said is not None and answer == message.get("id"):
                said = _joined(said, part, blocks)
            else:
                if said is not None:
                    yield said
                said, answer = part, message.get("id")
            continue
        time = time_of(line.get("timestamp"))
        for record in _claude_user(line, content, tools):
            if said is not None:
                yield said
                said = None
            yield replace(record, time=time)
    if said is not None:
        yield said


def _claude_answer(blocks: list[Object]) -> Record:
    texts = [block.get("text", "") for block in blocks if block.get("type") == "text"]
    calls = tuple(
        Call(block["id"], block["name"], block.get("input") or {})
        for block in blocks
        if block.get("type") == "tool_use"
    )
    thought = any(block.get("type") == "thinking" and block.get("thinking") for block in blocks)
    text = ""
    for part in texts:
        text = f"{text}\n{part}" if text else part
    return _record("assistant", text, calls=calls, kind=_THOUGHT if thought else "")


def _joined(said: Record, part: Record, blocks: list[Object]) -> Record:
    """An answer of which a further line holds more blocks."""
    has_text = any(block.get("type") == "text" for block in blocks)
    text = f"{said.text}\n{part.text}" if said.text and has_text else said.text + part.text
    return replace(said, text=text, calls=said.calls + part.calls, kind=said.kind or part.kind)


def _claude_user(line: Object, content: Json, tools: dict[str, str]) -> Iterator[Record]:
    if isinstance(content, list):
        texts = []
        for block in content:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                id = block.get("tool_use_id") or ""
                yield _record(
                    "tool",
                    _text(block.get("content")),
                    call_id=id,
                    tool=tools.get(id, ""),
                    is_error=bool(block.get("is_error")),
                )
            else:
                texts.append(_text([block]))
        content = "\n".join(text for text in texts if text)
    if content:
        is_meta = line.get("isMeta") or content.startswith(_BY_PROGRAM)
        kind = SUMMARY if line.get("isCompactSummary") else META if is_meta else ""
        yield _record("user", content, kind=kind)


def _pi(file: Path) -> Iterator[Record]:
    for line in _json_lines(file):
        for record in _pi_line(line):
            yield replace(record, time=time_of(line.get("timestamp")))


def _pi_line(line: Object) -> Iterator[Record]:
    if line.get("type") == "compaction":
        yield _record("user", line.get("summary", ""), kind=SUMMARY)
    if line.get("type") != "message":
        return
    message = line["message"]
    match message["role"]:
        case "user":
            yield _record("user", _text(message["content"]))
        case "assistant":
            blocks = message["content"]
            yield _record(
                "assistant",
                "\n".join(block.get("text", "") for block in blocks if block.get("type") == "text"),
                calls=tuple(
                    _call(block["id"], block["name"], block.get("arguments"))
                    for block in blocks
                    if block.get("type") == "toolCall"
                ),
                kind=_THOUGHT if any(block.get("thinking") for block in blocks) else "",
            )
        case "toolResult":
            yield _record(
                "tool",
                _text(message["content"]),
                call_id=message.get("toolCallId") or "",
                tool=message.get("toolName") or "",
                is_error=bool(message.get("isError")),
            )
        case "bashExecution":
            yield _record("user", f"$ {message.get('command')}\n{message.get('output', '')}")


def _openai(messages: list[Object]) -> Iterator[Record]:
    tools: dict[str, str] = {}
    for message in messages:
        calls = tuple(
            _call(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        )
        tools.update((call.call_id, call.name) for call in calls)
        id = ""
        if message["role"] == "tool":
            id = message.get("tool_call_id") or (message.get("tool_call_ids") or [""])[0] or ""
        yield _record(
            message["role"], _text(message.get("content")), calls=calls, call_id=id, tool=tools.get(id, "")
        )


def _openhands(file: Path) -> Iterator[Record]:
    return _openai(json.loads(file.read_bytes())["messages"])


def _swe_agent(file: Path) -> Iterator[Record]:
    history = json.loads(file.read_bytes())["history"]
    if any(message.get("tool_calls") for message in history):
        return _openai(history)
    return _in_turns(
        history, lambda message: (message.get("thought") or message["content"], message.get("action") or "")
    )


def _mini_swe_agent(file: Path) -> Iterator[Record]:
    found = json.loads(file.read_bytes())

    def said(message: Object) -> tuple[Json, str]:
        text = _text(message["content"])
        fenced = _FENCED.search(text)
        return text, fenced[1].strip() if fenced else ""

    return _in_turns(found if isinstance(found, list) else found["messages"], said)


def _in_turns(messages: list[Object], said: Callable[[Object], tuple[Json, str]]) -> Iterator[Record]:
    """An agent whose answers each run one command, and whose next user message is its output."""
    answers = 0
    is_awaited = False
    for message in messages:
        id = f"call_{answers}"
        if message["role"] == "assistant":
            answers += 1
            text, command = said(message)
            call = Call(f"call_{answers}", "bash", {"command": command})
            yield _record("assistant", text, calls=(call,))
            is_awaited = True
        elif message["role"] == "user" and is_awaited:
            yield _record("tool", _text(message["content"]), call_id=id, tool="bash")
            is_awaited = False
        else:
            yield _record(message["role"], _text(message["content"]))


def _cline(file: Path) -> Iterator[Record]:
    tools: dict[str, str] = {}
    for message in json.loads(file.read_bytes())["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "assistant":
            calls = tuple(
                _call(b["id"], b["name"], b.get("input")) for b in blocks if b["type"] == "tool_use"
            )
            tools.update((call.call_id, call.name) for call in calls)
            yield _record("assistant", _text([b for b in blocks if b["type"] == "text"]), calls=calls)
            continue
        for block in blocks:
            if block.get("type") == "tool_result":
                inner, id = block.get("content"), block.get("tool_use_id") or ""
                yield _record(
                    "tool",
                    inner if isinstance(inner, str) else _text(inner) or json.dumps(inner),
                    call_id=id,
                    tool=tools.get(id, ""),
                    is_error=bool(block.get("is_error")),
                )
        text = _text([block for block in blocks if block.get("type") != "tool_result"])
        if text:
            yield _record("user", text)


def _aider(file: Path) -> Iterator[Record]:
    role, lines = "", list[str]()
    for line in file.read_text("utf-8", errors="replace").splitlines(keepends=True):
        mine, text = "assistant", line
        if line.startswith("#### "):
            mine, text = "user", line[5:]
        elif line.startswith("> "):
            mine, text = "output", line[2:]
        if line.startswith("# aider chat started"):
            mine = META
        if mine == "output" and not text.strip():
            continue
        if not role or (mine != role and text.strip()):
            yield from _aider_message(role, "".join(lines))
            role, lines = mine, []
        lines.append(text)
    yield from _aider_message(role, "".join(lines))


def _aider_message(role: str, text: str) -> Iterator[Record]:
    if text.strip():
        is_program = role in (META, "output")
        yield _record("user" if is_program else role, text, kind=role if is_program else "")


FORMATS: dict[str, Callable[[Path], Iterator[Record]]] = {
    "claude-code": _claude_code,
    "gemini-cli": _claude_code,
    "pi": _pi,
    "swe-agent": _swe_agent,
    "cline": _cline,
    "mini-swe-agent": _mini_swe_agent,
    "openhands-log": _openhands,
    "aider-md": _aider,
}
"""The reader of each format, by its name in a manifest."""
