"""Hook payloads in every documented shape, old and new, of three agents, and input that is no payload."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.integrations.hooks.events import AGENTS, HookEvent, event_of
from tests.support.examples import examples

ID = "0199f3a2-5b1c-7d70-9c1d-8f8d3f6a1b2c"
CLAUDE = {"session_id": ID, "transcript_path": "/home/u/.claude/projects/-p/x.jsonl", "cwd": "/p"}
CODEX = {**CLAUDE, "turn_id": "t1", "model": "gpt-5.3-codex", "permission_mode": "default"}
GEMINI = {**CLAUDE, "timestamp": "2026-11-20T10:00:00.000Z"}

# (agent, what it sends, kind, the name that its answer would have)
RECORDED = [
    # Claude Code: hooks reference of 2.1.240 (2026-08).
    (
        "claude-code",
        {**CLAUDE, "hook_event_name": "SessionStart", "source": "startup"},
        "start",
        "SessionStart",
    ),
    (
        "claude-code",
        {**CLAUDE, "hook_event_name": "SessionStart", "source": "compact", "model": "claude-opus-4-5"},
        "start",
        "SessionStart",
    ),
    (
        "claude-code",
        {
            **CLAUDE,
            "hook_event_name": "UserPromptSubmit",
            "prompt": "hi",
            "prompt_id": "p",
            "permission_mode": "plan",
        },
        "prompt",
        "UserPromptSubmit",
    ),
    (
        "claude-code",
        {**CLAUDE, "hook_event_name": "PreCompact", "trigger": "manual", "custom_instructions": "x"},
        "before",
        "",
    ),
    (
        "claude-code",
        {**CLAUDE, "hook_event_name": "PostCompact", "trigger": "auto", "compact_summary": "S"},
        "after",
        "",
    ),
    (
        "claude-code",
        {**CLAUDE, "hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "ok"},
        "end",
        "",
    ),
    (
        "claude-code",
        {**CLAUDE, "hook_event_name": "SubagentStop", "agent_id": "a", "agent_type": ""},
        "fork_end",
        "",
    ),
    ("claude-code", {**CLAUDE, "hook_event_name": "SessionEnd", "reason": "clear"}, "end", ""),
    # Claude Code of 2025: without cwd, source or permission_mode.
    (
        "claude-code",
        {"session_id": ID, "transcript_path": "~/.claude/projects/-p/x.jsonl", "hook_event_name": "Stop"},
        "end",
        "",
    ),
    (
        "claude-code",
        {**CLAUDE, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}},
        "other",
        "",
    ),
    ("claude-code", {**CLAUDE, "hook_event_name": "Notification", "message": "m"}, "other", ""),
    # Codex 0.169: Claude Code's shape (run 2026-11).
    ("codex", {**CODEX, "hook_event_name": "SessionStart", "source": "resume"}, "start", "SessionStart"),
    ("codex", {**CODEX, "hook_event_name": "UserPromptSubmit", "prompt": "p"}, "prompt", "UserPromptSubmit"),
    ("codex", {**CODEX, "hook_event_name": "PreCompact", "trigger": "auto"}, "before", ""),
    ("codex", {**CODEX, "hook_event_name": "PostCompact", "trigger": "auto"}, "after", ""),
    ("codex", {**CODEX, "hook_event_name": "Stop", "last_assistant_message": None}, "end", ""),
    # Codex's `notify` of 2025: no transcript.
    ("codex", {"type": "agent-turn-complete", "thread-id": ID, "turn-id": "1", "cwd": "/p"}, "other", ""),
    # Gemini CLI 0.61: hooks reference (2026-09).
    (
        "gemini-cli",
        {**GEMINI, "hook_event_name": "SessionStart", "source": "startup"},
        "start",
        "SessionStart",
    ),
    ("gemini-cli", {**GEMINI, "hook_event_name": "BeforeAgent", "prompt": "p"}, "prompt", "BeforeAgent"),
    (
        "gemini-cli",
        {**GEMINI, "hook_event_name": "AfterAgent", "prompt": "p", "prompt_response": "r"},
        "end",
        "",
    ),
    ("gemini-cli", {**GEMINI, "hook_event_name": "PreCompress", "trigger": "auto"}, "before", ""),
    ("gemini-cli", {**GEMINI, "hook_event_name": "BeforeModel", "llm_request": {}}, "other", ""),
]


@pytest.mark.parametrize(("agent", "payload", "kind", "name"), RECORDED)
def test_a_documented_event_is_known(agent: str, payload: dict, kind: str, name: str) -> None:
    event = event_of(agent, json.dumps(payload).encode())

    assert event is not None
    assert (event.kind, event.name, event.session_id) == (kind, name, ID)
    assert event.source == payload.get("source", "")
    assert event.summary == payload.get("compact_summary", "")


SAME = HookEvent(
    agent="codex", kind="start", name="SessionStart", session_id=ID, transcript="/t.jsonl", source="compact"
)
SPELLINGS = [
    {"session_id": ID, "transcript_path": "/t.jsonl", "hook_event_name": "SessionStart", "source": "compact"},
    {"sessionId": ID, "transcriptPath": "/t.jsonl", "hookEventName": "SessionStart", "source": "compact"},
    {"session_id": ID, "transcript_path": "/t.jsonl", "event": "session_start", "source": "COMPACT"},
    {"session_id": ID, "transcript_path": "/t.jsonl", "hook_event_name": "session-start", "source": "compact",
     "new_field": {"deep": [1, {"x": None}]}, "cwd": None},
]  # fmt: skip


@pytest.mark.parametrize("payload", SPELLINGS)
def test_other_spellings_and_unknown_fields_change_nothing(payload: dict) -> None:
    assert event_of("codex", json.dumps(payload).encode()) == SAME
    assert event_of("codex", b"\xef\xbb\xbf \r\n" + json.dumps(payload, indent=2).encode()) == SAME


@pytest.mark.parametrize("field", ["session_id", "transcript_path", "cwd", "source", "compact_summary"])
@pytest.mark.parametrize("odd", [None, 7, [], {}, True, ""])
def test_a_field_of_another_kind_is_as_if_it_were_not_there(field: str, odd: object) -> None:
    payload = {**CLAUDE, "hook_event_name": "SessionStart", "source": "compact"}
    without = {name: value for name, value in payload.items() if name != field}

    seen = event_of("claude-code", json.dumps({**payload, field: odd}).encode())

    assert seen == event_of("claude-code", json.dumps(without).encode())


@pytest.mark.parametrize("odd", ["../../etc/passwd", "x" * 256, "a b", "ümlaut", "con", "."])
def test_an_id_is_taken_as_it_is_and_one_that_cannot_be_is_none(odd: str) -> None:
    taken = event_of("codex", json.dumps({"session_id": odd, "hook_event_name": "Stop"}).encode())
    refused = event_of("codex", json.dumps({"session_id": odd + "\n", "hook_event_name": "Stop"}).encode())

    assert (taken.session_id, refused.session_id) == (odd, "")


@pytest.mark.parametrize("path", ["relative.jsonl", "", "https://example.org/t.jsonl", "\\\\host\\share"])
def test_a_transcript_that_is_no_absolute_path_is_none(path: str) -> None:
    event = event_of("codex", json.dumps({**CODEX, "transcript_path": path}).encode())

    assert event.transcript == ""


def test_a_lone_surrogate_in_a_text_is_no_hindrance() -> None:
    data = b'{"session_id":"s","hook_event_name":"PostCompact","compact_summary":"a \\ud83d b"}'

    assert event_of("claude-code", data).summary == "a \ufffd b"


@settings(deadline=None, max_examples=examples(80))
@given(st.binary(max_size=200) | st.text().map(str.encode) | st.just(b"[" * 100_000))
def test_whatever_else_stdin_holds_is_no_event_or_one_without_harm(data: bytes) -> None:
    for agent in AGENTS:
        event = event_of(agent, data)
        assert event is None or event.kind == "other"
