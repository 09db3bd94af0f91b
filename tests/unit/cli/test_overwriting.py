"""A file that exists is replaced only if the person says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import session_files
from tests.support.command_line import run
from tests.support.terminals import in_terminal

KEEP = "what somebody else wrote\n"

COMMANDS: dict[str, Callable[[Path, Path], list[object]]] = {
    "convert": lambda session, out: ["convert", session, out, "--to", "openai"],
    "compact": lambda session, out: ["compact", session, "--target", "1500", "--output", out],
    "inspect --html": lambda session, out: ["inspect", session, "--html", out],
    "inspect --svg": lambda session, out: ["inspect", session, "--svg", out],
    "audit --html": lambda session, out: ["audit", session.with_name("claude.jsonl"), "--html", out],
    "doctor": lambda session, out: ["doctor", session, "--repair", out],
    "conformance": lambda session, out: ["conformance", "--only", "framing-lines", "--junit", out],
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def session(home: Path) -> Path:
    """Return a session file that has something to compact and something to repair."""
    path = session_files.openai(home / "session.json", 8)
    path.write_text(path.read_text().replace('"call-3"', '"call-9"', 1))
    usage = session_files.reported(9_000)
    answer = session_files.answered(1, session_files.text("Done."), usage=usage)
    session_files.claude_code(home / "claude.jsonl", [session_files.asked("Go."), answer])
    return path


@pytest.fixture
def existing(home: Path) -> Path:
    path = home / "out"
    path.write_text(KEEP)
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_replaces_a_file_unless_it_is_forced(
    home: Path, session: Path, existing: Path, name: str
) -> None:
    command = COMMANDS[name](session, existing)

    refused = run(home, *command)
    kept = existing.read_text()
    forced = run(home, *command, "--force")

    assert (refused.code, kept) == (2, KEEP)
    assert f"cannot write {existing}: the file exists." in refused.err
    assert "--force" in refused.err
    assert forced.code in (0, 1), forced.words
    assert existing.read_text() != KEEP


@pytest.mark.parametrize(("answer", "is_kept"), [("y", False), ("n", True), ("", True)])
def test_in_a_terminal_the_person_is_asked(
    home: Path, session: Path, existing: Path, answer: str, is_kept: bool
) -> None:
    command = COMMANDS["convert"](session, existing)

    seen = in_terminal(home, *command, typed=[("Replace it?", f"{answer}\n")], columns=200)

    assert f"{existing} exists. Replace it? [y/N]" in seen.text
    assert (existing.read_text() == KEEP) is is_kept
    assert (seen.code == 0) is not is_kept
    assert ("was not changed" in seen.text) is is_kept


def test_in_a_terminal_whose_errors_go_elsewhere_nobody_is_asked(
    home: Path, session: Path, existing: Path
) -> None:
    seen = in_terminal(home, *COMMANDS["convert"](session, existing), with_errors=False)

    assert (seen.code, existing.read_text()) == (2, KEEP)


def test_force_follows_no_link_that_leads_elsewhere(home: Path, session: Path, existing: Path) -> None:
    (home / "folder").mkdir()
    link = home / "folder" / "out"
    link.symlink_to(existing)

    seen = run(home, *COMMANDS["convert"](session, link), "--force")

    assert (seen.code, existing.read_text()) == (2, KEEP)
    assert "link" in seen.err


def test_a_pipe_needs_no_force(home: Path, session: Path) -> None:
    seen = run(home, *COMMANDS["convert"](session, Path("/dev/stdout")))

    assert seen.code == 0, seen.words
