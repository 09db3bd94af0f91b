"""`compactd doctor` and `compactd inspect` on transcripts that Claude Code has just written, and `claude
--resume` on those that compactd wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agents.claude_code.driven import (
    SUMMARY,
    THRESHOLD,
    VERSIONS,
    ClaudeCode,
    Model,
    runs,
    says,
    text_of,
)
from tests.editors.agents import Json

pytestmark = pytest.mark.agent

LIMIT = "Never touch the file legacy_index.py."
CALL = '"command": "echo second_992"'


@pytest.fixture(params=VERSIONS)
def claude(request: pytest.FixtureRequest, tmp_path: Path, model: Model) -> ClaudeCode:
    made = ClaudeCode(tmp_path / "home", model, request.param)
    made.ask(f"{LIMIT} What is the time?")
    return made


def compact_in_the_middle(claude: ClaudeCode) -> None:
    claude.model.play(runs("echo first_991"), runs("echo second_992", THRESHOLD + 1_000), says("Both ran."))
    claude.ask("Run both.")
    assert claude.compactions() == 1


def inspect(claude: ClaudeCode) -> Json:
    seen: Json = json.loads(claude.compactd("inspect", str(claude.transcript), "--json"))
    return seen


def test_healthy_transcripts_have_no_findings(claude: ClaudeCode) -> None:
    compact_in_the_middle(claude)
    claude.ask("And then?")
    claude.compact()
    claude.ask("Go on.")

    assert claude.compactions() == 2
    seen = json.loads(claude.compactd("doctor", str(claude.transcript), "--json"))
    assert (seen["findings"], seen["compactions"]) == ([], 2)


def test_the_window_is_the_one_that_claude_code_uses(claude: ClaudeCode) -> None:
    claude.ask("And now?")

    (result,) = (row for row in claude.ask("Go on.").rows if row["type"] == "result")
    (used,) = (one["contextWindow"] for one in result["modelUsage"].values())
    assert inspect(claude)["window"]["tokens"] == used == 200_000
    assert "~167,000   the size at which Claude Code itself compacts" in claude.compactd(
        "inspect", str(claude.transcript)
    )


def test_what_the_compaction_kept_is_in_the_context(claude: ClaudeCode) -> None:
    compact_in_the_middle(claude)

    request = [message["role"] for message in claude.model.turns[-1].body["messages"]]
    assert request == ["user", "assistant", "user"], "summary, call, result"
    shown = claude.compactd("inspect", str(claude.transcript))
    assert "4 in context" in shown.splitlines()[0], "these and the answer"


def test_claude_code_resumes_a_file_of_compactd_with_what_was_kept(claude: ClaudeCode) -> None:
    compact_in_the_middle(claude)
    source = claude.transcript
    written = source.with_suffix(".written")
    claude.compactd("convert", str(source), str(written), "--to", "claude-code")
    written.replace(source)

    claude.ask("Go on.", "--resume", source.stem, resume=False)

    words = [text_of(message) for message in claude.model.turns[-1].body["messages"]]
    places = [
        next((at for at, text in enumerate(words) if part in text), -1)
        for part in ("the work goes on", CALL, "second_992", "Both ran.", "Go on.")
    ]
    assert "the work goes on" in SUMMARY
    assert places == [0, 1, 1, 3, 4]
    assert "second_992" in words[2]
    assert not any("first_991" in text for text in words)
