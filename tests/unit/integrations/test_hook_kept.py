"""The hook does not repeat messages that an agent keeps next to its summary: they are in the context."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.core.history.entries import Item
from compactd.integrations.hooks.hook_state import files_of, load
from compactd.integrations.hooks.lost_facts import SHARED, find_lost
from compactd.integrations.hooks.lost_facts import _removed_words as away
from compactd.protocol.messages import Message, Text
from tests.support.agent_transcripts import LIMIT, NAME, SUMMARY, Turn, past
from tests.support.hook_runs import Agent

KEPT = "The kept_answer_name lives in src/kept/answer_name.py."
LONG = "Here is what to look at. " + " ".join(
    f"The {('alpha', 'beta', 'gamma')[number % 3]}_{number}_value in src/mod_{number}/a.py must be checked."
    for number in range(400)
)


def away_of(text: str, stays: str) -> str | None:
    """Return the part of a message's text that is missing in `stays`; None if nothing is missing."""
    item = Item(entry_id="e1", body=Message(role="user", content=(Text(text=text),)), tokens=1)
    rest = away(item, stays)
    if rest is None:
        return None
    (block,) = rest.message.content
    assert isinstance(block, Text)
    return block.text


def test_a_long_line_that_codex_keeps_is_not_repeated(tmp_path: Path) -> None:
    agent = Agent("codex", tmp_path)
    agent.session.say(Turn("user", LONG), *past())
    agent.before()
    agent.session.compact(kept=("Another message.", LONG))

    text = agent.prompt().text

    assert "alpha_30_value" not in text
    assert "src/mod_" not in text
    assert NAME in text


@pytest.mark.parametrize(
    ("said", "gone"),
    [
        ("Never rename src/zeta/omega.py, whatever happens.", "Never rename src/zeta/omega.py"),
        (
            "\n\nDo not:\n- push to the origin remote\n- rename src/zeta/omega.py\n\n",
            "push to the origin remote",
        ),
    ],
)
def test_of_a_message_that_codex_cut_in_its_middle_the_middle_comes_back(
    tmp_path: Path, said: str, gone: str
) -> None:
    agent = Agent("codex", tmp_path)
    agent.session.say(Turn("user", f"{LONG[:9_000]} {said} {LONG[9_000:]}"), *past())
    agent.before()
    agent.session.compact(kept=(f"{LONG[:8_500]}…321 tokens truncated…{LONG[9_500:]}",))

    text = agent.prompt().text

    assert gone in text
    assert "alpha_30_value" not in text
    assert "alpha_390_value" not in text


@given(
    st.text("abc \n", min_size=SHARED, max_size=3 * SHARED),
    st.text("xyz", min_size=1, max_size=600),
    st.text("abc \n", min_size=SHARED, max_size=3 * SHARED),
)
def test_what_is_away_is_the_middle_that_was_cut_out(begin: str, middle: str, end: str) -> None:
    whole = f"{begin}{middle}{middle}{end}"

    rest = away_of(whole, f"before{begin}…9 tokens truncated…{end}behind")

    assert rest is not None
    assert rest in whole
    assert f"{middle}{middle}" in rest or len(whole) < 3 * SHARED
    assert away_of(whole, f"before{whole}behind") is None
    assert away_of(whole, "before and behind") == whole


def compacted_with_kept(agent: Agent) -> None:
    """Compact a session whose last two messages stay in the context."""
    agent.session.say(*past(), Turn("assistant", KEPT), Turn("assistant", KEPT.replace("lives", "stays")))


@pytest.mark.parametrize("told_before", [False, True], ids=["record", "event"])
@pytest.mark.parametrize("lists", [True, False], ids=["listed", "ends"])
def test_what_claude_code_preserves_is_not_repeated_and_not_forgotten(
    tmp_path: Path, *, lists: bool, told_before: bool
) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.lists_kept = lists
    compacted_with_kept(agent)
    agent.stop()
    agent.before()
    if told_before:
        agent.at("PostCompact", trigger="auto", compact_summary=SUMMARY)
    agent.session.compact(kept=agent.session.last_ids(2))

    first = agent.prompt().text
    agent.session.say(Turn("assistant", "something else"))
    agent.before()
    agent.session.compact("The second.")

    assert "src/kept/answer_name.py" not in first
    assert LIMIT in first
    assert "src/kept/answer_name.py" in agent.prompt().text


def test_rows_that_claude_code_writes_again_are_not_stored_again(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past())
    again = agent.session.path.read_bytes()
    agent.before()
    agent.session.compact()
    assert LIMIT in agent.prompt().text
    agent.session.say(Turn("assistant", "Now the ledger_totals_view in src/ledger/totals_view.py is next."))
    agent.session.say(Turn("assistant", "The ledger_totals_view in src/ledger/totals_view.py is done."))
    agent.stop()
    files = files_of({"COMPACTD_HOME": str(tmp_path / "data")}, "claude-code", agent.session.session_id)
    entries = load(files).entries

    with agent.session.path.open("ab") as transcript:
        transcript.write(again)
    agent.session.compact("The second.")
    text = agent.prompt().text

    assert load(files).entries == entries + 1, "but for the summary"
    assert "src/ledger/totals_view.py" in text


def test_nothing_is_lost_of_what_stayed_whole() -> None:
    assert find_lost((), SUMMARY, LONG).text == ""


def compacted_in_real_order(agent: Agent, summary: str, kept: tuple[str, ...] = ()) -> str:
    """Compact as Claude Code does: the record comes after the events. Return what the hook gave back."""
    agent.before()
    raw = f"<analysis>x</analysis>\n<summary>\n{summary}\n</summary>"
    agent.at("SubagentStop", agent_id="f", agent_type="", last_assistant_message=raw)
    text = agent.start("compact").text
    agent.at("PostCompact", trigger="auto", compact_summary=raw)
    agent.session.compact(summary, kept=kept)
    return text


def test_what_the_record_names_later_is_not_forgotten(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    compacted_with_kept(agent)

    first = compacted_in_real_order(agent, SUMMARY, kept=agent.session.last_ids(2))
    agent.session.say(Turn("assistant", "something else"))
    agent.stop()
    second = compacted_in_real_order(agent, "The second.")

    assert KEPT in first
    assert KEPT.replace("lives", "stays") not in first
    assert "(tool) The kept_answer_name" not in second
    assert "The kept_answer_name" in second


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_compaction_after_which_nothing_was_said_is_not_counted_again(
    tmp_path: Path, *, is_recorded: bool
) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(Turn("user", "Hello there."), Turn("assistant", "Hello to you, how are things going?"))
    files = files_of({"COMPACTD_HOME": str(tmp_path / "data")}, "claude-code", agent.session.session_id)

    before = agent.session.path.read_bytes()
    texts = []
    for _ in range(2):
        texts.append(compacted_in_real_order(agent, "They greeted each other."))
        if not is_recorded:
            agent.session.path.write_bytes(before)

    assert (texts, load(files).compactions) == (["", ""], 1)


def test_a_prompt_that_claude_code_is_about_to_answer_is_not_repeated(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past())
    agent.at("PreCompact", trigger="auto")
    agent.session.say(Turn("user", "Now write the omega_report into src/omega/report.py."))

    text = agent.start("compact").text

    assert LIMIT in text
    assert "omega_report" not in text


def test_a_sub_agents_compaction_in_an_older_version_changes_nothing(tmp_path: Path) -> None:
    """2.1.240 sends the same events for a sub-agent's own conversation as for the session's."""
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past())
    agent.at("PreCompact", trigger="auto")
    agent.at("SubagentStop", agent_id="f", agent_type="", last_assistant_message=SUMMARY)

    texts = [
        agent.start("compact").text,
        agent.at("PostCompact", trigger="auto", compact_summary=SUMMARY).text,
    ]

    assert texts == ["", ""]
    assert agent.prompt().text == ""
    agent.before()
    assert LIMIT in agent.start("compact").text
