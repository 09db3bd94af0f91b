"""The usage in Claude Code's session files, compared with sums by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from compactd.cli.agent_files.places import find_files
from compactd.cli.usage.collect import collect, count_once
from compactd.cli.usage.readers import read_usage
from tests.support.command_line import recordings

Numbers = tuple[int, int, int, int]


def sums(usage) -> Numbers:
    return (
        sum(one.input for one in usage.requests),
        sum(one.output for one in usage.requests),
        sum(one.cache_write for one in usage.requests),
        sum(one.cache_read for one in usage.requests),
    )


def answers(path: Path) -> Iterator[tuple[str, dict]]:
    """Each answer in a file with the id of its request, in the file's order; also those of sub-agents."""
    for line in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record.get("type") == "progress":
            record = (record.get("data") or {}).get("message") or {}
        if record.get("type") == "assistant" and record["message"]["model"] != "<synthetic>":
            yield f"{record['message']['id']} {record.get('requestId')}", record["message"]["usage"]


def by_hand(path: Path) -> Numbers:
    last = dict(answers(path))
    return (
        sum(usage["input_tokens"] for usage in last.values()),
        sum(usage["output_tokens"] for usage in last.values()),
        sum(usage.get("cache_creation_input_tokens") or 0 for usage in last.values()),
        sum(usage.get("cache_read_input_tokens") or 0 for usage in last.values()),
    )


def claude_recordings() -> list[Path]:
    return [path for path in recordings() if path.suffix == ".jsonl" and b'"requestId"' in path.read_bytes()]


@pytest.mark.parametrize("path", claude_recordings(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_sum_of_a_recorded_session_is_the_sum_by_hand(path: Path) -> None:
    assert sums(read_usage(path, "claude-code")) == by_hand(path)


def answer(
    number: int, output: int, *, model: str = "claude-opus-4-5", **fields: object
) -> dict[str, object]:
    usage = {
        "input_tokens": 3,
        "output_tokens": output,
        "cache_creation_input_tokens": 100,
        "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 70},
        "cache_read_input_tokens": 1000,
    }
    return {
        "type": "assistant",
        "uuid": f"u{number}-{output}",
        "sessionId": "one",
        "cwd": "/home/someone/ledger",
        "requestId": f"req_{number}",
        "timestamp": f"2026-01-02T03:{number:02d}:00.000Z",
        "message": {
            "id": f"msg_{number}",
            "model": model,
            "role": "assistant",
            "content": [],
            "usage": usage,
        },
        **fields,
    }


def write(path: Path, *records: dict[str, object], end: str = "\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(record) for record in records) + end)
    return path


def test_of_several_rows_of_one_answer_the_last_counts(tmp_path: Path) -> None:
    usage = read_usage(write(tmp_path / "a.jsonl", answer(1, 2), answer(1, 40), answer(2, 7)), "claude-code")

    assert [(one.output, one.cache_write, one.cache_write_1h) for one in usage.requests] == [
        (40, 100, 70),
        (7, 100, 70),
    ]


def test_answers_with_one_id_of_two_requests_count_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", answer(1, 2), answer(1, 2, requestId="req_other"))

    assert len(read_usage(path, "claude-code").requests) == 2


def test_synthetic_messages_and_results_of_tools_are_no_requests(tmp_path: Path) -> None:
    task = {"type": "user", "toolUseResult": {"usage": {"input_tokens": 5, "output_tokens": 5}}}
    quoted = {"type": "user", "message": {"role": "user", "content": json.dumps(answer(9, 9))}}
    other = answer(8, 80, type="attachment")
    path = write(tmp_path / "a.jsonl", task, quoted, other, answer(1, 2, model="<synthetic>"), answer(2, 7))

    assert [one.output for one in read_usage(path, "claude-code").requests] == [7]


def test_a_sub_agents_answer_in_a_progress_record_counts(tmp_path: Path) -> None:
    progress = {"type": "progress", "sessionId": "one", "data": {"message": answer(5, 11)}}
    path = write(tmp_path / "a.jsonl", answer(1, 2), progress, progress)

    assert [one.output for one in read_usage(path, "claude-code").requests] == [2, 11]


def test_a_damaged_line_is_counted_and_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", answer(1, 2), answer(2, 7))
    with path.open("a") as file:
        file.write('{"type":"assistant","message":{"usage":{"input_tokens"\n')

    usage = read_usage(path, "claude-code")

    assert ([one.output for one in usage.requests], usage.unreadable) == ([2, 7], 1)


def test_a_line_longer_than_a_block_is_read(tmp_path: Path) -> None:
    long = answer(1, 2, padding="x" * 5_000_000)
    path = write(
        tmp_path / "a.jsonl", long, answer(2, 7), long, answer(3, 9, padding="y" * 9_000_000), end=""
    )

    assert [one.output for one in read_usage(path, "claude-code").requests] == [2, 7, 9]


def counted(home: Path) -> list[tuple[str, str, list[int]]]:
    files = find_files({"HOME": str(home)})
    found = count_once(collect(files, home / "cache" / "usage.msgpack").files)
    return sorted((file.session_id, file.project, [one.output for one in kept]) for file, kept in found)


def test_a_resumed_session_counts_its_copied_rows_once(tmp_path: Path) -> None:
    project = tmp_path / ".claude" / "projects" / "-home-someone-ledger"
    old = write(project / "one.jsonl", answer(1, 2), answer(2, 7))
    new = write(
        project / "two.jsonl",
        *(answer(number, output, sessionId="two") for number, output in ((1, 2), (2, 7), (3, 9))),
    )
    for second, path in enumerate((old, new)):
        times(path, second)

    assert counted(tmp_path) == [
        ("one", "/home/someone/ledger", [2, 7]),
        ("two", "/home/someone/ledger", [9]),
    ]


def test_a_fork_is_not_charged_for_its_original_even_if_that_was_written_later(tmp_path: Path) -> None:
    project = tmp_path / ".claude" / "projects" / "-home-someone-ledger"
    origin = {"sessionId": "one", "messageUuid": "u1-2"}
    fork = write(
        project / "two.jsonl",
        answer(1, 2, sessionId="two", forkedFrom=origin),
        answer(3, 9, sessionId="two"),
    )
    original = write(project / "one.jsonl", answer(1, 2), answer(2, 7))
    for second, path in enumerate((fork, original)):
        times(path, second)

    assert [(name, outputs) for name, _, outputs in counted(tmp_path)] == [("one", [2, 7]), ("two", [9])]


def test_a_copy_that_was_made_during_the_answer_counts_with_the_final_numbers(tmp_path: Path) -> None:
    project = tmp_path / ".claude" / "projects" / "-home-someone-ledger"
    early = write(project / "one.jsonl", answer(1, 2))
    late = write(project / "two.jsonl", answer(1, 2, sessionId="two"), answer(1, 40, sessionId="two"))
    for second, path in enumerate((early, late)):
        times(path, second)

    assert [(name, outputs) for name, _, outputs in counted(tmp_path)] == [("one", [40]), ("two", [])]


def test_a_sub_agents_file_belongs_to_its_session_and_counts_once(tmp_path: Path) -> None:
    project = tmp_path / ".claude" / "projects" / "-home-someone-ledger"
    inside = {"type": "progress", "sessionId": "one", "data": {"message": answer(5, 11)}}
    write(project / "one.jsonl", answer(1, 2), inside)
    write(
        project / "one" / "subagents" / "agent-a1.jsonl",
        answer(5, 11, isSidechain=True),
        answer(6, 13, isSidechain=True),
    )

    assert [(name, outputs) for name, _, outputs in counted(tmp_path)] == [("one", [2, 11]), ("one", [13])]


def times(path: Path, second: int) -> None:
    os.utime(path, (1_767_000_000 + second, 1_767_000_000 + second))
