"""What every profile's summariser is asked for when there is an earlier summary: docs/specs.md,
"go-agent.md", "Incremental Compaction"; docs/specs.md, "opal.md", "Iterative updates"."""

from __future__ import annotations

import pytest

from tests.parity import evmts, opencode
from tests.parity.prompts import MERGES, SUMMARISES, missing, task_of
from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback
from tests.support.talk import turns
from tests.support.wire import MODEL, PROFILES, SUMMARY, append, compact, started

SUMMARIES = {"evmts": evmts.SUMMARY, "opencode": opencode.SUMMARY}


@pytest.mark.parametrize("profile", PROFILES)
def test_an_earlier_summary_and_what_followed_are_to_be_merged_point_by_point(
    daemon: Daemon, server: Loopback, profile: str
) -> None:
    summary = SUMMARIES.get(profile, SUMMARY)
    server.play(*[Answer(text=summary)] * 2)
    session = started(daemon, profile, 100_000, settings={"model": MODEL})
    for _ in range(2):
        append(daemon, session, *turns(10, 200))
        assert compact(daemon, session, keep_messages=2)["strategy"] == "summarize"

    first, second = (request.body["messages"][0]["content"][0]["text"] for request in server.requests)

    assert missing(task_of(second), MERGES) == []
    for prompt in (first, second):
        assert missing(task_of(prompt), SUMMARISES) == [], "under each profile it is a record, no dialogue"
    assert "merge" in missing(task_of(first), MERGES), "the first has nothing to merge"
    assert (first.count("<previous-summary>"), second.count("</previous-summary>")) == (0, 1)
