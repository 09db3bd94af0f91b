"""Which summary belongs to which compaction of Claude Code, from its events alone."""

from __future__ import annotations

from typing import Any

import pytest

from compactd.integrations.hooks.agent_summary import without_analysis, without_frame
from compactd.integrations.hooks.compaction_mark import MAX_MARK_S, note, take_summary
from compactd.integrations.hooks.events import HookEvent
from compactd.integrations.hooks.hook_state import HookState


def event(kind: str, **more: Any) -> HookEvent:
    return HookEvent(agent="claude-code", kind=kind, session_id="s", **more)  # type: ignore[arg-type]


BEGIN = event("before", prompt_id="p")
SUMMARY = event("fork_end", prompt_id="p", agent_id="f", summary="S")
START = event("start", prompt_id="p", source="compact")
INNER = {"is_inner": True, "agent_id": "a", "prompt_id": "p"}


def summary_after(*events: HookEvent, at: float = 1.0) -> str:
    """Return the summary that is known after these events, one second apart, at the session's new start."""
    state = HookState()
    for number, one in enumerate(events):
        note(state, one, 1_000.0 + number)
    note(state, START, 1_000.0 + len(events) + at)
    return take_summary(state, START, 1_000.0 + len(events) + at)


@pytest.mark.parametrize(
    ("events", "summary"),
    [
        ((BEGIN, SUMMARY), "S"),
        ((BEGIN, SUMMARY, event("fork_end", prompt_id="p", summary="T")), "T"),
        ((event("before"), SUMMARY), "S"),
        ((BEGIN,), ""),
        ((SUMMARY,), ""),
        ((BEGIN, event("fork_end", prompt_id="p")), ""),
        # The compaction failed, and the session went on.
        ((BEGIN, SUMMARY, event("prompt", prompt_id="q")), ""),
        ((BEGIN, event("end"), SUMMARY), ""),
        ((BEGIN, event("start", source="resume"), SUMMARY), ""),
        ((BEGIN, SUMMARY, event("before", prompt_id="q")), ""),
        # The fork belongs to another prompt.
        ((BEGIN, event("fork_end", prompt_id="q", summary="T")), ""),
        # A sub-agent compacts its own conversation.
        ((event("before", **INNER), SUMMARY), ""),
        ((event("before", **INNER), BEGIN, SUMMARY), ""),
        ((BEGIN, event("before", **INNER), SUMMARY, event("start", source="compact", **INNER), SUMMARY), ""),
        ((event("before", **INNER), SUMMARY, event("start", source="compact", **INNER), BEGIN, SUMMARY), "S"),
        ((event("before", **INNER), event("inner_end", **INNER), BEGIN, SUMMARY), "S"),
        ((BEGIN, event("inner_end", **INNER), event("end", **INNER), SUMMARY), "S"),
    ],
)
def test_a_summary_is_the_one_of_the_compaction_that_has_begun(
    events: tuple[HookEvent, ...], summary: str
) -> None:
    assert summary_after(*events) == summary


def test_a_compaction_that_began_long_ago_has_failed() -> None:
    assert summary_after(BEGIN, SUMMARY, at=MAX_MARK_S + 1) == ""


def test_a_sub_agent_that_was_never_done_is_forgotten() -> None:
    state = HookState()
    note(state, event("before", **INNER), 0.0)

    later = MAX_MARK_S + 1
    for one in (BEGIN, SUMMARY):
        note(state, one, later)

    assert take_summary(state, START, later) == "S"


def test_a_summary_is_taken_once() -> None:
    state = HookState()
    for one in (BEGIN, SUMMARY):
        note(state, one, 1.0)

    assert [take_summary(state, START, 1.0) for _ in range(2)] == ["S", ""]


@pytest.mark.parametrize(
    ("raw", "summary"),
    [
        ("<analysis>x</analysis>\n<summary>\nS <analysis> here\n</summary>", "S <analysis> here"),
        ("<analysis>x</analysis>\nS", "S"),
        ("<summary>S", "S"),
        ("S without tags", "S without tags"),
        ("<analysis>never closed", "<analysis>never closed"),
        ("before <summary>S</summary> after", "S"),
        ("</summary>S<summary>", ""),
        ("", ""),
    ],
)
def test_the_context_gets_the_summary_without_the_analysis(raw: str, summary: str) -> None:
    assert without_analysis(raw) == summary


PREFACE = (
    "This session is being continued from a previous conversation that ran out of context. The summary below"
    " covers the earlier portion of the conversation.\n\n"
)
REMINDER = (
    "<system-reminder>\n<tools-used-before-summary>Bash</tools-used-before-summary>\n</system-reminder>\n"
)


@pytest.mark.parametrize(
    ("row", "summary"),
    [
        (
            f"{PREFACE}{REMINDER}Summary:\n1. S\n\nIf you need specific details from before compaction (x",
            "1. S",
        ),
        (f"{PREFACE}Summary:\nS\nContinue the conversation from where it left off without", "S"),
        (
            f"{PREFACE}Analysis:\nA\n\nSummary:\nS\nPlease continue the conversation from where we",
            "A\n\nSummary:\nS",
        ),
        (f"{PREFACE}S", f"{PREFACE}S"),
        ("Another summary.\nSummary:\nS", "Another summary.\nSummary:\nS"),
    ],
)
def test_the_programs_sentences_are_no_part_of_the_summary(row: str, summary: str) -> None:
    assert without_frame(row) == summary
