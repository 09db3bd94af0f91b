"""The methods that compactd is compared with, on the project's own session."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.retention import ours, sessions
from benchmarks.retention.baselines import CLEARED, MASKED, PLAIN
from benchmarks.retention.points import Cut, count, cuts_of, points_of
from benchmarks.retention.ranked import RANKED
from benchmarks.retention.scoring import BASELINES, RECORDED, judged
from benchmarks.retention.sessions import OWN, OWN_NAME, Source

BUDGET = 2_000


@cache
def own_cut() -> Cut:
    session = sessions.read(Source(OWN_NAME, OWN, "auto"))
    return list(cuts_of(session, frozenset(), list(points_of(session.records))))[-1]


@pytest.mark.parametrize("method", BASELINES)
def test_no_method_goes_over_its_budget_by_more_than_the_marks_of_its_sections(method: str) -> None:
    for budget in (200, BUDGET, 100_000):
        assert count(BASELINES[method](own_cut(), budget)) <= budget + 8


@pytest.mark.parametrize("method", BASELINES)
def test_the_same_cut_gives_the_same_context(method: str) -> None:
    assert BASELINES[method](own_cut(), BUDGET) == BASELINES[method](own_cut(), BUDGET)


@pytest.mark.parametrize("method", ["keep_last", "obs_mask10", "opencode_prune", "uniform_trunc"])
def test_with_room_for_all_of_it_everything_stays(method: str) -> None:
    context = BASELINES[method](own_cut(), 10_000_000)

    assert (MASKED in context) == (method == "obs_mask10")
    assert CLEARED not in context
    if method != "obs_mask10":
        assert judged(own_cut(), method, 10_000_000, context).linked == 1.0


def test_the_newest_message_stays_under_every_plain_method_that_keeps_a_tail() -> None:
    end = own_cut().past[-1].rendered[-40:]

    for method in ("keep_last", "pi_tail_files", "head_tail", "obs_mask10"):
        assert PLAIN[method](own_cut(), BUDGET).endswith(end), method


def test_ranked_methods_end_with_a_tail_too() -> None:
    end = own_cut().past[-1].rendered[-40:]

    assert all(method(own_cut(), BUDGET).endswith(end) for method in RANKED.values())


def test_a_recorded_summary_is_no_baseline_of_cuts_that_have_none() -> None:
    assert RECORDED not in BASELINES
    assert own_cut().summary == ""


def test_ours_makes_no_atom_and_fits_and_beats_keeping_the_last() -> None:
    cut = own_cut()
    made = ours.in_process(ours.items_of(cut.past), 4_000)

    row = judged(cut, "extract", 4_000, made.context, made.summary)
    last = judged(cut, "keep_last", 4_000, PLAIN["keep_last"](cut, 4_000))

    assert row.made == ()
    assert row.tokens <= 4_000 * 1.03
    assert row.linked > last.linked
    assert row.cg > last.cg


def test_the_daemon_gives_the_bytes_that_the_process_gives() -> None:
    cut = own_cut()
    daemon = ours.Daemon()
    try:
        through = daemon.compacted(cut.past, 4_000)
    finally:
        daemon.close()

    assert through.context == ours.in_process(ours.items_of(cut.past), 4_000).context


def test_a_budget_below_the_newest_request_is_refused() -> None:
    cut = own_cut()

    assert ours.in_process(ours.items_of(cut.past), 40) == ours.REFUSED
