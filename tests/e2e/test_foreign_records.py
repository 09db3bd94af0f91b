"""Stored messages after a restart: messages that are decoded lazily, and records of another program."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.talk import CHARS4, turns, user

WIZARD = 11
"""The number of the record that is no message."""


def rewritten(home: Path, number: int, old: bytes, new: bytes) -> None:
    """Replace `old` by `new` in record `number` of session `s`, and correct the record's checksum."""
    path = next((home / "sessions").glob("s-*.jsonl"))
    lines = path.read_bytes().splitlines()
    body = lines[number][: lines[number].rindex(b',"crc"')]
    assert old in body
    body = body.replace(old, new, 1)
    lines[number] = b'%b,"crc":"%08x"}' % (body, zlib.crc32(body))
    path.write_bytes(b"\n".join(lines) + b"\n")


def stored(spawn: Spawn, messages: list[dict[str, Any]]) -> None:
    """A session `s` on the disk."""
    daemon = spawn()
    daemon.call("session/start", session_id="s", model="acme/unheard-of-9", compaction=CHARS4)
    daemon.call("session/append", session_id="s", messages=messages)
    daemon.stop()


def with_a_wizard(home: Path, spawn: Spawn, number: int = WIZARD) -> Daemon:
    """A daemon, and a stored session of 20 messages of which one has a role that there is not."""
    stored(spawn, turns(10, 200))
    path = next((home / "sessions").glob("s-*.jsonl"))
    line = path.read_bytes().splitlines()[number]
    role = b'"user"' if b'"user"' in line else b'"assistant"'
    rewritten(home, number, role, b'"wizard"')
    return spawn()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/context", {}),
        ("session/context", {"format": "anthropic"}),
        ("session/history", {}),
        ("session/search", {"query": "nowhere to be found"}),
        ("session/compact", {"keep_messages": 2}),
        ("session/compact", {"keep_messages": 2, "dry_run": True}),
        ("session/configure", {"compaction": {"estimator": "tokenizer"}}),
    ],
)
def test_a_record_that_holds_no_message_is_told_where_it_is_needed(
    home: Path, spawn: Spawn, method: str, params: dict[str, Any]
) -> None:
    daemon = with_a_wizard(home, spawn)
    started = daemon.call("session/start", session_id="s")

    errors = [daemon.refusal(method, session_id="s", **params) for _ in range(2)]

    assert started["message_count"] == 20
    for error in errors:
        assert error.code == 1003
        assert f"Record {WIZARD + 1}" in error.message
        assert "role must be one of" in error.message
        assert (error.data["line"], error.data["readable_before"]) == (WIZARD + 1, WIZARD)
    assert daemon.call("agent/state", session_id="s")["message_count"] == 20
    assert daemon.call("session/append", session_id="s", messages=[user(5)])["entry_ids"] == ["e21"]
    assert daemon.call("session/expand", session_id="s", entry_ids=["e21"])["entries"]


@pytest.mark.parametrize("number", [-1, -20])
def test_a_record_that_an_opening_needs_and_that_holds_no_message_is_told_at_once(
    home: Path, spawn: Spawn, number: int
) -> None:
    daemon = with_a_wizard(home, spawn, number)

    errors = [daemon.refusal("session/start", session_id="s") for _ in range(2)]

    assert [error.code for error in errors] == [1003, 1003], "its lock is free again"
    records = len(next((home / "sessions").glob("s-*.jsonl")).read_bytes().splitlines())
    data = errors[0].data
    assert (data["line"], data["readable_before"]) == (records + number + 1, records + number)
    assert data["readable_after"] == -number - 1
    assert [row["session_id"] for row in daemon.call("session/list")["sessions"]] == ["s"]


def test_messages_that_their_meta_pinned_are_pinned_after_a_restart(spawn: Spawn) -> None:
    messages = turns(3, 50)
    messages[1]["meta"] = {"pinned": True}
    messages[4]["meta"] = {"pinned": True}
    stored(spawn, messages)
    daemon = spawn()
    daemon.call("session/start", session_id="s")

    first = daemon.call("session/pin", session_id="s", entry_ids=["e3"], pinned=True)
    second = daemon.call("session/pin", session_id="s", entry_ids=["e2"], pinned=False)

    assert first["pinned_entry_ids"] == ["e2", "e3", "e5"]
    assert second["pinned_entry_ids"] == ["e3", "e5"]


def test_the_history_has_the_same_titles_after_a_restart(spawn: Spawn) -> None:
    daemon = spawn()
    daemon.call("session/start", session_id="s", compaction=CHARS4)
    daemon.call("session/append", session_id="s", messages=turns(5, 50))
    before = daemon.call("session/history", session_id="s")
    daemon.stop()
    again = spawn()
    again.call("session/start", session_id="s")

    page = again.call("session/history", session_id="s", limit=3)
    whole = again.call("session/history", session_id="s")
    rest = again.call("session/history", session_id="s", **{"from": page["next"]})

    assert whole == before
    assert page["entries"] + rest["entries"] == before["entries"]
