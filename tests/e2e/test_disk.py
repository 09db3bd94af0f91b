"""Disks that fail, files that are damaged: acknowledged messages are safe, and losses are reported."""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import SERVE, Daemon
from tests.support.talk import CHARS4, turns, user
from tests.support.views import originals_in_order

LIMITED = """
import os, resource, sys
size = int(sys.argv[1])
# Python would write byte code that ends at the limit, and every later daemon would read it.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Runs a command with a limit on the size of the files that it writes: a disk that is full, to the byte."""

NOBODY = """
import ctypes, os, sys
if os.geteuid() == 0 and sys.platform == "linux":
    # PR_CAPBSET_DROP of CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: permissions hold for a superuser, too.
    for capability in (1, 2):
        assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Runs a command as someone whom a folder's permissions concern."""


def limited_to(size_bytes: int) -> tuple[str, ...]:
    return (sys.executable, "-c", LIMITED, str(size_bytes), *SERVE)


def stored(spawn: Spawn) -> Path:
    """The file of a session `s` with 20 messages and a compaction."""
    daemon = spawn()
    daemon.call("session/start", session_id="s", compaction={"context_window": 100_000, **CHARS4})
    daemon.call("session/append", session_id="s", messages=turns(10, 100))
    daemon.call("session/compact", session_id="s", keep_recent=500)
    daemon.stop()
    (path,) = daemon.home.rglob("*.jsonl")
    return path


def sealed(record: dict[str, Any]) -> bytes:
    """A journal's line: crc32 of the bytes before `,"crc"`."""
    body = json.dumps(record, separators=(",", ":")).encode()[:-1]
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def polite(daemon: Daemon, message: str) -> None:
    """Check that an error message shows no path of the data folder and no traceback, and the daemon lives."""
    assert str(daemon.home) not in message
    assert "Traceback" not in message
    assert daemon.call("daemon/ping") == {}


# --- the disk is full -------------------------------------------------------------------------------


def test_on_a_full_disk_what_was_acknowledged_stays_and_the_rest_is_refused(spawn: Spawn) -> None:
    daemon = spawn(command=limited_to(60_000))
    daemon.call("session/start", session_id="s", compaction={"context_window": 100_000, **CHARS4})
    kept = []
    for number in range(100):
        message = user(0, content=f"{number} " + "x" * 3000)
        asked = daemon.ask("session/append", session_id="s", messages=[message])
        if "error" in daemon.answer(asked).value:
            break
        kept.append(message)
    error = daemon.refused(asked)
    before = daemon.call("session/context", session_id="s")
    daemon.kill()

    assert error.code == 1005
    assert 10 < len(kept) < 20
    polite_message = error.message
    assert [m["content"] for m in before["messages"]] == [m["content"] for m in kept]
    again = spawn()
    assert again.call("session/start", session_id="s")["warnings"] == []
    polite(again, polite_message)
    assert again.call("session/context", session_id="s") == before
    ids = again.call("session/append", session_id="s", messages=turns(1, 5))["entry_ids"]
    assert ids == [f"e{len(kept) + 1}", f"e{len(kept) + 2}"]


def test_on_a_full_disk_reading_goes_on_and_small_things_still_fit(spawn: Spawn) -> None:
    daemon = spawn(command=limited_to(20_000))
    daemon.call("session/start", session_id="s", compaction={"context_window": 100_000, **CHARS4})
    daemon.call("session/append", session_id="s", messages=turns(4, 100))
    before = daemon.call("session/history", session_id="s")

    big = daemon.refusal("session/append", session_id="s", messages=[user(6000)])
    after = daemon.call("session/history", session_id="s")
    usage = daemon.call("agent/state", session_id="s")["token_usage"]
    small = daemon.call("session/append", session_id="s", messages=[user(5)])

    assert big.code == 1005
    polite(daemon, big.message)
    assert after == before
    assert usage["current_context_tokens"] == 800
    assert small["entry_ids"] == ["e9"]


def test_a_compaction_that_finds_the_disk_full_fails_and_changes_nothing(spawn: Spawn) -> None:
    path = stored(spawn)
    daemon = spawn(command=limited_to(path.stat().st_size + 700))
    daemon.call("session/start", session_id="s")
    before = daemon.call("session/context", session_id="s")

    error = daemon.refusal("session/compact", session_id="s", keep_recent=300)

    assert error.code == 1005
    end = daemon.event("compaction_end", "s").value["params"]
    assert (end["status"], end["error"]["code"]) == ("failed", 1005)
    assert daemon.call("session/context", session_id="s") == before
    assert daemon.call("agent/state", session_id="s")["compaction"]["running"] is False
    polite(daemon, error.message)


def test_an_import_that_finds_the_disk_full_leaves_no_session(spawn: Spawn) -> None:
    daemon = spawn(command=limited_to(20_000))
    messages = [{"role": "user", "content": "x" * 3000} for _ in range(20)]

    error = daemon.refusal("session/import", content=json.dumps({"messages": messages}), format="neutral")

    assert error.code == 1005
    assert daemon.call("session/list")["sessions"] == []
    assert list(daemon.home.rglob("*.jsonl")) == []
    polite(daemon, error.message)


# --- the folder cannot be written -------------------------------------------------------------------


def test_where_the_folder_is_a_file_starting_says_so_and_memory_still_works(
    spawn: Spawn, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    daemon = spawn(tmp_path / "file" / "home")

    error = daemon.refusal("session/start", session_id="s")

    assert error.code == 1005
    polite(daemon, error.message)
    assert daemon.call("session/start", session_id="s", persist=False)["resumed"] is False
    assert daemon.call("session/append", session_id="s", messages=turns(1, 5))["entry_ids"] == ["e1", "e2"]
    assert (tmp_path / "file").read_text() == "mine"


def test_where_the_folder_is_read_only_starting_says_so(spawn: Spawn, tmp_path: Path) -> None:
    home = tmp_path / "locked"
    home.mkdir()
    home.chmod(0o500)
    daemon = spawn(home, command=(sys.executable, "-c", NOBODY, *SERVE))

    error = daemon.refusal("session/start", session_id="s")

    home.chmod(0o700)
    assert error.code == 1005
    polite(daemon, error.message)


# --- the file is damaged ----------------------------------------------------------------------------


def test_a_damaged_record_in_the_middle_is_told_with_what_could_be_saved(spawn: Spawn) -> None:
    path = stored(spawn)
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = len(lines) // 2
    lines[damaged] = lines[damaged].replace(b"went", b"want", 1)
    path.write_bytes(b"".join(lines))
    daemon = spawn()

    error = daemon.refusal("session/start", session_id="s")

    assert error.code == 1003
    assert error.data["line"] == damaged + 1
    assert error.data["readable_before"] == damaged
    assert error.data["readable_after"] == len(lines) - damaged - 1
    assert "doctor" in error.message
    polite(daemon, error.message)
    assert path.read_bytes() == b"".join(lines), "nothing is changed"
    assert [row["session_id"] for row in daemon.call("session/list")["sessions"]] == ["s"]


@pytest.mark.parametrize("cut", [1, 7, 60, 300])
def test_a_journal_that_ends_in_the_middle_of_a_record_opens_to_what_was_whole(
    spawn: Spawn, cut: int
) -> None:
    daemon = spawn()
    daemon.call("session/start", session_id="s")
    messages = turns(10, 100)
    daemon.call("session/append", session_id="s", messages=messages)
    daemon.kill()
    (path,) = daemon.home.rglob("*.jsonl")
    path.write_bytes(path.read_bytes()[:-cut])

    again = spawn()
    started = again.call("session/start", session_id="s")
    history = again.answer(again.ask("session/history", session_id="s")).body

    whole = 20 if cut == 1 else 19  # without its line end alone, the last record is whole
    assert originals_in_order(history, messages) == started["message_count"] == whole
    assert any("incomplete" in warning for warning in started["warnings"]) == (cut > 1)
    again.call("session/append", session_id="s", messages=turns(1, 5))
    again.kill()
    last = spawn()
    assert last.call("session/start", session_id="s")["warnings"] == []
    body = last.answer(last.ask("session/history", session_id="s")).body
    assert originals_in_order(body, [*messages[:whole], *turns(1, 5)]) == whole + 2


def test_a_session_of_a_newer_version_is_not_touched(spawn: Spawn) -> None:
    path = stored(spawn)
    first, *rest = path.read_bytes().splitlines(keepends=True)
    record = json.loads(first)
    del record["crc"]
    path.write_bytes(b"".join([sealed({**record, "v": 99}), *rest]))
    before = path.read_bytes()
    daemon = spawn()

    error = daemon.refusal("session/start", session_id="s")

    assert error.code == 1010
    assert "99" in error.message
    polite(daemon, error.message)
    assert path.read_bytes() == before


def test_a_file_that_is_no_journal_is_neither_listed_nor_in_the_way(spawn: Spawn) -> None:
    path = stored(spawn)
    (path.parent / "notes-0123456789abcdef.jsonl").write_text("hello\n")
    (path.parent / "empty-0123456789abcdef.jsonl").write_text("")
    daemon = spawn()

    rows = daemon.call("session/list")["sessions"]

    assert [row["session_id"] for row in rows] == ["s"]
    assert daemon.call("session/start", session_id="s")["resumed"] is True


def test_nobody_else_on_the_machine_can_read_a_session(spawn: Spawn) -> None:
    path = stored(spawn)

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_session_file_that_is_copied_elsewhere_is_the_same_session(spawn: Spawn, tmp_path: Path) -> None:
    path = stored(spawn)
    other = tmp_path / "other" / "sessions"
    other.mkdir(parents=True)
    (other / path.name).write_bytes(path.read_bytes())

    here, there = spawn(), spawn(tmp_path / "other")
    for daemon in (here, there):
        daemon.call("session/start", session_id="s")

    assert here.call("session/context", session_id="s") == there.call("session/context", session_id="s")
    assert here.call("session/history", session_id="s") == there.call("session/history", session_id="s")
