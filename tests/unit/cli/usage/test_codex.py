"""The usage in Codex CLI's session files."""

from __future__ import annotations

import json
from pathlib import Path

from compactd.cli.agent_files.places import find_files
from compactd.cli.usage.collect import collect, count_once
from compactd.cli.usage.readers import read_usage

Counts = tuple[int, int, int]


def line(kind: str, payload: dict[str, object], minute: int = 0) -> str:
    return json.dumps({"timestamp": f"2026-01-02T03:{minute:02d}:00.000Z", "type": kind, "payload": payload})


def meta(session_id: str, **fields: object) -> str:
    about = {"id": session_id, "cwd": "/home/someone/ledger", "model_provider": "openai", **fields}
    return line("session_meta", about)


def turn(model: str) -> str:
    return line("turn_context", {"model": model, "cwd": "/home/someone/ledger"})


def tokens(counts: Counts) -> dict[str, int]:
    whole, cached, output = counts
    return {
        "input_tokens": whole,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "reasoning_output_tokens": output // 2,
        "total_tokens": whole + output,
    }


def event(total: Counts, last: Counts | None, minute: int = 0) -> str:
    info = {"total_token_usage": tokens(total), "last_token_usage": last and tokens(last)}
    return line("event_msg", {"type": "token_count", "info": info, "rate_limits": {}}, minute)


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{one}\n" for one in lines))
    return path


def requests(path: Path) -> list[tuple[str, int, int, int]]:
    usage = read_usage(path, "codex")
    return [(usage.models[one.model][1], one.input, one.cache_read, one.output) for one in usage.requests]


def test_input_excludes_the_cache_and_each_request_has_the_model_of_its_turn(tmp_path: Path) -> None:
    path = write(
        tmp_path / "rollout-1.jsonl",
        meta("one"),
        turn("gpt-5-codex"),
        event((100, 20, 10), (100, 20, 10)),
        turn("gpt-5-mini"),
        event((250, 120, 15), (150, 100, 5)),
    )

    assert requests(path) == [("gpt-5-codex", 80, 20, 10), ("gpt-5-mini", 50, 100, 5)]


def test_a_repeated_event_is_no_request(tmp_path: Path) -> None:
    limits = line("event_msg", {"type": "token_count", "info": None, "rate_limits": {}})
    first = event((100, 20, 10), (100, 20, 10))
    second = event((200, 40, 20), (100, 20, 10))
    path = write(tmp_path / "rollout-1.jsonl", meta("one"), turn("m"), limits, first, first, second, second)

    assert requests(path) == [("m", 80, 20, 10), ("m", 80, 20, 10)]


def test_the_total_of_an_earlier_session_is_not_counted_again(tmp_path: Path) -> None:
    path = write(
        tmp_path / "rollout-1.jsonl", meta("one"), turn("m"), event((90_100, 50_020, 1010), (100, 20, 10))
    )

    assert requests(path) == [("m", 80, 20, 10)]


def test_without_the_last_request_the_growth_of_the_total_counts(tmp_path: Path) -> None:
    path = write(
        tmp_path / "rollout-1.jsonl",
        meta("one"),
        turn("m"),
        event((100, 20, 10), None),
        event((160, 40, 13), None),
        event((30, 0, 2), None),
    )

    assert requests(path) == [("m", 80, 20, 10), ("m", 40, 20, 3), ("m", 30, 0, 2)]


def test_a_fork_counts_only_what_it_added(tmp_path: Path) -> None:
    history = (turn("m"), event((100, 20, 10), (100, 20, 10)), event((200, 40, 20), (100, 20, 10)))
    copied = (turn("m"), event((100, 20, 10), (100, 20, 10), 50), event((200, 40, 20), (100, 20, 10), 50))
    folder = tmp_path / ".codex" / "sessions" / "2026" / "01" / "02"
    write(folder / "rollout-3.jsonl", meta("one"), *history, event((230, 60, 25), (30, 20, 5)))
    write(
        folder / "rollout-2.jsonl",
        meta("two", forked_from_id="one"),
        meta("one"),
        *copied,
        event((270, 50, 29), (70, 10, 9), 51),
    )
    write(folder / "rollout-1.jsonl", meta("other"), *history)

    files = find_files({"HOME": str(tmp_path)})
    found = count_once(collect(files, tmp_path / "cache").files)

    assert sorted((file.session_id, [one.output for one in kept]) for file, kept in found) == [
        ("one", [10, 10, 5]),
        ("other", [10, 10]),
        ("two", [9]),
    ]


def test_project_provider_and_what_is_not_reported_are_known(tmp_path: Path) -> None:
    path = write(tmp_path / "rollout-1.jsonl", meta("one"), turn("m"), event((100, 20, 10), (100, 20, 10), 4))
    usage = read_usage(path, "codex")

    assert (usage.session_id, usage.project, usage.not_reported) == (
        "one",
        "/home/someone/ledger",
        ("cache_write",),
    )
    assert usage.models[usage.requests[0].model] == ("openai", "m")
    assert usage.requests[0].at == 1_767_323_040
