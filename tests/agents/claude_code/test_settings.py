"""Claude Code with settings that `compactd install claude-code` has changed: it accepts them and runs the
hooks, and `compactd uninstall claude-code` restores every byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agents.claude_code.driven import VERSIONS, ClaudeCode, Model
from tests.unit.integrations.settings_files import IGNORED, ODD

pytestmark = pytest.mark.agent

OURS = ["SessionStart", "UserPromptSubmit", "Stop"]
"""The events of a prompt for which compactd has a hook."""
OWN_HOOKS = {
    "own hooks": ["Stop"],
    "own hooks on one line": ["Stop"],
    "own hooks in all events": OURS,
}
WITHOUT = (*IGNORED, "disableAllHooks")


@pytest.fixture(params=VERSIONS)
def claude(request: pytest.FixtureRequest, tmp_path: Path, model: Model) -> ClaudeCode:
    return ClaudeCode(tmp_path / "home", model, request.param)


def test_odd_settings_work_and_come_back_byte_for_byte(claude: ClaudeCode) -> None:
    mine = claude.home / "bin" / "mine.sh"
    mine.parent.mkdir()
    mine.write_text("#!/bin/sh\nexit 0\n")
    mine.chmod(0o755)
    claude.ask("At its first start, Claude Code writes into its settings.")
    ran, changed = {}, []

    for number, (name, text) in enumerate(ODD.items()):
        before = text.encode()
        claude.settings.write_bytes(before)
        claude.compactd("install", "claude-code", *(("--reduce",) if number % 2 else ()))
        done = claude.ask("Hello.", resume=False)
        ran[name] = sorted(done.events)
        assert all(row["outcome"] == "success" for event in OURS for row in done.answers(event)), name
        claude.compactd("uninstall", "claude-code")
        if claude.settings.read_bytes() != before:
            changed.append(name)

    assert changed == []
    expected = {name: sorted([*OURS, *OWN_HOOKS.get(name, ())]) for name in ODD}
    assert ran == {**expected, **{name: [] for name in WITHOUT}}


def test_what_claude_code_itself_wrote_stays(claude: ClaudeCode) -> None:
    """At its first start, it adds to its settings."""
    claude.compactd("install", "claude-code")
    ours = claude.settings.read_bytes()
    done = claude.ask("Hello.")
    written = json.loads(claude.settings.read_bytes())

    claude.compactd("uninstall", "claude-code")

    assert done.events == OURS
    assert claude.settings.read_bytes() != ours
    rest = {name: value for name, value in written.items() if name not in ("hooks", "statusLine")}
    assert json.loads(claude.settings.read_bytes()) == rest
    assert rest


def test_where_there_were_no_settings_there_are_none_afterwards(claude: ClaudeCode) -> None:
    claude.ask("At its first start, Claude Code writes into its settings.")
    claude.settings.unlink()

    claude.compactd("install", "claude-code")
    done = claude.ask("Hello.", resume=False)
    claude.compactd("uninstall", "claude-code")

    assert done.events == OURS
    assert not claude.settings.exists()
