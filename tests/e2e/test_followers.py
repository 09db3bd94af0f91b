"""Events that a follower gets: a daemon that has a session open read-only while another one writes it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback, Stall
from tests.support.own_loop import MODELS, Talk, environment
from tests.support.talk import CHARS4, assistant, turns, user

Two = tuple[Daemon, Daemon]


@pytest.fixture
def two(spawn: Spawn) -> Two:
    """The writer of the session `s`, and a daemon that follows it."""
    writer, reader = spawn(), spawn()
    writer.call("session/start", session_id="s", compaction={"context_window": 100_000, **CHARS4})
    writer.call("session/append", session_id="s", messages=turns(6, 200))
    assert reader.call("session/start", session_id="s")["read_only"] is True
    return writer, reader


def told(reader: Daemon, kind: str, **fields: Any) -> dict[str, Any]:
    """Return the first event of this kind, without the fields that every event has."""
    event = dict(reader.event(kind, "s", **fields).value["params"])
    return {name: value for name, value in event.items() if name not in ("session_id", "seq", "type")}


def test_appended_messages_are_told_with_their_entries(two: Two) -> None:
    writer, reader = two

    writer.call("session/append", session_id="s", messages=[user(5), assistant(5)])

    assert told(reader, "message_appended", entry_id="e13") == {
        "entry_id": "e13",
        "role": "user",
        "client": None,
    }
    assert told(reader, "message_appended", entry_id="e14")["role"] == "assistant"


def test_a_compaction_is_told_from_its_start_to_its_result(two: Two) -> None:
    writer, reader = two

    done = writer.call("session/compact", session_id="s", keep_recent=600)

    start = reader.event("compaction_start", "s")
    end = reader.event("compaction_end", "s")
    mine = next(e for e in writer.events("s") if e["type"] == "compaction_start")
    assert start.value["params"] == {**mine, "seq": start.value["params"]["seq"]}
    assert start.at < end.at
    ended = end.value["params"]
    assert (ended["compaction_id"], ended["status"]) == ("c1", "completed")
    result = {name: value for name, value in done.items() if name != "files_to_reread"}
    assert ended["result"] == result


def test_a_compaction_that_comes_to_nothing_has_its_end_too(spawn: Spawn) -> None:
    with Loopback() as server:
        writer, reader = spawn(env=environment("openai", server.base_url)), spawn()
        server.play(Stall("Half"))
        writer.call("session/start", session_id="s", model=MODELS["openai"], compaction=CHARS4)
        writer.call("session/append", session_id="s", messages=turns(6, 200))
        reader.call("session/start", session_id="s")

        asked = writer.ask(
            "session/compact",
            session_id="s",
            keep_recent=600,
            strategy="summarize",
            model=MODELS["openai"],
        )
        reader.event("compaction_start", "s")
        state = reader.call("agent/state", session_id="s")
        writer.notify("$/cancelRequest", id=asked)

        assert (state["status"], state["compaction"]["running"]) == ("compacting", True)
        assert told(reader, "compaction_end")["status"] == "cancelled"
        assert reader.call("agent/state", session_id="s")["status"] == "unknown"


def test_changes_that_are_no_messages_are_told_to_the_writers_client_and_to_a_follower(two: Two) -> None:
    writer, reader = two
    tool = {"name": "read", "input_schema": {"type": "object"}}

    writer.call("session/pin", session_id="s", entry_ids=["e1", "e3"])
    writer.call("session/configure", session_id="s", title="A title")
    writer.call("session/configure", session_id="s", compaction={"keep_messages": 3})
    writer.call("session/configure", session_id="s", system_prompt="Be brief.")
    writer.call("session/configure", session_id="s", tools=[tool])
    writer.call("session/branch", session_id="s", entry_id="e10")

    reader.event("session_changed", "s", what="branch")
    for daemon in two:
        changes = [e for e in daemon.events("s") if e["type"] == "session_changed"]
        assert [(e["what"], e["entry_ids"]) for e in changes] == [
            ("pin", ["e1", "e3"]),
            ("title", []),
            ("settings", []),
            ("settings", []),
            ("tools", []),
            ("branch", ["e10"]),
        ]
    assert reader.call("agent/state", session_id="s")["title"] == "A title"


def test_another_model_is_told(two: Two) -> None:
    writer, reader = two

    writer.call("model/set", session_id="s", model="openai/gpt-4o")

    mine = next(e for e in writer.events("s") if e["type"] == "model_changed")
    assert told(reader, "model_changed") == {
        "model": "openai/gpt-4o",
        "context_window": mine["context_window"],
    }


def test_a_redaction_tells_no_message_twice(two: Two) -> None:
    writer, reader = two
    epoch = reader.call("session/context", session_id="s")["epoch"]

    writer.call("session/redact", session_id="s", entry_ids=["e3"])
    at = -1
    while (got := reader.event("usage_update", "s", after=at)).value["params"]["usage"]["epoch"] == epoch:
        at = got.at
    writer.call("session/append", session_id="s", messages=[user(5)])

    told(reader, "message_appended", entry_id="e13")
    assert [e["entry_id"] for e in reader.events("s") if e["type"] == "message_appended"] == ["e13"]
    assert reader.call("session/context", session_id="s") == writer.call("session/context", session_id="s")


def test_what_the_writer_is_doing_is_unknown_until_it_has_ended(spawn: Spawn) -> None:
    with Loopback() as server:
        writer, reader = spawn(env=environment("anthropic", server.base_url)), spawn()
        server.play(Stall("The answer is"), Answer(text="Never asked."))
        writer.call("session/start", session_id="s", model=MODELS["anthropic"], client={"name": "one"})
        talk = Talk(writer, "s")
        talk.prompt("Hello")
        writer.event("message_delta", "s")

        reader.call("session/start", session_id="s")
        streaming = reader.call("agent/state", session_id="s")
        talk.prompt("And this, too")
        queued = told(reader, "message_queued")
        waiting = reader.call("agent/state", session_id="s")
        talk.stop()
        writer.kill()
        told(reader, "writer_changed", owner="none")
        after = reader.call("agent/state", session_id="s")

    assert (streaming["status"], streaming["compaction"]["running"]) == ("unknown", False)
    assert queued == {"turn_id": "t2"}
    assert waiting["prompts"] == [{"prompt_id": "t2", "client": None, "text_preview": "And this, too"}]
    assert after["status"] == "idle"


@pytest.mark.parametrize("ending", ["close", "kill", "stop"])
def test_the_loss_of_the_writer_is_told_and_the_next_start_takes_over(two: Two, ending: str) -> None:
    writer, reader = two
    writer.call("session/append", session_id="s", messages=[user(5)])
    match ending:
        case "close":
            writer.call("session/close", session_id="s")
        case "kill":
            writer.kill()
        case _:
            writer.stop()

    lost = reader.event("writer_changed", "s")
    refusal = reader.refusal("session/append", session_id="s", messages=[user(5)])
    at = reader.now
    answer = reader.call("session/start", session_id="s")

    assert lost.value["params"]["owner"] == "none"
    assert lost.at > reader.event("message_appended", "s", entry_id="e13").at
    assert refusal.code == 1004
    assert "no process" in refusal.message
    assert (answer["read_only"], answer["warnings"]) == (False, [])
    taken = reader.event("writer_changed", "s", after=at).value["params"]
    assert taken["owner"] == "this"
    assert answer["seq"] == taken["seq"] == lost.value["params"]["seq"] + 1
    assert reader.call("session/append", session_id="s", messages=[user(5)])["entry_ids"] == ["e14"]


def test_what_the_last_writer_did_is_not_the_client_s_who_takes_over(two: Two) -> None:
    writer, reader = two
    reader.call("session/start", session_id="s", client={"name": "reader"})
    writer.call("session/pin", session_id="s", entry_ids=["e1"])
    writer.kill()

    # Most of the time, the reader has not read the last change by itself.
    while reader.call("session/start", session_id="s", client={"name": "reader"})["read_only"]:
        time.sleep(0.01)

    assert told(reader, "session_changed", what="pin").get("client") is None


def test_another_writer_is_told(two: Two, spawn: Spawn) -> None:
    writer, reader = two
    writer.kill()
    told(reader, "writer_changed", owner="none")

    spawn().call("session/start", session_id="s")

    assert told(reader, "writer_changed", owner="other") == {"owner": "other"}
    assert "Another process" in reader.refusal("session/undo", session_id="s").message


def test_a_session_that_its_writer_deleted_is_gone_for_a_follower(two: Two) -> None:
    writer, reader = two

    writer.call("session/delete", session_id="s")
    listed = reader.call("session/list")["sessions"]

    assert listed == []
    assert told(reader, "session_closed") == {"reason": "deleted"}
    refusal = reader.refusal("session/context", session_id="s")
    assert (refusal.code, refusal.data) == (1001, {"session_id": "s", "exists": False})
    assert reader.call("session/start", session_id="s")["message_count"] == 0


def test_settings_for_a_session_that_can_only_be_read_are_named_in_a_warning(two: Two) -> None:
    _, reader = two

    for given in ({"title": "Mine", "system_prompt": "Be brief."}, {}):
        warnings = reader.call("session/start", session_id="s", **given)["warnings"]
        named = [warning for warning in warnings if "not applied" in warning]
        assert [all(name in one for name in given) for one in named] == ([True] if given else [])


def test_a_session_is_opened_to_read_without_its_lock(spawn: Spawn) -> None:
    owner, looker = spawn(), spawn()
    owner.call("session/start", session_id="s", compaction=CHARS4)
    owner.call("session/append", session_id="s", messages=turns(2, 20))
    owner.call("session/close", session_id="s")

    looked = looker.call("session/start", session_id="s", read_only=True)
    again = owner.call("session/start", session_id="s")

    assert (looked["read_only"], again["read_only"]) == (True, False)
    assert told(looker, "writer_changed") == {"owner": "other"}
    assert looker.refusal("session/start", session_id="nobody", read_only=True).code == 1001
    assert looker.call("agent/state", session_id="s")["status"] == "unknown"


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def test_prompts_that_wait_are_listed_and_can_be_dropped(spawn: Spawn, server: Loopback) -> None:
    daemon = spawn(env=environment("anthropic", server.base_url))
    server.play(Stall("The answer is"), Answer(text="To the third."))
    daemon.call("session/start", session_id="s", model=MODELS["anthropic"], client={"name": "one"})
    talk = Talk(daemon, "s")
    first = talk.prompt("first")
    daemon.event("message_delta", "s")
    second = talk.prompt("second\n  " + "x" * 200)
    listed = daemon.call("agent/state", session_id="s")
    daemon.call("agent/abort", session_id="s")
    talk.end(first)

    drops = [daemon.call("prompt/drop", session_id="s", prompt_id=name) for name in (second, second, first)]
    third = talk.ask("third")

    assert listed["queued"] == 1
    (prompt,) = listed["prompts"]
    assert (prompt["prompt_id"], prompt["client"]) == (second, "one")
    assert prompt["text_preview"] == "second " + "x" * 72 + "…"
    assert drops == [{"dropped": True}, {"dropped": False}, {"dropped": False}]
    assert third["turn_id"] == "t3"
    assert daemon.call("agent/state", session_id="s")["prompts"] == []
    texts = [
        entry["message"]["content"] for entry in daemon.call("session/history", session_id="s")["entries"]
    ]
    assert [text for text in texts if isinstance(text, str)][:3] == ["first", "The answer is", "third"]
    talk.stop()


def test_a_forced_undo_is_allowed_although_the_whole_exceeds_the_window(spawn: Spawn) -> None:
    daemon = spawn()
    settings = {"context_window": 4_000, "strategy": "extract", **CHARS4}
    daemon.call("session/start", session_id="s", compaction=settings)
    daemon.call("session/append", session_id="s", messages=turns(10, 400))
    daemon.call("turn/begin", session_id="s")

    refusal = daemon.refusal("session/undo", session_id="s")
    undone = daemon.call("session/undo", session_id="s", force=True)
    begun = daemon.call("turn/begin", session_id="s")

    assert refusal.code == 1008
    assert "force" in refusal.message
    assert (undone["compaction_id"], undone["token_usage"]["decision"]) == ("c1", "over")
    assert begun["compaction"]["compacted"] is True
    assert begun["token_usage"]["decision"] == "fits"


def test_a_session_is_followed_although_its_lock_cannot_be_looked_at(spawn: Spawn, tmp_path: Path) -> None:
    writer = spawn()
    writer.call("session/start", session_id="s")
    writer.call("session/append", session_id="s", messages=turns(1, 20))
    writer.call("session/close", session_id="s")
    journal = next(tmp_path.rglob("sessions/s-*.jsonl"))
    lock = journal.with_suffix(".lock")
    lock.unlink(missing_ok=True)
    lock.symlink_to(lock)

    reader = spawn()

    assert reader.call("session/start", session_id="s", read_only=True)["read_only"] is True
    assert len(reader.call("session/context", session_id="s")["messages"]) == 2
