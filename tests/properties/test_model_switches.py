"""A switch to a model that counts the kept messages higher: a smaller compaction is tried, or it is undone.

A page of a PDF takes 258 tokens of Gemini 2.5 and 3,000 of Claude (core/tokens/image_rules.py).
"""

from __future__ import annotations

import pytest

from compactd.agent import model_switch
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import CompactionResult, Document, Message, Text
from compactd.protocol.settings import GivenSettings
from tests.properties.life import Life, numbers, opened, shown
from tests.support.quiet_world import Quiet, done
from tests.support.rendered import says

GEMINI, CLAUDE = "google/gemini-2.5-flash", "anthropic/claude-sonnet-4-5"
WINDOW = 12_000
PAGES = Document(media_type="application/pdf", pages=3, data="JVBERi0x")


def talked(turns: int, words: int) -> Life:
    """A session on Gemini whose newest request holds three pages and as many times five words."""
    life = Life(opened(Quiet(), "default", GivenSettings(context_window=WINDOW)))
    life.switch(GEMINI)
    said = "so we went on and looked at src/a{0}.py once more. " * 30
    life.append([says(role, said.format(turn)) for turn in range(turns) for role in ("user", "assistant")])
    life.append([Message(role="user", content=(Text(text="read this and go on " * words), PAGES))])
    return life


def switched(life: Life) -> model_switch.SwitchOutcome:
    return done(model_switch.switch(life.session, CLAUDE, None))


def switched_at_the_second_attempt() -> tuple[Life, int, CompactionResult]:
    """Find the smallest newest request for which a switch needs two attempts. Also return the size before
    it."""
    for words in range(200, 480, 20):
        life = talked(turns=6, words=words)
        before = life.session.state.estimated_size
        result = switched(life).compaction
        assert result is not None
        if life.session.state.begun > 1:
            return life, before, result
    raise AssertionError("none took two")


def test_a_compaction_that_is_not_enough_for_the_new_model_is_taken_back_and_tried_for_less() -> None:
    life, before, result = switched_at_the_second_attempt()
    session = life.session

    assert (result.compacted, result.tokens_before, session.state.begun) == (True, before, 2)
    assert [step.compaction_id for step in session.state.in_force.steps] == [result.compaction_id]
    assert (session.state.model.model, session.decision.kind) == (CLAUDE, "due")
    assert session.decision.used <= WINDOW
    life.laws_hold()


def test_a_switch_that_no_compaction_makes_fit_leaves_nothing_behind_and_is_refused_again() -> None:
    life = talked(turns=6, words=640)
    session, before = (
        life.session,
        (shown(life.session)[1], life.session.size, life.session.pending.call_ids),
    )

    told = []
    for _ in range(2):
        with pytest.raises(CannotFit, match="has a window of 12,000") as refused:
            switched(life)
        told.append((refused.value.message, refused.value.data))
        assert (shown(session)[1], session.size, session.pending.call_ids) == before
        assert (session.state.model.model, session.state.in_force.steps) == (GEMINI, ())
        life.laws_hold()

    assert told[0] == told[1]
    assert "floor" in told[0][1]
    life.configure(GivenSettings(context_window=2 * WINDOW))
    assert switched(life).compaction is None
    life.laws_hold()


def test_a_compaction_that_the_old_model_needed_too_stays_when_the_switch_is_refused() -> None:
    life = talked(turns=10, words=640)
    session = life.session
    assert session.decision.kind == "over"

    with pytest.raises(CannotFit, match="has a window of 12,000"):
        switched(life)

    assert (session.state.model.model, len(session.state.in_force.steps)) == (GEMINI, 1)
    assert session.decision.kind == "fits"
    after = numbers(session)
    with pytest.raises(CannotFit, match="has a window of 12,000"):
        switched(life)
    assert numbers(session)[1:3] == after[1:3]
    life.laws_hold()
