"""A transcript is mirrored while it grows, also if it is torn, rewritten or missing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.core.history.entries import Appended
from compactd.integrations.hooks.hook_state import ReadPosition, files_of, load, read_messages_file
from compactd.integrations.hooks.transcripts import (
    MAX_TRANSCRIPT_LINE,
    Transcript,
    TranscriptPiece,
    TranscriptRefused,
)
from compactd.storage.journal_records import as_appended, scan
from tests.support.agent_transcripts import AGENTS, Session, Turn, past
from tests.support.command_line import recorded
from tests.support.examples import examples
from tests.support.hook_runs import PATIENT, Agent, told


def mirrored(home: Path, agent: str, session_id: str = "5c5cb639-aaaa") -> list[bytes]:
    """The messages in the mirror's journal."""
    files = files_of({"COMPACTD_HOME": str(home / "data")}, agent, session_id)
    path = files.folder.parent / "sessions" / f"{files.stem}.jsonl"
    found = scan(path.read_bytes())
    assert found.damage is None
    records = [as_appended(record) for record in found.records]
    entries = [msgspec.json.decode(r, type=Appended) for r in records if r.startswith(b'{"type":"message"')]
    assert [entry.id for entry in entries] == sorted(
        {entry.id for entry in entries}, key=lambda i: int(i[1:])
    )
    return [bytes(entry.message) for entry in entries]


@settings(deadline=None, max_examples=examples(12))
@given(cuts=st.lists(st.integers(0, 12_000), max_size=6), agent=st.sampled_from(("claude-code", "codex")))
def test_however_it_grows_it_is_mirrored_as_if_read_at_once(
    cuts: list[int], agent: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("grows")
    one = Agent(agent, home, "whole")
    one.session.say(*past(4))
    data = one.session.path.read_bytes()
    one.stop()
    other = Agent(agent, home, "grown")
    for cut in [*sorted(cuts), len(data)]:
        other.session.path.write_bytes(data[:cut])
        other.stop()

    # Only where an answer is parted between two runs it is two messages of one content.
    assert texts(mirrored(home, agent, "grown")) == texts(mirrored(home, agent, "whole"))


def texts(messages: list[bytes]) -> list[object]:
    return [block for raw in messages for block in msgspec.json.decode(raw)["content"]]


TYPED = [
    {"type": "user", "uuid": "u1", "timestamp": "2026-01-01T00:00:01Z", "content": "go"},
    {"type": "assistant", "uuid": "a1", "timestamp": "2026-01-01T00:00:02Z", "content": []},
    {
        "type": "queue-operation",
        "operation": "enqueue",
        "content": "<task-notification>b</task-notification>",
    },
    {"type": "queue-operation", "operation": "enqueue", "content": "please don't amend commits"},
    {"type": "queue-operation", "operation": "remove", "timestamp": "2026-01-01T00:00:09Z"},
    {"type": "user", "uuid": "u2", "timestamp": "2026-01-01T00:00:08Z", "content": []},
    {"type": "assistant", "uuid": "a2", "timestamp": "2026-01-01T00:00:10Z", "content": "I won't."},
]
"""The rows that Claude Code 2.1.39 writes for a message that was typed while it worked."""
TYPED[1]["content"] = [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]
TYPED[5]["content"] = [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]


def written(row: dict[str, object]) -> bytes:
    if row["type"] != "queue-operation":
        row = {**row, "message": {"role": row["type"], "id": row["uuid"], "content": row["content"]}}
    return json.dumps({**row, "sessionId": "s", "version": "2.1.39"}).encode() + b"\n"


@pytest.mark.parametrize("cut", range(1, len(TYPED)))
def test_what_was_typed_while_the_agent_worked_is_mirrored_once_wherever_a_run_stops(
    cut: int, tmp_path: Path
) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.path.write_bytes(b"".join(map(written, TYPED[:cut])))
    agent.prompt()
    agent.session.path.write_bytes(b"".join(map(written, TYPED)))
    agent.stop()
    agent.stop()

    found = [msgspec.json.decode(raw) for raw in mirrored(tmp_path, "claude-code")]
    assert [message["role"] for message in found] == ["user", "assistant", "tool", "user", "assistant"]
    assert found[3]["content"] == [{"type": "text", "text": "please don't amend commits"}]
    assert "meta" not in found[3]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_message_is_mirrored_once_however_often_the_hook_runs(agent: str, tmp_path: Path) -> None:
    at_work = Agent(agent, tmp_path)
    for turn in past(3):
        at_work.session.say(turn)
        at_work.stop()
        at_work.prompt()
    once = Agent(agent, tmp_path, "once")
    once.session.say(*past(3))
    once.stop()

    assert texts(mirrored(tmp_path, agent)) == texts(mirrored(tmp_path, agent, "once"))


@pytest.mark.parametrize("agent", AGENTS)
def test_a_transcript_that_was_written_anew_adds_only_what_is_new(agent: str, tmp_path: Path) -> None:
    at_work = Agent(agent, tmp_path)
    at_work.session.say(*past(3))
    at_work.stop()
    before = mirrored(tmp_path, agent)
    data = at_work.session.path.read_bytes()
    head, rest = data.split(b"\n", 1)
    at_work.session.path.write_bytes(head.replace(b"{", b'{"rewritten":1,', 1) + b"\n" + rest)
    at_work.session.say(Turn("user", "and one more"))
    at_work.stop()

    assert mirrored(tmp_path, agent)[len(before) :] == mirrored(tmp_path, agent)[-1:]


def test_a_session_that_goes_on_in_another_file_adds_only_what_is_new(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past(3))
    agent.stop()
    count = len(mirrored(tmp_path, "claude-code"))
    moved = agent.session.path.rename(tmp_path / "rotated.jsonl")
    agent.session.path = moved
    agent.session.say(Turn("user", "one more"))

    told(tmp_path, "claude-code", {**agent.session.event("Stop"), "transcript_path": str(moved)})

    assert len(mirrored(tmp_path, "claude-code")) == count + 1


ODD_LINES = (
    b"",
    b"{",
    b"[1,2,3]",
    b"null",
    b'{"type":"from-the-future","payload":{"a":[1,2]}}',
    b'{"type":"user","message":{"role":"user","content":7}}',
    b'{"type":"user","uuid":"x1","message":{"role":"user","content":"a \\ud83d b"}}',
    b'{"type":"response_item","payload":{"type":"message","role":"user","content":"no list"}}',
    b"\xff\xfe\x00\x01",
    b'{"a":' * 5_000,
    b"\x00" * 100,
)


@pytest.mark.parametrize("agent", AGENTS)
def test_lines_that_say_nothing_known_are_passed_over(agent: str, tmp_path: Path) -> None:
    plain = Agent(agent, tmp_path, "plain")
    plain.session.say(*past(3))
    plain.stop()
    odd = Agent(agent, tmp_path, "odd")
    for turn, line in zip(past(3), [*ODD_LINES, *[b"{}"] * 40], strict=False):
        odd.session.say(turn)
        with odd.session.path.open("ab") as file:
            file.write(line + b"\n")
    answer = odd.stop()

    wanted = texts(mirrored(tmp_path, agent, "plain"))
    seen = [one for one in texts(mirrored(tmp_path, agent, "odd")) if one in wanted]
    assert answer.done.failed == ""
    assert seen == wanted


def test_a_line_that_is_too_long_is_passed_over_and_what_follows_is_not(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(Turn("user", "before"))
    with agent.session.path.open("ab") as file:
        file.write(b'{"type":"user","message":"')
        file.seek(MAX_TRANSCRIPT_LINE + (1 << 20), os.SEEK_CUR)
        file.write(b'"}\n')
    agent.session.say(Turn("user", "behind"))
    agent.stop()

    assert [block["text"] for block in texts(mirrored(tmp_path, "claude-code"))] == ["before", "behind"]


def test_a_long_line_is_passed_over_in_more_than_one_run(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with path.open("wb") as file:
        file.write(b"{}\n{")
        file.truncate(MAX_TRANSCRIPT_LINE + 5)
    first = Transcript(str(path), ReadPosition())
    pieces = [piece.data for piece in first.pieces()]
    place = first.place()
    first.close()
    with path.open("ab") as file:
        file.write(b"}\n[]\n")
    second = Transcript(str(path), place)

    assert (pieces, place.inside, second.is_other) == ([b"{}\n"], True, False)
    assert [piece.data for piece in second.pieces()] == [b"[]\n"]
    second.close()


@settings(deadline=None, max_examples=examples(60))
@given(
    lines=st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=12),
    chunk=st.integers(1, 64),
    is_cut=st.booleans(),
)
def test_pieces_are_whole_lines_and_together_all_of_them(
    lines: list[bytes], chunk: int, is_cut: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    path = tmp_path_factory.mktemp("p") / "t"
    path.write_bytes(whole + (b"no end" if is_cut else b""))

    transcript = Transcript(str(path), ReadPosition())
    pieces: list[TranscriptPiece] = list(transcript.pieces(chunk))
    transcript.close()

    assert b"".join(piece.data for piece in pieces) == whole
    assert all(piece.data.endswith(b"\n") for piece in pieces)


def test_a_pipe_a_folder_and_a_file_that_is_not_there_hold_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    agent = Agent("codex", tmp_path)
    failed = []
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing.jsonl", Path("/dev/zero")):
        event = {**agent.session.event("Stop"), "transcript_path": str(path)}
        failed.append(told(tmp_path, "codex", event).done.failed)

    assert failed == ["the transcript is not a regular file"] * 2 + [
        "",
        "the transcript is not a regular file",
    ]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_transcript_of_somebody_else_is_not_read(tmp_path: Path) -> None:
    session = Session("codex", tmp_path)
    os.chown(session.path, 12345, -1)

    with pytest.raises(TranscriptRefused):
        Transcript(str(session.path), ReadPosition())


def test_what_is_kept_is_for_the_owner_alone_and_no_id_is_a_path(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path, "x")
    agent.session.say(*past(2))
    for odd in ("../../escape", "/abs/olute", "a" * 256, "nul\u2028"):
        told(tmp_path, "claude-code", {**agent.session.event("Stop"), "session_id": odd})

    made = list((tmp_path / "data").rglob("*"))
    assert made
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o700}
    assert {path.parent.name for path in made if path.is_file()} == {"hooks", "sessions"}


def test_a_state_that_is_damaged_is_begun_anew(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past(2))
    agent.stop()
    files = files_of({"COMPACTD_HOME": str(tmp_path / "data")}, "claude-code", agent.session.session_id)
    count = len(mirrored(tmp_path, "claude-code"))
    files.path(".json").write_bytes(b'{"v":1,"entries":"many"}')
    agent.stop()

    assert len(mirrored(tmp_path, "claude-code")) == count
    assert len(read_messages_file(files.path(".stretch"), load(files).stretch_bytes)) == count


def test_what_a_killed_run_left_behind_is_cut_off(tmp_path: Path) -> None:
    agent = Agent("codex", tmp_path)
    agent.session.say(*past(2))
    agent.stop()
    files = files_of({"COMPACTD_HOME": str(tmp_path / "data")}, "codex", agent.session.session_id)
    before = load(files)
    with files.path(".stretch").open("ab") as file:
        file.write(b"\xff" * 1000)
    agent.session.say(Turn("user", "more"))
    agent.stop()

    assert len(read_messages_file(files.path(".stretch"), load(files).stretch_bytes)) == len(
        mirrored(tmp_path, "codex")
    )
    assert load(files).stretch_bytes > before.stretch_bytes


def test_reading_stops_at_its_time_and_goes_on_the_next(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*(Turn("user", f"number {n} " + "x" * 4_000) for n in range(300)))
    counts = []
    for _ in range(8):
        agent.at("Stop", options=msgspec.structs.replace(PATIENT, deadline_s=0.0))
        counts.append(len(mirrored(tmp_path, "claude-code")))

    assert counts[0] < 300
    assert counts[-1] == 300
    assert counts == sorted(counts)


@pytest.mark.parametrize("name", ["spotter-ae4a77f8", "entire-5c5cb639-0"])
def test_a_recorded_session_is_followed_wherever_it_is_cut(name: str, tmp_path: Path) -> None:
    data = recorded(f"{name}.jsonl").read_bytes()
    path = tmp_path / "session.jsonl"
    event = {"session_id": name, "transcript_path": str(path), "cwd": "/Users/alex/workspace/cli"}
    seen = []
    for cut in (len(data) // 5, len(data) // 2, len(data)):
        path.write_bytes(data[:cut])
        for more in (
            {"hook_event_name": "Stop"},
            {"hook_event_name": "PostCompact", "compact_summary": "Nothing of it was kept."},
            {"hook_event_name": "SessionStart", "source": "compact"},
            {"hook_event_name": "UserPromptSubmit", "prompt": "go on"},
        ):
            answer = told(tmp_path, "claude-code", {**event, **more})
            seen.append((bool(answer.text), len(answer.text) <= 9_500, answer.done.failed))

    assert seen == [(False, True, ""), (False, True, ""), (True, True, ""), (False, True, "")] * 3
