"""The cache of `compactd usage`: unchanged, grown, replaced and damaged files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from compactd.cli.agent_files.places import find_files
from compactd.cli.usage.cache import UsageCache
from compactd.cli.usage.collect import collect
from tests.unit.cli.usage import test_codex as codex
from tests.unit.cli.usage.test_claude_code import answer, write

SECRET = "never store this sentence"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return write(tmp_path / ".claude" / "projects" / "-x" / "one.jsonl", answer(1, 2), answer(2, 7))


def outputs(home: Path, read: list[str] | None = None) -> list[int]:
    """The output tokens of all requests. `read` gets a line for each file that was read."""
    files = find_files({"HOME": str(home)})
    found = collect(files, home / "cache" / "usage.msgpack", None if read is None else read.append)
    return [one.output for file in found.files for one in file.requests]


def append(path: Path, *records: dict[str, object]) -> None:
    with path.open("a") as file:
        file.writelines(f"{json.dumps(record)}\n" for record in records)


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, session: Path) -> None:
    read: list[str] = []

    assert (outputs(tmp_path, read), len(read)) == ([2, 7], 1)
    assert (outputs(tmp_path, read), len(read)) == ([2, 7], 1)


def test_of_a_long_file_only_the_new_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-x" / "one.jsonl"
    write(path, answer(1, 2, padding="x" * 5000), answer(2, 7))
    outputs(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"output_tokens": 7', b'"output_tokens": 8'))
    append(path, answer(2, 70, requestId="req_other"), answer(3, 9))

    assert outputs(tmp_path) == [2, 7, 70, 9]


def test_a_line_without_an_end_counts_once_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / ".codex" / "sessions" / "2026" / "01" / "02" / "rollout-1.jsonl"
    first, second = codex.event((100, 20, 10), (100, 20, 10)), codex.event((150, 20, 13), (50, 0, 3))
    codex.write(path, codex.meta("one"), codex.turn("m"), first)
    with path.open("a") as file:
        file.write(second)

    assert outputs(tmp_path) == [10, 3]

    with path.open("a") as file:
        file.write(f"\n{codex.event((170, 20, 18), (20, 0, 5))}\n")

    assert outputs(tmp_path) == [10, 3, 5]


def test_a_half_written_line_counts_when_it_is_complete(tmp_path: Path, session: Path) -> None:
    line = json.dumps(answer(3, 9))
    with session.open("a") as file:
        file.write(line[:100])

    assert outputs(tmp_path) == [2, 7]

    with session.open("a") as file:
        file.write(f"{line[100:]}\n")

    assert outputs(tmp_path) == [2, 7, 9]


def test_a_replaced_file_is_read_whole(tmp_path: Path, session: Path) -> None:
    outputs(tmp_path)
    with session.open("r+") as file:
        file.write(f"{json.dumps(answer(8, 80))}\n{json.dumps(answer(9, 90))}\n{json.dumps(answer(7, 70))}\n")

    assert outputs(tmp_path) == [80, 90, 70]


@pytest.mark.parametrize("damage", ["cut", "changed", "version", "empty", "text"])
def test_a_damaged_cache_is_ignored_and_written_again(tmp_path: Path, session: Path, damage: str) -> None:
    outputs(tmp_path)
    cache = tmp_path / "cache" / "usage.msgpack"
    good = cache.read_bytes()
    cache.write_bytes(
        {
            "cut": good[:-5],
            "changed": good[:-5] + bytes([good[-5] ^ 1]) + good[-4:],
            "version": good.replace(b"usage 1", b"usage 0"),
            "empty": b"",
            "text": b"not a cache",
        }[damage]
    )

    read: list[str] = []

    assert (outputs(tmp_path, read), len(read)) == ([2, 7], 1)
    assert cache.read_bytes() == good


def test_a_cache_that_cannot_be_written_changes_nothing(tmp_path: Path, session: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")

    assert outputs(tmp_path) == [2, 7]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_the_cache_is_private_and_has_no_text_of_the_conversation(tmp_path: Path) -> None:
    said = {"content": [{"type": "text", "text": SECRET}], **answer(1, 2)["message"]}  # type: ignore[dict-item]
    write(
        tmp_path / ".claude" / "projects" / "-x" / "one.jsonl", {**answer(1, 2), "message": said, "x": SECRET}
    )
    outputs(tmp_path)
    cache = tmp_path / "cache" / "usage.msgpack"

    assert (cache.parent.stat().st_mode & 0o777, cache.stat().st_mode & 0o777) == (0o700, 0o600)
    assert SECRET.encode() not in cache.read_bytes()


def test_a_deleted_session_leaves_the_cache(tmp_path: Path, session: Path) -> None:
    write(session.with_name("two.jsonl"), answer(5, 50))
    outputs(tmp_path)
    session.unlink()
    append(session.with_name("two.jsonl"), answer(6, 60))

    assert outputs(tmp_path) == [50, 60]
    assert list(UsageCache(tmp_path / "cache" / "usage.msgpack").files) == [
        str(session.with_name("two.jsonl"))
    ]
