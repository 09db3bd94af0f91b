"""What an audit reads in a Claude Code file: conversations, rebuilds and their causes, sizes."""

from __future__ import annotations

import json

import pytest

from compactd.cli.audit.bill import bill_of
from compactd.cli.audit.rows import after_prompts_text, cause_text
from compactd.cli.audit.trail import read_trail
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.requests import FileUsage
from tests.unit.cli.audit.transcripts import (
    Json,
    answer,
    audited,
    causes,
    compacted,
    lines,
    said,
    time_of,
    trail_of,
)

WARM = answer(1, at=0, write=50_000, hour=50_000)


def test_a_request_that_reads_what_was_written_rebuilds_nothing() -> None:
    bill = audited(WARM, answer(2, at=60, read=50_000, write=400, hour=400))

    assert bill.rebuilds == ()
    assert bill.rewritten_share == 0


def test_a_cache_that_nothing_visible_breaks_is_unknown_and_priced() -> None:
    bill = audited(WARM, answer(2, at=60, read=10_000, write=41_000, hour=41_000))

    (found,) = bill.rebuilds
    assert (found.cause, found.tokens, found.gap_s, found.line, found.entry_id) == (
        "unknown",
        40_000,
        60.0,
        2,
        "a2",
    )
    # A write for an hour costs twice the input price of $5, a read a tenth.
    assert found.cost_usd == pytest.approx(40_000 * (10 - 0.5) / 1_000_000)
    assert bill.rewritten_share == pytest.approx(40_000 / 91_000)


@pytest.mark.parametrize(("hour", "gap", "cause"), [(0, 301, "expired"), (50_000, 301, "unknown")])
def test_the_lifetime_is_that_of_what_was_written_last(hour: int, gap: int, cause: str) -> None:
    first = answer(1, at=0, write=50_000, hour=hour)

    assert causes(audited(first, answer(2, at=gap, write=50_000, hour=hour))) == [("", cause)]


def test_an_hour_without_use_is_expired() -> None:
    assert causes(audited(WARM, answer(2, at=3_601, write=50_000))) == [("", "expired")]


def test_an_interrupted_request_may_have_used_the_cache() -> None:
    first = answer(1, at=0, write=50_000)
    content = [{"type": "text", "text": "[Request interrupted by user]"}]
    stopped = {**said("u2", at=200), "message": {"role": "user", "content": content}}

    bill = audited(first, stopped, answer(2, at=400, write=50_000))

    assert [(one.cause, one.gap_s) for one in bill.rebuilds] == [("unknown", 200.0)]


def test_another_model_explains_a_rebuild() -> None:
    other = answer(2, at=60, write=50_000, model="claude-sonnet-4-5")

    assert causes(audited(WARM, other)) == [("", "model")]


def test_a_compaction_explains_a_rebuild_and_has_its_sizes() -> None:
    bill = audited(
        WARM,
        answer(2, at=10, read=50_000, write=30_000, hour=30_000, out=500),
        *compacted("c1", "Summary.", at=20),
        answer(3, at=30, read=12_000, write=8_000, hour=8_000),
        answer(4, at=40, read=20_000, write=9_000, hour=9_000),
    )

    assert causes(bill) == [("", "compaction")]
    (size,) = bill.compactions
    assert (size.boundary.trigger, size.boundary.line) == ("auto", 3)
    assert (size.tokens_before, size.tokens_after) == (90_000, 20_003)


def test_a_summary_without_a_boundary_is_a_compaction() -> None:
    bill = audited(
        WARM, said("c1", "Summary.", at=20, isCompactSummary=True), answer(2, at=30, read=9_000, write=8_000)
    )

    assert causes(bill) == [("", "compaction")]
    assert bill.compactions[0].tokens_before == 50_000 + 3 + 20


def test_a_prune_explains_a_rebuild() -> None:
    pruned = {
        "type": "system",
        "subtype": "microcompact_boundary",
        "timestamp": time_of(5),
        "microcompactMetadata": {"trigger": "auto", "preTokens": 60_000},
    }

    bill = audited(WARM, pruned, answer(2, at=10, read=20_000, write=9_000))

    assert causes(bill) == [("", "prune")]
    assert [(one.tokens_before, one.tokens_after) for one in bill.compactions] == [(60_000, 29_003)]


def test_of_a_prune_before_a_compaction_the_size_after_it_is_not_known() -> None:
    pruned = {"type": "system", "subtype": "microcompact_boundary", "timestamp": time_of(5)}

    bill = audited(WARM, pruned, *compacted("c1", "S."), answer(2, at=10, read=20_000, write=9_000))

    assert [(one.boundary.kind, one.tokens_after) for one in bill.compactions] == [
        ("prune", None),
        ("compaction", 29_003),
    ]


def test_a_sub_agent_has_a_cache_of_its_own() -> None:
    side = {"isSidechain": True, "agentId": "b1"}
    bill = audited(
        answer(1, at=0, write=50_000, hour=50_000, isSidechain=False),
        answer(2, at=10, write=12_000, **side),
        answer(3, at=20, read=50_000, write=500),
        answer(4, at=30, write=12_500, **side),
    )

    assert causes(bill) == [("b1", "unknown")]
    assert [(one.chain, one.requests) for one in bill.chains] == [("", 2), ("b1", 2)]


def test_sub_agents_without_a_name_are_told_apart_by_their_first_record() -> None:
    def side(name: str, parent: str | None, number: int) -> list[dict]:
        asked = said(name, parent=parent, isSidechain=True)
        return [dict(asked), dict(answer(number, parent=name, write=12_000, isSidechain=True))]

    bill = audited(*side("u1", None, 1), *side("u2", None, 2), *side("u3", "a1", 3))

    assert [(one.chain, one.requests) for one in bill.chains] == [("u1", 2), ("u2", 1)]
    assert causes(bill) == [("u1", "unknown")]


def test_a_sub_agent_inside_a_progress_record_has_its_own_conversation() -> None:
    inner = answer(2, at=10, write=12_000)
    progress = {
        "type": "progress",
        "uuid": "p1",
        "timestamp": time_of(10),
        "data": {"type": "agent_progress", "agentId": "b2", "message": inner},
    }

    bill = audited(WARM, progress, answer(3, at=20, read=50_000, write=500))

    assert [(one.chain, one.requests) for one in bill.chains] == [("", 2), ("b2", 1)]
    assert bill.rebuilds == ()


def test_a_rewind_explains_a_rebuild() -> None:
    bill = audited(
        answer(1, at=0, write=20_000, hour=20_000),
        said("u2", parent="a1"),
        answer(2, at=10, read=20_000, write=30_000, hour=30_000, parent="u2"),
        said("u3", "No, something else.", parent="a1"),
        answer(3, at=20, read=20_000, write=9_000, parent="u3"),
    )

    assert causes(bill) == [("", "messages")]


def test_results_of_parallel_calls_are_no_rewind() -> None:
    first = answer(1, at=0, write=20_000)
    second = {**answer(1, at=1, write=20_000), "uuid": "a1-2", "parentUuid": "a1"}
    bill = audited(
        first,
        second,
        said("t2", parent="a1-2"),
        said("t1", parent="a1"),
        answer(2, at=10, write=21_000, parent="t1"),
    )

    assert causes(bill) == [("", "unknown")]
    assert bill.total.requests == 2


def test_a_file_without_times_has_no_expired_cache() -> None:
    bill = audited(answer(1, at=None, write=50_000), answer(2, at=None, write=50_000))

    assert [(one.cause, one.gap_s, one.at) for one in bill.rebuilds] == [("unknown", None, None)]
    assert "2 of 2 requests have no time." in bill.unknown


def test_a_clock_that_goes_back_makes_the_time_unknown() -> None:
    bill = audited(answer(1, at=9_000, write=50_000), answer(2, at=0, write=50_000))

    assert [(one.cause, one.gap_s) for one in bill.rebuilds] == [("unknown", None)]
    assert any("clock went back" in told for told in bill.unknown)


def test_a_report_that_contradicts_itself_is_told() -> None:
    message = json.loads(json.dumps(WARM["message"]))
    message["usage"]["cache_creation"]["ephemeral_5m_input_tokens"] = 7

    bill = audited({**WARM, "message": message})

    assert any("parts of the cache writes" in told for told in bill.unknown)
    assert bill.total.cache_write == 50_000
    assert not any("parts of" in told for told in audited(WARM).unknown)


def test_without_a_price_no_cost_is_invented() -> None:
    def of_nobody(number: int, at: int) -> Json:
        return answer(number, at=at, write=50_000, model="nobodys-model-9")

    bill = audited(of_nobody(1, 0), of_nobody(2, 10))

    assert bill.total.cost_usd is None
    assert not bill.is_priced
    assert [one.cost_usd for one in bill.rebuilds] == [None]
    assert [one.cost_usd for one in bill.causes] == [None]


def test_an_answer_without_tokens_says_nothing_of_the_cache() -> None:
    empty = answer(2, at=100, new=0, out=0)

    bill = audited(answer(1, at=0, write=50_000), empty, answer(3, at=350, write=50_000))

    assert [(one.cause, one.tokens, one.gap_s) for one in bill.rebuilds] == [("unknown", 50_000, 250.0)]


def test_damaged_and_unfinished_lines_are_left_out() -> None:
    data = lines([WARM]) + b'{"usage": nonsense\n' + lines([answer(2, at=5, read=50_000)])
    data += b'{"type": "assistant", "message": {"usage": {"inp'

    bill = bill_of(read_trail(data, FileUsage(agent="claude-code", session_id="s")), PriceList())

    assert bill.total.requests == 2
    assert any("1 damaged" in told for told in bill.unknown)


def test_the_line_of_a_request_is_that_of_its_first_record() -> None:
    places = trail_of(said("u1"), WARM, {**WARM, "uuid": "a1-2"}, answer(2, at=60)).places

    assert [(one.line, one.entry_id) for one in places] == [(2, "a1"), (4, "a2")]


def test_a_resume_and_a_new_version_are_told_but_are_no_cause() -> None:
    hook = {"type": "hook_progress", "hookEvent": "SessionStart", "hookName": "SessionStart:resume"}
    resumed = {"type": "progress", "uuid": "p", "timestamp": time_of(20), "data": hook, "version": "2.1.12"}
    mentioned = said("u3", 'What is "SessionStart:resume"?', version="2.1.12")

    bill = audited(
        {**WARM, "version": "2.1.7"},
        resumed,
        answer(2, at=30, read=10_000, write=41_000, version="2.1.12"),
        mentioned,
        answer(3, at=40, read=10_000, write=42_000, version="2.1.12"),
    )

    assert [(one.cause, one.seen) for one in bill.rebuilds] == [
        ("unknown", ("new version", "resumed")),
        ("unknown", ("after a prompt",)),
    ]
    assert cause_text(bill.rebuilds[0]) == "unknown (new version, resumed)"


def test_a_rebuild_after_a_prompt_is_told() -> None:
    tool = {
        **said("t", parent="a1", at=20),
        "message": {"role": "user", "content": [{"type": "tool_result"}]},
    }
    meta = said("m", at=40, isMeta=True)

    bill = audited(
        said("u"),
        answer(1, at=10, write=50_000, parent="u"),
        tool,
        answer(2, at=30, write=51_000, parent="t"),
        meta,
        answer(3, at=50, write=52_000, parent="m"),
        said("v", parent="a3", at=60),
        answer(4, at=70, write=53_000, parent="v"),
    )

    assert [one.seen for one in bill.rebuilds] == [(), (), ("after a prompt",)]
    assert cause_text(bill.rebuilds[-1]) == "unknown (after a prompt)"
    assert after_prompts_text(bill.rebuilds) == "1 of the 3 unknown ones is the first request after a prompt."


def test_a_cache_that_had_expired_too_is_told_next_to_the_other_model() -> None:
    bill = audited(
        answer(1, at=0, write=50_000),
        answer(2, at=900, write=51_000, model="claude-sonnet-4-5"),
        answer(3, at=910, write=52_000),
    )

    assert [cause_text(one) for one in bill.rebuilds] == ["other model (expired too)", "other model"]
