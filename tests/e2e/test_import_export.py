"""`session/import` and `session/export`: sessions go from file to file, and nothing is lost on the way."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.carried import PROMPT_IS_TOLD, READABLE, again, export, rich, seen
from tests.e2e.conftest import Spawn
from tests.e2e.sessions import session_files
from tests.support.client import Daemon
from tests.support.talk import CHARS4, assistant, result, said, turns, user
from tests.support.views import problems_of_providers

SESSIONS = session_files()
# --- compactd's format ------------------------------------------------------------------------------


def test_what_is_exported_as_compactd_comes_in_as_the_same_session(spawn: Spawn, tmp_path: Path) -> None:
    daemon, other = spawn(), spawn(tmp_path / "elsewhere")
    session = rich(daemon)
    before, text = seen(daemon, session), export(daemon, session)

    answer = other.call("session/import", content=text)

    assert answer["format"] == "compactd"
    assert {one["name"] for one in answer["ignored_settings"]} == {
        "prune_minimum",
        "prune_protect",
        "estimator",
    }
    assert answer["message_count"] == daemon.call("agent/state", session_id=session)["message_count"]
    assert answer["session_id"] != session
    assert said_in(export(other, answer["session_id"])) == said_in(text)
    assert seen(other, again(other, answer)) == before


def said_in(journal: str) -> list[str]:
    """Return the records of a journal, except the first and those of settings."""
    return [line for line in journal.rstrip("\n").split("\n")[1:] if json.loads(line)["type"] != "settings"]


def test_an_imported_session_goes_on_as_any_other(daemon: Daemon) -> None:
    session = rich(daemon)
    copy = again(daemon, daemon.call("session/import", content=export(daemon, session)))

    for one in (session, copy):
        daemon.call("session/append", session_id=one, messages=[result("t9", 40), *turns(2, 50)])
        daemon.call("session/compact", session_id=one, keep_recent=200)

    assert daemon.call("session/context", session_id=copy) == daemon.call(
        "session/context", session_id=session
    )


def test_a_whole_import_is_there_when_the_daemon_is_killed_right_after_the_answer(spawn: Spawn) -> None:
    daemon = spawn()
    session = rich(daemon)
    copy = daemon.call("session/import", content=export(daemon, session))["session_id"]
    before = seen(daemon, copy)
    daemon.kill()

    again = spawn()
    answer = again.call("session/start", session_id=copy)

    assert (answer["resumed"], answer["warnings"]) == (True, [])
    assert seen(again, copy) == before


def test_a_file_names_no_place_that_a_conversation_is_sent_to(daemon: Daemon, tmp_path: Path) -> None:
    given = {"model": "openai/gpt-4o", "keep_messages": 7}
    session = daemon.call(
        "session/start",
        model={"provider": "openai", "id": "gpt-4o", "base_url": "http://127.0.0.1:9/v1"},
        compaction=given,
        working_dir=str(tmp_path),
        snapshots=True,
    )["session_id"]
    daemon.call("session/append", session_id=session, messages=turns(1, 5))

    answer = daemon.call("session/import", content=export(daemon, session))

    text = export(daemon, answer["session_id"])
    assert "127.0.0.1" not in text
    assert '"snapshots"' not in text
    assert [warning.split(" was ")[0] for warning in answer["warnings"]] == [
        "the `base_url` of the file's model",
        "the file's summary model",
    ]
    values = daemon.call("session/configure", session_id=answer["session_id"])["settings"]
    assert values["keep_messages"]["value"] == 7
    assert values["model"]["value"] is None


def record(seq: int, **fields: Any) -> bytes:
    """A line of a journal."""
    head = json.dumps({"seq": seq, **fields}, separators=(",", ":")).encode()[:-1]
    return head + b',"crc":"%08x"}\n' % zlib.crc32(head)


OPENED = record(0, type="session", v=1, id="x", at=1.0)


def message(seq: int, entry_id: str, parent: str | None = None) -> bytes:
    body = {"role": "user", "content": f"words of {entry_id}"}
    return record(seq, type="message", id=entry_id, at=1.0, tokens=[5, "chars4"], message=body, parent=parent)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "an undo of nothing",
            [OPENED, message(1, "e1"), record(2, type="undo", at=1.0, target="e9", epoch=2)],
        ),
        ("ids out of order", [OPENED, message(1, "e7"), message(2, "e8", "e7")]),
        ("the same id twice", [OPENED, message(1, "e1"), message(2, "e1", "e1")]),
        ("a kind that is not known", [OPENED, message(1, "e1"), record(2, type="hologram", at=1.0)]),
        ("a damaged line", [OPENED, message(1, "e1"), b"{nonsense}\n", message(3, "e2", "e1")]),
        ("no first record", [message(0, "e1"), message(1, "e2", "e1")]),
    ],
)
def test_a_journal_that_does_not_fit_together_still_gives_its_messages(
    daemon: Daemon, name: str, lines: list[bytes]
) -> None:
    answer = daemon.call("session/import", content=b"".join(lines).decode(), format="compactd")

    context = daemon.call("session/context", session_id=answer["session_id"])["messages"]
    assert answer["format"] == "compactd", name
    assert context, name
    assert all(said(one).startswith("words of e") for one in context), name
    assert daemon.call("session/append", session_id=answer["session_id"], messages=turns(1, 3))["entry_ids"]


def test_a_journal_that_was_cut_off_comes_in_up_to_there_and_says_so(daemon: Daemon) -> None:
    session = rich(daemon)
    text = export(daemon, session)

    answer = daemon.call("session/import", content=text[:-20])

    assert [warning.partition(" are ")[2] for warning in answer["warnings"]][-1:] == [
        "an incomplete record and were ignored"
    ]
    entries = daemon.call("session/history", session_id=again(daemon, answer))["entries"]
    assert entries == daemon.call("session/history", session_id=session)["entries"][:-1]


# --- other shapes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", READABLE)
def test_an_export_in_a_providers_shape_comes_in_with_the_same_words_and_calls(
    daemon: Daemon, format: str
) -> None:
    session = rich(daemon)
    daemon.call("session/append", session_id=session, messages=[result("t9", 3)])
    text = export(daemon, session, format)

    answer = daemon.call("session/import", content=text)

    assert answer["format"] == format
    assert [warning.partition(",")[0] for warning in answer["warnings"]] == [PROMPT_IS_TOLD]
    mine, copy = (daemon.call("session/context", session_id=one) for one in (session, answer["session_id"]))
    assert copy["system"] == mine["system"] == "You help."
    assert problems_of_providers(daemon, answer["session_id"]) == {}
    everything = daemon.call(
        "session/expand", session_id=session, entry_ids=[f"e{n}" for n in range(1, 17) if n != 15]
    )
    first = json.dumps(copy["messages"], ensure_ascii=False)
    for entry in everything["entries"]:
        words = said(entry["message"]) if entry["message"]["role"] == "user" else ""
        assert json.dumps(words, ensure_ascii=False)[1:-1] in first
    assert [first.count(name) for name in ("a.py", "b.py")] == [1, 1]


def test_a_neutral_export_holds_the_messages_byte_for_byte_compacted_or_not(daemon: Daemon) -> None:
    odd = '{"role": "user",  "content":"x", "meta":{"mine":1.50e3,"ü":"\\u00fc"}}'
    session = str(daemon.call("session/start", compaction=CHARS4)["session_id"])
    daemon.call_raw(
        "session/append", b'{"session_id":"%s","messages":[%s]}' % (session.encode(), odd.encode())
    )
    daemon.call("session/append", session_id=session, messages=turns(6, 200))
    daemon.call("session/compact", session_id=session, keep_recent=500)

    text = export(daemon, session, "neutral")

    assert odd in text
    assert len(json.loads(text)["messages"]) == 13
    copy = daemon.call("session/import", content=text)
    assert (copy["format"], copy["message_count"]) == ("neutral", 13)
    assert export(daemon, copy["session_id"], "neutral").split("messages")[1] == text.split("messages")[1]


def test_what_had_to_be_mended_for_a_provider_is_told(daemon: Daemon) -> None:
    session = daemon.call("session/start")["session_id"]
    messages = [user(3), assistant(5, "t1"), user(3), result("t7", 3)]
    daemon.call("session/append", session_id=session, messages=messages)

    done = daemon.call("session/export", session_id=session, format="anthropic")

    assert done["warnings"] == [
        "1 × tool call without a result: an error result was added",
        "1 × tool result without its call: left out",
    ]
    assert json.loads(done["content"])["messages"][-1]["role"] == "user"


def test_messages_come_in_as_json_too_and_by_the_name_of_their_format(daemon: Daemon) -> None:
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "Hello"}]}]

    answers = [
        daemon.call("session/import", content={"contents": contents}),
        daemon.call("session/import", content=contents, format="gemini"),
        daemon.call("session/import", content=json.dumps(contents), format="auto"),
    ]

    assert [(one["format"], one["message_count"]) for one in answers] == [("gemini", 2)] * 3


CLAUDE_CODE = [
    {"type": "user", "uuid": "u1", "sessionId": "s", "cwd": "/w", "timestamp": "2026-01-01T00:00:00Z",
     "message": {"role": "user", "content": "Fix the loader"}},
    {"type": "assistant", "uuid": "u2", "sessionId": "s", "timestamp": "2026-01-01T00:00:05Z",
     "message": {"id": "a1", "model": "claude-sonnet-4-5", "role": "assistant",
                 "content": [{"type": "text", "text": "Done."}],
                 "usage": {"input_tokens": 900, "output_tokens": 9}}},
    {"type": "user", "uuid": "u3", "sessionId": "s", "isCompactSummary": True,
     "message": {"role": "user", "content": "Summary: the loader was fixed."}},
    {"type": "user", "uuid": "u4", "sessionId": "s", "message": {"role": "user", "content": "Now test it"}},
]  # fmt: skip


@pytest.mark.parametrize("format", ["auto", "claude-code", "claude_code"])
def test_a_summary_of_another_program_is_a_compaction_here(
    daemon: Daemon, tmp_path: Path, format: str
) -> None:
    path = tmp_path / "claude.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in CLAUDE_CODE))

    answer = daemon.call("session/import", path=str(path), format=format)

    session = answer["session_id"]
    context = daemon.call("session/context", session_id=session)["messages"]
    assert (answer["format"], answer["message_count"]) == ("claude-code", 2)
    assert [said(one) for one in context] == ["Summary: the loader was fixed.", "Now test it"]
    assert context[0]["meta"]["type"] == "compaction_summary"
    history = daemon.call("session/history", session_id=session)["entries"]
    assert [entry["kind"] for entry in history] == ["message", "message", "compaction", "message"]
    assert history[0]["at"] == 1767225600.0
    state = daemon.call("agent/state", session_id=session)
    assert (state["model"], state["token_usage"]["prompt_tokens"]) == ("claude-sonnet-4-5", 900)
    assert state["token_usage"]["current_context_source"] == "estimated", (
        "that report was of an older context"
    )
    daemon.call("session/undo", session_id=session)
    back = daemon.call("session/context", session_id=session)["messages"]
    assert [said(one) for one in back] == ["Fix the loader", "Done.", "Now test it"]


@pytest.mark.parametrize("named", [{"firstKeptEntryIndex": 3}, {"firstKeptEntryId": "p3"}])
def test_what_pi_kept_before_its_summary_stays_in_the_context(daemon: Daemon, named: dict[str, Any]) -> None:
    def said_by(entry_id: str, role: str, text: str) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return {"type": "message", "id": entry_id, "message": {"role": role, "content": content}}

    lines = [
        {"type": "session", "id": "pi1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"},
        said_by("p1", "user", "first"),
        said_by("p2", "assistant", "one"),
        said_by("p3", "user", "second"),
        said_by("p4", "assistant", "two"),
        {"type": "compaction", "id": "p5", "summary": "They said first.", **named},
        said_by("p6", "user", "third"),
    ]

    answer = daemon.call("session/import", content="\n".join(map(json.dumps, lines)))

    session = answer["session_id"]
    context = daemon.call("session/context", session_id=session)
    assert answer["format"] == "pi"
    assert [said(one) for one in context["messages"]] == ["They said first.", "second", "two", "third"]
    done = daemon.call("agent/state", session_id=session)["compaction"]["history"][0]
    assert (done["messages_before"], done["messages_after"], done["kept_messages"]) == (4, 3, 2)
    daemon.call("session/close", session_id=session)
    daemon.call("session/start", session_id=session)
    assert daemon.call("session/context", session_id=session) == context


# --- real sessions ----------------------------------------------------------------------------------


@pytest.mark.skipif(not SESSIONS, reason="the shared sessions are not here")
@pytest.mark.parametrize("name", SESSIONS)
def test_a_real_session_comes_in_goes_out_and_comes_in_again_the_same(daemon: Daemon, name: str) -> None:
    path = SESSIONS[name][0]

    first = daemon.call("session/import", path=str(path))
    session = first["session_id"]
    again = daemon.call("session/import", content=export(daemon, session))["session_id"]

    assert first["message_count"] > 0
    assert problems_of_providers(daemon, session) == {}
    assert daemon.call("session/context", session_id=again) == daemon.call(
        "session/context", session_id=session
    )
    assert daemon.call("session/history", session_id=again) == daemon.call(
        "session/history", session_id=session
    )
    neutral = export(daemon, session, "neutral")
    copy = daemon.call("session/import", content=neutral)
    assert copy["message_count"] == len(json.loads(neutral)["messages"])
    assert (
        export(daemon, copy["session_id"], "neutral").partition('"messages"')[2]
        == neutral.partition('"messages"')[2]
    )
    for format in ("openai", "anthropic", "gemini")[len(name) % 3 :][:1]:  # each one for some of them
        other = daemon.call("session/import", content=export(daemon, session, format))
        assert (other["format"], problems_of_providers(daemon, other["session_id"])) == (format, {})
        assert calls(daemon, other["session_id"]) == calls(daemon, session)


def calls(daemon: Daemon, session: str) -> list[tuple[str, Any]]:
    """Name and arguments of every call of the whole history, as OpenAI's shape has them."""
    messages = json.loads(export(daemon, session, "openai"))["messages"]
    return [
        (one["function"]["name"], json.loads(one["function"]["arguments"] or "{}"))
        for message in messages
        for one in message.get("tool_calls") or ()
    ]
