"""Originals of reduced outputs: on disk, after kills, in exports, and gone after a redaction or deletion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.test_while_compacting import append_long_talk
from tests.support.client import Daemon
from tests.support.outputs import answering, calling, hits, log, original, reduce
from tests.support.redacted import SECRET, everything, on_disk
from tests.support.talk import turns, user

HOLDS_SECRET = f"{log(60)}\n2026-11-02 10:00:09 INFO worker has {SECRET} as its key\n{log(60)}"


def test_an_original_is_on_disk_when_the_answer_comes(spawn: Spawn) -> None:
    daemon = spawn()
    session = str(daemon.call("session/start")["session_id"])
    done = reduce(daemon, session, HOLDS_SECRET, call_id="c1")
    appended = daemon.call(
        "session/append", session_id=session, messages=[calling("c2"), answering("c2", log(300))], reduce=True
    )

    daemon.kill()

    again = spawn()
    again.call("session/start", session_id=session)
    assert original(again, session, done["entry_id"]) == HOLDS_SECRET
    assert original(again, session, appended["reductions"][0]["entry_id"]) == log(300)
    assert hits(again, session, SECRET) == [done["entry_id"]]
    assert again.call("agent/state", session_id=session)["reductions"]["count"] == 2


def test_a_reader_sees_what_the_owner_reduces(spawn: Spawn) -> None:
    owner, reader = spawn(), spawn()
    session = str(owner.call("session/start")["session_id"])
    reader.call("session/start", session_id=session)

    done = reduce(owner, session, log(), call_id="c1")
    owner.call("session/append", session_id=session, messages=[answering("c1", done["content"])])
    reader.event("message_appended", session)

    assert original(reader, session, done["entry_id"]) == log()
    assert hits(reader, session, "worker 100 is") == [done["entry_id"]]


def test_an_export_has_the_originals_and_an_import_brings_them_back(daemon: Daemon, tmp_path: Path) -> None:
    session = str(daemon.call("session/start")["session_id"])
    daemon.call("session/append", session_id=session, messages=[user(5), calling("c1")])
    done = reduce(daemon, session, log(), call_id="c1")
    daemon.call("session/append", session_id=session, messages=[answering("c1", done["content"])])
    never = reduce(daemon, session, HOLDS_SECRET)
    path = tmp_path / "session.jsonl"

    exported = daemon.call("session/export", session_id=session, format="compactd", path=str(path))
    copy = daemon.call("session/import", path=str(path))["session_id"]

    assert exported["warnings"] == []
    for one, text in ((done, log()), (never, HOLDS_SECRET)):
        assert original(daemon, copy, one["entry_id"]) == text
    assert hits(daemon, copy, SECRET) == [never["entry_id"]]
    assert daemon.call("session/context", session_id=copy)["messages"] == [
        {**message, "entry_id": message["entry_id"]}
        for message in daemon.call("session/context", session_id=session)["messages"]
    ]
    more = daemon.call("session/append", session_id=copy, messages=[user(3)])
    assert more["entry_ids"] == ["e6"]
    told = daemon.call("session/export", session_id=session, format="openai")
    assert any("2 tool outputs were reduced" in warning for warning in told["warnings"])


@pytest.mark.parametrize("names_original", [True, False])
def test_a_redaction_takes_the_original_and_the_shown_text_out_of_everything(
    spawn: Spawn, home: Path, names_original: bool
) -> None:
    daemon = spawn()
    session = str(daemon.call("session/start", compaction={"keep_recent_tokens": 100})["session_id"])
    daemon.call("session/append", session_id=session, messages=[user(5), calling("c1")])
    text = f"the key is {SECRET}\n{HOLDS_SECRET}"
    done = reduce(daemon, session, text, call_id="c1")
    assert SECRET in done["content"]
    message = answering("c1", done["content"])
    (shows,) = daemon.call("session/append", session_id=session, messages=[message])["entry_ids"]
    daemon.call("session/append", session_id=session, messages=turns(4, 100))
    daemon.call("session/compact", session_id=session)
    daemon.call("session/search", query=SECRET)

    named = done["entry_id"] if names_original else shows
    answer = daemon.call("session/redact", session_id=session, entry_ids=[named])

    assert answer["redacted"] == 2
    cleaned = {one["where"]: one.get("entry_ids") for one in answer["cleaned"]}
    assert cleaned["messages"] == [shows]
    assert cleaned["reduced outputs"] == [done["entry_id"]]
    assert on_disk(home, SECRET) == []
    assert SECRET not in everything(daemon, session)
    assert original(daemon, session, done["entry_id"]) == "[redacted]"
    assert hits(daemon, session, SECRET) == []
    daemon.stop()
    again = spawn()
    again.call("session/start", session_id=session)
    assert original(again, session, done["entry_id"]) == "[redacted]"
    again.call("session/delete", session_id=session)
    assert on_disk(home, session) == []


def test_a_redaction_takes_an_output_out_of_the_marks_and_lines_of_others(spawn: Spawn, home: Path) -> None:
    daemon = spawn()
    session = str(daemon.call("session/start")["session_id"])
    lines = [f"setting_{at} = compute_{at * 31}(depth={at * 7919})" for at in range(40)]
    read = {"name": "read_file", "arguments": {"path": f"src/{SECRET}.py"}}
    call = {"type": "tool_call", "call_id": "c1", **read}
    text = "\n".join(lines)
    messages = [user(5), {"role": "assistant", "content": [call]}, answering("c1", text)]
    daemon.call("session/append", session_id=session, messages=messages)
    again = reduce(daemon, session, f"{text}\nend = 1", call_id="c2", **read)
    assert "as in e3" in again["content"]
    daemon.call("session/append", session_id=session, messages=[answering("c2", again["content"])])

    daemon.call("session/redact", session_id=session, entry_ids=["e2", "e3", again["entry_id"]])

    assert on_disk(home, SECRET) == []
    assert SECRET not in everything(daemon, session)


def test_a_deleted_session_leaves_no_original(spawn: Spawn, home: Path) -> None:
    daemon = spawn()
    session = str(daemon.call("session/start")["session_id"])
    reduce(daemon, session, HOLDS_SECRET)
    daemon.call("session/search", query=SECRET)
    assert on_disk(home, SECRET)

    daemon.call("session/delete", session_id=session)

    assert on_disk(home, SECRET) == []


def test_outputs_are_reduced_while_a_compaction_runs(spawn: Spawn) -> None:
    daemon = spawn()
    append_long_talk(daemon, 90)
    compacting = daemon.ask("session/compact", session_id="long", keep_recent=20_000)
    daemon.event("compaction_start", "long")

    made = [reduce(daemon, "long", log(200, f"run{at}"), call_id=f"r{at}") for at in range(6)]
    appended = daemon.call(
        "session/append", session_id="long", messages=[calling("c9"), answering("c9", log())], reduce=True
    )

    assert daemon.result(compacting)["compacted"]
    for at, one in enumerate(made):
        assert original(daemon, "long", one["entry_id"]) == log(200, f"run{at}")
        assert f"expand {one['entry_id']}]" in one["content"]
    assert original(daemon, "long", appended["reductions"][0]["entry_id"]) == log()
    history = daemon.call("session/history", session_id="long")["entries"]
    names = [entry["entry_id"] for entry in history if entry["kind"] == "message"]
    assert not {one["entry_id"] for one in made} & set(names)


def test_a_huge_output_is_kept_whole(daemon: Daemon) -> None:
    session = str(daemon.call("session/start", compaction={"estimator": "chars4"})["session_id"])
    text = "".join(f"{at:07} all is well with the worker\n" for at in range(600_000))
    assert len(text) > 20_000_000

    done = reduce(daemon, session, text)

    assert done["reduced"]
    assert original(daemon, session, done["entry_id"]) == text


def test_lone_surrogates_become_the_replacement_character(daemon: Daemon) -> None:
    session = str(daemon.call("session/start")["session_id"])
    content = json.dumps(log())[:-1] + '\\ud800 end"'

    done = daemon.call_raw(
        "session/reduce", f'{{"session_id":"{session}","name":"bash","content":{content}}}'.encode()
    )

    assert original(daemon, session, done["entry_id"]) == log() + "\ufffd end"


def test_undo_and_branches_keep_an_output_where_its_message_is(daemon: Daemon) -> None:
    session = str(daemon.call("session/start", compaction={"keep_recent_tokens": 50})["session_id"])
    daemon.call("session/append", session_id=session, messages=[user(5), calling("c1")])
    done = reduce(daemon, session, log(), call_id="c1")
    daemon.call("session/append", session_id=session, messages=[answering("c1", done["content"])])
    daemon.call("session/append", session_id=session, messages=turns(3, 60))
    daemon.call("session/compact", session_id=session)
    assert hits(daemon, session, "worker 100 is") == [done["entry_id"]]
    daemon.call("session/undo", session_id=session)
    assert hits(daemon, session, "worker 100 is") == [done["entry_id"]]

    daemon.call("session/branch", session_id=session, entry_id="e1")

    assert hits(daemon, session, "worker 100 is") == []
    assert original(daemon, session, done["entry_id"]) == log()
    daemon.call("session/append", session_id=session, messages=[answering("c1", done["content"])])
    assert hits(daemon, session, "worker 100 is") == [done["entry_id"]]
