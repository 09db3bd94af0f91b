"""`compactd doctor`: reports what is wrong with a session file, and writes a repaired copy."""

from __future__ import annotations

import json

import pytest

from compactd.client import Client
from compactd.formats.files.detect import read
from tests.support import session_files
from tests.support.command_line import environment, run


@pytest.fixture
def home(tmp_path):
    return tmp_path


def planted(home):
    """A file of pi's with a torn line, an orphan result and a summary that stands twice."""
    path = session_files.pi(home / "sick.jsonl", 2)
    entry = {"type": "message", "timestamp": "2026-01-02T03:04:05Z"}
    lost = {"role": "toolResult", "toolCallId": "lost", "toolName": "read", "content": []}
    summary = {"type": "compaction", "timestamp": "2026-01-02T03:04:05Z", "summary": "All was read."}
    again = {"role": "user", "content": "All was read."}
    with path.open("a") as file:
        for record in ({**entry, "message": lost}, summary, {**entry, "message": again}):
            file.write(json.dumps(record) + "\n")
        file.write('{"type":"message","mess')
    return path


def test_a_whole_file_has_nothing_wrong(home) -> None:
    seen = run(home, "doctor", session_files.pi(home / "pi.jsonl", 2))

    assert (seen.code, seen.err) == (0, "")
    assert seen.lines == ["pi.jsonl · pi · 8 messages", "no problems were found"]


def test_what_was_planted_is_found_with_its_place(home) -> None:
    seen = run(home, "doctor", planted(home))
    data = run(home, "doctor", home / "sick.jsonl", "--json").json

    assert seen.code == 1
    assert [" ".join(line.split())[:30] for line in seen.lines[1:5]] == [
        "3 findings",
        "torn line line 13 line 13, the",
        "summary twice message 11 the s",
        "orphan result message 9 the re",
    ]
    assert [(one["kind"], one.get("message"), one.get("line")) for one in data["findings"]] == [
        ("torn line", None, 13),
        ("summary twice", 11, None),
        ("orphan result", 9, None),
    ]


def test_two_messages_that_leave_claude_codes_queue_at_once_are_no_repeated_line(home) -> None:
    path = session_files.claude_code(home / "s.jsonl", [session_files.asked("Read the ledger.")])
    row = {"type": "queue-operation", "operation": "remove", "timestamp": "2026-01-02T03:04:05.000Z"}
    typed = path.read_text().splitlines()[-1]
    removed = json.dumps({**row, "sessionId": "5f0c4a52-6a2f-4c62-9d62-3b1d6f1c8a11"})
    with path.open("a") as file:
        file.write(f"{removed}\n{removed}\n{typed}\n")

    findings = run(home, "doctor", path, "--json").json["findings"]

    repeated = [found["line"] for found in findings if found["kind"] == "repeated line"]
    assert repeated == [len(path.read_text().splitlines())]


def test_the_repaired_copy_is_whole_and_the_file_is_as_it_was(home) -> None:
    sick = planted(home)
    before = sick.read_bytes()

    seen = run(home, "doctor", sick, "--repair", home / "well.jsonl")
    again = run(home, "doctor", home / "well.jsonl")

    assert (seen.code, again.code, sick.read_bytes()) == (0, 0, before)
    assert f"wrote {home}/well.jsonl: 9 messages" in seen.out
    assert read((home / "well.jsonl").read_bytes()).compactions == 1


def test_where_there_is_nothing_to_repair_nothing_is_written(home) -> None:
    seen = run(home, "doctor", session_files.pi(home / "pi.jsonl", 1), "--repair", home / "out")

    assert (seen.code, (home / "out").exists()) == (3, False)


def test_a_list_of_messages_is_repaired_in_its_own_shape(home) -> None:
    messages = [
        {"role": "human", "content": "Go."},
        {"role": "tool", "tool_call_id": "lost", "content": "x"},
        {"role": "assistant", "content": "Done."},
    ]
    (home / "sick.json").write_text(json.dumps(messages))

    seen = run(home, "doctor", home / "sick.json", "--repair", home / "well.json")

    well = json.loads((home / "well.json").read_text())
    assert seen.code == 0
    assert [message["role"] for message in well["messages"]] == ["user", "assistant"]


def test_a_damaged_journal_of_ours_is_saved_into_one_that_opens(home) -> None:
    with Client(env=environment(home)) as client:
        client.call("session/start", {"session_id": "s1", "model": "anthropic/claude-opus-4-5"})
        for number in range(6):
            message = {"role": "user", "content": f"word {number}", "id": f"m{number}"}
            client.call("session/append", {"session_id": "s1", "messages": [message]})
    [journal] = (home / "data" / "sessions").glob("*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b"word 2" in line)
    lines[at] = lines[at].replace(b"word 2", b"w0rd 2")
    (home / "sick.jsonl").write_bytes(b"".join(lines))

    seen = run(home, "doctor", home / "sick.jsonl", "--repair", home / "well.jsonl")
    with Client(env=environment(home / "other")) as client:
        taken = client.call("session/import", {"path": str(home / "well.jsonl")})
        history = client.call("session/history", {"session_id": taken["session_id"]})["entries"]

    assert seen.code == 0
    assert "damaged journal" in seen.out
    assert (taken["format"], taken["warnings"]) == ("compactd", [])
    assert [entry["message"]["content"] for entry in history] == [f"word {n}" for n in (0, 1, 3, 4, 5)]
    assert [entry["entry_id"] for entry in history] == ["e1", "e2", "e3", "e4", "e5"]


def test_a_file_that_is_huge_a_loop_or_binary_is_refused_in_two_lines(home) -> None:
    huge, loop, binary = home / "huge", home / "loop", home / "binary"
    with huge.open("wb") as file:
        file.truncate(2 * 1024**3)
    loop.symlink_to(loop)
    binary.write_bytes(b"\x7fELF" + bytes(64))

    seen = [run(home, "doctor", path) for path in (huge, loop, binary)]

    assert [one.code for one in seen] == [1, 2, 1]
    assert "2,147,483,648 bytes; at most 268,435,456 are read" in seen[0].err
    assert "Too many levels of symbolic links" in seen[1].err
    assert "it looks binary" in seen[2].err


def test_without_a_file_it_says_what_it_can_examine(home) -> None:
    seen, trust = run(home, "doctor"), run(home, "doctor", "--trust")

    assert (seen.code, trust.out) == (0, "no folder is trusted\n")
    assert seen.out == (
        "no folder is trusted\n"
        "`compactd doctor FILE` examines a session file, `compactd doctor --hooks` the hooks\n"
    )
