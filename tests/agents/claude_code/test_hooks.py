"""Claude Code with `compactd hook claude-code`: after its compaction, the next request contains, once, what
its summary lost."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.agents.claude_code.driven import (
    NEWEST,
    SUMMARY,
    THRESHOLD,
    TOO_LONG,
    VERSIONS,
    ClaudeCode,
    Model,
    given,
    runs,
    says,
    uses,
)
from tests.support.loopback import Fail

pytestmark = pytest.mark.agent

LIMIT = "Never touch the file legacy_index.py."
ERROR = "benchmark_run_4417 FAILED in module quux_handler line 88"
CAUSE = "The cause is function read_row in parser.py."
SET = "I set MAX_ROWS to 4096 in parser.py."
FULL = THRESHOLD + 1_000
"""A prompt size after which Claude Code compacts by itself."""
KNOWS_THE_LIMIT = (
    "<analysis>\nThe user forbade nothing_but_this.py, and saw quux_handler.\n</analysis>\n\n"
    f"<summary>\n1. Primary Request and Intent: a benchmark fails. The user said: {LIMIT}\n</summary>"
)
FOREIGN = ("<analysis>", "‹analysis", "‹summary", "command-name", "local-command", "task-notification", "[·e")
"""What no restored text may contain: the frame of a summary, rows that Claude Code wrote itself, and lines of
an earlier restored text."""


@pytest.fixture(params=VERSIONS)
def claude(request: pytest.FixtureRequest, tmp_path: Path, model: Model) -> ClaudeCode:
    made = ClaudeCode(tmp_path / "home", model, request.param)
    made.install()
    made.record_events()
    return made


def work(claude: ClaudeCode) -> None:
    """Two turns: the user's constraint, an error that a tool printed, and two answers."""
    claude.model.play(runs(f"echo {ERROR}"), says(CAUSE))
    claude.ask(f"{LIMIT} Why does benchmark_run_4417 fail?")
    claude.model.play(says(SET))
    claude.ask("Mend it with MAX_ROWS.")


def only_facts(claude: ClaudeCode) -> str:
    """Return the text that the newest request contains from compactd. Check that it is the only one, that no
    line of it comes twice, and that nothing in it is Claude Code's own."""
    (facts,) = given(claude.model.turns[-1])
    lines = [line for line in facts.splitlines() if len(line) > 20]
    assert len(lines) == len(set(lines)), facts
    assert [part for part in FOREIGN if part in facts] == [], facts
    return facts


def without_echo(text: str) -> str:
    """Return the words of a request without what Claude Code shows of its own commands: after `/compact`, it
    repeats there what hooks wrote for the summary."""
    return re.sub(r"<local-command-stdout>.*?</local-command-stdout>", "", text, flags=re.DOTALL)


def shares(claude: ClaudeCode) -> tuple[float, float]:
    """Return the shares that the hook measured: in the summary and kept messages, and with its text."""
    summary, together = claude.state()["kept"]
    return summary, together


def about(claude: ClaudeCode) -> list[str]:
    """Return the recorded events around compactions, in short."""
    return [
        f"{event['hook_event_name']} {event.get('source') or event.get('trigger') or ''}".strip()
        for event in claude.events
        if "Compact" in event["hook_event_name"]
        or event.get("source") == "compact"
        or event.get("agent_type") == ""
    ]


def test_a_manual_compaction(claude: ClaudeCode) -> None:
    work(claude)

    claude.compact()
    claude.ask("Go on.")

    assert claude.compactions() == 1
    facts = only_facts(claude)
    assert [part in facts for part in (LIMIT, ERROR, CAUSE)] == [True] * 3
    assert claude.model.last.count(SET) == 1, "Claude Code keeps the last answer"
    claude.ask("And then?")
    assert given(claude.model.turns[-1]) == [facts]


def test_what_the_summary_holds_does_not_come_again(claude: ClaudeCode) -> None:
    work(claude)
    claude.model.summary = KNOWS_THE_LIMIT

    claude.compact()
    claude.ask("Go on.")

    facts = only_facts(claude)
    assert (LIMIT in facts, ERROR in facts) == (False, True), "its analysis is no part of the summary"
    assert without_echo(claude.model.last).count(LIMIT) == 1
    summary, together = shares(claude)
    assert 0 < summary < together <= 1


def test_an_automatic_compaction_in_the_middle_of_a_turn(claude: ClaudeCode) -> None:
    work(claude)
    claude.model.play(runs("echo first_991"), runs("echo second_992", FULL), says("Both ran."))

    claude.ask("Run both.")

    assert claude.compactions() == 1
    facts = only_facts(claude)
    assert [part in facts for part in (LIMIT, ERROR, CAUSE)] == [True] * 3
    assert "(tool) second_992" not in facts, "Claude Code keeps the last call and its result"
    assert claude.model.last.count('"command": "echo second_992"') == 1
    claude.ask("And then?")
    assert given(claude.model.turns[-1]) == [facts]


def test_an_automatic_compaction_at_a_prompt(claude: ClaudeCode) -> None:
    claude.model.play(runs(f"echo {ERROR}"), says(CAUSE, FULL))
    claude.ask(f"{LIMIT} Why does benchmark_run_4417 fail?")

    claude.ask("Mend it with MAX_ROWS.")

    assert claude.compactions() == 1
    facts = only_facts(claude)
    assert [part in facts for part in (LIMIT, ERROR)] == [True] * 2
    assert claude.model.last.count("Mend it with MAX_ROWS.") == 1


def test_two_compactions_with_work_in_between(claude: ClaudeCode) -> None:
    work(claude)
    claude.compact()
    claude.model.play(runs("echo PORT_6113 is in use"), says("Something listens on PORT_6113."))
    claude.ask("Start the service, but never as root.")
    (first,) = given(claude.model.turns[-1])
    claude.model.play(says("Started."))
    claude.ask("Try again.")

    claude.compact()
    claude.ask("Go on.")

    assert claude.compactions() == 2
    facts = only_facts(claude)
    assert [part in facts for part in (LIMIT, "never as root", "PORT_6113")] == [True] * 3
    assert len(facts) < 2 * len(first)


@pytest.mark.parametrize("claude", [NEWEST], indirect=True)
def test_two_compactions_at_once(claude: ClaudeCode) -> None:
    """The request after the first compaction is still too long. Older versions give up then, so only 2.1.330
    can be tested."""
    work(claude)
    claude.model.play(runs("echo first_991"), TOO_LONG, TOO_LONG, says("It ran."))

    claude.ask("Run it.")

    assert claude.compactions() == 2
    facts = only_facts(claude)
    assert [part in facts for part in (LIMIT, ERROR, CAUSE)] == [True] * 3


def test_a_prompt_that_is_too_long(claude: ClaudeCode) -> None:
    work(claude)
    claude.model.play(runs("echo first_991"), TOO_LONG, says("It ran."))

    claude.ask("Run it.")

    assert claude.compactions() == 1
    facts = only_facts(claude)
    assert [part in facts for part in (LIMIT, ERROR, CAUSE)] == [True] * 3


def test_a_compaction_that_failed_and_one_that_did_not(claude: ClaudeCode) -> None:
    work(claude)
    claude.model.summary = Fail(400)
    claude.compact()
    assert about(claude) == ["PreCompact manual"]
    claude.ask("What now?")
    assert (claude.compactions(), given(claude.model.turns[-1])) == (0, [])

    claude.model.summary = SUMMARY
    claude.compact()
    claude.ask("Go on.")

    assert claude.compactions() == 1
    assert [part in only_facts(claude) for part in (LIMIT, ERROR, CAUSE)] == [True] * 3


def test_a_sub_agents_compaction_is_its_own(claude: ClaudeCode) -> None:
    work(claude)
    model = claude.model
    model.scripts["INNER"] = [runs("echo inner_993"), runs("echo inner_994", FULL), says("It is inner_994.")]
    call = uses("Agent", description="Look", prompt="INNER: look.", subagent_type="general-purpose")
    model.play(call, says("Noted."))

    claude.ask("Send an agent.")

    assert about(claude) == ["PreCompact auto", "SubagentStop", "SessionStart compact", "PostCompact auto"]
    assert (len(model.asked), claude.compactions()) == (1, 0)
    assert [given(seen) for seen in (*model.inner, *model.turns)] == [
        [] for _ in (*model.inner, *model.turns)
    ]
    model.play(says("I do."))
    claude.ask("Do you remember?")
    assert given(model.turns[-1]) == []
    claude.compact()
    claude.ask("Go on.")
    facts = only_facts(claude)
    assert [part in facts for part in (LIMIT, ERROR, CAUSE)] == [True] * 3


def test_a_summary_with_all_facts_needs_nothing(claude: ClaudeCode) -> None:
    claude.model.play(says("Noted."))
    claude.ask(LIMIT)
    claude.ask("What is the time?")
    claude.model.summary = KNOWS_THE_LIMIT

    claude.compact()
    claude.ask("Go on.")

    assert claude.compactions() == 1
    assert LIMIT not in "".join(given(claude.model.turns[-1]))


def test_the_order_of_events_that_the_hooks_rely_on(claude: ClaudeCode) -> None:
    work(claude)

    claude.compact()

    assert about(claude) == [
        "PreCompact manual",
        "SubagentStop",
        "SessionStart compact",
        "PostCompact manual",
    ]
    fork, start, after = claude.events[-3:]
    assert fork["last_assistant_message"].strip() == after["compact_summary"].strip() == SUMMARY
    assert start["source"] == "compact"
    assert all(one["session_id"] == other["session_id"] for one, other in pairwise(claude.events))
