"""Short secrets, such as a PIN, leave a model's summary and every copy, or the answer says what is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback
from tests.support.own_loop import MODELS, environment
from tests.support.redacted import everything, on_disk
from tests.support.talk import CHARS4, call, result, said, turns, user
from tests.support.views import problems_of_providers

PASTED = {"role": "user", "content": "My PIN is 48213, and the code is 9x3wb. Never push to origin."}
SUMMARY = """## Goal
- Log in with the code.
## Constraints & Preferences
- PIN is 48213, code is 9x3wb
## Critical Context
- It begins with four and ends with three; the other one is nine-ex-three.
"""


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture
def summarised(spawn: Spawn, server: Loopback) -> tuple[Daemon, str]:
    """A session whose summary a model wrote."""
    server.play(Answer(text=SUMMARY, input_tokens=9000, output_tokens=200))
    daemon = spawn(env=environment("anthropic", server.base_url))
    session = str(
        daemon.call(
            "session/start",
            compaction={**CHARS4, "model": MODELS["anthropic"]},
            context_window=100_000,
            title="the pin 48213",
        )["session_id"]
    )
    limit = {"role": "user", "content": "Never touch the public API of src/parser.py."}
    messages = [PASTED, limit, call("t1", "read", path="src/parser.py"), result("t1", 300), *turns(20, 300)]
    daemon.call("session/append", session_id=session, messages=[*messages, user(20)])
    done = daemon.call("session/compact", session_id=session, keep_recent=2000)
    assert (done["strategy"], "48213" in done["summary"]) == ("summarize", True)
    return daemon, session


def test_a_models_summary_that_covers_a_redacted_message_is_made_anew_without_a_model(
    summarised: tuple[Daemon, str], server: Loopback
) -> None:
    daemon, session = summarised
    before = daemon.call("session/context", session_id=session)

    answer = daemon.call("session/redact", session_id=session, entry_ids=["e1"])

    after = daemon.call("session/context", session_id=session)
    summary = said(after["messages"][0])
    # Five digits may occur in a time or a checksum by chance, so only texts are searched for them.
    assert "48213" not in summary
    assert "48213" not in str(daemon.call("session/list")["sessions"][0]["title"])
    secrets = ("9x3wb", "nine-ex", "begins with four")
    assert [word for word in secrets if word in everything(daemon, session)] == []
    assert [on_disk(daemon.home, word) for word in secrets] == [[], [], []]
    assert "Never touch the public API of src/parser.py." in summary
    assert len(server.requests) == 1
    assert [said(one) for one in after["messages"][1:]] == [said(one) for one in before["messages"][1:]]
    assert after["tokens"] <= before["tokens"]
    assert problems_of_providers(daemon, session) == {}
    assert {row["where"] for row in answer["cleaned"]} >= {"messages", "summary", "title", "index"}
    assert answer["redacted"] == 1
    assert "left" not in answer
    daemon.call("session/close", session_id=session)
    daemon.call("session/start", session_id=session)
    assert daemon.call("session/context", session_id=session) == after


def test_a_message_that_still_holds_a_word_is_named_and_the_word_is_not(daemon: Daemon) -> None:
    session = str(daemon.call("session/start", system_prompt="The door opens with 48213.")["session_id"])
    again = {"role": "assistant", "content": "Your PIN 48213 works."}
    daemon.call("session/append", session_id=session, messages=[PASTED, again, *turns(2, 10)])

    answer = daemon.call("session/redact", session_id=session, entry_ids=["e1"])

    left = {row["where"]: row for row in answer["left"]}
    assert set(left) == {"messages", "settings"}
    assert left["messages"]["entry_ids"] == ["e2"]
    assert "48213" not in str(answer)
    assert all(row["why"] for row in answer["left"])
    once_more = daemon.call("session/redact", session_id=session, entry_ids=["e2"])
    assert {row["where"] for row in once_more["left"]} == {"settings"}


def test_an_export_that_was_made_before_is_named_as_long_as_it_is_there(spawn: Spawn) -> None:
    daemon = spawn()
    session = str(daemon.call("session/start")["session_id"])
    daemon.call("session/append", session_id=session, messages=[PASTED, *turns(2, 10)])
    kept, removed = daemon.home.parent / "kept.json", daemon.home.parent / "removed.json"
    for path in (kept, removed):
        daemon.call("session/export", session_id=session, format="neutral", path=str(path))
    removed.unlink()
    daemon.call("session/close", session_id=session)
    daemon.call("session/start", session_id=session)

    redacted = daemon.call("session/redact", session_id=session, entry_ids=["e1"])
    deleted = daemon.call("session/delete", session_id=session)

    for answer in (redacted, deleted):
        assert [(row["where"], row["path"]) for row in answer["left"]] == [("export", str(kept))]
    assert [path.name for path in (daemon.home / "sessions").iterdir()] == []
