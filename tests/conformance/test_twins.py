"""Thirty-seven daemons with one fault each (`twins/`): the suite names what each breaks, and nothing else."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from compactd_conformance import suite

TWINS = Path(__file__).parent / "twins"

PAIRS = ("every-call-has-its-result", "every-result-has-its-call", "roles-as-providers-want-them")
SIZES = ("smaller-or-not-compacted", "the-second-time-nothing")
EVENTS = ("every-start-has-its-end", "every-end-has-its-start", "seq-has-no-gap")
BYTES = ("arguments-keep-their-bytes", "no-character-is-cut")
ANSWERS = ("one-answer", "bad-requests-are-answered")
FILES = ("a-changed-file-is-not-a-read-file", "files-accumulate")

BROKEN = {
    "a call parted from its result": ("every-call-has-its-result", PAIRS),
    "an orphan result": ("every-result-has-its-call", PAIRS),
    "the newest request reworded": ("newest-request-word-for-word", ("undo-keeps-later-messages",)),
    "a count that ignores the system prompt": ("the-system-prompt-counts", SIZES),
    "growth reported as success": ("smaller-or-not-compacted", SIZES),
    "a second compaction without gain": ("the-second-time-nothing", SIZES),
    "an event without its end": ("every-start-has-its-end", EVENTS),
    "an end without a start": ("every-end-has-its-start", EVENTS),
    "a seq gap": ("seq-has-no-gap", EVENTS),
    "state that waits": ("state-does-not-wait", ("reading-and-appending-go-on",)),
    "an acknowledged message lost at SIGKILL": ("acknowledged-is-durable", ("undo-keeps-later-messages",)),
    "a torn record accepted": ("torn-records-are-told", ("a-message-id-counts-once",)),
    "undo that loses later messages": ("undo-keeps-later-messages", ("undo-of-nothing",)),
    "search that forgets what was compacted": (
        "search-finds-what-was-compacted",
        ("originals-can-be-expanded",),
    ),
    "a file both read and modified": ("a-changed-file-is-not-a-read-file", FILES),
    "a UTF-8 cut": ("no-character-is-cut", BYTES),
    "a re-cased argument": ("arguments-keep-their-bytes", BYTES),
    "two answers to a request": ("one-answer", ANSWERS),
    "none to a bad one": ("bad-requests-are-answered", ANSWERS),
    "a path made of an id": ("an-id-is-no-path", ("a-message-id-counts-once",)),
    "a plan that is carried out": ("a-plan-changes-nothing", ("a-dry-run-changes-nothing",)),
    "another provider's shape taken": ("another-providers-shape-is-refused", ("bad-params-name-the-field",)),
    "a late report as the size": ("a-report-of-another-prompt", ("a-report-of-an-older-epoch",)),
    "a lock for looking": ("looking-takes-no-lock", ("one-writer",)),
    "settings dropped for one bad value": ("a-clients-settings-stay", ("a-setting-can-be-unset",)),
    "a reader that is told nothing": ("a-reader-is-told", ("one-writer",)),
    "a summary that is not shown": ("the-summarize-phase-is-shown", ("a-cancelled-compaction",)),
    "another strategy than asked for": ("no-other-strategy-than-the-one-asked-for", ("an-empty-summary",)),
    "an aborted turn without its end": ("every-turn-start-has-its-end", ("an-abort-ends-the-prompt",)),
    "work for a client that is gone": ("no-answer-for-a-client-that-is-gone", ("a-prompt-ends-once",)),
    "an unknown model without a warning": ("what-may-be-a-mistake-is-warned-of", ("a-model-nobody-knows",)),
    "a setting that stays": ("a-setting-can-be-unset", ("changes-are-told",)),
    "an undo that cannot be forced": ("an-undo-can-be-forced", ("undo-of-nothing",)),
    "a pin that is not told": ("changes-are-told", ("seq-has-no-gap",)),
    "a prompt that cannot be dropped": ("waiting-prompts-can-be-dropped", ("an-abort-ends-the-prompt",)),
    "an original that is cut": ("a-reduced-output-is-kept-whole", ("observing-changes-nothing",)),
    "an empty list refused": ("an-empty-list-is-an-empty-object", ("bad-params-name-the-field",)),
}
"""Each twin's check, and others of its area that it must not fail."""

WHOLE = os.environ.get("COMPACTD_TWINS", "a torn record accepted")
"""Which twins meet the whole suite: one by name, or `all` (some minutes)."""


def failed(twin: str, only: tuple[str, ...] = ()) -> set[str]:
    """The checks that a twin fails."""
    verdicts = suite.run((sys.executable, str(TWINS), twin), os.environ, only=only)
    return {one.name for one in verdicts if one.outcome == "failed"}


@pytest.mark.parametrize("twin", BROKEN)
def test_each_broken_twin_fails_at_its_law_alone(twin: str) -> None:
    check, area = BROKEN[twin]

    assert failed(twin, (check, *area)) == {check}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("twin", BROKEN if WHOLE == "all" else [WHOLE])
def test_the_whole_suite_finds_nothing_else_in_a_twin(twin: str) -> None:
    assert failed(twin) == {BROKEN[twin][0]}


def test_a_failure_tells_what_was_sent_also_where_an_earlier_check_sent_it() -> None:
    verdicts = suite.run((sys.executable, str(TWINS), "a seq gap"), os.environ, only=EVENTS)

    (gap,) = (one for one in verdicts if one.outcome == "failed")
    assert any("session/append" in sent for sent in gap.sent)
    assert gap.seen.startswith("[1, 2, 3, 5, 6")


def test_there_are_thirty_seven_twins_each_with_a_check_of_the_suite() -> None:
    checks = {check.name for check in suite.CHECKS}

    assert len(BROKEN) == 37
    assert {name for check, area in BROKEN.values() for name in (check, *area)} <= checks
