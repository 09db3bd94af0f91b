"""The usage in session files of Gemini CLI, pi, OpenCode, Cline and aider, compared with sums by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from compactd.cli.agent_files.places import AgentFile
from compactd.cli.usage.collect import collect
from compactd.cli.usage.readers import agent_of, read_data, read_usage
from compactd.cli.usage.requests import FileUsage
from tests.support.command_line import recorded

Numbers = tuple[int, int, int, int]


def numbers(usage: FileUsage) -> list[Numbers]:
    return [(one.input, one.output, one.cache_write, one.cache_read) for one in usage.requests]


def total(usage: FileUsage) -> Numbers:
    columns = list(zip(*numbers(usage), strict=True))
    return (sum(columns[0]), sum(columns[1]), sum(columns[2]), sum(columns[3]))


def gemini(name: str, output: int, **tokens: int) -> dict[str, object]:
    counts = {"input": 100, "output": output, "cached": 30, "thoughts": 5, "tool": 7, **tokens}
    return {
        "id": name,
        "type": "gemini",
        "timestamp": "2026-01-02T03:04:00.000Z",
        "model": "gemini-3-pro",
        "content": "Done.",
        "tokens": {**counts, "total": 100 + output + 5 + 7},
    }


def gemini_file(tmp_path: Path, *records: object, name: str = "session-1.jsonl") -> Path:
    chats = tmp_path / ".gemini" / "tmp" / "ledger" / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text("/home/someone/ledger\n")
    path = chats / name
    header = {"sessionId": "g1", "projectHash": "abc", "startTime": "2026-01-02T03:00:00.000Z"}
    if name.endswith(".json"):
        path.write_text(json.dumps({**header, "messages": records}, indent=2))
    else:
        path.write_text("".join(f"{json.dumps(record)}\n" for record in (header, *records)))
    return path


@pytest.mark.parametrize("name", ["session-1.jsonl", "session-1.json"])
def test_gemini_cli_counts_the_cache_as_input_and_thoughts_as_output(tmp_path: Path, name: str) -> None:
    asked = {"id": "u", "type": "user", "content": "Hi", "tokens": None}
    path = gemini_file(tmp_path, asked, gemini("a", 11), gemini("b", 13, cached=0), name=name)
    usage = read_usage(path, "gemini-cli")

    assert numbers(usage) == [(100 + 7 - 30, 11 + 5, 0, 30), (100 + 7, 13 + 5, 0, 0)]
    assert (usage.session_id, usage.project, usage.models) == (
        "g1",
        "/home/someone/ledger",
        [("google", "gemini-3-pro")],
    )


def test_a_repeated_record_of_gemini_cli_replaces_the_first(tmp_path: Path) -> None:
    again = {"$set": {"messages": [gemini("a", 11), gemini("b", 13)], "lastUpdated": "x"}}
    rewound = {"$rewindTo": "b"}
    path = gemini_file(tmp_path, gemini("a", 1), gemini("a", 11), again, rewound)

    assert [one.output for one in read_usage(path, "gemini-cli").requests] == [16, 18]


@pytest.mark.parametrize("name", ["pi-before-compaction.jsonl", "pi-large-session.jsonl"])
def test_the_sum_of_a_recorded_session_of_pi_is_the_sum_by_hand(name: str) -> None:
    path = recorded(name)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    reports = [
        row["message"]["usage"]
        for row in rows
        if row["type"] == "message" and row["message"]["role"] == "assistant"
    ]
    usage = read_usage(path, "pi")

    assert total(usage) == (
        sum(one["input"] for one in reports),
        sum(one["output"] for one in reports),
        sum(one["cacheWrite"] for one in reports),
        sum(one["cacheRead"] for one in reports),
    )
    assert sum(one.cost or 0 for one in usage.requests) == pytest.approx(
        sum(one["cost"]["total"] for one in reports)
    )


def test_a_copied_message_of_pi_has_the_same_key_in_every_file(tmp_path: Path) -> None:
    message = {
        "role": "assistant",
        "provider": "anthropic",
        "model": "claude-opus-4-5",
        "timestamp": 1_767_323_040_123,
        "usage": {"input": 3, "output": 5, "cacheRead": 7, "cacheWrite": 11, "cost": {"total": 0}},
    }
    keys = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.jsonl"
        rows = [
            {"type": "session", "id": name, "cwd": "/home/someone/ledger"},
            {"type": "message", "id": f"entry-{name}", "message": message},
        ]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        usage = read_usage(path, "pi")
        keys.append(usage.requests[0].key)

        assert numbers(usage) == [(3, 5, 11, 7)]
        assert usage.requests[0].cost is None, "pi writes 0 if it knows no price"

    assert keys[0] == keys[1] != 0


def test_opencode_counts_reasoning_as_output_and_a_message_once() -> None:
    def message(name: str, output: int, cost: float) -> dict[str, object]:
        cache = {"read": 40, "write": 8}
        tokens = {"input": 10, "output": output, "reasoning": 3, "cache": cache}
        info = {
            "id": name,
            "role": "assistant",
            "providerID": "openai",
            "modelID": "gpt-5",
            "time": {"created": 1_767_323_040_000},
            "cost": cost,
            "tokens": tokens,
        }
        return {"info": info, "parts": []}

    user = {"info": {"id": "u", "role": "user", "time": {"created": 1}}, "parts": []}
    session = {
        "info": {"id": "ses_1", "directory": "/home/someone/ledger"},
        "messages": [user, message("a", 1, 0.1), message("a", 20, 0.5), message("b", 30, 0)],
    }
    usage = read_data(json.dumps(session).encode(), "opencode", "file")

    assert numbers(usage) == [(10, 23, 8, 40), (10, 33, 8, 40)]
    assert [one.cost for one in usage.requests] == [0.5, None]
    assert (usage.session_id, usage.project) == ("ses_1", "/home/someone/ledger")


def test_opencodes_folder_is_read_and_never_out_of_date(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    session = storage / "session" / "p1" / "ses_1.json"
    messages = storage / "message" / "ses_1"
    session.parent.mkdir(parents=True)
    messages.mkdir(parents=True)
    session.write_text(json.dumps({"id": "ses_1", "directory": "/home/someone/ledger"}))

    def write_message(output: int) -> None:
        tokens = {"input": 10, "output": output, "reasoning": 3, "cache": {"read": 40, "write": 8}}
        info = {"id": "a", "role": "assistant", "providerID": "openai", "modelID": "gpt-5", "tokens": tokens}
        (messages / "a.json").write_text(json.dumps(info))

    def collected() -> list[tuple[str, str, list[Numbers]]]:
        file = AgentFile(agent="opencode", path=session, size_bytes=1, modified_ns=1)
        files = collect([file], tmp_path / "cache").files
        return [(one.session_id, one.project, numbers(one)) for one in files]

    write_message(1)
    assert collected() == [("ses_1", "/home/someone/ledger", [(10, 4, 8, 40)])]
    write_message(2)
    assert collected() == [("ses_1", "/home/someone/ledger", [(10, 5, 8, 40)])]


def test_clines_screen_messages_are_preferred_to_its_history(tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "1767"
    task.mkdir(parents=True)
    history = task / "api_conversation_history.json"
    metrics = {"tokens": {"prompt": 1, "completion": 2, "cached": 3}, "cost": 0.1}
    history.write_text(json.dumps([{"role": "assistant", "ts": 1, "metrics": metrics}]))
    file = AgentFile(agent="cline", path=history, size_bytes=1, modified_ns=1)

    def collected() -> list[tuple[str, list[Numbers]]]:
        return [(one.session_id, numbers(one)) for one in collect([file], tmp_path / "cache").files]

    assert collected() == [("1767", [(1, 2, 0, 3)])]
    text = json.dumps({"tokensIn": 10, "tokensOut": 20, "cacheWrites": 30, "cacheReads": 40, "cost": 0.5})
    (task / "ui_messages.json").write_text(json.dumps([{"say": "api_req_started", "ts": 1, "text": text}]))
    assert collected() == [("1767", [(10, 20, 30, 40)])]


def test_clines_screen_messages_are_summed_are_summed_with_deleted_requests() -> None:
    def said(kind: str, time: int, **fields: object) -> dict[str, object]:
        return {"ts": time, "type": "say", "say": kind, "text": json.dumps(fields)}

    started = said("api_req_started", 1, tokensIn=10, tokensOut=20, cacheWrites=30, cacheReads=40, cost=0.5)
    model = {"modelInfo": {"providerId": "anthropic", "modelId": "claude-opus-4-5"}}
    messages = [
        {**started, **model},
        said("api_req_started", 2, request="not answered yet"),
        said("deleted_api_reqs", 3, tokensIn=1, tokensOut=2, cost=0.1),
        {"ts": 4, "type": "say", "say": "text", "text": "tokensIn"},
    ]
    data = json.dumps(messages).encode()
    usage = read_data(data, "cline", "ui_messages")

    assert agent_of(data) == "cline"
    assert numbers(usage) == [(10, 20, 30, 40), (1, 2, 0, 0)]
    assert [one.cost for one in usage.requests] == [0.5, 0.1]
    assert usage.models[usage.requests[0].model] == ("anthropic", "claude-opus-4-5")


def test_the_sum_of_a_recorded_session_of_cline_is_the_sum_by_hand() -> None:
    data = recorded("cline-session.json").read_bytes()
    metrics = [one["metrics"] for one in json.loads(data)["messages"] if "metrics" in one]
    usage = read_data(data, "cline", "file")

    assert total(usage) == (
        sum(one["inputTokens"] - one["cacheReadTokens"] - one["cacheWriteTokens"] for one in metrics),
        sum(one["outputTokens"] for one in metrics),
        sum(one["cacheWriteTokens"] for one in metrics),
        sum(one["cacheReadTokens"] for one in metrics),
    )


def test_aiders_lines_are_read_with_thousands_and_caches() -> None:
    history = """
# aider chat started at 2026-01-02 03:04:05

> Main model: anthropic/claude-opus-4-5 with diff edit format, prompt cache
> Tokens: 12k sent, 1.5k cache write, 9k cache hit, 604 received. Cost: $0.02 message, $1,200.50 session.
> Tokens: 5,244 sent, 1,024 received.
Tokens: 7 sent, 7 received.
> Model: gpt-4o with diff edit format
> Tokens: 10 sent, 2 received. Cost: $1,000.25 message, $2,000.00 session.
"""
    usage = read_data(history.encode(), "aider", "file")

    assert numbers(usage) == [(1500, 604, 1500, 9000), (5244, 1024, 0, 0), (10, 2, 0, 0)]
    assert [one.cost for one in usage.requests] == [0.02, None, 1000.25]
    assert [usage.models[one.model] for one in usage.requests] == [
        ("anthropic", "claude-opus-4-5"),
        ("anthropic", "claude-opus-4-5"),
        ("", "gpt-4o"),
    ]


def test_the_reported_cost_of_a_recorded_history_of_aider_is_the_sum_by_hand() -> None:
    data = recorded("aider-chat-history.md").read_bytes()
    lines = re.findall(r"^> Tokens: (.*)$", data.decode(errors="replace"), re.MULTILINE)
    costs = [re.search(r"Cost: \$([\d.]+) (?:message|request)", line) for line in lines]
    usage = read_data(data, "aider", "file")

    assert len(usage.requests) + usage.unreadable == len(lines)
    assert sum(one.cost or 0 for one in usage.requests) == pytest.approx(
        sum(float(cost[1]) for cost in costs if cost)
    )
