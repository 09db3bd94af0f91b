"""`compactd import`: sessions of agents get into the store, once, and are brought up to date."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from compactd.client import Client
from tests.support.command_line import ended, environment, run, run_each, started

DAY = "2026-03-01T10:{:02}:00.000Z"
SESSION = "11111111-2222-3333-4444-555555555555"


def line(number: int, role: str, content: object, session: str = SESSION) -> str:
    """One line of a Claude Code transcript."""
    message: dict[str, object] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"msg_{session[:4]}_{number}", "model": "claude-opus-4-5", "type": "message"}
        message["content"] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    record = {
        "type": role,
        "uuid": f"{session[:8]}-{number}",
        "parentUuid": f"{session[:8]}-{number - 1}" if number > 1 else None,
        "sessionId": session,
        "cwd": "/code/app",
        "timestamp": DAY.format(number % 60),
        "message": message,
    }
    return json.dumps(record) + "\n"


def talk(count: int, session: str = SESSION, first: str = "Mend the parser of the zephyr files.") -> str:
    said = [first, *(f"Step {number} of the work is done." for number in range(2, count + 1))]
    return "".join(
        line(number, "user" if number % 2 else "assistant", text, session)
        for number, text in enumerate(said, 1)
    )


def claude_file(home: Path, text: str, name: str = SESSION) -> Path:
    path = home / ".claude" / "projects" / "-code-app" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def sessions(home: Path) -> list[dict[str, object]]:
    return run(home, "sessions", "--json").json["sessions"]


def hits(home: Path, *words: str) -> list[dict[str, object]]:
    return run(home, "search", *words, "--json").json["hits"]


def test_all_agents_sessions_are_found_by_search_afterwards(tmp_path: Path) -> None:
    claude_file(tmp_path, talk(4))
    other = tmp_path / ".codex/sessions/2026/03/01/rollout-2026-03-01T10-00-00-abc.jsonl"
    other.parent.mkdir(parents=True)
    records = [
        {"type": "session_meta", "payload": {"id": "abc", "cwd": "/code/app", "originator": "codex_cli_rs"}},
        {
            "type": "response_item",
            "payload": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Sort the quokka list."}],
            },
        },
    ]
    other.write_text("".join(json.dumps({"timestamp": DAY.format(9), **one}) + "\n" for one in records))

    done = run(tmp_path, "import", "--all")

    assert (done.code, done.lines[0]) == (0, "imported: 2 sessions, 5 messages")
    assert len(hits(tmp_path, "zephyr")) == 1
    assert len(hits(tmp_path, "quokka")) == 1


def test_an_imported_session_keeps_its_own_time_and_a_telling_title(tmp_path: Path) -> None:
    greeting = (
        line(1, "user", "hi") + line(2, "assistant", "Hello!") + line(3, "user", "Mend the zephyr parser.")
    )
    claude_file(tmp_path, greeting)
    run(tmp_path, "import", "claude-code")

    (one,) = sessions(tmp_path)

    assert one["title"] == "Mend the zephyr parser."
    assert time.strftime("%Y-%m-%d %H:%M", time.gmtime(one["updated_at"])) == "2026-03-01 10:03"


def test_a_session_without_times_has_the_time_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text('[{"role": "user", "content": "Hello, mend the parser."}]')
    os.utime(path, (0, 1_700_000_000))

    run(tmp_path, "import", path)

    assert [one["updated_at"] for one in sessions(tmp_path)] == [1_700_000_000]


def test_an_unchanged_file_is_skipped_without_a_daemon(tmp_path: Path) -> None:
    claude_file(tmp_path, talk(4))
    run(tmp_path, "import", "--all")
    before = sessions(tmp_path)

    again = run(tmp_path, "import", "--all", "--json").json

    assert (again["imported"], again["updated"], again["unchanged"]) == ([], [], 1)
    assert sessions(tmp_path) == before


def test_a_session_that_went_on_gets_only_its_new_messages(tmp_path: Path) -> None:
    path = claude_file(tmp_path, talk(4))
    run(tmp_path, "import", "--all")
    (before,) = sessions(tmp_path)
    path.write_text(talk(8))

    done = run(tmp_path, "import", "--all", "--json").json
    (after,) = sessions(tmp_path)

    assert [one["messages"] for one in done["updated"]] == [8]
    assert (after["session_id"], after["message_count"]) == (before["session_id"], 8)
    assert len(hits(tmp_path, "zephyr")) == 1
    assert time.strftime("%H:%M", time.gmtime(after["updated_at"])) == "10:08"


def test_a_message_that_its_agent_rewrote_replaces_the_older_one(tmp_path: Path) -> None:
    path = claude_file(tmp_path, talk(3) + line(4, "assistant", "The yak is"))
    run(tmp_path, "import", "--all")
    path.write_text(talk(3) + line(4, "assistant", "The yak is shaved."))

    run(tmp_path, "import", "--all")

    assert [hit["snippet"] for hit in hits(tmp_path, "yak")] == ["The yak is shaved."]


def test_what_was_added_in_compactd_stays(tmp_path: Path) -> None:
    path = claude_file(tmp_path, talk(4))
    session_id = run(tmp_path, "import", "--all", "--json").json["imported"][0]["session_id"]
    with Client(env=environment(tmp_path)) as client:
        client.session_start(session_id=session_id, title="My own title")
        client.session_append(
            session_id=session_id, messages=[{"role": "user", "content": "Remember the walrus."}]
        )
    path.write_text(talk(8))

    done = run(tmp_path, "import", "--all", "--json").json
    (after,) = sessions(tmp_path)

    assert [one["messages"] for one in done["updated"]] == [9]
    assert (after["title"], after["message_count"]) == ("My own title", 9)
    for word in ("zephyr", "walrus"):
        assert len(hits(tmp_path, word)) == 1
    assert len(hits(tmp_path, "Step 3")) == 1
    (late,) = hits(tmp_path, "Step 8")
    assert time.strftime("%H:%M", time.gmtime(late["at"])) == "10:08"


def test_redacted_words_do_not_come_back_with_an_update(tmp_path: Path) -> None:
    path = claude_file(tmp_path, talk(4))
    session_id = run(tmp_path, "import", "--all", "--json").json["imported"][0]["session_id"]
    with Client(env=environment(tmp_path)) as client:
        client.session_start(session_id=session_id)
        client.session_redact(session_id=session_id, entry_ids=["e1"])
    path.write_text(talk(8))

    run(tmp_path, "import", "--all")

    assert hits(tmp_path, "zephyr") == []
    assert len(hits(tmp_path, "Step 8")) == 1


def test_what_cannot_be_imported_is_named_with_the_reason(tmp_path: Path) -> None:
    claude_file(tmp_path, talk(4))
    claude_file(tmp_path, talk(2, "22222222"), "agent-22222222")
    claude_file(tmp_path, "", "empty")
    (claude_file(tmp_path, "", "damaged")).write_bytes(b"\x00\x01\xff" * 999)
    claude_file(tmp_path, '{"type":"summary","summary":"A","leafUuid":"x"}\n', "nothing")

    first, again = (run(tmp_path, "import", "--all", "--json").json for _ in range(2))

    why = {Path(one["path"]).stem: one["why"] for one in first["skipped"]}
    assert why == {
        "agent-22222222": "written by a sub-agent",
        "empty": "empty",
        "damaged": "damaged: the content is binary",
        "nothing": "no messages",
    }
    assert len(first["imported"]) == 1
    assert {Path(one["path"]).stem: one["why"] for one in again["skipped"]} == why


def test_a_session_that_the_hooks_store_is_not_stored_twice(tmp_path: Path) -> None:
    path = claude_file(tmp_path, talk(4))
    run(tmp_path, "import", "--all")
    event = {
        "session_id": SESSION,
        "transcript_path": str(path),
        "hook_event_name": "Stop",
        "cwd": "/code/app",
    }
    subprocess.run(
        [*started(tmp_path, ["--version"]).args[:3], "hook", "claude-code"],
        input=json.dumps(event).encode(),
        env=environment(tmp_path),
        check=True,
        timeout=60,
    )
    assert len(hits(tmp_path, "zephyr")) == 2

    (copy,) = {one["session_id"] for one in sessions(tmp_path)} - {f"claude-code:{SESSION}"}
    with Client(env=environment(tmp_path)) as client:
        client.session_start(session_id=copy)
        refused = run(tmp_path, "import", "--all", "--json").json
    assert [one["why"].partition(":")[0] for one in refused["skipped"]] == ["its copy cannot be deleted"]
    assert len(hits(tmp_path, "zephyr")) == 2

    done = run(tmp_path, "import", "--all", "--json").json

    assert [one["why"] for one in done["skipped"]] == ["already stored by compactd's hooks"]
    assert [one["session_id"] for one in sessions(tmp_path)] == [f"claude-code:{SESSION}"]
    assert len(hits(tmp_path, "zephyr")) == 1


def test_a_deleted_session_comes_back_only_if_its_file_is_named(tmp_path: Path) -> None:
    path = claude_file(tmp_path, talk(4))
    session_id = run(tmp_path, "import", "--all", "--json").json["imported"][0]["session_id"]
    deleted = run(tmp_path, "sessions", "delete", session_id, "--yes")
    assert f"not deleted: {path}" in deleted.words
    path.write_text(talk(8))

    assert "deleted from the store" in run(tmp_path, "import", "--all").words
    assert sessions(tmp_path) == []
    assert run(tmp_path, "import", path).code == 0
    assert len(sessions(tmp_path)) == 1


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    claude_file(tmp_path, talk(4))

    done = run(tmp_path, "import", "--all", "--dry-run")

    assert (done.code, done.lines[0]) == (0, "would be imported: 1 session")
    assert not (tmp_path / "data").exists()


def test_since_leaves_out_files_that_did_not_change(tmp_path: Path) -> None:
    claude_file(tmp_path, talk(4))
    old = claude_file(tmp_path, talk(4, "33333333"), "33333333")
    os.utime(old, (0, time.time() - 40 * 86_400))

    done = run(tmp_path, "import", "--all", "--since", "30d", "--json").json

    assert [Path(one["path"]).stem for one in done["imported"]] == [SESSION]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "say what to import"),
        (("claud-code",), "neither an agent nor a file"),
        (("none.jsonl",), "No such file"),
        (("--all", "--since", "soon"), "is not a time"),
    ],
)
def test_a_wrong_command_line_is_told(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    seen = run(tmp_path, "import", *arguments)

    assert (seen.code, seen.out) == (2, "")
    assert said in seen.err


def test_a_named_file_that_is_no_session_fails(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a session")

    seen = run(tmp_path, "import", "notes.txt")

    assert seen.code == 1
    assert "not a session file that compactd can read" in seen.words


def test_an_interrupted_import_goes_on_at_the_next_one(tmp_path: Path) -> None:
    count = 150  # so many that the import goes on while a busy machine runs this test
    for number in range(count):
        session = f"{number:08}"
        claude_file(tmp_path, talk(20, session, f"Find the number {number}."), session)
    process = started(tmp_path, ["import", "--all"])
    memory = tmp_path / "data" / "imports.jsonl"
    end = time.monotonic() + 60
    while time.monotonic() < end and (not memory.exists() or memory.read_bytes().count(b"}") < 3):
        time.sleep(0.01)
    process.send_signal(2)
    stopped = ended(process)

    assert stopped.code == 130, stopped
    assert "Traceback" not in stopped.err
    assert "interrupted" in stopped.out
    done = run(tmp_path, "import", "--all", "--json").json
    assert 0 < len(done["imported"]) < count
    assert len(sessions(tmp_path)) == count
    assert len(hits(tmp_path, "Find", "39")) == 1


def test_nothing_stored_points_to_the_import(tmp_path: Path) -> None:
    claude_file(tmp_path, talk(4))

    search, listed = run_each(tmp_path, ("search", "zephyr"), ("sessions",))

    for seen in (search, listed):
        assert "no sessions are stored" in seen.words
        assert "`compactd import --all` imports the 1 session of agents on this machine" in seen.words
    assert (search.code, listed.code) == (3, 0)


def test_nothing_stored_and_no_agent_says_so(tmp_path: Path) -> None:
    assert "no sessions of agents were found on this machine" in run(tmp_path, "sessions").words
