"""docs/specs-evmts-opencode.md, "opencode.md", "Phase 3: Summarization", sentence by sentence, over the wire.

`docs/specs-evmts-opencode.md` says which test is whose. Where the spec and docs/dev/behaviour.md differ,
docs/dev/behaviour.md wins, and the test says so.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.parity.opencode import DUE, GO_ON, SUMMARY, by_a_model, filled, outputs, talk
from tests.parity.prompts import OPENCODE_AGENT, OPENCODE_TASK, missing, task_of
from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback
from tests.support.talk import CHARS4, assistant, call, result, said, turns, user
from tests.support.views import problems_of_providers
from tests.support.wire import MODEL, append, begin, compact, state, view

# --- Phase 3: Summarization -------------------------------------------------------------------------


def test_the_users_message_that_led_to_it_stays_and_nothing_else_does(daemon: Daemon) -> None:
    session = filled(daemon, *turns(10, 200), user(20, content="And the tests?"), assistant(100), **DUE)

    done = begin(daemon, session)

    assert done is not None
    assert (done["kept_messages"], done["pinned_entry_ids"]) == (0, ["e21"])
    assert [said(message) for message in view(daemon, session)][1:] == ["And the tests?", GO_ON]


def test_the_agents_model_summarises_or_else_the_users(daemon: Daemon, server: Loopback) -> None:
    server.play(*[Answer(text=SUMMARY), Answer(text="Done.")] * 2)
    own = talk(daemon, **DUE)
    named = talk(daemon, **DUE, model="openai/gpt-4o-mini")

    for one in (own, named):
        assert one.ask("And now?")["stop_reason"] == "stop"
        one.stop()

    assert [request.wire for request in server.requests] == ["anthropic", "anthropic", "openai", "anthropic"]
    assert server.requests[2].body["model"] == "gpt-4o-mini"
    history = [state(daemon, one.id)["compaction"]["last"] for one in (own, named)]
    assert [one["model"] for one in history] == [MODEL, "openai/gpt-4o-mini"]


def test_a_workspaces_file_names_no_summariser(daemon: Daemon, server: Loopback, tmp_path: Path) -> None:
    # docs/dev/behaviour.md, "Summarise": the user does, or the session's start, or the request.
    (tmp_path / ".compactd.toml").write_text(f'[compaction]\nmodel = "{MODEL}"\n', "utf-8")
    settings = {"profile": "opencode", "context_window": 100_000, **CHARS4}
    session = daemon.call("session/start", compaction=settings, working_dir=str(tmp_path))["session_id"]
    append(daemon, session, *turns(10, 200))

    done = compact(daemon, session)

    assert done["strategy"] == "extract"
    assert server.requests == []


def test_the_summary_message_is_marked_as_one(daemon: Daemon) -> None:
    session = filled(daemon, user(1, content="Look at a.py"), *outputs(200), *turns(5, 200))

    done = compact(daemon, session)

    first = view(daemon, session)[0]
    assert first["meta"]["type"] == "compaction_summary"
    assert first["meta"]["compaction_id"] == done["compaction_id"]
    assert first["meta"]["read_files"] == ["0.py"]
    assert said(first) == done["summary"]


def test_deviation_the_summary_is_a_users_message_not_an_assistants(daemon: Daemon) -> None:
    # docs/dev/behaviour.md, "The summary message".
    session = filled(daemon)
    compact(daemon, session)

    assert view(daemon, session)[0]["role"] == "user"
    assert problems_of_providers(daemon, session) == {}


def test_the_models_words_are_streamed_as_they_come(daemon: Daemon, server: Loopback) -> None:
    session = by_a_model(daemon, server)

    done = compact(daemon, session)

    told = [e for e in daemon.events(session) if e["type"] == "compaction_progress" and "delta" in e]
    assert len(told) > 1
    assert {e["compaction_id"] for e in told} == {done["compaction_id"]}
    assert "".join(e["delta"] for e in told) == SUMMARY


@pytest.mark.parametrize(
    ("answer", "words", "default"),
    [
        ({}, "what we are going to do next", True),
        ({"context": ["The build runs on ARM."]}, "The build runs on ARM.", True),
        ({"prompt": "Sum it up in one line: {messages}"}, "Sum it up in one line:", False),
    ],
    ids=["default", "context", "prompt"],
)
def test_the_hook_is_asked_and_its_context_or_prompt_takes_part(
    daemon: Daemon, server: Loopback, answer: dict[str, Any], words: str, default: bool
) -> None:
    server.play(*[Answer(text=SUMMARY)] * 2)
    settings = {"profile": "opencode", "model": MODEL, "context_window": 100_000, **CHARS4}
    client = {"name": "a test", "compaction_hook": True}
    session = daemon.call("session/start", compaction=settings, client=client)["session_id"]

    def reply(after: int) -> None:
        asked = daemon.wait(
            lambda got: got.at > after and got.value.get("method") == "session/compacting",
            "session/compacting",
        )
        daemon.send(json.dumps({"jsonrpc": "2.0", "id": asked.value["id"], "result": answer}).encode())

    for earlier in range(2):
        append(daemon, session, *turns(10, 200))
        hook = threading.Thread(target=reply, args=(daemon.now,), daemon=True)
        hook.start()
        done = compact(daemon, session)
        hook.join(30)

        sent = server.requests[-1].raw.decode()
        assert (done["strategy"], len(server.requests)) == ("summarize", earlier + 1)
        assert sent.count("</previous-summary>") == earlier
        assert words in sent
        assert ("what we are going to do next" in sent) is default


def test_deviation_the_model_gets_all_prior_messages_as_one_transcript(
    daemon: Daemon, server: Loopback
) -> None:
    # docs/dev/behaviour.md, "Summarise": the spec sends the messages as they are, and a dialogue invites to
    # go on.
    numbered = [user(1, content=f"this is number {n:02}. " + "so it went on " * 20) for n in range(12)]
    session = by_a_model(daemon, server, *numbered)

    done = compact(daemon, session)

    (request,) = server.requests
    sent = request.raw.decode()
    assert done["strategy"] == "summarize"
    assert len(request.body["messages"]) == 1
    assert "<conversation>" in sent
    assert [sent.count(f"[User]: this is number {n:02}") for n in range(12)] == [1] * 12
    assert "tools" not in request.body


def test_the_task_is_in_what_the_model_gets_in_each_of_two_compactions(
    daemon: Daemon, server: Loopback
) -> None:
    server.play(*[Answer(text=SUMMARY)] * 2)
    session = filled(daemon, user(1, content="THE-TASK: port the parser to Rust"), model=MODEL, **DUE)
    for number in range(2):
        steps = [call(f"c{number}", "read", path="a.py"), result(f"c{number}", 4000, seed=number)]
        append(daemon, session, *steps)
        done = begin(daemon, session)
        assert done is not None
        assert (done["strategy"], done["pinned_entry_ids"]) == ("summarize", ["e1"])

    for request in server.requests:
        transcript = request.body["messages"][0]["content"][0]["text"].partition("</conversation>")[0]
        assert transcript.count("[User]: THE-TASK: port the parser to Rust") == 1
        assert transcript.index("THE-TASK") < transcript.index("[Assistant tool calls]: read")


@pytest.mark.parametrize(
    ("settings", "trigger", "goes_on"),
    [
        (DUE, "turn/begin", True),
        ({}, "session/compact", False),
        ({**DUE, "auto_continue": False}, "turn/begin", False),
    ],
    ids=["automatic", "manual", "off"],
)
def test_after_an_automatic_compaction_the_agent_is_told_to_continue(
    daemon: Daemon, settings: dict[str, Any], trigger: str, goes_on: bool
) -> None:
    session = filled(daemon, *turns(10, 200), **settings)

    daemon.call(trigger, session_id=session)

    last = view(daemon, session)[-1]
    assert (said(last) == GO_ON) is goes_on
    if goes_on:
        assert last["role"] == "user"
        assert last["meta"]["synthetic"] is True
        titles = [e.get("title") for e in daemon.call("session/history", session_id=session)["entries"]]
        assert GO_ON not in titles, "no person asked for it"


def test_a_compaction_that_did_nothing_tells_nobody_to_continue(daemon: Daemon) -> None:
    session = filled(daemon, user(4000), **DUE)

    done = begin(daemon, session)

    assert done is not None
    assert done["compacted"] is False
    assert [said(message) for message in view(daemon, session)] != [GO_ON]
    assert len(view(daemon, session)) == 1


def test_the_daemons_own_loop_goes_on_with_the_summary_and_that_message(
    daemon: Daemon, server: Loopback
) -> None:
    server.play(Answer(text=SUMMARY), Answer(text="All is done."))
    one = talk(daemon, **DUE)

    end = one.ask("And now?")
    one.stop()

    texts = [said(message) for message in view(daemon, one.id)]
    assert end["stop_reason"] == "stop"
    assert SUMMARY in texts[0]
    assert texts[1:] == ["And now?", GO_ON, "All is done."]
    sent = json.dumps(server.requests[1].body["messages"])
    assert sent.index(SUMMARY) < sent.index("And now?") < sent.index(GO_ON)


def test_a_compaction_answers_whether_the_turn_goes_on(daemon: Daemon) -> None:
    # The spec's "continue" and "stop". Only what cannot fit stops: docs/dev/behaviour.md, "Commit".
    goes_on = filled(daemon, **DUE)
    stops = filled(daemon, user(200_000), window=100_000)

    begun = daemon.call("turn/begin", session_id=goes_on)

    assert begun["compaction"]["compacted"] is True
    assert begun["max_output_tokens"] > 90_000, "there is room for the answer"
    assert said(view(daemon, goes_on)[-1]) == GO_ON
    assert daemon.call("turn/end", session_id=goes_on, messages=[assistant(1)])["decision"]["kind"] == "fits"
    assert daemon.refusal("turn/begin", session_id=stops).code == 1008


def test_the_default_prompt_covers_each_point_of_the_specs(daemon: Daemon, server: Loopback) -> None:
    session = by_a_model(daemon, server)

    compact(daemon, session)

    asked = server.requests[0].body["messages"][-1]["content"][0]["text"]
    assert missing(task_of(asked), OPENCODE_TASK) == []


def test_the_compaction_agents_directive_covers_each_point_of_the_specs(
    daemon: Daemon, server: Loopback
) -> None:
    session = by_a_model(daemon, server)

    compact(daemon, session)

    system = server.requests[0].body["system"]
    text = system if isinstance(system, str) else "\n".join(block["text"] for block in system)
    assert missing(text, OPENCODE_AGENT) == []


def test_a_free_text_without_headings_is_a_summary(daemon: Daemon, server: Loopback) -> None:
    session = by_a_model(daemon, server)

    done = compact(daemon, session)

    assert (done["strategy"], done["reason"]) == ("summarize", "")
    assert SUMMARY in done["summary"]


def test_what_the_spec_keeps_with_the_summary_stands_in_the_compactions_record(
    daemon: Daemon, server: Loopback
) -> None:
    session = by_a_model(daemon, server)
    done = compact(daemon, session)
    server.play(Answer(text=SUMMARY))
    append(daemon, session, *turns(10, 200))
    later = compact(daemon, session)

    assert (done["compaction_id"], later["compaction_id"]) == ("c1", "c2"), "ascending"
    assert done["model"] == MODEL
    assert (done["usage"]["input_tokens"], done["usage"]["output_tokens"]) == (9000, 200)
    assert done["cost"] == pytest.approx((9000 * 3 + 200 * 15) / 1_000_000)
    assert 0 < done["created_at"] <= later["created_at"]
    kept = state(daemon, session)["compaction"]["history"]
    assert [one["compaction_id"] for one in kept] == ["c1", "c2"]
    assert kept[0]["cost"] == done["cost"]
