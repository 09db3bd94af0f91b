"""The counters from which the cost policy predicts the next requests."""

from __future__ import annotations

from compactd.core.cost.rhythm import Rhythm


def test_the_growth_does_not_count_what_compactions_prunes_and_other_models_change() -> None:
    rhythm = Rhythm()
    for at, size in enumerate((10_000, 12_000, 15_000)):
        rhythm.note_request(size, at)
    rhythm.note_change(6_000)
    rhythm.note_request(7_000, 3)
    rhythm.note_request(8_000, 4)
    rhythm.note_prune()
    rhythm.note_request(4_000, 5)
    rhythm.note_model()
    rhythm.note_request(9_000, 6)

    assert (rhythm.requests, rhythm.grown, rhythm.left) == (7, 6_000, 6_000)
    assert rhythm.growth() == 6_000 / 7


def test_another_model_has_nothing_in_its_cache_until_its_first_request() -> None:
    rhythm = Rhythm()
    rhythm.note_model()
    assert not rhythm.is_other_model
    rhythm.note_request(10_000, 1.0)
    rhythm.note_model()
    before = rhythm.is_other_model
    rhythm.note_request(10_000, 2.0)

    assert (before, rhythm.is_other_model) == (True, False)


def test_a_clock_that_goes_back_gives_no_gap() -> None:
    rhythm = Rhythm()
    assert rhythm.gap_s(5.0) is None
    rhythm.note_request(10_000, 100.0)

    assert rhythm.gap_s(160.0) == 60.0
    assert rhythm.gap_s(99.0) is None
