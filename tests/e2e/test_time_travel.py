"""Undo, redo, expand, search, pin (docs/dev/behaviour.md, "Time travel"): no message is ever lost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.talk import CHARS4, Message, assistant, said, turns, user
from tests.support.views import problems_of_providers

KEEP = 600


def started(daemon: Daemon, messages: list[Message], window: int = 100_000) -> str:
    session = str(daemon.call("session/start", compaction={"context_window": window, **CHARS4})["session_id"])
    daemon.call("session/append", session_id=session, messages=messages)
    return session


def ids(daemon: Daemon, session: str) -> list[str]:
    """Entry ids of the context."""
    context = daemon.call("session/context", session_id=session)
    return [message["entry_id"] for message in context["messages"]]


def compact(daemon: Daemon, session: str, **params: Any) -> dict[str, Any]:
    done = daemon.call("session/compact", session_id=session, **({"keep_recent": KEEP} | params))
    assert done["compacted"] is True, done["reason"]
    return dict(done)


# --- undo and redo ----------------------------------------------------------------------------------


def test_undo_brings_the_view_back_and_redo_the_compaction(daemon: Daemon) -> None:
    session = started(daemon, turns(6, 200))
    before = ids(daemon, session)
    done = compact(daemon, session)
    compacted = ids(daemon, session)

    undone = daemon.call("session/undo", session_id=session)
    back = ids(daemon, session)
    redone = daemon.call("session/redo", session_id=session)

    assert back == before
    assert ids(daemon, session) == compacted
    assert undone["compaction_id"] == redone["compaction_id"] == done["compaction_id"]
    assert (undone["message_count"], redone["message_count"]) == (12, len(compacted))
    assert undone["token_usage"]["current_context_tokens"] == 2400
    assert redone["token_usage"]["current_context_tokens"] == done["tokens_after"]
    assert [undone["token_usage"]["epoch"], redone["token_usage"]["epoch"]] == [3, 4]


def test_undo_and_redo_walk_a_stack_of_compactions(daemon: Daemon) -> None:
    session = started(daemon, turns(6, 200))
    views = [ids(daemon, session)]
    for _ in range(3):
        compact(daemon, session)
        views.append(ids(daemon, session))
        daemon.call("session/append", session_id=session, messages=turns(3, 200))
    tails = [f"e{n}" for n in range(13 + 3 * 7)]  # the entries of all there is

    seen = []
    for _ in range(3):
        daemon.call("session/undo", session_id=session)
        seen.append(ids(daemon, session))

    assert daemon.refusal("session/undo", session_id=session).code == 1011
    assert seen[2] == [entry for entry in tails if entry in seen[2]], "in order, all originals"
    assert len(seen[2]) == 12 + 3 * 6
    assert [view[0] for view in seen[:2]] == [views[2][0], views[1][0]], "the earlier summary stands again"
    for expected in (seen[1], seen[0]):
        daemon.call("session/redo", session_id=session)
        assert ids(daemon, session) == expected
    daemon.call("session/redo", session_id=session)
    assert ids(daemon, session)[0] == views[3][0]
    assert daemon.refusal("session/redo", session_id=session).code == 1011


def test_later_messages_stay_when_a_compaction_is_undone(daemon: Daemon) -> None:
    session = started(daemon, turns(6, 200))
    compact(daemon, session)
    later = daemon.call("session/append", session_id=session, messages=[user(10), assistant(10)])

    daemon.call("session/undo", session_id=session)

    assert ids(daemon, session) == [f"e{n}" for n in range(1, 13)] + later["entry_ids"]


def test_a_new_compaction_clears_what_could_be_redone(daemon: Daemon) -> None:
    session = started(daemon, turns(6, 200))
    compact(daemon, session)
    daemon.call("session/undo", session_id=session)

    compact(daemon, session, keep_recent=1000)

    error = daemon.refusal("session/redo", session_id=session)
    assert error.code == 1011
    assert "redo" in error.message


def test_with_nothing_to_undo_the_error_says_so_and_nothing_changes(daemon: Daemon) -> None:
    session = started(daemon, turns(2, 10))
    before = ids(daemon, session)

    undo = daemon.refusal("session/undo", session_id=session)
    redo = daemon.refusal("session/redo", session_id=session)

    assert (undo.code, redo.code) == (1011, 1011)
    assert "undo" in undo.message
    assert ids(daemon, session) == before


def test_an_undo_that_would_not_fit_is_refused_with_the_numbers(daemon: Daemon) -> None:
    session = started(daemon, turns(5, 90), window=1000)
    compact(daemon, session, keep_recent=200)
    daemon.call("session/append", session_id=session, messages=turns(1, 120))
    view = ids(daemon, session)

    error = daemon.refusal("session/undo", session_id=session)

    assert error.code == 1008
    assert (error.data["used"], error.data["window"]) == (1140, 1000)
    assert ids(daemon, session) == view


def test_where_compaction_is_disabled_an_undo_that_does_not_fit_is_the_clients_own_affair(
    daemon: Daemon,
) -> None:
    session = started(daemon, turns(5, 90), window=1000)
    compact(daemon, session, keep_recent=200)
    daemon.call("session/append", session_id=session, messages=turns(1, 120))
    daemon.call("session/configure", session_id=session, compaction={"enabled": False})

    undone = daemon.call("session/undo", session_id=session)

    assert undone["message_count"] == 12


def test_undo_redo_and_epoch_survive_a_killed_daemon(spawn: Spawn) -> None:
    daemon = spawn()
    session = started(daemon, turns(6, 200))
    compact(daemon, session)
    compacted = ids(daemon, session)
    daemon.call("session/undo", session_id=session)
    daemon.kill()

    again = spawn()
    started_again = again.call("session/start", session_id=session)

    assert started_again["token_usage"]["epoch"] == 3
    assert ids(again, session) == [f"e{n}" for n in range(1, 13)]
    again.call("session/redo", session_id=session)
    assert ids(again, session) == compacted


# --- expand, search, history ------------------------------------------------------------------------


def test_expand_gives_the_originals_by_compaction_or_by_entry(daemon: Daemon) -> None:
    messages = turns(6, 200)
    session = started(daemon, messages)
    done = compact(daemon, session)

    behind = daemon.call("session/expand", session_id=session, compaction_id=done["compaction_id"])
    named = daemon.call("session/expand", session_id=session, entry_ids=["e12", "e1"])

    removed = done["messages_removed"]
    assert [one["entry_id"] for one in behind["entries"]] == [f"e{n + 1}" for n in range(removed)]
    assert [one["message"] for one in behind["entries"]] == messages[:removed]
    assert [(one["entry_id"], one["message"]) for one in named["entries"]] == [
        ("e12", messages[11]),
        ("e1", messages[0]),
    ]


def test_a_second_compactions_summary_stands_for_everything_before_it(daemon: Daemon) -> None:
    session = started(daemon, turns(6, 200))
    compact(daemon, session)
    daemon.call("session/append", session_id=session, messages=turns(4, 200))

    done = compact(daemon, session)

    behind = daemon.call("session/expand", session_id=session, compaction_id=done["compaction_id"])
    told = [one["entry_id"] for one in behind["entries"]]
    kept = ids(daemon, session)[1:]
    history = daemon.call("session/history", session_id=session)["entries"]
    originals = [entry["entry_id"] for entry in history if entry["kind"] == "message"]
    assert told + kept == originals


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"compaction_id": "c9"}, "$.compaction_id"),
        ({"entry_ids": ["e1", "e99"]}, "$.entry_ids[1]"),
        ({}, "$.entry_ids"),
        ({"compaction_id": "c1", "entry_ids": ["e1"]}, "$.entry_ids"),
    ],
)
def test_expanding_what_is_not_there_names_the_field(
    daemon: Daemon, params: dict[str, Any], path: str
) -> None:
    session = started(daemon, turns(6, 200))
    compact(daemon, session)

    error = daemon.refusal("session/expand", session_id=session, **params)

    assert (error.code, error.data["path"]) == (-32602, path)


def test_search_finds_what_was_compacted_whatever_its_case(daemon: Daemon) -> None:
    needle = user(0, content="The Straße of the ZEBRA-42 cache key")
    session = started(daemon, [needle, *turns(6, 200), user(0, content="no zebra-42 here? yes")])
    compact(daemon, session)

    hits = daemon.call("session/search", session_id=session, query="zebra-42")["hits"]

    assert [(hit["entry_id"], hit["role"], hit["in_context"]) for hit in hits] == [
        ("e14", "user", True),
        ("e1", "user", False),
    ]
    assert "ZEBRA-42" in hits[1]["snippet"]
    assert daemon.call("session/search", session_id=session, query="giraffe")["hits"] == []
    limited = daemon.call("session/search", session_id=session, query="zebra-42", limit=1)["hits"]
    assert limited == hits[:1]


def test_search_looks_into_tool_calls_and_results(daemon: Daemon) -> None:
    call = {"type": "tool_call", "call_id": "t", "name": "grep", "arguments": {"pattern": "needle_in_call"}}
    result = {
        "type": "tool_result",
        "call_id": "t",
        "content": [{"type": "text", "text": "needle_in_result"}],
    }
    session = started(
        daemon,
        [user(5), {"role": "assistant", "content": [call]}, {"role": "tool", "content": [result]}],
    )

    found = [
        [hit["entry_id"] for hit in daemon.call("session/search", session_id=session, query=query)["hits"]]
        for query in ("NEEDLE_IN_CALL", "needle_in_result")
    ]

    assert found == [["e2"], ["e3"]]


def test_the_history_can_be_read_in_pages_from_any_entry(daemon: Daemon) -> None:
    session = started(daemon, turns(6, 200))
    compact(daemon, session)
    whole = daemon.call("session/history", session_id=session)

    pages: list[list[dict[str, Any]]] = []
    params: dict[str, str] = {}
    while True:
        page = daemon.call("session/history", session_id=session, limit=5, **params)
        pages.append(page["entries"])
        if "next" not in page:
            break
        params = {"from": page["next"]}

    assert "next" not in whole
    assert [len(page) for page in pages] == [5, 5, 3]
    assert [entry for page in pages for entry in page] == whole["entries"]


def test_user_entries_have_the_first_line_that_means_something_as_their_title(daemon: Daemon) -> None:
    session = started(
        daemon,
        [
            user(0, content="\n\n  Fix the loader  \nplease, " + "very much " * 30),
            assistant(5),
            user(0, content="w" * 200),
            user(0, content="Continue.", meta={"synthetic": True}),
        ],
    )

    entries = daemon.call("session/history", session_id=session)["entries"]

    titles = [entry.get("title") for entry in entries]
    assert titles[0] == "Fix the loader"
    assert titles[1] is None
    assert titles[2] is not None
    assert len(titles[2]) <= 60
    assert titles[3] is None


# --- pin --------------------------------------------------------------------------------------------


def test_a_pinned_message_survives_every_compaction_until_it_is_let_go(daemon: Daemon) -> None:
    session = started(daemon, [user(30, 99), *turns(6, 200)])

    pinned = daemon.call("session/pin", session_id=session, entry_ids=["e1"])
    first = compact(daemon, session)
    daemon.call("session/append", session_id=session, messages=turns(4, 200))
    second = compact(daemon, session)
    kept = ids(daemon, session)
    free = daemon.call("session/pin", session_id=session, entry_ids=["e1"], pinned=False)
    daemon.call("session/append", session_id=session, messages=turns(4, 200))
    third = compact(daemon, session)

    assert pinned["pinned_entry_ids"] == ["e1"]
    assert "e1" in first["pinned_entry_ids"]
    assert "e1" in second["pinned_entry_ids"]
    assert kept[1] == "e1"
    assert free["pinned_entry_ids"] == []
    assert "e1" not in third["pinned_entry_ids"]
    assert "e1" not in ids(daemon, session)


def test_a_message_can_ask_to_be_pinned_itself(daemon: Daemon) -> None:
    session = started(daemon, [user(30, 99, meta={"pinned": True}), *turns(6, 200)])

    done = compact(daemon, session)

    assert done["pinned_entry_ids"] == ["e1"]
    assert said(daemon.call("session/context", session_id=session)["messages"][1]) == said(user(30, 99))
    assert problems_of_providers(daemon, session) == {}


def test_what_is_pinned_and_does_not_fit_goes_into_the_summary_and_the_result_says_so(daemon: Daemon) -> None:
    session = started(daemon, turns(4, 1000), window=10_000)
    daemon.call("session/pin", session_id=session, entry_ids=["e1", "e2", "e3"])

    done = compact(daemon, session, keep_recent=1500)

    assert len(done["pinned_entry_ids"]) < 3, "the cap is an eighth of the window: 1,250 tokens"
    assert "pinned" in done["reason"]
    assert done["tokens_after"] < done["tokens_before"]


def test_pinning_what_is_no_message_names_the_field(daemon: Daemon) -> None:
    session = started(daemon, turns(2, 10))

    error = daemon.refusal("session/pin", session_id=session, entry_ids=["e1", "nonsense"])

    assert (error.code, error.data["path"]) == (-32602, "$.entry_ids[1]")
    assert "session/history" in error.message


def test_a_pin_survives_a_killed_daemon(spawn: Spawn) -> None:
    daemon = spawn()
    session = started(daemon, [user(30, 99), *turns(6, 200)])
    daemon.call("session/pin", session_id=session, entry_ids=["e1"])
    daemon.kill()

    again = spawn()
    again.call("session/start", session_id=session)

    assert compact(again, session)["pinned_entry_ids"] == ["e1"]
