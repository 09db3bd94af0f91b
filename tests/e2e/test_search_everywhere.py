"""`session/search` without a session id searches all stored sessions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.client import Daemon
from tests.support.talk import assistant, user


@pytest.fixture
def daemon(spawn: Callable[..., Daemon]) -> Daemon:
    """Return a daemon with its own data folder."""
    return spawn()


def hits(daemon: Daemon, query: str) -> list[tuple[str, str]]:
    return [
        (hit["session_id"], hit["entry_id"]) for hit in daemon.call("session/search", query=query)["hits"]
    ]


def test_what_was_compacted_or_taken_back_is_found_in_any_session_open_or_not(daemon: Daemon) -> None:
    for name in ("first", "second"):
        daemon.call("session/start", session_id=name)
        said = [
            {"role": "user", "content": f"the {name} word is xylophone"},
            assistant(400),
            user(400),
            assistant(50),
        ]
        daemon.call("session/append", session_id=name, messages=said)
    daemon.call("session/compact", session_id="first", keep_messages=1, strategy="truncate")
    daemon.call("session/close", session_id="second")

    found = daemon.call("session/search", query="xylophone")

    assert sorted((hit["session_id"], hit["entry_id"]) for hit in found["hits"]) == [
        ("first", "e1"),
        ("second", "e1"),
    ]
    assert found["complete"] is True
    assert hits(daemon, "second xylophone") == [("second", "e1")]


def test_a_redacted_word_is_on_no_disk_and_in_no_search(daemon: Daemon, home: Path) -> None:
    daemon.call("session/start", session_id="s")
    secret = {"role": "user", "content": "the key is hunter2-swordfish, keep it"}
    daemon.call("session/append", session_id="s", messages=[secret, assistant(5), user(5)])
    before = hits(daemon, "swordfish")

    daemon.call("session/redact", session_id="s", entry_ids=["e1"])

    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert before == [("s", "e1")]
    assert b"swordfish" not in kept
    assert hits(daemon, "swordfish") == []


def test_a_deleted_session_is_on_no_disk_and_in_no_search(daemon: Daemon, home: Path) -> None:
    for name in ("a", "b"):
        daemon.call("session/start", session_id=name)
        daemon.call(
            "session/append", session_id=name, messages=[{"role": "user", "content": f"swordfish {name}x"}]
        )
    before = hits(daemon, "swordfish")

    daemon.call("session/delete", session_id="a")

    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert sorted(before) == [("a", "e1"), ("b", "e1")]
    assert hits(daemon, "swordfish") == [("b", "e1")]
    assert b"swordfish ax" not in kept


def test_a_session_in_memory_alone_is_not_in_the_index(daemon: Daemon) -> None:
    daemon.call("session/start", session_id="m", persist=False)
    daemon.call("session/append", session_id="m", messages=[{"role": "user", "content": "swordfish"}])

    assert hits(daemon, "swordfish") == []
