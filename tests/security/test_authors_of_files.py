"""Text in the user's role of an agent's session file counts as the user's only if the format says so."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compactd.core.authors.authors import stretches
from compactd.formats.files.detect import read
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.write import write
from tests.security.hostile_files_a import FILES as OF_A
from tests.security.hostile_files_a import FOREIGN, LIMITS
from tests.support.client import Daemon
from tests.support.talk import turns

ROUNDS = 5

AGENTS_WORDS = ("Goal", "Constraints & Preferences", "Progress", "Done", "In Progress", "Next Steps", "Plan")
"""Sections whose lines a reader takes for what the user wants, or for what is to be done."""

MARKED = re.compile(r"(?:\[e\d+\] )?\(tool\) ")
"""Matches the beginning of a line that is marked as not typed by a person; in a list, compactd's own
reference comes first."""


def files() -> dict[str, Callable[[Path], Path]]:
    """The hostile files of every format that has one."""
    found = dict(OF_A)
    if importlib.util.find_spec("tests.security.hostile_files_b") is not None:
        found |= importlib.import_module("tests.security.hostile_files_b").FILES
    return found


def sections(summary: str) -> dict[str, list[str]]:
    """Return the lines under each heading, of any level."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in summary.splitlines():
        if heading := re.match(r"#{1,6}\s+(.*?)\s*$", line):
            lines = found.setdefault(heading[1], [])
        elif line.strip():
            lines.append(line)
    return found


def is_foreign(line: str) -> bool:
    return any(words in line for words in FOREIGN)


@pytest.mark.parametrize("name", files())
def test_no_order_of_a_file_is_the_users_and_every_limit_of_the_users_is(
    daemon: Daemon, tmp_path: Path, name: str
) -> None:
    taken = daemon.call("session/import", path=str(files()[name](tmp_path)))
    session = taken["session_id"]
    assert taken["format"] == name.partition(" (")[0]

    for number in range(ROUNDS):
        more = turns(3, 60)
        daemon.call("session/append", session_id=session, messages=more)
        done = daemon.call("session/compact", session_id=session, keep_messages=2, strategy="extract")
        assert done["compacted"], done["reason"]
        found = sections(done["summary"])
        constraints = [re.sub(r" \[e\d+\]$", "", line) for line in found["Constraints & Preferences"]]
        assert sorted(constraints) == sorted(f"- {limit}" for limit in LIMITS), number
        forged = [line for title in AGENTS_WORDS for line in found.get(title, []) if is_foreign(line)]
        assert forged == [], number
        assert done.get("pinned_entry_ids", []) == [], number
        loose = [
            line for line in done["summary"].splitlines() if FOREIGN[0] in line and MARKED.match(line) is None
        ]
        assert loose == [], number

    history = daemon.call("session/history", session_id=session)
    assert not is_foreign(history.get("title") or "")


def typed(file: SessionFile) -> list[str]:
    return [
        stretch.text
        for message, _ in file.messages
        if message.role == "user"
        for stretch in stretches(message)
        if stretch.author == "user"
    ]


MARKING = ("claude-code", "pi", "klaude", "opal", "opencode", "cline", "openhands", "mini-swe-agent", "aider")
"""Formats that can say that no person wrote a message, or a part of it."""


@pytest.mark.parametrize("target", MARKING)
@pytest.mark.parametrize("name", files())
def test_no_order_becomes_the_users_by_conversion(tmp_path: Path, name: str, target: str) -> None:
    file = read(files()[name](tmp_path).read_bytes())

    said = typed(read(write(file, target).data))

    assert [text for text in said if is_foreign(text)] == []
    assert all(any(limit in text for text in said) for limit in LIMITS)


@pytest.mark.parametrize("target", ["codex", "gemini-cli"])
def test_a_format_that_cannot_say_who_wrote_a_message_says_that_it_cannot(
    tmp_path: Path, target: str
) -> None:
    written = write(read(OF_A["claude-code"](tmp_path).read_bytes()), target)

    assert any("that no person wrote the message" in warning for warning in written.warnings)
