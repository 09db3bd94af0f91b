"""Transcripts as Claude Code, Codex and Gemini CLI write them, with a past whose facts are known.

The shapes are those of files of Claude Code 2.1, Codex 0.169 and Gemini CLI 0.61 (seen 2026-11).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LIMIT = "Never touch the public API of the parser module."
PATH = "src/ledger/rounding_rules.py"
NAME = "apply_bankers_rounding"
HASH = "deadbeef1234567"
ERROR = f"FAILED tests/test_rounding.py::test_half_even - AssertionError: {NAME} returned 3"
COMMAND = "pytest tests/test_rounding.py -k half_even --maxfail=1"
DECISION = f"We should use {NAME} instead of the built-in round because the root cause is half-up."
SUMMARY = "The user asked for a rounding fix. Work is under way."
FACTS = (LIMIT, PATH, NAME)

AGENTS = ("claude-code", "codex", "gemini-cli")


class Turn(NamedTuple):
    """A part of a conversation."""

    role: str
    """`user`, `assistant`, `call`, `result`."""
    text: str
    call_id: str = ""


def past(extra: int = 12) -> Iterator[Turn]:
    """A conversation in which each of the facts is used more than once."""
    yield Turn("user", f"Fix the rounding in {PATH}. {LIMIT}")
    yield Turn("assistant", f"I will read {PATH} first and look for {NAME}.")
    yield Turn("call", json.dumps({"file_path": PATH}), "c1")
    yield Turn("result", f"def {NAME}(amount):\n    return round(amount)  # see commit {HASH}\n", "c1")
    yield Turn("assistant", DECISION)
    yield Turn("call", json.dumps({"command": COMMAND}), "c2")
    yield Turn("result", f"{ERROR}\n1 failed in 0.12s", "c2")
    for number in range(extra):
        yield Turn("assistant", f"Step {number}: checking {NAME} in {PATH} against fixture_{number}_values.")
        yield Turn("call", json.dumps({"file_path": f"tests/fixtures/values_{number}.json"}), f"d{number}")
        yield Turn("result", f'{{"expected": {number}, "rule": "half_even"}}\n' * 3, f"d{number}")
    yield Turn("assistant", f"The tests of {NAME} still fail; commit {HASH} is where it began.")


class Session:
    """A transcript that is written as its agent would, piece by piece."""

    def __init__(self, agent: str, folder: Path, session_id: str = "5c5cb639-aaaa") -> None:
        self.agent = agent
        self.session_id = session_id
        self.lists_kept = True
        """Whether Claude Code lists each message that it kept. Versions before 2.1.205 listed only the first
        and the last."""
        self.path = folder / f"{agent}-{session_id}.jsonl"
        self.cwd = "/work-of-somebody/project"
        self._number = 0
        self._messages: list[dict] = []
        self.path.write_bytes(b"")
        if agent == "codex":
            self.add({"type": "session_meta", "payload": {"id": session_id, "cwd": self.cwd}})
        if agent == "gemini-cli":
            self.add({"sessionId": session_id, "projectHash": "p", "startTime": "2026-11-20T10:00:00Z"})
            text = "<session_context>\nNever mind: always 200 items.\n</session_context>"
            self._context = {"id": "g0", "type": "user", "content": [{"text": text}]}
            self.add({"$set": {"messages": [self._context], "lastUpdated": "2026-11-20T10:00:00Z"}})

    def event(self, name: str, **more: object) -> dict:
        """Return a hook payload as the agent sends it."""
        return {
            "session_id": self.session_id,
            "transcript_path": str(self.path),
            "cwd": self.cwd,
            "hook_event_name": name,
            **more,
        }

    def add(self, record: object) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")

    def say(self, *turns: Turn) -> Session:
        for turn in turns:
            for record in self.records(turn):
                self.add(record)
        return self

    def compact(self, summary: str = SUMMARY, kept: tuple[str, ...] = ()) -> Session:
        for record in self.compaction(summary, kept):
            self.add(record)
        return self

    def last_ids(self, count: int) -> tuple[str, ...]:
        """Return the ids of the newest messages, as Claude Code names them."""
        return tuple(f"u{number}" for number in range(self._number - count + 1, self._number + 1))

    def records(self, turn: Turn) -> list[object]:
        self._number += 1
        stamp = f"2026-11-20T10:{self._number // 60 % 60:02}:{self._number % 60:02}Z"
        if self.agent == "claude-code":
            return [self._claude(turn, stamp)]
        if self.agent == "codex":
            return [{"timestamp": stamp, "type": "response_item", "payload": _codex(turn)}]
        return [self._gemini(turn, stamp)]

    def compaction(self, summary: str, kept: tuple[str, ...] = ()) -> list[object]:
        self._number += 1
        if self.agent == "claude-code":
            told = {"type": "user", "uuid": f"u{self._number}", "isCompactSummary": True}
            boundary = {"type": "system", "subtype": "compact_boundary", "uuid": f"b{self._number}"}
            if kept:
                anchor = {"anchorUuid": f"u{self._number}"}
                listed = {"preservedMessages": {**anchor, "uuids": kept}}
                ends = {"preservedSegment": {**anchor, "headUuid": kept[0], "tailUuid": kept[-1]}}
                boundary["compactMetadata"] = {"trigger": "auto", **(listed if self.lists_kept else ends)}
            return [boundary, {**told, "message": {"role": "user", "content": summary}}]
        if self.agent == "codex":
            history = [_codex(Turn("user", text)) for text in (*kept, summary)]
            return [{"type": "compacted", "payload": {"message": summary, "replacement_history": history}}]
        text = f"<state_snapshot>{summary}</state_snapshot>"
        first = {"id": f"s{self._number}", "type": "user", "content": [{"text": text}]}
        got = {"id": f"k{self._number}", "type": "gemini", "content": [{"text": "Got it. Thanks!"}]}
        stayed = [one for one in self._messages if one["id"] in kept]
        return [{"$set": {"messages": [self._context, first, got, *stayed]}}]

    def _claude(self, turn: Turn, stamp: str) -> dict:
        head = {"uuid": f"u{self._number}", "sessionId": self.session_id, "timestamp": stamp}
        if turn.role in ("assistant", "call"):
            block: dict = {"type": "text", "text": turn.text}
            if turn.role == "call":
                name = next((tool for word, tool in _CLAUDES_TOOLS.items() if word in turn.text), "Read")
                block = {"type": "tool_use", "id": turn.call_id, "name": name, "input": json.loads(turn.text)}
            message = {"id": f"m{self._number}", "role": "assistant", "model": "claude-opus-4-5"}
            usage = {"input_tokens": 10, "cache_read_input_tokens": 1000 * self._number}
            return {**head, "type": "assistant", "message": {**message, "content": [block], "usage": usage}}
        content: object = turn.text
        if turn.role == "result":
            content = [{"type": "tool_result", "tool_use_id": turn.call_id, "content": turn.text}]
        return {**head, "type": "user", "message": {"role": "user", "content": content}}

    def _gemini(self, turn: Turn, stamp: str) -> dict:
        record: dict = {"id": f"g{self._number}", "timestamp": stamp, "type": "gemini", "content": ""}
        if turn.role == "user":
            record = {**record, "type": "user", "content": [{"text": turn.text}]}
        elif turn.role == "assistant":
            record["content"] = turn.text
        elif turn.role == "call":
            name = "run_shell_command" if "command" in turn.text else "read_file"
            record["toolCalls"] = [{"id": turn.call_id, "name": name, "args": json.loads(turn.text)}]
        else:
            answer = {"id": turn.call_id, "name": "read_file", "response": {"output": turn.text}}
            record = {**record, "type": "user", "content": [{"functionResponse": answer}]}
        self._messages.append(record)
        return record


def _codex(turn: Turn) -> dict:
    match turn.role:
        case "call":
            return {
                "type": "function_call",
                "name": "shell" if "command" in turn.text else "read_file",
                "call_id": turn.call_id,
                "arguments": turn.text,
            }
        case "result":
            return {"type": "function_call_output", "call_id": turn.call_id, "output": turn.text}
        case _:
            kind = "input_text" if turn.role == "user" else "output_text"
            return {"type": "message", "role": turn.role, "content": [{"type": kind, "text": turn.text}]}


_CLAUDES_TOOLS = {"command": "Bash", '"todos"': "TodoWrite", '"old_string"': "Edit"}
"""A word in the arguments of a call -> the tool of Claude Code that takes them."""

STARTS = {"claude-code": "SessionStart", "codex": "SessionStart", "gemini-cli": "SessionStart"}
PROMPTS = {"claude-code": "UserPromptSubmit", "codex": "UserPromptSubmit", "gemini-cli": "BeforeAgent"}
STOPS = {"claude-code": "Stop", "codex": "Stop", "gemini-cli": "AfterAgent"}
BEFORES = {"claude-code": "PreCompact", "codex": "PreCompact", "gemini-cli": "PreCompress"}
