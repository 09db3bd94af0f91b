"""The published comparison of agents' own compactions with and without the hook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.agents.comparing import put_back, summary_of
from benchmarks.retention import sessions
from benchmarks.retention.points import cuts_of, recorded_points
from compactd.integrations.hooks.hook import MAX_PAYLOAD_CHARS
from compactd.integrations.hooks.lost_facts import USED_SHARE, characters

PAGE = Path(__file__).parents[3] / "docs" / "agents.md"


def published(title: str) -> list[tuple[int, int]]:
    """(linked, CG) of each method in a row of the table of means."""
    line = next(line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {title} "))
    return [(int(a), int(b)) for a, b in re.findall(r"(\d+) / (\d+)", line)]


@pytest.mark.parametrize("title", ["**all**", "of them put aside", "Claude Code"])
def test_the_page_says_what_the_hook_is_for(title: str) -> None:
    own, hook, _, ours = published(title)

    assert own[0] <= 40
    assert hook[0] >= own[0] + 15
    assert hook[1] >= own[1] + 10
    assert ours[0] >= hook[0] + 5


def test_what_is_put_back_after_a_recorded_compaction_is_within_its_size() -> None:
    data = sessions.shared_data()
    if data is None:
        pytest.skip("no recorded sessions: COMPACTD_TEST_DATA names none, and none are beside the checkout")
    source = next(one for one in sessions.sources(data) if one.name == "entire-5c5cb639-0")
    session = sessions.read(source)
    cut = next(cuts_of(session, frozenset(), list(recorded_points(session.records))[-1:]))

    lost = put_back(cut)

    introduction = characters(lost.text.split("\n", 1)[0])
    most = USED_SHARE * (MAX_PAYLOAD_CHARS - introduction) + introduction
    assert 0.9 * most < characters(lost.text) <= most
    assert lost.kept.summary < lost.kept.together <= 1
    assert len(summary_of(cut)) == len(cut.summary) - len("[user] ")
