"""Claude Code with `compactd hook claude-code`: after its compaction, the next request contains, once, what
its summary lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.claude_code.driven import VERSIONS, ClaudeCode, Model, given, runs, says

pytestmark = pytest.mark.agent

LIMIT = "Never touch the file legacy_index.py."
ERROR = "benchmark_run_4417 FAILED in module quux_handler line 88"


@pytest.fixture(params=VERSIONS)
def claude(request: pytest.FixtureRequest, tmp_path: Path, model: Model) -> ClaudeCode:
    return ClaudeCode(tmp_path / "home", model, request.param)


def work(claude: ClaudeCode) -> None:
    """Two turns: the user's constraint, an error that a tool printed, an answer that names it."""
    claude.model.play(runs(f"echo {ERROR}"), says("The cause is parser.py, function read_row."))
    claude.ask(f"{LIMIT} Why does benchmark_run_4417 fail?")
    claude.model.play(says("I set MAX_ROWS to 4096 in parser.py."))
    claude.ask("Mend it with MAX_ROWS.")


def test_what_the_summary_lost_is_in_the_very_next_request_once(claude: ClaudeCode) -> None:
    claude.install()
    work(claude)

    claude.compact()
    claude.ask("Go on.")

    assert claude.compactions() == 1
    (facts,) = given(claude.model.turns[-1])
    assert LIMIT in facts
    assert ERROR in facts
    claude.ask("And then?")
    assert given(claude.model.turns[-1]) == [facts]
