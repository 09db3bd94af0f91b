"""Requests to one session take effect in the order in which they came, even if the client does not wait for
the answers (docs/dev/contract.md, "Transport").
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.talk import CHARS4, Message, assistant, said, text, turns, user

LARGE = 60_000
"""Tokens of a message that a worker counts."""


def large() -> Message:
    """A message that takes the daemon a moment, in which later requests wait."""
    return {"role": "user", "content": text(LARGE)}


@pytest.fixture
def name(daemon: Daemon) -> str:
    """An id that no session has yet."""
    return f"order-{daemon.now}"


def added(daemon: Daemon, name: str, *messages: Message) -> int:
    """Asks to append messages."""
    return daemon.ask("session/append", session_id=name, messages=messages)


def codes(daemon: Daemon, asked: list[int]) -> list[int | None]:
    """The error codes of the answers."""
    return [daemon.answer(one).value.get("error", {}).get("code") for one in asked]


def test_what_follows_a_start_or_a_large_message_waits_for_it(daemon: Daemon, name: str) -> None:
    asked = [
        daemon.ask("session/start", session_id=name, compaction=CHARS4),
        added(daemon, name, user(5)),
        daemon.ask("agent/state", session_id=name),
        added(daemon, name, large()),
        added(daemon, name, assistant(5)),
        daemon.ask("session/context", session_id=name),
        daemon.ask("session/branch", session_id=name, entry_id="e1"),
        daemon.ask("session/history", session_id=name, in_context=True),
        daemon.ask("session/configure", session_id=name, title="The title"),
        added(daemon, name, large(), assistant(5)),
        daemon.ask("session/search", session_id=name, query="went"),
        daemon.ask("session/pin", session_id=name, entry_ids=["e5"]),
        daemon.ask("session/expand", session_id=name, entry_ids=["e4"]),
    ]

    results: list[Any] = [daemon.result(one) for one in asked]

    assert [results[at]["entry_ids"] for at in (1, 3, 4, 9)] == [["e1"], ["e2"], ["e3"], ["e4", "e5"]]
    assert results[2]["message_count"] == 1
    assert len(results[5]["messages"]) == 3
    assert [entry["entry_id"] for entry in results[7]["entries"]] == ["e1"]
    assert {hit["entry_id"] for hit in results[10]["hits"]} >= {"e4"}
    assert results[11]["pinned_entry_ids"] == ["e5"]
    assert daemon.call("agent/state", session_id=name)["title"] == "The title"


def test_a_second_start_takes_effect_in_its_place(daemon: Daemon, name: str) -> None:
    daemon.call("session/start", session_id=name, compaction=CHARS4)

    asked = [
        added(daemon, name, large()),
        daemon.ask("session/start", session_id=name, title="later"),
        daemon.ask("agent/state", session_id=name),
        added(daemon, name, user(5)),
    ]

    results = [daemon.result(one) for one in asked]
    assert (results[1]["resumed"], results[1]["message_count"]) == (True, 1)
    assert results[2]["title"] == "later"
    assert results[3]["entry_ids"] == ["e2"]


def test_a_session_can_be_closed_and_opened_again_while_others_wait(daemon: Daemon, name: str) -> None:
    asked = [
        daemon.ask("session/start", session_id=name, compaction=CHARS4),
        added(daemon, name, large()),
        daemon.ask("session/close", session_id=name),
        added(daemon, name, user(5)),
        daemon.ask("agent/state", session_id=name),
        daemon.ask("session/close", session_id=name),
        daemon.ask("session/start", session_id=name),
        added(daemon, name, user(5)),
    ]

    assert codes(daemon, asked) == [None, None, None, 1001, 1001, 1001, None, None]
    assert daemon.result(asked[-2])["message_count"] == 1
    assert daemon.result(asked[-1])["entry_ids"] == ["e2"]


def test_a_session_that_is_started_right_after_its_deletion_is_a_new_one(daemon: Daemon, name: str) -> None:
    daemon.call("session/start", session_id=name, compaction=CHARS4)
    asked = [
        added(daemon, name, large()),
        daemon.ask("session/delete", session_id=name),
        daemon.ask("session/context", session_id=name),
        daemon.ask("session/start", session_id=name, compaction=CHARS4),
        added(daemon, name, user(5)),
    ]

    assert codes(daemon, asked) == [None, None, 1001, None, None]
    assert daemon.result(asked[3])["resumed"] is False
    assert daemon.result(asked[4])["entry_ids"] == ["e1"]
    daemon.call("session/close", session_id=name)
    assert daemon.call("session/start", session_id=name)["message_count"] == 1


def test_requests_that_fail_or_are_cancelled_while_they_wait_stop_no_other(daemon: Daemon, name: str) -> None:
    daemon.call("session/start", session_id=name, compaction=CHARS4)
    asked = [
        added(daemon, name, large()),
        added(daemon, name, user(5, id="cancelled")),
        daemon.ask("session/undo", session_id=name),
        daemon.ask("session/branch", session_id=name, entry_id="e99"),
        added(daemon, name, user(6, id="last")),
    ]
    daemon.notify("$/cancelRequest", id=asked[1])

    failed = codes(daemon, asked)

    assert failed[1] in (-32800, None)
    assert failed[2:] == [1011, -32602, None]
    assert failed[0] is None
    messages = daemon.call("session/context", session_id=name)["messages"]
    assert said(messages[-1]) == text(6)


def test_the_state_and_other_sessions_wait_for_no_request(daemon: Daemon, name: str) -> None:
    for session_id in (name, f"{name} too"):
        daemon.call("session/start", session_id=session_id, compaction=CHARS4)
    daemon.call("session/append", session_id=name, messages=turns(400, 100))

    asked = added(daemon, name, *(user(LARGE, seed) for seed in range(20)))
    state = daemon.ask("agent/state", session_id=name)
    other = added(daemon, f"{name} too", user(5))

    assert daemon.answer(state).at < daemon.answer(asked).at
    assert daemon.answer(other).at < daemon.answer(asked).at
    assert daemon.result(state)["message_count"] == 800


def test_a_compaction_begins_in_its_place(daemon: Daemon, name: str) -> None:
    daemon.call("session/start", session_id=name, compaction=CHARS4)
    asked = [
        added(daemon, name, *turns(30, 100), large(), assistant(10)),
        daemon.ask("session/compact", session_id=name, strategy="extract", keep_recent=50),
        added(daemon, name, user(7)),
        daemon.ask("session/undo", session_id=name),
    ]

    results = [daemon.answer(one).value for one in asked]

    assert results[1]["result"]["messages_before"] == 62
    assert results[2]["result"]["entry_ids"] == ["e63"]
    assert results[3]["error"]["code"] == 1002
