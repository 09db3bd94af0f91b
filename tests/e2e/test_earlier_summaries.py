"""A file of another agent that begins with that agent's summary: the summary's messages are in no file."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tests.support.client import Daemon, Refused
from tests.support.talk import turns

SUMMARY = """This session is being continued from a previous conversation that ran out of context.

Summary:
1. Primary Request and Intent:
   The user wants the loader to compare etags.

2. Errors and fixes:
   - **KeyError in `load_entry`**: fixed with `dict.get`

3. User preferences:
   - Never touch the public API

4. Pending Tasks:
   - Document the setting `cache_ttl`

Please continue the conversation from where we left off without asking the user any further questions.
"""
TOLD = (
    "- [e1] (summary) The user wants the loader to compare etags.",
    "- [e1] (summary) KeyError in `load_entry`: fixed with `dict.get`",
    "- [e1] (summary) Never touch the public API",
    "- [e1] (summary) Open at that time: Document the setting `cache_ttl`",
)


def imported(daemon: Daemon, *messages: tuple[str, str]) -> str:
    """Import a file of Claude Code with these messages, and return the session's id."""
    lines: list[str] = []
    for n, (role, text) in enumerate(messages, 1):
        record: dict[str, object] = {
            "type": role,
            "uuid": f"u{n}",
            "parentUuid": f"u{n - 1}" if n > 1 else None,
            "sessionId": "s",
            "message": {"role": role, "content": [{"type": "text", "text": text}]},
        }
        if text is SUMMARY:
            record["isCompactSummary"] = True
        lines.append(json.dumps(record))
    return str(daemon.call("session/import", content="\n".join(lines))["session_id"])


def compact(daemon: Daemon, session: str) -> str:
    """Append messages, compact the session without a model, and return the summary."""
    daemon.call("session/append", session_id=session, messages=turns(4, 300))
    done = daemon.call("session/compact", session_id=session, keep_messages=2, strategy="extract")
    assert done["compacted"], done["reason"]
    return str(done["summary"])


def told_in(summary: str) -> Sequence[str]:
    return [line for line in summary.splitlines() if line in TOLD]


def test_every_compaction_tells_the_summary_under_its_headings(daemon: Daemon) -> None:
    session = imported(daemon, ("user", SUMMARY), ("user", "Go on."), ("assistant", "I go on."))

    first, second = compact(daemon, session), compact(daemon, session)

    for summary in (first, second):
        assert sorted(told_in(summary)) == sorted(TOLD)
        assert "Please continue" not in summary


def test_its_words_are_no_constraints_of_the_user(daemon: Daemon) -> None:
    session = imported(daemon, ("user", SUMMARY), ("user", "Go on. Always use tabs."), ("assistant", "Yes."))

    compact(daemon, session)

    work = daemon.call("agent/state", session_id=session, work=True)["work"]
    assert [one["text"] for one in work["constraints"]] == ["Always use tabs."]
    assert "etags" not in json.dumps(work)


def test_its_reference_can_be_expanded(daemon: Daemon) -> None:
    session = imported(daemon, ("user", SUMMARY), ("user", "Go on."), ("assistant", "I go on."))
    compact(daemon, session)

    (entry,) = daemon.call("session/expand", session_id=session, entry_ids=["e1"], quoted=True)["entries"]

    assert "compare etags" in json.dumps(entry["message"])
    assert all(line.startswith("(tool) ") for line in entry["quoted"].splitlines() if "etags" in line)


def test_a_summary_of_messages_that_are_there_says_nothing_new(daemon: Daemon) -> None:
    session = imported(
        daemon,
        ("user", "Compare the etags in the loader."),
        ("assistant", "It compares them."),
        ("user", SUMMARY),
        ("user", "Go on."),
        ("assistant", "I go on."),
    )

    assert told_in(compact(daemon, session)) == []
    with pytest.raises(Refused):
        daemon.call("session/expand", session_id=session, entry_ids=["e3"])
