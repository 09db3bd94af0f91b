"""A disk that is full or read-only: the error says so, and nothing acknowledged is lost.

The limit on the size of a file stands for a full disk: the write is cut short in the middle of a record,
then refused. As root the permissions of files mean nothing, so the child that needs them is `nobody`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Spawn = Callable[..., "subprocess.Popen[str]"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on a file's size")


def told_by(child: subprocess.Popen[str]) -> Any:
    out, _ = child.communicate()
    assert child.returncode == 0
    return json.loads(out)


def test_a_full_disk_costs_what_was_not_acknowledged_and_nothing_else(tmp_path: Path, spawn: Spawn) -> None:
    seen = told_by(spawn("full_disk.py", tmp_path))

    assert seen["waiters"] == [["RecordsLost", 1005, 2, False]] * 3
    assert seen["before_resume"] == ["RecordsLost", 1005, 2, False]
    assert seen["file_after_failure"] == seen["file_before"]
    assert seen["size_bytes"] == [None, len(seen["file_before"])]
    assert seen["resumed"] == [2, None]
    assert seen["old_number"] == ["RecordsLost", 1005, 2, False]
    assert seen["stored"] == ["first", "kept", "after", "more"]
    assert "the disk is full" in seen["message"]
    assert str(tmp_path) not in seen["message"]


def test_a_replacement_that_finds_no_room_changes_nothing(tmp_path: Path, spawn: Spawn) -> None:
    seen = told_by(spawn("full_disk.py", tmp_path))

    assert seen["replaced"] == ["StorageFailed", 1005]
    assert seen["file_after_replace"] == seen["file_before"]
    assert seen["beside"] == []


def test_a_session_that_a_full_disk_does_not_let_begin_never_was(tmp_path: Path, spawn: Spawn) -> None:
    seen = told_by(spawn("full_disk.py", tmp_path))

    assert seen["never"] == [["RecordsLost", 1005, 0, False], False, []]


def test_what_may_not_be_written_can_be_read(spawn: Spawn) -> None:
    # Not below pytest's folder: `nobody` may not go there.
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o777)
        seen = told_by(spawn("read_only.py", Path(home) / "ours"))

    assert seen["create"] == ["StorageFailed", 1005]
    assert seen["open"] == ["StorageFailed", 1005]
    assert seen["delete"] == ["StorageFailed", 1005]
    assert seen["save_info"] == ["StorageFailed", 1005]
    assert seen["replace"] == ["StorageFailed", 1005]
    assert seen["read"] == 2
    assert seen["listed"] == ["s1", "s2"]
    assert seen["stored"] == [2, 3]
    assert all("read-only" in message and home not in message for message in seen["messages"])
