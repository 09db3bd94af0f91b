"""The context window of a recorded session: what its file says about it, and what of that is believed."""

from __future__ import annotations

import pytest

from compactd.core.budget.recorded_window import (
    CLAUDE_CODE_BUFFER,
    Evidence,
    estimated_window,
    window_by_file,
)
from compactd.integrations.hooks import compact_threshold

OPUS = 1_000_000
GROWN = (40_000, 90_000, 150_000, 165_894)


def compaction(tokens: int) -> Evidence:
    return Evidence("compaction", tokens)


@pytest.mark.parametrize(
    ("tokens", "window"),
    [
        (167_117, 200_000),
        (171_435, 200_000),
        (157_925, 200_000),
        (190_061, 200_000),
        (966_800, 1_000_000),
        (366_790, 400_000),
        (67_012, 100_000),
    ],
)
def test_claude_code_compacts_about_33_000_tokens_below_its_window(tokens: int, window: int) -> None:
    assert estimated_window(tokens) == window
    assert compact_threshold.BUFFER == CLAUDE_CODE_BUFFER


def test_an_automatic_compaction_beats_the_registry_and_is_an_estimate() -> None:
    found = window_by_file([compaction(167_117)], GROWN, OPUS)

    assert (found.window, found.is_estimate, found.is_guess, found.doubts) == (200_000, True, False, ())
    assert found.source == "estimated from the file: Claude Code compacted automatically at 167,117 tokens"


def test_a_refused_request_is_compacted_at_any_size_so_the_largest_compaction_tells_most() -> None:
    evidence = [compaction(190_061), compaction(3_357)]

    assert window_by_file(evidence, [22_615, 190_000], 200_000).window == 200_000
    assert window_by_file(evidence[::-1], [22_615, 190_000], 200_000).window == 200_000


def test_a_limit_that_is_named_beats_an_estimate() -> None:
    limit, refusal = Evidence("limit", 258_400), Evidence("refusal", 190_000)

    assert window_by_file([compaction(167_117), limit], GROWN, 400_000).window == 258_400
    assert window_by_file([limit, refusal], GROWN, 400_000).window == 190_000
    assert not window_by_file([limit], GROWN, 400_000).is_estimate


@pytest.mark.parametrize(
    ("evidence", "accepted", "doubt"),
    [
        (compaction(1), (90_000,), "the same model accepted a request of 90,000 tokens"),
        (compaction(900_000), (90_000,), "the largest request in the file has only 90,000 tokens"),
        (compaction(1), (), "the largest request in the file has only 0 tokens"),
        (Evidence("limit", 10**12), (90_000,), "no model has a window of that size"),
        (Evidence("limit", 300), (), "no model has a window of that size"),
        (Evidence("limit", 8_000), (), "it is far from the known window of 200,000"),
        (Evidence("refusal", 5_000_000), (90_000,), "it is far from the known window of 200,000"),
        (Evidence("limit", 100_000), (120_000,), "the same model accepted a request of 120,000 tokens"),
    ],
)
def test_a_number_that_the_requests_do_not_bear_out_is_told_and_not_believed(
    evidence: Evidence, accepted: tuple[int, ...], doubt: str
) -> None:
    found = window_by_file([evidence], accepted, 200_000)

    assert found.window is None
    assert len(found.doubts) == 1
    assert doubt in found.doubts[0]
    assert f"{evidence.tokens:,} tokens, which does not count" in found.doubts[0]


def test_requests_above_the_known_window_were_accepted_so_it_is_larger() -> None:
    assert window_by_file([], (150_000, 230_000, 250_000), 200_000).window == 250_000
    # One report may be wrong, or made up.
    assert window_by_file([], (150_000, 250_000), 200_000).window is None
    assert window_by_file([], (150_000, 10**15, 10**15 + 1), 200_000).window is None


def test_an_unknown_model_that_took_more_than_the_guess_gets_the_next_usual_window_as_a_guess() -> None:
    found = window_by_file([], (150_000, 190_000), None, 128_000)

    assert (found.window, found.is_guess) == (200_000, True)
    assert window_by_file([], (90_000,), None, 128_000).window is None
