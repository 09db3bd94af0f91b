"""Writes sessions of coding agents into a home folder, in the places where the agents keep them."""

from __future__ import annotations

import json
import os
import re
import time
from hashlib import sha256
from pathlib import Path

from tests.support.session_files import MODEL, Json, write_lines

HOMES = ("claude-code", "codex", "gemini-cli", "pi", "opencode", "cline", "cline-extension")
"""The kinds of places: one per agent, and two for Cline."""

AT = "2026-01-02T03:04:05Z"
EXTENSION = ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks"


def agent_of(kind: str) -> str:
    return "cline" if kind == "cline-extension" else kind


def write_session(
    home: Path, kind: str, folder: Path, name: str = "a", prompt: str = "Fix the ledger.", age_s: float = 0
) -> Path:
    """Write a session of one turn for work in `folder`, last changed `age_s` seconds ago. Return its file."""
    file = _WRITERS[kind](home, str(folder), name, prompt)
    set_age(file, age_s)
    return file


def set_age(file: Path, age_s: float) -> None:
    at = time.time() - age_s
    os.utime(file, (at, at))
    messages = file.parents[2] / "message" / file.stem
    if messages.is_dir():
        os.utime(messages, (at, at))


def _claude_code(home: Path, folder: str, name: str, prompt: str) -> Path:
    project = home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", folder)
    about = {"sessionId": name, "cwd": folder, "timestamp": AT, "isSidechain": False, "parentUuid": None}
    answer = {"id": "m1", "role": "assistant", "model": MODEL, "content": [_text("Done.")]}
    records: list[Json] = [
        {**about, "type": "user", "uuid": "u1", "message": {"role": "user", "content": prompt}},
        {**about, "type": "assistant", "uuid": "u2", "parentUuid": "u1", "message": answer},
    ]
    return write_lines(_made(project / f"{name}.jsonl"), records)


def _codex(home: Path, folder: str, name: str, prompt: str) -> Path:
    file = home / ".codex" / "sessions" / "2026" / "01" / "02" / f"rollout-2026-01-02T03-04-05-{name}.jsonl"
    rows: list[tuple[str, Json]] = [
        ("session_meta", {"id": name, "cwd": folder, "model_provider": "openai"}),
        ("turn_context", {"cwd": folder, "model": "gpt-5"}),
        ("response_item", _codex_message("user", "input_text", prompt)),
        ("response_item", _codex_message("assistant", "output_text", "Done.")),
    ]
    return write_lines(_made(file), ({"timestamp": AT, "type": t, "payload": p} for t, p in rows))


def _codex_message(role: str, kind: str, words: str) -> Json:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}


def _gemini(home: Path, folder: str, name: str, prompt: str) -> Path:
    project = home / ".gemini" / "tmp" / sha256(folder.encode()).hexdigest()
    answer = {"model": "gemini-2.5-pro", "content": "Done."}
    records: list[Json] = [
        {"sessionId": name, "projectHash": "abc", "startTime": AT},
        {"id": "1", "timestamp": AT, "type": "user", "content": prompt},
        {"id": "2", "timestamp": AT, "type": "gemini", **answer},
    ]
    return write_lines(_made(project / "chats" / f"session-{name}.jsonl"), records)


def _pi(home: Path, folder: str, name: str, prompt: str) -> Path:
    project = home / ".pi" / "agent" / "sessions" / f"--{folder[1:].replace('/', '-')}--"
    header = {"type": "session", "id": name, "timestamp": AT, "cwd": folder, "modelId": MODEL}
    said = {"role": "assistant", "content": [_text("Done.")], "stopReason": "stop"}
    messages: list[Json] = [{"role": "user", "content": prompt}, said]
    lines = [header, *({"type": "message", "timestamp": AT, "message": one} for one in messages)]
    return write_lines(_made(project / f"{name}.jsonl"), lines)


def _opencode(home: Path, folder: str, name: str, prompt: str) -> Path:
    storage = home / ".local" / "share" / "opencode" / "storage"
    file = storage / "session" / "project1" / f"{name}.json"
    times = {"created": 1_767_323_045_000, "updated": 1_767_323_045_000}
    about = {"id": name, "projectID": "project1", "directory": folder, "title": prompt, "time": times}
    _json(file, about)
    for number, (role, words) in enumerate((("user", prompt), ("assistant", "Done.")), start=1):
        id = f"msg_{name}_{number}"
        info = {"id": id, "sessionID": name, "role": role, "time": times, "modelID": MODEL}
        _json(storage / "message" / name / f"{id}.json", info)
        _json(storage / "part" / id / "prt_1.json", {"id": "prt_1", "type": "text", "text": words})
    return file


def _cline(home: Path, folder: str, name: str, prompt: str) -> Path:
    session = home / ".cline" / "data" / "sessions" / name
    _json(session / f"{name}.json", {"version": 1, "session_id": name, "cwd": folder, "prompt": prompt})
    said = {"id": MODEL, "provider": "anthropic"}
    messages: list[Json] = [
        {"id": "1", "role": "user", "content": [_text(prompt)], "ts": 1},
        {"id": "2", "role": "assistant", "content": [_text("Done.")], "ts": 2, "modelInfo": said},
    ]
    return _json(session / f"{name}.messages.json", {"version": 1, "sessionId": name, "messages": messages})


def _cline_extension(home: Path, folder: str, name: str, prompt: str) -> Path:
    environment = f"<environment_details>\n# Current Working Directory ({folder}) Files\nledger.py\n"
    typed = [_text(f"<task>\n{prompt}\n</task>"), _text(f"{environment}</environment_details>")]
    messages = [{"role": "user", "content": typed}, {"role": "assistant", "content": [_text("Done.")]}]
    return _json(home / EXTENSION / name / "api_conversation_history.json", messages)


_WRITERS = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini,
    "pi": _pi,
    "opencode": _opencode,
    "cline": _cline,
    "cline-extension": _cline_extension,
}


def _text(words: str) -> Json:
    return {"type": "text", "text": words}


def _made(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _json(file: Path, value: object) -> Path:
    _made(file).write_text(json.dumps(value, indent=2))
    return file
