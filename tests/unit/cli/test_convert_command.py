"""`compactd convert`: a session file in another program's format."""

from __future__ import annotations

import json

import pytest

from compactd.formats.files.detect import detect, read
from tests.support import session_files
from tests.support.command_line import run


@pytest.fixture
def home(tmp_path):
    return tmp_path


def test_a_session_is_written_as_another_program_keeps_it_and_losses_are_listed(home) -> None:
    source = session_files.pi(home / "pi.jsonl", 2)

    seen = run(home, "convert", source, home / "out.jsonl", "--to", "codex")

    written = (home / "out.jsonl").read_bytes()
    assert (seen.code, seen.err) == (0, "")
    assert seen.lines[0] == f"wrote {home}/out.jsonl: 8 messages of pi as Codex CLI"
    assert any(line.startswith("  not kept: the stop reason (2, 4, 6, 8)") for line in seen.lines)
    assert detect(written) == "codex"
    assert len(read(written).messages) == 8


def test_a_session_is_written_as_a_list_of_messages_by_a_daemon_of_its_own(home) -> None:
    source = session_files.pi(home / "pi.jsonl", 2)

    seen = run(home, "convert", source, home / "out.json", "--to", "openai", "--json")

    assert seen.json["to"] == "openai"
    assert (seen.json["from"], seen.json["messages"]) == ("pi", 8)
    assert len(json.loads((home / "out.json").read_bytes())["messages"]) == 8
    assert not list((home / "data").glob("sessions/*"))


def test_the_result_can_go_to_standard_output_with_the_losses_beside_it(home) -> None:
    source = session_files.openai(home / "in.json", 1)

    seen = run(home, "convert", source, "-", "--to", "pi")

    assert (seen.code, detect(seen.out.encode())) == (0, "pi")
    assert seen.err == "not kept: the system prompt\n"


def test_a_format_that_is_not_written_is_a_mistake_of_usage(home) -> None:
    source = session_files.pi(home / "pi.jsonl", 1)

    seen = run(home, "convert", source, home / "out", "--to", "word")

    assert (seen.code, seen.out) == (2, "")
    assert "'word' is not one of 'compactd', " in seen.err


def test_the_file_that_is_read_is_never_written_over(home) -> None:
    source = session_files.pi(home / "pi.jsonl", 1)
    before = source.read_bytes()

    seen = run(home, "convert", source, source, "--to", "codex")

    assert (seen.code, source.read_bytes()) == (2, before)
    assert "it is the session file itself" in seen.err
