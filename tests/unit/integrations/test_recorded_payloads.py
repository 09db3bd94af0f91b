"""Every recorded event of Claude Code, as it was sent to the commands `compactd hook` and `compactd
statusline`: they never fail, never say more than one answer, and never say anything twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compactd.integrations.hooks.events import event_of
from compactd.integrations.hooks.hook import Done
from compactd.integrations.hooks.hook_log import read_log
from compactd.integrations.hooks.settings_change import EVENTS, TOOL_EVENT
from compactd.integrations.hooks.statusline import line
from tests.support.command_line import environment
from tests.support.hook_runs import Answer, ended, spawned
from tests.support.recorded_claude import RECORDINGS, RecordedSession, needs_recordings

pytestmark = needs_recordings

SCENARIOS = sorted(
    f"{path.parent.parent.name}/{path.parent.name}" for path in (RECORDINGS or Path()).glob("*/*/events")
)
STATUS_LINES = sorted((RECORDINGS or Path()).glob("*/*/statusline/*.json"))
STARTS = ("SessionStart", "UserPromptSubmit")
"""The events whose answer may contain context."""
KINDS = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "Stop": "end",
    "SessionEnd": "end",
    "PreCompact": "before",
    "PostCompact": "after",
    "SubagentStop": "inner_end",
    "PostToolUse": "tool",
}


def given(answer: bytes) -> str:
    """Return the context in what the hook printed. Check that this is one JSON object in one line."""
    if not answer:
        return ""
    assert answer.endswith(b"}\n")
    assert answer.count(b"\n") == 1
    inner = json.loads(answer)["hookSpecificOutput"]
    assert set(inner) == {"hookEventName", "additionalContext"}
    return inner["additionalContext"]


class Command:
    """The recorded session of one scenario, played through the command."""

    def __init__(self, home: Path, scenario: str) -> None:
        self.home = home
        version, name = scenario.split("/")
        self.session = RecordedSession(home, name, version, tell=self.tell)
        self.texts: list[str] = []
        """The contexts that the hook has given."""

    def tell(self, event: dict[str, Any]) -> Answer:
        """Send one event to the command, as Claude Code does."""
        name = event["hook_event_name"]
        nothing = Answer("", name, Done())
        if name == TOOL_EVENT:
            # The recorded outputs are short.
            assert self._answer(name, event) == ""
        if name not in EVENTS["claude-code"]:
            return nothing
        text = self._answer(name, event)
        if text:
            assert name in STARTS
            assert "agent_id" not in event
            self.texts.append(text)
        if name in STARTS:
            assert self._answer(name, event) == "", "the second of two hooks for the same event"
        return nothing

    def _answer(self, name: str, event: dict[str, Any]) -> str:
        reducing = ("--reduce", "default") if name == TOOL_EVENT else ()
        process = spawned(self.home, "hook", "claude-code", "--deadline", "30", *reducing)
        code, out, err = ended(process, json.dumps(event).encode())
        assert (code, err) == (0, b""), (name, err)
        if name == "PreCompact":
            assert not out.lstrip().startswith(b"{"), "Claude Code takes it as text"
            return ""
        return given(out)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_command_answers_each_event_in_its_form_and_gives_nothing_twice(
    scenario: str, tmp_path: Path
) -> None:
    """Each event that takes a context comes twice, as with the plugin and `compactd install` together."""
    command = Command(tmp_path, scenario)

    assert all(command.session.play())

    assert len(set(command.texts)) == len(command.texts)
    log = read_log({"COMPACTD_HOME": str(tmp_path / "data")})
    assert [row.failed for row in log if row.failed] == []


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_event_is_recognised(scenario: str) -> None:
    assert RECORDINGS is not None
    for file in (RECORDINGS / scenario / "events").iterdir():
        data = file.read_bytes()
        raw = json.loads(data)
        event = event_of("claude-code", data)
        assert event is not None
        is_fork = raw["hook_event_name"] == "SubagentStop" and raw["agent_type"] == ""
        kind = "fork_end" if is_fork else KINDS.get(raw["hook_event_name"], "other")
        assert event.kind == kind, file.name
        assert (event.session_id, event.transcript) == (raw["session_id"], raw["transcript_path"])
        assert event.is_inner == ("agent_id" in raw and not is_fork), file.name
        assert event.source == raw.get("source", "")


@pytest.mark.parametrize("file", STATUS_LINES, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_each_status_line_is_one_line(file: Path, tmp_path: Path) -> None:
    text = line("claude-code", file.read_bytes(), environment(tmp_path, {"NO_COLOR": "1"}))

    assert text.startswith("ctx ")
    assert "\n" not in text


def test_the_recordings_are_found() -> None:
    assert (len(SCENARIOS) >= 13, len(STATUS_LINES) >= 13) == (True, True)
