"""What a client can show without computing it: the context in order, the gauge's decision, the title."""

from __future__ import annotations

from typing import Any

from tests.support.client import Daemon
from tests.support.talk import CHARS4, turns, user


def started(daemon: Daemon, window: int = 100_000) -> str:
    session = str(daemon.call("session/start", compaction={"context_window": window, **CHARS4})["session_id"])
    daemon.call("session/append", session_id=session, messages=[user(30, 99), *turns(6, 200)])
    return session


def test_the_history_of_the_context_is_what_the_context_holds_in_its_order(daemon: Daemon) -> None:
    session = started(daemon)
    daemon.call("session/pin", session_id=session, entry_ids=["e1"])
    daemon.call("session/compact", session_id=session, keep_recent=600)

    shown = daemon.call("session/history", session_id=session, in_context=True)
    context = daemon.call("session/context", session_id=session)
    whole = {
        entry["entry_id"]: entry for entry in daemon.call("session/history", session_id=session)["entries"]
    }

    entries = shown["entries"]
    assert [entry["entry_id"] for entry in entries] == [each["entry_id"] for each in context["messages"]]
    assert entries == [whole[entry["entry_id"]] for entry in entries]
    assert [entry["kind"] for entry in entries[:3]] == ["compaction", "message", "message"]
    assert [entry.get("carried", False) for entry in entries[:3]] == [False, True, False]
    assert shown["total"] == len(entries)
    assert shown["summarised"] == 13 - (len(entries) - 1)
    assert "summarised" not in daemon.call("session/history", session_id=session)


def test_the_context_can_be_read_in_pages(daemon: Daemon) -> None:
    session = started(daemon)
    daemon.call("session/pin", session_id=session, entry_ids=["e1"])
    daemon.call("session/compact", session_id=session, keep_recent=600)
    whole = daemon.call("session/history", session_id=session, in_context=True)["entries"]

    seen: list[dict[str, Any]] = []
    params: dict[str, str] = {}
    while True:
        page = daemon.call("session/history", session_id=session, in_context=True, limit=2, **params)
        seen += page["entries"]
        if "next" not in page:
            break
        params = {"from": page["next"]}

    assert seen == whole
    assert page["total"] == len(whole)
    assert len(whole) > 3


def test_originals_come_with_their_sizes(daemon: Daemon) -> None:
    session = started(daemon)

    done = daemon.call("session/expand", session_id=session, entry_ids=["e1", "e2"])

    assert [entry["tokens"] for entry in done["entries"]] == [30, 200]


def test_the_usage_says_whether_a_compaction_is_due(daemon: Daemon) -> None:
    session = started(daemon, window=4_000)

    seen = []
    for tokens in (10, 1_100, 3_000):
        done = daemon.call("session/append", session_id=session, messages=[user(tokens)])
        seen.append((done["token_usage"]["decision"], done["decision"]["kind"]))
    state = daemon.call("agent/state", session_id=session)

    assert seen == [("fits", "fits"), ("due", "due"), ("over", "over")]
    assert state["token_usage"]["decision"] == "over"


def test_a_title_comes_with_the_first_words_and_with_every_state(daemon: Daemon) -> None:
    new = daemon.call("session/start", model="openai/gpt-4o")
    session = new["session_id"]
    before = daemon.call("agent/state", session_id=session)["title"]
    daemon.call(
        "session/append",
        session_id=session,
        messages=[{"role": "user", "content": "Mend the loader\nplease"}],
    )

    assert (new["title"], before) == (None, None)
    assert daemon.call("agent/state", session_id=session)["title"] == "Mend the loader"
    assert daemon.call("session/start", session_id=session)["title"] == "Mend the loader"
