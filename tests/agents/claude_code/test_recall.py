"""Claude Code with `compactd mcp`: its model has the tools at once, and finds what a compaction removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.claude_code.driven import VERSIONS, ClaudeCode, Model, runs, says, text_of, uses
from tests.support.loopback import Seen

pytestmark = pytest.mark.agent

LIMIT = "Never touch the file legacy_index.py."
ERROR = "benchmark_run_4417 FAILED in module quux_handler line 88"
TOOLS = ("mcp__compactd__search_history", "mcp__compactd__expand", "mcp__compactd__context_state")
ALLOWED = ("--allowedTools", *TOOLS)


@pytest.fixture(params=VERSIONS)
def claude(request: pytest.FixtureRequest, tmp_path: Path, model: Model) -> ClaudeCode:
    made = ClaudeCode(tmp_path / "home", model, request.param)
    made.install()
    made.claude("mcp", "add", "compactd", "--", "compactd", "mcp", "--agent", "claude-code")
    model.play(runs(f"echo {ERROR}"), says("The cause is parser.py."))
    made.ask(f"{LIMIT} Why does benchmark_run_4417 fail?")
    return made


def offered(seen: Seen) -> dict[str, str]:
    """Return the tools that a request offers in full: name -> description."""
    return {tool["name"]: tool.get("description", "") for tool in seen.body["tools"]
            if not tool.get("defer_loading")}  # fmt: skip


def result(seen: Seen) -> str:
    """Return the newest tool result of a request."""
    return text_of(seen.body["messages"][-1])


def test_the_model_has_the_tools_and_their_descriptions_at_once(claude: ClaudeCode) -> None:
    tools = offered(claude.model.turns[0])

    assert set(TOOLS) <= set(tools)
    assert "before you guess" in tools[TOOLS[0]]


def test_the_model_finds_what_the_compaction_removed_and_is_told_no_wrong_window(claude: ClaudeCode) -> None:
    claude.compact()
    claude.model.play(uses(TOOLS[0], query="quux_handler"), uses(TOOLS[2]), says("It was line 88."))

    claude.ask("In which line was it?", *ALLOWED)

    found, state = (result(seen) for seen in claude.model.turns[-2:])
    assert (ERROR in found, "compacted away" in found) == (True, True)
    assert "compactions: 1" in state
    assert not any(word in state for word in ("%", "due at", "128,000", "76,800"))


def test_the_context_is_as_large_as_the_agent_reports(claude: ClaudeCode) -> None:
    claude.model.play(says("Read it.", 41_234))
    claude.ask("Read the page.")
    claude.model.play(uses(TOOLS[2]), says("It is."))

    claude.ask("How full is it?", *ALLOWED)

    assert "context: 41,234 tokens in the request of " in result(claude.model.turns[-1])
