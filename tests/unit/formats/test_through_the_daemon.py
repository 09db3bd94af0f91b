"""Session files of other agents through a daemon: imported, exported in their own format, imported again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compactd.client import Client
from compactd.formats.files.detect import read
from compactd.formats.files.session_formats import WRITABLE
from tests.unit.formats.outlined import FIXTURES

FILES = {
    "codex.jsonl": "codex",
    "gemini-cli.jsonl": "gemini-cli",
    "cline-task.json": "cline",
    "roo.json": "cline",
    "opencode.json": "opencode",
    "mini-swe-agent-2.traj.json": "mini-swe-agent",
    "openhands.json": "openhands",
    "aider.md": "aider",
    "klaude.jsonl": "klaude",
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    home = tmp_path_factory.mktemp("home")
    with Client(env={**os.environ, "COMPACTD_HOME": str(home)}) as client:
        yield client


def taken(client: Client, path: Path) -> str:
    return str(client.call("session/import", {"path": str(path)})["session_id"])


def view(client: Client, session_id: str) -> list[tuple[str, object]]:
    messages = client.call("session/context", {"session_id": session_id})["messages"]
    return [(message["role"], said(message)) for message in messages]


def said(message: Any) -> object:
    content = message["content"]
    if isinstance(content, str):
        return content
    return [block.get("text", block.get("call_id")) for block in content if block["type"] != "opaque"]


def history(client: Client, session_id: str) -> list[tuple[str, bool]]:
    entries = client.call("session/history", {"session_id": session_id})["entries"]
    return [(entry["kind"], entry["in_context"]) for entry in entries]


@pytest.mark.parametrize("name", FILES)
def test_a_session_that_goes_out_in_its_own_format_comes_in_with_the_same_view_and_history(
    client: Client, tmp_path: Path, name: str
) -> None:
    first = taken(client, FIXTURES / name)
    out = tmp_path / "out"

    exported = client.call("session/export", {"session_id": first, "format": FILES[name], "path": str(out)})
    second = taken(client, out)

    assert exported["format"] == FILES[name]
    assert view(client, second) == view(client, first)
    assert history(client, second) == history(client, first)


def test_after_an_import_the_view_is_what_the_program_itself_would_send(client: Client) -> None:
    seen = view(client, taken(client, FIXTURES / "codex.jsonl"))

    assert [role for role, _ in seen] == ["user", "user", "user", "assistant"]
    assert seen[1] == ("user", ["Why does the cache test fail?", None])
    assert seen[2:] == [("user", ["Now the docs."]), ("assistant", ["Written."])]


@pytest.mark.parametrize("format", WRITABLE)
def test_losses_of_an_export_are_told_by_entry(client: Client, tmp_path: Path, format: str) -> None:
    session = taken(client, FIXTURES / "opencode.json")
    out = tmp_path / "out"

    told = client.call("session/export", {"session_id": session, "format": format, "path": str(out)})

    assert read(out).format == format
    assert all(warning.startswith("not kept: ") for warning in told["warnings"])
    if format == "swe-agent":
        assert "not kept: that the call failed (e4)" in told["warnings"]
    if format == "opencode":
        assert told["warnings"] == []


@pytest.mark.parametrize("format", ["openai", "openai_responses", "anthropic", "gemini"])
def test_losses_of_an_export_in_a_providers_shape_are_told_by_entry(client: Client, format: str) -> None:
    session = taken(client, FIXTURES / "opencode.json")

    told = client.call("session/export", {"session_id": session, "format": format})["warnings"]

    assert "not kept: the message's id (e1–e6, e8)" in told
    assert "not kept: the usage report (e2, e6)" in told
    assert told[-1] == "not kept: 1 compaction; the export contains all messages in full"
    assert ("not kept: the thinking (e2)" in told) == (format != "anthropic")


@pytest.mark.parametrize("format", ["neutral", "openai", "openai_responses", "anthropic", "gemini"])
def test_an_export_in_a_providers_shape_comes_in_as_the_same_request(client: Client, format: str) -> None:
    tool = {"name": "read", "description": "reads", "input_schema": {"type": "object", "properties": {}}}
    first = client.call("session/start", {"system_prompt": "Be brief.", "tools": [tool]})["session_id"]
    call = {"type": "tool_call", "call_id": "c1", "name": "read", "arguments": {"path": "a.py"}}
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [{"type": "text", "text": "I read."}, call]},
        {"role": "tool", "content": [{"type": "tool_result", "call_id": "c1", "content": "x = 1"}]},
        {"role": "assistant", "content": "Done."},
    ]
    client.call("session/append", {"session_id": first, "messages": messages})

    text = client.call("session/export", {"session_id": first, "format": format})["content"]
    second = client.call("session/import", {"content": text})

    mine, theirs = (
        client.call("session/context", {"session_id": one, "format": format})
        for one in (first, second["session_id"])
    )
    assert second["format"] == format
    assert [warning.partition(",")[0] for warning in second["warnings"]] == [
        "the file contains a system prompt of 9 characters"
    ]
    assert [mine.get(name) for name in ("system", "tools")] == [
        theirs.get(name) for name in ("system", "tools")
    ]
    assert len(mine["messages"]) == len(theirs["messages"])
