"""`session/redact` removes a pasted secret from the view, the history, the search and the disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.conftest import Spawn
from tests.e2e.test_while_compacting import append_long_talk
from tests.support.client import Daemon
from tests.support.examples import examples
from tests.support.redacted import MARK, PASTED, SECRET, everything, journal_lines, on_disk, started
from tests.support.talk import Message, assistant, call, result, said, turns, user
from tests.support.views import problems_of_providers

# --- what goes and what stays -----------------------------------------------------------------------


def test_a_redacted_message_says_nothing_any_more_wherever_it_is_looked_for(spawn: Spawn, home: Path) -> None:
    daemon = spawn()
    session = started(daemon, [*turns(2, 20), PASTED, *turns(2, 20)])
    assert on_disk(home, SECRET)

    answer = daemon.call("session/redact", session_id=session, entry_ids=["e5"])

    assert (answer["redacted"], "left" in answer) == (1, False)
    assert on_disk(home, SECRET) == []
    assert SECRET not in everything(daemon, session)
    context = daemon.call("session/context", session_id=session)["messages"]
    assert said(context[4]) == MARK
    assert [message["role"] for message in context].count("user") == 5
    assert daemon.call("session/search", session_id=session, query=SECRET)["hits"] == []
    expanded = daemon.call("session/expand", session_id=session, entry_ids=["e5"])["entries"]
    assert said(expanded[0]["message"]) == MARK


def test_blocks_and_call_ids_stay_so_that_every_provider_takes_the_next_request(daemon: Daemon) -> None:
    picture = {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo" + "A" * 40}
    document = {"type": "document", "media_type": "application/pdf", "data": "JVBERi0x" + "B" * 40}
    thinking = {"type": "thinking", "text": f"the key {SECRET}", "signature": "c2lnbmVk"}
    opaque = {"type": "opaque", "provider": "openai", "raw": {"hidden": SECRET}}
    calling = call("t1", "login", key=SECRET, pin=12345678)
    calling["content"] = [thinking, opaque, {"type": "text", "text": SECRET}, *calling["content"]]
    answered = result("t1", 0)
    answered["content"][0]["content"] = [{"type": "text", "text": SECRET}, picture]
    asked = {"role": "user", "content": [{"type": "text", "text": SECRET}, picture, document]}
    messages = [asked, calling, answered, assistant(5), user(5)]
    session = started(daemon, messages)

    daemon.call("session/redact", session_id=session, entry_ids=["e1", "e2", "e3"])

    context = daemon.call("session/context", session_id=session)["messages"]
    text = {"type": "text", "text": MARK}
    assert [m["content"] for m in context[:3]] == [
        [text, text, {"type": "document", "media_type": "text/plain", "text": MARK}],
        [
            {"type": "thinking", "text": MARK},
            text,
            text,
            {"type": "tool_call", "call_id": "t1", "name": "login", "arguments": {"redacted": MARK}},
        ],
        [{"type": "tool_result", "call_id": "t1", "content": MARK}],
    ]
    assert problems_of_providers(daemon, session) == {}
    assert "12345678" not in everything(daemon, session)


def test_arguments_that_came_as_a_string_stay_one(daemon: Daemon) -> None:
    given = {
        "id": "c1",
        "type": "function",
        "function": {"name": "f", "arguments": json.dumps({"k": SECRET})},
    }
    session = started(daemon, [user(3)])
    daemon.call(
        "session/append",
        session_id=session,
        messages=[{"role": "assistant", "content": None, "tool_calls": [given]}],
        format="openai",
    )

    daemon.call("session/redact", session_id=session, entry_ids=["e2"])

    shown = daemon.call("session/context", session_id=session, format="openai")["messages"][1]
    assert shown["tool_calls"][0]["function"] == {"name": "f", "arguments": f'{{"redacted":"{MARK}"}}'}


def test_the_other_records_of_the_file_stay_byte_for_byte(daemon: Daemon) -> None:
    odd = {"role": "user", "content": "Ünïcödé \u2028 and\nlines", "meta": {"unknown": [1.0, {"a": None}]}}
    session = started(daemon, [odd, PASTED, *turns(3, 20)])
    before = journal_lines(daemon, session)

    daemon.call("session/redact", session_id=session, entry_ids=["e2"])

    after = journal_lines(daemon, session)
    changed = [number for number, line in enumerate(before) if after[number] != line]
    assert [json.loads(before[number])["id"] for number in changed] == ["e2"]
    assert [json.loads(line)["type"] for line in after[len(before) :]] == ["redacted"]


def test_tokens_are_counted_anew_the_epoch_rises_and_the_client_is_told_before_the_answer(
    daemon: Daemon,
) -> None:
    session = started(daemon, [user(2000), assistant(10), user(10)])
    before = daemon.call("agent/state", session_id=session)["token_usage"]

    asked = daemon.ask("session/redact", session_id=session, entry_ids=["e1"])

    answer = daemon.answer(asked)
    told = [got for got in daemon.received if got.value.get("method") == "agent/event"][-1]
    usage = told.value["params"]["usage"]
    mark_tokens = (len(MARK) + 3) // 4
    assert told.value["params"]["type"] == "usage_update"
    assert told.at < answer.at
    assert usage["current_context_tokens"] == before["current_context_tokens"] - 2000 + mark_tokens
    assert usage["epoch"] == before["epoch"] + 1
    context = daemon.call("session/context", session_id=session)
    assert context["tokens"] == usage["current_context_tokens"]


# --- others -----------------------------------------------------------------------------------------


def test_whoever_reads_along_in_another_process_reads_the_mark(spawn: Spawn, home: Path) -> None:
    owner, reader = spawn(), spawn()
    session = started(owner, [*turns(2, 20), PASTED], session_id="s")
    assert reader.call("session/start", session_id=session)["read_only"] is True
    assert SECRET in everything(reader, session)
    refused = reader.refusal("session/redact", session_id=session, entry_ids=["e5"])
    before = reader.now

    owner.call("session/redact", session_id=session, entry_ids=["e5"])

    assert refused.code == 1004
    reader.event("usage_update", session, after=before)
    assert SECRET not in everything(reader, session)
    assert reader.call("session/history", session_id=session) == owner.call(
        "session/history", session_id=session
    )


def test_nothing_of_it_is_left_when_the_daemon_is_killed_right_after_the_answer(
    spawn: Spawn, home: Path
) -> None:
    daemon = spawn()
    session = started(daemon, [PASTED, *turns(6, 200)])
    daemon.call("session/compact", session_id=session, keep_recent=500)
    daemon.call("session/redact", session_id=session, entry_ids=["e1"])
    daemon.kill()

    again = spawn()
    answer = again.call("session/start", session_id=session)

    assert on_disk(home, SECRET) == []
    assert (answer["warnings"], answer["read_only"]) == ([], False)
    assert SECRET not in everything(again, session)


@pytest.mark.parametrize("others", [0, 1, 2])
def test_a_daemon_that_is_killed_in_the_middle_leaves_all_of_it_or_nothing(
    spawn: Spawn, home: Path, others: int
) -> None:
    daemon = spawn()
    session = started(daemon, [PASTED, *turns(800, 50)])
    daemon.ask("session/redact", session_id=session, entry_ids=["e1", "e7"])
    for _ in range(others):
        daemon.call("daemon/ping")
    daemon.kill()

    again = spawn()
    answer = again.call("session/start", session_id=session)

    entries = again.call("session/history", session_id=session)["entries"]
    marks = [said(entries[at]["message"]) == MARK for at in (0, 6)]
    assert marks in ([True, True], [False, False])
    assert (answer["warnings"], len(entries)) == ([], 1601)
    assert again.call("session/redact", session_id=session, entry_ids=["e1", "e7"])["redacted"] == 2
    assert on_disk(home, SECRET) == []


def test_a_client_that_sends_the_conversation_again_does_not_bring_it_back(daemon: Daemon) -> None:
    named = {**PASTED, "id": "m1"}
    session = started(daemon, [named, *turns(1, 5)])
    daemon.call("session/redact", session_id=session, entry_ids=["e1"])

    answer = daemon.call("session/append", session_id=session, messages=[named, user(5, id="m2")])

    assert (answer["entry_ids"], answer["duplicates"]) == (["e1", "e4"], ["m1"])
    assert SECRET not in everything(daemon, session)


def test_what_is_no_message_names_the_field_and_changes_nothing(daemon: Daemon) -> None:
    session = started(daemon, [PASTED, *turns(6, 200)])
    compacted = daemon.call("session/compact", session_id=session, keep_recent=500)
    lines = journal_lines(daemon, session)

    errors = [
        daemon.refusal("session/redact", session_id=session, entry_ids=["e1", "nonsense"]),
        daemon.refusal("session/redact", session_id=session, entry_ids=["e14"]),
        daemon.refusal("session/redact", session_id=session, entry_ids=[]),
        daemon.refusal("session/redact", session_id="nobody", entry_ids=["e1"]),
    ]

    assert compacted["compacted"]
    assert [(error.code, error.data.get("path")) for error in errors] == [
        (-32602, "$.entry_ids[1]"),
        (-32602, "$.entry_ids[0]"),
        (-32602, "$.entry_ids"),
        (1001, None),
    ]
    assert journal_lines(daemon, session) == lines


def test_a_redaction_waits_for_no_compaction_and_the_other_way_round(daemon: Daemon) -> None:
    append_long_talk(daemon, 40)

    compacting = daemon.ask("session/compact", session_id="long", keep_recent=20_000)
    refused = daemon.refusal("session/redact", session_id="long", entry_ids=["e1"])
    daemon.result(compacting)
    redacting = daemon.ask("session/redact", session_id="long", entry_ids=["e1"])
    appended = daemon.call("session/append", session_id="long", messages=[user(3)])

    assert refused.code == 1002
    assert daemon.result(redacting)["redacted"] == 1
    assert appended["entry_ids"] == ["e162"]
    entries = daemon.call("session/history", session_id="long", limit=1)["entries"]
    assert said(entries[0]["message"]) == MARK


def test_a_redaction_is_no_compaction_for_those_who_look_meanwhile(daemon: Daemon) -> None:
    append_long_talk(daemon, 40)

    redacting = daemon.ask("session/redact", session_id="long", entry_ids=["e1"])
    state = daemon.call("agent/state", session_id="long")
    refused = daemon.refusal("session/delete", session_id="long")

    assert not daemon.answered_so_far(redacting)
    assert (state["status"], state["compaction"]["running"]) == ("idle", False)
    assert (refused.code, "redaction" in refused.message) == (1002, True)
    assert daemon.result(redacting)["redacted"] == 1


def test_a_session_that_is_closed_or_a_request_that_is_cancelled_meanwhile_is_whole_all_the_same(
    spawn: Spawn, home: Path
) -> None:
    daemon = spawn()
    for name in ("closed", "cancelled"):
        started(daemon, [PASTED, *turns(800, 50)], session_id=name)
    asked = [
        daemon.ask("session/redact", session_id=name, entry_ids=["e1"]) for name in ("closed", "cancelled")
    ]
    closing = daemon.ask("session/close", session_id="closed")
    daemon.notify("$/cancelRequest", id=asked[1])

    assert daemon.result(closing) == {}
    assert daemon.result(asked[0])["redacted"] == 1
    assert daemon.answer(asked[1]).value.get("error", {}).get("code") in (-32800, None)
    before = daemon.call("session/history", session_id="cancelled")
    daemon.call("session/start", session_id="closed")
    closed = daemon.call("session/history", session_id="closed", limit=1)["entries"]
    daemon.kill()
    again = spawn()
    again.call("session/start", session_id="cancelled")
    assert said(closed[0]["message"]) == MARK
    assert again.call("session/history", session_id="cancelled") == before


@pytest.mark.parametrize("form", ["compactd", "claude-code", "pi"])
def test_an_import_that_brings_redacted_words_back_says_so(spawn: Spawn, home: Path, form: str) -> None:
    """The file is older than the redaction, and the user's: its words come in, and the answer says so."""
    daemon = spawn()
    session = started(daemon, [*turns(2, 20), PASTED, *turns(2, 20)])
    written = home.parent / "before.jsonl"
    daemon.call("session/export", session_id=session, format=form, path=str(written))
    clean = daemon.call("session/import", path=str(written))
    daemon.call("session/redact", session_id=session, entry_ids=["e5"])

    again = daemon.call("session/import", path=str(written))

    assert not any("session/redact" in one for one in clean["warnings"])
    [warning] = [one for one in again["warnings"] if "session/redact" in one]
    assert warning.startswith("e5: these messages contain what session/redact removed")
    assert SECRET not in warning
    daemon.call("session/redact", session_id=again["session_id"], entry_ids=["e5"])
    assert SECRET not in everything(daemon, again["session_id"])


def test_redacting_twice_is_redacting_once(daemon: Daemon) -> None:
    session = started(daemon, [PASTED, *turns(2, 20)])
    daemon.call("session/redact", session_id=session, entry_ids=["e1", "e1"])
    history = daemon.call("session/history", session_id=session)

    answer = daemon.call("session/redact", session_id=session, entry_ids=["e1"])

    assert (answer["redacted"], "left" in answer) == (1, False)
    assert daemon.call("session/history", session_id=session) == history


# --- the law ----------------------------------------------------------------------------------------

WORDS = st.text("abcdefghijkmnpqrstuvwxyz0123456789_-ÄßЖ漢", min_size=8, max_size=24).map(
    lambda w: f"qq{w}zz9"
)
SENTENCES = st.lists(
    st.sampled_from(["always use", "never", "the file src/app.py", "(and)", "\n", ": "]), max_size=6
)


@st.composite
def talks(draw: st.DrawFn) -> tuple[list[Message], list[str], list[str]]:
    """(messages, ids of those to redact, words that only these hold)."""
    messages: list[Message] = []
    gone: list[str] = []
    words: list[str] = []
    for number in range(draw(st.integers(2, 6))):
        is_secret = draw(st.booleans())
        secret = draw(st.lists(WORDS, min_size=1, max_size=3, unique=True)) if is_secret else []
        text = " ".join([*draw(SENTENCES), *secret, *draw(SENTENCES), "please."])
        ids = [f"e{len(messages) + 1 + at}" for at in range(4)]
        output = " ".join(["done", *secret])
        messages += [
            {"role": "user", "content": text},
            call(f"t{number}", "run", command=text, more=[{"inner": secret}]),
            {
                "role": "tool",
                "content": [{"type": "tool_result", "call_id": f"t{number}", "content": output}],
            },
            {"role": "assistant", "content": "I decided so because " + " ".join(secret) + " works."},
        ]
        if secret:
            gone += ids
            words += secret
    return messages, gone, words


@settings(
    max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(talk=talks(), keep=st.integers(20, 120))
def test_no_byte_of_a_redacted_word_is_on_the_disk_or_in_an_answer(
    daemon: Daemon, talk: tuple[list[Message], list[str], list[str]], keep: int
) -> None:
    messages, gone, words = talk
    session = started(daemon, [*messages, *turns(2, 60)], title=" ".join(words)[:200] or None)
    daemon.call("session/compact", session_id=session, keep_recent=keep)
    daemon.call("session/prune", session_id=session)

    if gone:
        daemon.call("session/redact", session_id=session, entry_ids=gone)

    seen = everything(daemon, session)
    assert [word for word in words if word in seen] == []
    assert [word for word in words if on_disk(daemon.home, word)] == []
    assert problems_of_providers(daemon, session) == {}
