"""klaude's spec, docs/specs.md, "klaude-code.md", from "Compaction Process" to its end, over the wire.
Profile `klaude`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback, Together
from tests.support.talk import Message, assistant, call, result, said, text, turns, user
from tests.support.wire import MODEL, SUMMARY, append, compact, journal, started, view

MODELLED = {"model": MODEL}


def session_of(daemon: Daemon, window: int | None = 200_000, **more: Any) -> str:
    """A session under this profile."""
    return started(daemon, "klaude", window, **more)


# --- lines 73-80, "Compaction Process" --------------------------------------------------------------


def loop() -> list[Message]:
    """An old turn, and one of tool calls. From the end: e10 50, e9 (result) 350, e8 370, e7 430, e6 (result)
    630, e5 (two calls) 660, e4 700."""
    return [
        user(300, content=f"HISTORY {text(290)}"),
        assistant(300, seed=1),
        {"role": "system", "content": text(10)},
        user(40, content=f"BEGINNING {text(30)}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        assistant(30, "t1", seed=2),
        result("t1", 200, seed=3),
        assistant(60, seed=4),
        assistant(20, "t2", seed=5),
        result("t2", 300, seed=6),
        assistant(50, seed=7),
    ]


@pytest.mark.parametrize(
    ("keep", "first"),
    [
        (50, "e10"),
        (51, "e8"),
        (350, "e8"),
        (370, "e8"),
        (371, "e7"),
        (430, "e7"),
        (431, "e5"),
        (630, "e5"),
        (660, "e5"),
        (661, "e4"),
        (700, "e4"),
        (701, "e3"),
        (711, "e2"),
    ],
)
def test_the_cut_is_where_keep_is_reached_or_at_the_call_of_that_result(
    daemon: Daemon, keep: int, first: str
) -> None:
    session = session_of(daemon)
    append(daemon, session, *loop())

    done = compact(daemon, session, keep_recent=keep)

    assert done["first_kept_entry_id"] == first
    assert daemon.call("session/context", session_id=session)["repairs"] == []


def test_a_session_that_is_within_keep_has_nothing_to_compact(daemon: Daemon) -> None:
    session = session_of(daemon)
    append(daemon, session, *turns(9, 1000))

    done = compact(daemon, session)

    assert (done["compacted"], done["reason"].startswith("nothing to compact")) == (False, True)
    assert [e for e in daemon.events(session) if e["type"].startswith("compaction")] == []


def test_old_messages_are_sent_as_labelled_text(daemon: Daemon, server: Loopback) -> None:
    server.play(Answer(text=SUMMARY))
    session = session_of(daemon, settings=MODELLED)
    thinking = {"type": "thinking", "text": "secretly"}
    calls = {
        "type": "tool_call",
        "call_id": "1",
        "name": "bash",
        "arguments": {"command": "ls", "n": {"keyA": 1}},
    }
    old: list[Message] = [
        user(5, content="List the files."),
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "I look."}, calls]},
        {"role": "tool", "content": [{"type": "tool_result", "call_id": "1", "content": "x" * 2500}]},
        assistant(5, content="Done."),
    ]
    append(daemon, session, *old, *turns(2, 300))

    compact(daemon, session, keep_recent=600)

    prompt = server.requests[0].body["messages"][0]["content"][0]["text"]
    lines = prompt.partition("<conversation>")[2].partition("</conversation>")[0].strip().split("\n\n")
    assert lines[0] == "[User]: List the files."
    assert lines[1] == "[Assistant]: I look."
    assert lines[2] == '[Assistant tool calls]: bash({"command":"ls","n":{"keyA":1}})'
    cut, note = lines[3].split("…")
    assert cut == "[Tool result]: " + "x" * 2000
    assert "500" in note, "how many characters are missing"
    assert lines[4] == "[Assistant]: Done."
    assert "secretly" not in prompt


def test_history_and_task_are_asked_for_at_once_where_the_cut_lands_in_a_task(
    daemon: Daemon, server: Loopback
) -> None:
    # The server answers either only while both are open: one after the other would never end.
    both = asyncio.Barrier(2)
    answers = [SUMMARY.replace("The slow function", f"Slow function {number}") for number in range(2)]
    server.play(*[Together(Answer(text=answer), both) for answer in answers])
    session = session_of(daemon, settings={**MODELLED, "summary_deadline_s": 20})
    append(daemon, session, *loop())

    done = compact(daemon, session, keep_recent=660)

    assert (done["strategy"], done["reason"]) == ("summarize", "")
    sent = [request.raw.decode() for request in server.requests]
    assert (done["split_turn"], done["first_kept_entry_id"]) == (True, "e5")
    assert sorted(("HISTORY" in one, "BEGINNING" in one) for one in sent) == [(False, True), (True, False)]
    history, task = (
        next(number for number, one in enumerate(sent) if word in one) for word in ("HISTORY", "BEGINNING")
    )
    before, _, after = done["summary"].partition("## Turn Context (split turn)")
    assert f"Slow function {history} is" in before
    assert f"Slow function {task} is" in after


def test_files_come_from_the_clients_tracker_and_from_any_tools_arguments(daemon: Daemon) -> None:
    session = session_of(daemon)
    touched = [
        call("1", "Peek", file_path="read.py"),
        result("1", 100),
        call("2", "Poke", path="new.py", content="x = 1"),
        result("2", 100),
        call("3", "Change", path="edit.py", old_string="a", new_string="b"),
        result("3", 100),
    ]
    files = {"read": ["seen-by-tracker.py", "edit.py"], "modified": ["built-by-tracker.py"]}
    append(daemon, session, user(5), *touched, files=files)
    append(daemon, session, *turns(2, 300))

    done = compact(daemon, session, keep_recent=600)

    assert sorted(done["read_files"]) == ["read.py", "seen-by-tracker.py"]
    assert sorted(done["modified_files"]) == ["built-by-tracker.py", "edit.py", "new.py"]


def test_the_clients_tracker_is_the_sessions_whichever_message_brought_it(daemon: Daemon) -> None:
    # klaude's `file_tracker` knows the files of the whole session; what stays verbatim brings files too.
    session = session_of(daemon)
    listed = []
    for files in (
        {"read": ["a.py", "b.py"], "modified": []},
        {"read": ["c.py"], "modified": ["a.py"]},
        {"read": ["a.py"], "modified": []},
    ):
        append(daemon, session, *turns(2, 300))
        append(daemon, session, user(300), assistant(300), files=files)

        done = compact(daemon, session, keep_recent=600)

        assert said(view(daemon, session)[-1]) == text(300), "the message with the files stays"
        assert all(path in done["summary"] for path in (*done["read_files"], *done["modified_files"]))
        listed.append((done["read_files"], done["modified_files"]))

    assert listed == [(["a.py", "b.py"], []), (["b.py", "c.py"], ["a.py"]), (["b.py", "c.py"], ["a.py"])]


@pytest.mark.parametrize("name", ["patch", "input", "patchText"])
def test_a_patch_names_the_files_that_it_changes(daemon: Daemon, name: str) -> None:
    session = session_of(daemon)
    patch = """*** Begin Patch
*** Update File: src/b4.py
*** Move to: src/b5.py
@@
-x = 1
+x = 2
*** Add File: docs/new file.md
+Hello.
*** Delete File: old.py
*** End Patch"""
    touched = [call("1", "apply_patch", **{name: patch}), result("1", 100)]
    append(daemon, session, user(5), *touched, *turns(2, 300))

    done = compact(daemon, session, keep_recent=600)

    assert done["read_files"] == []
    assert done["modified_files"] == ["src/b4.py", "src/b5.py", "docs/new file.md", "old.py"]


def test_the_entry_holds_summary_first_kept_and_tokens_before(daemon: Daemon) -> None:
    session = session_of(daemon)
    append(daemon, session, *turns(4, 400))

    done = compact(daemon, session, keep_recent=800)

    (entry,) = (record for record in journal(daemon, session) if record.get("type") == "compaction")
    assert (entry["summary"], entry["first_kept"]) == (done["summary"], "e7")
    assert entry["result"]["tokens_before"] == 3200
    told = daemon.call("session/history", session_id=session)["entries"][-1]["compaction"]
    assert (told["summary"], told["tokens_before"]) == (done["summary"], 3200)


# --- lines 82-112, "Post-Compaction History" --------------------------------------------------------


def test_without_a_compaction_the_history_is_all_messages(daemon: Daemon) -> None:
    session = session_of(daemon)
    originals = turns(4, 400)
    append(daemon, session, *originals)

    assert [said(m) for m in view(daemon, session)] == [said(m) for m in originals]


def test_the_history_is_the_last_summary_and_the_kept_messages_also_after_reloads(daemon: Daemon) -> None:
    session = session_of(daemon)
    originals: list[Message] = []
    for number in range(4):
        originals += (new := turns(4, 400))
        append(daemon, session, *new)
        done = compact(daemon, session, keep_recent=800)
        daemon.call("session/close", session_id=session)
        daemon.call("session/start", session_id=session)

        first, *kept = view(daemon, session)

        assert (first["role"], said(first)) == ("user", done["summary"]), number
        assert [said(m) for m in kept] == [said(m) for m in originals[-2:]], "no index that went astray"


def test_the_summary_has_the_prefix_the_sections_and_the_files(daemon: Daemon, server: Loopback) -> None:
    server.play(Answer(text=SUMMARY))
    session = session_of(daemon, settings=MODELLED)
    read = [call("1", "read", path="a.py"), result("1", 100)]
    write = [call("2", "write", path="b.py", content="x"), result("2", 100)]
    append(daemon, session, user(5), *read, *write, *turns(2, 300))

    done = compact(daemon, session, keep_recent=600)

    summary = done["summary"]
    assert summary.startswith("The conversation history before this point was compacted")
    places = [
        summary.find(f"\n{heading}\n")
        for heading in (
            "## Goal",
            "## Progress",
            "### Done",
            "### In Progress",
            "### Blocked",
            "## Key Decisions",
            "## Next Steps",
            "<read-files>\na.py\n</read-files>",
        )
    ]
    assert -1 not in places
    assert places == sorted(places)
    assert summary.endswith("<modified-files>\nb.py\n</modified-files>")
