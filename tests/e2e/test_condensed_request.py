"""A pasted request that is larger than a third of `target_tokens` is shown condensed, and the journal keeps
the whole."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.pastes import LOG
from tests.support.talk import CHARS4, Message, turns
from tests.support.views import problems_of_providers

ASKS = "Mend the loader. Never touch cache.py.\n\n"
ENDS = "\nTell me what failed.\n"
PASTE = ASKS + LOG * 55 + ENDS


def asked(text: str = PASTE) -> Message:
    picture = {"type": "image", "media_type": "image/png", "data": base64.b64encode(b"png").decode()}
    return {"role": "user", "content": [{"type": "text", "text": text}, picture]}


def started(daemon: Daemon, *messages: Message) -> str:
    session = str(
        daemon.call("session/start", compaction={"context_window": 200_000, **CHARS4})["session_id"]
    )
    daemon.call("session/append", session_id=session, messages=[*turns(4, 900), *messages])
    return session


def only_asked(daemon: Daemon) -> str:
    session = str(daemon.call("session/start", compaction=CHARS4)["session_id"])
    daemon.call("session/append", session_id=session, messages=[asked()])
    return session


def shown(daemon: Daemon, session: str, entry_id: str = "e9") -> dict[str, Any]:
    context = daemon.call("session/context", session_id=session)
    (found,) = [message for message in context["messages"] if message["entry_id"] == entry_id]
    return dict(found)


def text_of(message: dict[str, Any]) -> str:
    return str(message["content"][0]["text"])


def test_a_pasted_request_of_50000_tokens_is_compacted_to_8000(daemon: Daemon) -> None:
    session = started(daemon, asked())

    tried = daemon.call("session/compact", session_id=session, target_tokens=8_000, dry_run=True)
    done = daemon.call("session/compact", session_id=session, target_tokens=8_000)

    assert done["tokens_before"] > 50_000
    assert done["tokens_after"] == tried["tokens_after"] <= 8_000
    assert done["condensed_request"] == tried["condensed_request"] == "e9"
    assert "the newest request is shown condensed, in 2," in done["reason"]
    message = shown(daemon, session)
    assert message["role"] == "user"
    assert text_of(message).startswith("Mend the loader. Never touch cache.py.\n\n> 2026-11-27")
    assert text_of(message).endswith("\n\nTell me what failed.\n")
    assert "tokens; session/expand e9 shows all] …\n" in text_of(message)
    assert message["content"][1] == asked()["content"][1]
    assert problems_of_providers(daemon, session) == {}
    assert daemon.call("session/context", session_id=session)["tokens"] == done["tokens_after"]


def test_expand_and_the_history_have_the_whole_request(daemon: Daemon) -> None:
    session = started(daemon, asked())
    daemon.call("session/compact", session_id=session, target_tokens=8_000)

    expanded = daemon.call("session/expand", session_id=session, entry_ids=["e9"])
    rows = daemon.call("session/history", session_id=session, in_context=True)["entries"]

    assert [entry["message"]["content"] for entry in expanded["entries"]] == [asked()["content"]]
    (row,) = [row for row in rows if row["entry_id"] == "e9"]
    assert row["message"]["content"] == asked()["content"]
    assert row["tokens"] < 2_700


def test_undo_shows_the_whole_request_and_redo_the_condensed_one(daemon: Daemon) -> None:
    session = started(daemon, asked())
    before = daemon.call("session/context", session_id=session)
    daemon.call("session/compact", session_id=session, target_tokens=8_000)
    after = daemon.call("session/context", session_id=session)

    daemon.call("session/undo", session_id=session)
    undone = daemon.call("session/context", session_id=session)
    daemon.call("session/redo", session_id=session)
    redone = daemon.call("session/context", session_id=session)

    assert undone["messages"] == before["messages"]
    assert redone["messages"] == after["messages"] != before["messages"]
    assert (undone["tokens"], redone["tokens"]) == (before["tokens"], after["tokens"])


def test_a_second_compaction_condenses_further_and_always_from_the_whole(daemon: Daemon) -> None:
    session, fresh = started(daemon, asked()), started(daemon, asked())
    daemon.call("session/compact", session_id=session, target_tokens=8_000)

    again = daemon.call("session/compact", session_id=session, target_tokens=2_000)
    daemon.call("session/compact", session_id=fresh, target_tokens=2_000)

    assert again["condensed_request"] == "e9"
    assert text_of(shown(daemon, session)) == text_of(shown(daemon, fresh))
    assert text_of(shown(daemon, session)).count("shows all") == 1


def test_a_condensed_request_that_is_no_longer_the_newest_is_summarised_from_the_whole(
    daemon: Daemon,
) -> None:
    session = started(daemon, asked())
    daemon.call("session/compact", session_id=session, target_tokens=8_000)
    daemon.call("session/append", session_id=session, messages=turns(20, 500))

    daemon.call("session/compact", session_id=session, target_tokens=19_000)
    summary, *rest = daemon.call("session/context", session_id=session)["messages"]

    assert "e9" not in [message["entry_id"] for message in rest]
    assert "- Never touch cache.py. [e9]" in text_of(summary)
    assert "shows all" not in text_of(summary)


@pytest.mark.parametrize("alone", [False, True])
def test_a_restart_an_export_and_an_import_keep_it(spawn: Spawn, alone: bool) -> None:
    daemon = spawn()
    session = only_asked(daemon) if alone else started(daemon, asked())
    entry_id = "e1" if alone else "e9"
    done = daemon.call("session/compact", session_id=session, target_tokens=8_000)
    before = shown(daemon, session, entry_id)
    exported = daemon.call("session/export", session_id=session, format="compactd")["content"]
    neutral = daemon.call("session/export", session_id=session, format="neutral")["content"]
    daemon.kill()

    again = spawn()
    again.call("session/start", session_id=session)
    copy = str(again.call("session/import", content=exported)["session_id"])

    assert done["condensed_request"] == entry_id
    assert shown(again, session, entry_id) == before
    assert shown(again, copy, entry_id)["content"] == before["content"]
    assert PASTE in [
        block["text"]
        for message in json.loads(neutral)["messages"]
        for block in message["content"]
        if not isinstance(message["content"], str) and block["type"] == "text"
    ]
    again.call("session/undo", session_id=session)
    assert text_of(shown(again, session, entry_id)) == PASTE


def test_a_redaction_reaches_the_condensed_request(daemon: Daemon) -> None:
    session = started(daemon, asked())
    daemon.call("session/compact", session_id=session, target_tokens=8_000)

    daemon.call("session/redact", session_id=session, entry_ids=["e9"])

    assert "loader" not in json.dumps(daemon.call("session/context", session_id=session))
    assert text_of(shown(daemon, session)) == "[redacted]"


@pytest.mark.parametrize("alone", [False, True])
def test_a_follower_sees_the_condensed_request(spawn: Spawn, alone: bool) -> None:
    daemon, other = spawn(), spawn()
    session = only_asked(daemon) if alone else started(daemon, asked())
    entry_id = "e1" if alone else "e9"
    other.call("session/start", session_id=session, read_only=True)

    daemon.call("session/compact", session_id=session, target_tokens=8_000)

    end = other.event("compaction_end", session).value["params"]
    assert end["result"]["pruned_tool_results"] == 0
    assert shown(other, session, entry_id)["content"] == shown(daemon, session, entry_id)["content"]


def test_a_target_that_is_too_small_names_the_least_that_would_do(daemon: Daemon) -> None:
    session = started(daemon, asked())

    refused = daemon.refusal("session/compact", session_id=session, target_tokens=40)
    least = refused.data["least_target"]
    one_less = daemon.refusal("session/compact", session_id=session, target_tokens=least - 1)
    done = daemon.call("session/compact", session_id=session, target_tokens=least)

    assert (refused.code, one_less.code) == (1008, 1008)
    assert refused.message.endswith(f"; the least that would do is {least:,} tokens.")
    assert one_less.data["least_target"] == least
    assert done["compacted"] is True
    assert done["tokens_after"] <= least
