"""The engine without OpenClaw: what only a host written for it can give."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from compactd.client import Client
from tests.frameworks.node.driving import COMMAND
from tests.frameworks.openclaw.building import built
from tests.frameworks.openclaw.hosting import WINDOW, Host, call, logged, result, summaries, turn, user

MISSING = {"command": ["/no/such/compactd", "serve"]}


def test_kept_messages_are_the_hosts_own(host: Host) -> None:
    messages = turn(1, 30)
    view = host.assemble(messages)
    (summary,) = summaries(view)
    assert summary["summary"].startswith("[Conversation summary")
    assert len(view) < 30
    assert all(message in messages for message in view if message is not summary)
    assert view[-1] == messages[-1]
    # A turn later, the bytes before are the same.
    more = [*messages, *turn(40, 1)]
    assert host.assemble(more)[: len(view)] == view


def test_a_view_that_comes_back_stands_for_the_whole_history(host: Host) -> None:
    """OpenClaw gives an engine its own view within a turn."""
    messages = turn(1, 30)
    view = host.assemble(messages)
    assert host.assemble(view, pending=500) == view
    assert list(host.sessions()) == ["openclaw:s1"]
    assert len(host.stored()) == len(messages)


def test_a_turn_that_needs_room_gets_it_from_what_was_said_before(host: Host) -> None:
    view = host.assemble(turn(1, 9))
    assert not summaries(view)
    assert host.assemble(view, pending=500) == view
    smaller = host.assemble(view, pending=4_000)
    assert summaries(smaller)
    assert len(smaller) < len(view) / 2
    # The next request of the turn has the same, and so has a view that came before.
    assert host.assemble(view, pending=4_500) == smaller
    assert host.assemble(smaller, pending=4_500) == smaller


def test_the_view_that_a_turn_began_with_is_known_after_a_smaller_one(host: Host) -> None:
    first = host.assemble(turn(1, 30))
    smaller = host.assemble(first, pending=4_500)
    assert summaries(first) != summaries(smaller)
    assert len(smaller) < len(first)
    assert host.assemble(first, pending=4_600) == smaller
    assert len(host.stored()) == len(turn(1, 30))


def test_what_cannot_be_smaller_is_tried_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Host(tmp_path / "data") as host:
        host.call("register", options={"command": logged(log)})
        messages = turn(1, 9)
        view = host.assemble(messages)
        for pending in (6_350, 6_360, 6_370):
            assert host.assemble(view, pending=pending) == view
        assert log.read_text().count('"session/compact"') == 1


def test_a_turn_is_recorded_once_however_it_comes(host: Host) -> None:
    """OpenClaw shows the same messages in two forms: with other ids of calls, and without details."""
    before = turn(1, 2)
    host.assemble(before)
    # As in a transcript.
    new = [
        user("And these?", 500),
        call(60, dash="_x|fc_"),
        {**result(60, dash="_x|fc_"), "details": {"a": 1}},
    ]
    for _ in range(2):
        assert host.engine("commitTurn", advancementKey="k", messages=new) == {"status": "committed"}
        assert len(host.stored()) == len(before) + 3
    # As an engine gets them.
    again = [new[0], call(60, dash="x"), result(60, dash="x")]
    again[1]["content"][0]["id"] = again[2]["toolCallId"] = "callx"
    host.assemble([*before, *again, user("Go on.", 700)])
    stored = host.stored()
    assert len(stored) == len(before) + 4
    assert [message["role"] for message in stored].count("user") == 3


def test_an_edited_history_is_followed_on_a_branch(host: Host) -> None:
    messages = turn(1, 5)
    host.assemble(messages)
    edited = [*messages[:4], result(2, "another one"), user("Go on.", 999)]
    edited[4]["timestamp"] = messages[4]["timestamp"]
    view = host.assemble(edited)
    assert view == edited
    texts = json.dumps(host.stored())
    assert "another one" in texts
    assert "5: 0: all is" in texts


def test_a_history_without_its_beginning_is_made_whole(host: Host) -> None:
    messages = turn(1, 5)
    host.assemble(messages)
    placeholder = user("(session bootstrap)", 12_345)
    view = host.assemble([placeholder, *messages[5:], user("Go on.", 999)])
    assert view == [*messages, user("Go on.", 999)]
    assert len(host.stored()) == len(messages) + 1


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_refused_request_is_smaller_the_next_time(host: Host, attempt: int) -> None:
    messages = turn(1, 9)
    view = host.assemble(messages)
    context = {"trigger": "overflow", "attempt": attempt}
    given = {"tokenBudget": WINDOW, "currentTokenCount": 9_000, "runtimeContext": context}
    done = host.engine("compact", **given)
    assert (done["ok"], done["compacted"]) == (True, True)
    smaller = host.assemble(messages)
    assert len(smaller) < len(view)
    assert smaller[-1] == messages[-1]
    assert host.assemble(messages) == smaller


def test_a_person_may_say_what_matters(tmp_path: Path) -> None:
    log = tmp_path / "log"
    asked = {"customInstructions": "the numbers", "force": True, "runtimeContext": {"trigger": "manual"}}
    with Host(tmp_path / "data") as host:
        host.call("register", options={"command": logged(log)})
        host.assemble(turn(1, 10))
        done = host.engine("compact", **asked)
    (line,) = [line for line in log.read_text().splitlines() if '"session/compact"' in line]
    params = json.loads(line)["params"]
    assert (params["instructions"], params["force"]) == ("the numbers", True)
    assert done["compacted"] is True
    assert done["result"]["tokensAfter"] < done["result"]["tokensBefore"]
    assert done["result"]["summary"].startswith("[Conversation summary")


def test_the_cache_is_on_the_bill(host: Host) -> None:
    usage = {"input": 2_000, "output": 5, "cacheRead": 50, "cacheWrite": 10}
    host.assemble([{**each, "usage": usage} if each["role"] == "assistant" else each for each in turn(1, 3)])
    with Client(env={**os.environ, "COMPACTD_HOME": str(host.home)}) as client:
        client.session_start(session_id="openclaw:s1", read_only=True)
        usage = client.call("agent/state", {"session_id": "openclaw:s1"})["token_usage"]
    assert usage["prompt_tokens"] == 4 * 2_060
    assert (usage["cache_read_tokens"], usage["cache_write_tokens"]) == (200, 40)


def test_a_sub_agent_has_its_parents_session(host: Host) -> None:
    host.assemble(turn(1, 1))
    spawn = {"parentSessionKey": "agent:main:main", "childSessionKey": "agent:main:subagent:1"}
    assert host.call("engine", call="prepareSubagentSpawn", params=spawn) is not None
    child = {"sessionId": "s2", "sessionKey": "agent:main:subagent:1"}
    host.assemble([user("Count.", 1)], **child)
    host.engine("onSubagentEnded", childSessionKey=child["sessionKey"], reason="completed")
    other = {"sessionId": "s3", "sessionKey": "agent:main:subagent:1"}
    host.assemble([user("Count again.", 1)], **other)
    journals = [path.read_text() for path in host.home.rglob("*.jsonl")]
    assert [text.count('"openclaw:s1"') for text in journals if "Count." in text] == [1]
    assert [text.count('"openclaw:s1"') for text in journals if "Count again." in text] == [0]


def test_recall_and_shorter_outputs(tmp_path: Path) -> None:
    with Host(tmp_path / "data") as host:
        host.call("register", options={"command": COMMAND, "reduce": "observe"})
        host.assemble(turn(1, 3))
        found = host.call("tool", context={"sessionId": "s1"}, params={"query": "3: 0: all"})
        assert "(tool) 3: 0: all is as it was before" in found["content"][0]["text"]
        event = {"toolCallId": "c", "toolName": "f", "args": {}, "result": {"content": result(1)["content"]}}
        # It only counts.
        assert host.call("middleware", event=event, context={"sessionId": "s1"}) is None


def test_a_plugin_that_is_loaded_twice_has_one_daemon_and_one_session(tmp_path: Path) -> None:
    """OpenClaw loads a plugin for its engine, and again for its tools."""
    again = shutil.copytree(built(), tmp_path / "again")
    with Host(tmp_path / "data", built(), again) as host:
        host.call("register", options={"command": COMMAND})
        messages = turn(1, 3)
        host.assemble(messages)
        found = host.call("tool", context={"sessionId": "s1"}, params={"query": "3: 0: all"})
        assert "(tool) 3: 0: all is as it was before" in found["content"][0]["text"]
        assert list(host.sessions()) == ["openclaw:s1"]
        assert len(host.daemons()) == 1
        # The daemon ends, and another one goes on with the session.
        host.call("stop")
        assert host.daemons() == []
        host.assemble([*messages, user("Go on.", 999)])
        assert host.call("tool", context={"sessionId": "s1"}, params={"query": "Go on."})["details"]["found"]
    assert len(host.stored()) == len(messages) + 1
    assert host.warnings == []


def test_an_agent_without_a_transcript_is_recorded_after_its_turn(host: Host) -> None:
    messages = turn(1, 2)
    assert host.engine("ingest", message=messages[0]) == {"ingested": False}
    host.engine("afterTurn", messages=messages)
    assert len(host.stored()) == len(messages)


def test_the_model_gets_recall_unless_it_is_switched_off(tmp_path: Path) -> None:
    with Host(tmp_path / "data") as host:
        host.call("register", options={"recall": False})
        with pytest.raises(AssertionError, match="is not a function"):
            host.call("tool", context={"sessionId": "s1"}, params={})
        host.call("register", options={})
        with pytest.raises(AssertionError, match="null"):
            host.call("tool", context={}, params={})


def test_outputs_of_tools_are_shorter_except_those_of_recall(tmp_path: Path) -> None:
    text = "\n".join(f"{at}: all is as it was before, in every respect" for at in range(800))
    given = {"content": [{"type": "text", "text": text}], "details": {"a": 1}}
    event = {"toolCallId": "c", "toolName": "f", "args": {}, "result": given}
    session = {"sessionId": "s1"}
    with Host(tmp_path / "data") as host:
        host.call("register", options={"command": COMMAND, "reduce": "strong"})
        host.assemble(turn(1, 3))
        found = host.call("middleware", event=event, context=session)["result"]
        assert found["details"] == {"a": 1}
        assert len(found["content"][0]["text"]) < len(text) / 4
        assert host.call("middleware", event={**event, "toolName": "recall"}, context=session) is None
        two = {**event, "result": {**given, "content": given["content"] * 2}}
        assert host.call("middleware", event=two, context=session) is None
        assert host.call("middleware", event=event, context={}) is None


def test_without_a_daemon_the_messages_stay_as_they_are(tmp_path: Path) -> None:
    with Host(tmp_path / "data") as host:
        host.call("register", options=MISSING)
        messages = turn(1, 30)
        assert host.assemble(messages) == messages
        done = host.engine("assemble", messages=messages)
        assert done["promptAuthority"] == "preassembly_may_overflow"
        assert host.engine("commitTurn", messages=messages) == {"status": "committed"}
        # There is no OpenClaw here that could do it.
        assert host.engine("compact", force=True)["ok"] is False
        found = host.call("tool", context={"sessionId": "s1"}, params={"query": "x"})
        assert "cannot be read now" in found["content"][0]["text"]
        (warning,) = host.warnings
    assert warning.startswith("compactd: /no/such/compactd was not found.")


def test_another_openclaw_is_refused_with_a_reason(tmp_path: Path) -> None:
    with (
        Host(tmp_path / "data") as host,
        pytest.raises(
            AssertionError, match=r"this OpenClaw has no registerContextEngine, on\. compactd was tested"
        ),
    ):
        host.call("register", options={}, lacks=["on", "registerContextEngine"])
