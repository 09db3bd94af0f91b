"""The bill of a replay is what one computes by hand, and losses are paid by the rule of docs/cost.md."""

from __future__ import annotations

import json

import pytest

from benchmarks.cost import document
from benchmarks.cost.bill import PriceList, Sent, billed
from benchmarks.cost.facts import Facts, common_facts
from benchmarks.cost.figures import relative
from benchmarks.cost.policies import Cost, Fixed, Never
from benchmarks.cost.replay import CALL_TOKENS, HEAD_TOKENS, Outcome, replay
from benchmarks.retention.records import Call, Record
from compactd.core.models.lookup import Pricing

SONNET = PriceList("s", Pricing(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75), 300.0)
OPUS = PriceList("o", Pricing(input=5.0, output=25.0, cache_read=0.5, cache_write=6.25), 300.0)
GPT = PriceList("g", Pricing(input=1.25, output=10.0, cache_read=0.125), 600.0)
M = 1_000_000


def names(number: int) -> str:
    return " ".join(f"value_{number}_{word}_zeppelin" for word in "abcdefghijklmnopqrstuvwxyz")


def filler(number: int) -> str:
    return "\n".join(
        f"{name} is one of the many names that the program {number} prints for nobody when it begins to run"
        for name in names(number).split()
    )


def work(number: int, result: str) -> list[Record]:
    """A call and its result."""
    call = Call(f"c{number}", "Read", {"file_path": f"/home/someone/tree/src/part{number}.py"})
    return [
        Record(at=0, role="assistant", text="I look.", calls=(call,), time=float(number)),
        Record(at=0, role="tool", text=result, call_id=call.call_id, tool="Read", time=float(number) + 0.5),
    ]


def session(count: int, last: str) -> list[Record]:
    """A session whose results have more facts than a small summary can keep."""
    records = [Record(at=0, role="user", text="Look at all parts.", time=0.0)]
    for number in range(1, count):
        records += work(number, filler(number))
    records.append(Record(at=0, role="assistant", text=last, time=float(count)))
    return records


def replayed(records: list[Record], policy: Fixed | Never | Cost) -> Outcome:
    return replay("made-up", records, Facts(records), policy)


def test_a_compaction_counts_also_if_the_agent_reads_something_again_first() -> None:
    requests = (
        Sent(size=90_000, unchanged=0, output=100, gap_s=None),
        Sent(size=27_000, unchanged=15_000, output=100, gap_s=5.0, compacted=90_000, is_reread=True),
        Sent(size=28_000, unchanged=27_000, output=100, gap_s=0.0),
        Sent(size=27_500, unchanged=15_000, output=100, gap_s=5.0, compacted=90_000),
    )

    bill = billed(requests, SONNET)

    assert (bill.compactions, bill.rereads, bill.requests) == (2, 1, 3)


def test_a_bill_is_the_sum_made_by_hand() -> None:
    requests = (
        Sent(size=20_000, unchanged=0, output=100, gap_s=None),
        Sent(size=22_000, unchanged=20_000, output=200, gap_s=10.0),
        Sent(size=24_000, unchanged=22_000, output=300, gap_s=301.0),
    )

    bill = billed(requests, SONNET)

    assert bill.read * M == pytest.approx(20_000 * 0.3)
    assert bill.write * M == pytest.approx((20_000 + 2_000 + 24_000) * 3.75)
    assert bill.output * M == pytest.approx(600 * 15.0)
    assert bill.total() == pytest.approx(bill.read + bill.write + bill.output)
    # GPT's cache lasts longer, and what it writes costs what input costs.
    other = billed(requests, GPT)
    assert other.read * M == pytest.approx(42_000 * 0.125)
    assert other.write * M == pytest.approx(24_000 * 1.25)


def test_an_extra_request_and_what_it_leaves_in_the_context_are_losses() -> None:
    requests = (
        Sent(size=20_000, unchanged=20_000, output=100, gap_s=1.0, is_reread=True),
        Sent(
            size=23_000,
            unchanged=20_000,
            output=500,
            gap_s=0.0,
            carried=2_000,
            new_carried=2_000,
            uses=4,
            lost=1,
        ),
        Sent(size=24_000, unchanged=23_000, output=500, gap_s=1.0, carried=2_000, uses=4),
    )

    bill = billed(requests, SONNET)

    extra = 20_000 * 0.3 + 100 * 15.0
    assert bill.loss * M == pytest.approx(extra + 2_000 * 3.75 + 2_000 * 0.3)
    assert bill.read * M == pytest.approx((20_000 + 21_000) * 0.3)
    assert bill.write * M == pytest.approx((1_000 + 1_000) * 3.75)
    assert bill.total(2) - bill.total() == pytest.approx(bill.loss)
    assert (bill.requests, bill.rereads, bill.retained) == (2, 1, 7 / 8)


def test_a_lost_fact_is_read_again_once_and_stays() -> None:
    records = session(60, f"It was {names(20)}.")
    records.append(Record(at=0, role="user", text="Say it again."))
    records.append(Record(at=0, role="assistant", text=f"It was {names(20)}, I said."))
    without = session(60, "It was nothing.")

    forgetful = replayed(records, Fixed(40_000, 2_500))
    never = replayed(records, Never())
    other = replayed(without, Fixed(40_000, 2_500))

    again = [sent for sent in forgetful.sent if sent.is_reread]
    assert [sent.output for sent in again] == [CALL_TOKENS]
    assert forgetful.sent[-1].carried == forgetful.sent[-2].carried > 500
    assert forgetful.sent[-2].lost > 0
    assert forgetful.sent[-1].lost == 0
    assert forgetful.removals[-1].rereads == 1
    assert not any(sent.is_reread for sent in (*never.sent, *other.sent))


def test_after_a_compaction_only_the_head_is_unchanged() -> None:
    outcome = replayed(session(60, "Done."), Fixed(40_000, 2_500))

    compacted = [at for at, sent in enumerate(outcome.sent) if sent.compacted]
    assert compacted
    for at, sent in enumerate(outcome.sent):
        expected = HEAD_TOKENS if at in compacted or at == 0 else outcome.sent[at - 1].size
        assert sent.unchanged == (0 if at == 0 else expected)
        assert sent.size < 42_500


def test_lists_with_the_same_ratios_share_their_replays() -> None:
    assert relative(SONNET) == relative(OPUS)
    assert relative(SONNET) != relative(GPT)


def test_the_cost_policy_compacts_before_the_window_is_full() -> None:
    outcome = replayed(session(60, "Done."), Cost(relative(SONNET)))

    assert outcome.removals
    assert outcome.removals[0].before < 60_000


def test_a_fact_that_three_sources_share_is_common() -> None:
    line = [Record(at=0, role="tool", text="see shared_helper_name and mine")]
    sessions = [("one-1", line), ("two-1", line), ("three-1", line), ("three-2", line)]

    assert ("id", "shared_helper_name") in common_facts(sessions)
    assert ("id", "shared_helper_name") not in common_facts(sessions[:2])
    assert ("id", "shared_helper_name") not in Facts(line, common_facts(sessions)).of(line[0])


def test_the_page_and_its_pictures_agree_with_the_figures() -> None:
    assert document.stale() == []
    assert "cost" in json.loads(document.JSON.read_bytes())["lists"]["Claude Sonnet 4.5"]["all"]
