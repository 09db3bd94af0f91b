"""R10, R11, R20, R24, R26, R27, R29: regressions of a daemon that does several things at once, and of its
files.

See `test_regressions.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.properties.stalled import compacting
from tests.support.client import Daemon
from tests.support.loopback import Answer, Call, Loopback
from tests.support.own_loop import TOOLS, Talk
from tests.support.talk import CHARS4, assistant, turns, user
from tests.support.wire import MODEL, SUMMARY, append, begin, compact, started, state, view

MODELLED = {"model": MODEL}


# --- R10 --------------------------------------------------------------------------------------------


def test_nothing_that_asks_how_things_stand_waits_for_a_compaction(daemon: Daemon, server: Loopback) -> None:
    """R10: Opal's and evmts' servers answer nothing, not even a ping, until the summary is there."""
    session, other = (started(daemon, "default", 100_000, settings=MODELLED) for _ in range(2))
    append(daemon, session, *turns(10, 300))
    asked = compacting(daemon, server, session)

    assert daemon.call("daemon/ping") == {}
    own = state(daemon, session)
    assert (own["status"], own["compaction"]["running"], own["message_count"]) == ("compacting", True, 20)
    assert state(daemon, other)["status"] == "idle"
    assert len(view(daemon, session)) == 20
    assert daemon.call("session/search", session_id=session, query="went on", limit=1)["hits"]
    assert append(daemon, other, user(5))["entry_ids"] == ["e1"]

    assert not daemon.answered_so_far(asked)
    daemon.notify("$/cancelRequest", id=asked)
    assert daemon.refused(asked).code == -32800


# --- R11 --------------------------------------------------------------------------------------------


def test_every_compaction_is_told_with_one_start_and_one_end(spawn: Any, server: Loopback) -> None:
    """R11: Opal's overflow path sends an end without a start, its manual path neither."""
    daemon = spawn()
    by_trigger = {
        name: started(daemon, "default", 20_000, settings=MODELLED, model="anthropic/claude-sonnet-4-5")
        for name in ("manual", "cancelled", "threshold", "overflow", "silent_overflow")
    }
    by_trigger["model_switch"] = started(daemon, "default", model="anthropic/claude-sonnet-4-5")
    for session in by_trigger.values():
        append(daemon, session, *turns(20, 300), user(20))
    cancelled = compacting(daemon, server, by_trigger["cancelled"])
    daemon.notify("$/cancelRequest", id=cancelled)
    assert daemon.refused(cancelled).code == -32800
    server.play(*[Answer(text=SUMMARY)] * 9)

    compact(daemon, by_trigger["manual"], keep_recent=2000)
    append(daemon, by_trigger["threshold"], assistant(4500), user(5))
    begin(daemon, by_trigger["threshold"])
    error = {"status": 400, "message": "prompt is too long"}
    daemon.call("turn/error", session_id=by_trigger["overflow"], error=error)
    silent = {"session_id": by_trigger["silent_overflow"], "messages": [assistant(5)]}
    daemon.call("turn/end", usage={"input_tokens": 20_500}, **silent)
    begin(daemon, by_trigger["silent_overflow"])
    daemon.call("model/set", session_id=by_trigger["model_switch"], model="openai/gpt-4")

    for name, session in by_trigger.items():
        told = [e for e in daemon.events(session) if e["type"].startswith(("compaction_", "usage"))]
        kinds = [e["type"] for e in told if e["type"] != "compaction_progress"]
        at = kinds.index("compaction_start")
        assert kinds[at : at + 3] == ["compaction_start", "compaction_end", "usage_update"], name
        assert (kinds.count("compaction_start"), kinds.count("compaction_end")) == (1, 1), name
        start, end = (next(e for e in told if e["type"] == f"compaction_{one}") for one in ("start", "end"))
        assert start["compaction_id"] == end["compaction_id"], name
        assert end["status"] == ("cancelled" if name == "cancelled" else "completed"), name
        assert start["trigger"] == ("manual" if name == "cancelled" else name)
        assert [e["seq"] for e in daemon.events(session)] == list(range(1, len(daemon.events(session)) + 1))


# --- R20 --------------------------------------------------------------------------------------------

ODD = '{"filePath":"a.py","snake_case":1,"Kebab-Case":{"InnerKey":[{"x_y":2}]},"ALL":1.50}'


def test_the_keys_of_a_users_own_json_are_never_rewritten(spawn: Any, server: Loopback) -> None:
    """R20: Opal's client turns keys into camelCase and back, tool arguments included."""
    server.play(Answer(text="Look:", calls=(Call("read", ODD, "c1"),)), Answer(text="It is done."))
    daemon = spawn()
    compaction = {**CHARS4, "strategy": "extract"}
    session = daemon.call("session/start", model=MODEL, tools=TOOLS, compaction=compaction)["session_id"]
    found = [{"type": "text", "text": ODD, "camelKey": {"snake_key": 1}}]
    one = Talk(daemon, session, lambda name, arguments: {"content": found})

    one.ask("Read it")
    append(daemon, session, *turns(10, 300))
    compact(daemon, session, keep_recent=600)

    one.stop()
    assert one.executed[0]["arguments"] == json.loads(ODD)
    sent = server.requests[1].body["messages"]
    assert [b["input"] for m in sent for b in m["content"] if b["type"] == "tool_use"] == [json.loads(ODD)]
    bodies = [
        daemon.answer(daemon.ask("session/expand", session_id=session, entry_ids=["e2", "e3"])).body,
        daemon.answer(daemon.ask("session/history", session_id=session)).body,
    ]
    for body in bodies:
        assert ODD.encode() in body, "byte for byte"
        assert b'"camelKey": {"snake_key": 1}' in body


# --- R24, R29 ---------------------------------------------------------------------------------------


def test_a_deleted_session_is_gone_from_disk(spawn: Any, tmp_path: Path) -> None:
    """R24: Opal removes `<id>.jsonl` where its files are `.dets`, and its own test makes the wrong file."""
    daemon = spawn()
    kept, deleted = started(daemon, "default"), started(daemon, "default")
    for session in (kept, deleted):
        append(daemon, session, user(0, content=f"the secret of {session}"))
        daemon.call("session/close", session_id=session)

    assert daemon.call("session/delete", session_id=deleted) == {}

    assert [row["session_id"] for row in daemon.call("session/list")["sessions"]] == [kept]
    left = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not [path for path in left if f"the secret of {deleted}".encode() in path.read_bytes()]
    assert [path for path in left if f"the secret of {kept}".encode() in path.read_bytes()]
    assert daemon.refusal("session/delete", session_id=deleted).code == 1001
    assert daemon.call("session/start", session_id=deleted)["resumed"] is False


HOSTILE = (
    "../victim",
    "../../victim",
    "sessions/../../victim",
    "victim",
    "/victim",
    "..\\victim",
    "../victim.jsonl",
)


@pytest.mark.parametrize("wanted", [*HOSTILE, "ABSOLUTE"])
def test_a_session_id_is_never_a_path(spawn: Any, tmp_path: Path, wanted: str) -> None:
    """R29: Opal joins the id into the path unchecked: `../` deletes another folder's files."""
    daemon = spawn()
    outside = [tmp_path / "victim.jsonl", tmp_path / "home" / "victim.jsonl", tmp_path / "victim"]
    inside = tmp_path / "home" / "sessions" / "victim.jsonl"
    inside.parent.mkdir(parents=True, exist_ok=True)
    for path in (*outside, inside):
        path.write_text("mine")
    name = str(tmp_path / "victim") if wanted == "ABSOLUTE" else wanted

    assert daemon.refusal("session/delete", session_id=name).code == 1001
    daemon.call("session/start", session_id=name)
    append(daemon, name, user(5))
    daemon.call("session/close", session_id=name)
    assert daemon.call("session/start", session_id=name)["resumed"] is True
    daemon.call("session/delete", session_id=name)

    assert [path.read_text() for path in (*outside, inside)] == ["mine"] * 4
    made = {path for path in tmp_path.rglob("*") if path.is_file()} - {*outside, inside}
    assert all(path.is_relative_to(tmp_path / "home") for path in made), made


# --- R26, R27 ---------------------------------------------------------------------------------------


def test_a_manual_and_an_automatic_compaction_do_not_race(daemon: Daemon, server: Loopback) -> None:
    """R26: a manual compaction during pi's automatic one loses the turn (pi #7086)."""
    settings = {**MODELLED, "summary_deadline_s": 5}
    session = started(daemon, "default", 10_000, settings=settings)
    append(daemon, session, *turns(14, 300))
    asked = compacting(daemon, server, session)

    automatic = daemon.ask("turn/begin", session_id=session)
    second = daemon.refusal("session/compact", session_id=session, keep_recent=600)
    later = append(daemon, session, user(0, content="And one more thing."))

    assert second.code == 1002
    done, begun = daemon.result(asked), daemon.result(automatic)
    assert (done["compacted"], done["strategy"]) == (True, "extract"), "after the deadline of the model"
    assert daemon.answer(automatic).at > daemon.event("compaction_end", session).at
    assert begun["compaction"] is None, "it fits now"
    kinds = [e["type"] for e in daemon.events(session)]
    assert (kinds.count("compaction_start"), kinds.count("compaction_end")) == (1, 1)
    assert begun["token_usage"]["epoch"] == 2
    assert view(daemon, session)[-1]["entry_id"] == later["entry_ids"][0]
    assert state(daemon, session)["compaction"]["count"] == 1


def test_an_automatic_compaction_begins_where_the_manual_one_was_cancelled(
    daemon: Daemon, server: Loopback
) -> None:
    """R26: the turn that waited is not lost, and finds the conversation as it was."""
    session = started(daemon, "default", 10_000, settings=MODELLED)
    append(daemon, session, *turns(14, 300))
    asked = compacting(daemon, server, session)
    automatic = daemon.ask("turn/begin", session_id=session)
    server.play(*[Answer(text=SUMMARY)] * 2)

    daemon.notify("$/cancelRequest", id=asked)

    assert daemon.refused(asked).code == -32800
    done = daemon.result(automatic)["compaction"]
    assert (done["compacted"], done["trigger"], done["strategy"]) == (True, "threshold", "summarize")
    statuses = [e["status"] for e in daemon.events(session) if e["type"] == "compaction_end"]
    assert statuses == ["cancelled", "completed"]


def test_a_crash_in_a_compaction_leaves_nothing_that_runs(spawn: Any, server: Loopback) -> None:
    """R27: OpenCode's compaction stays "running" for good where the process died in it."""
    daemon = spawn()
    session = started(daemon, "default", 100_000, settings=MODELLED)
    append(daemon, session, *turns(10, 300))
    before = view(daemon, session)
    compacting(daemon, server, session)
    daemon.kill()

    again = spawn()
    again.call("session/start", session_id=session)

    now = state(again, session)
    assert (now["status"], now["compaction"]["running"], now["compaction"]["count"]) == ("idle", False, 0)
    assert view(again, session) == before
    last = again.call("session/history", session_id=session)["entries"][-1]
    assert (last["kind"], last["compaction"]["reason"]) == (
        "compaction_failed",
        "the daemon ended before the compaction was finished",
    )
    server.play(Answer(text=SUMMARY))
    done = compact(again, session, keep_recent=600)
    assert (done["compacted"], done["strategy"]) == (True, "summarize")
    assert done["compaction_id"] != last["entry_id"]
    assert view(again, session)[1:] == before[-2:]
