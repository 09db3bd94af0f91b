"""What an audit reads in the files of Codex, pi, Gemini CLI and OpenCode."""

from __future__ import annotations

import json

from compactd.cli.audit.bill import bill_of
from compactd.cli.audit.replay import NoReplay, replay
from compactd.cli.audit.rows import kind_rows
from compactd.cli.audit.trail import read_trail
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.requests import FileUsage
from tests.unit.cli.audit.transcripts import answer, audited, causes, time_of
from tests.unit.cli.usage import test_codex as codex
from tests.unit.cli.usage.test_other_agents import gemini


def pi_answer(second: int, *, read: int, write: int, cost: float = 0.1, **fields: object) -> dict:
    usage = {"input": 3, "output": 9, "cacheRead": read, "cacheWrite": write, "cost": {"total": cost}}
    message = {
        "role": "assistant",
        "provider": "anthropic",
        "model": "claude-opus-4-5",
        "timestamp": 1_767_300_000_000 + 1000 * second,
        "usage": usage,
        **fields,
    }
    return {"type": "message", "id": f"p{second}", "timestamp": time_of(second), "message": message}


def test_a_compaction_of_codex_explains_a_rebuild_and_writes_are_not_reported() -> None:
    first = codex.event((60_000, 0, 10), (60_000, 0, 10), 1)
    second = codex.event((122_000, 60_000, 20), (62_000, 60_000, 10), 2)
    third = codex.event((142_000, 63_000, 30), (20_000, 3_000, 10), 4)
    data = "\n".join(
        [
            codex.meta("c"),
            codex.turn("gpt-5"),
            first,
            second,
            codex.line("compacted", {"message": "Summary."}, 3),
            third,
            "",
        ]
    ).encode()

    bill = bill_of(read_trail(data, FileUsage(agent="codex", session_id="s")), PriceList())

    assert causes(bill) == [("", "compaction")]
    assert bill.rewritten_share is None
    assert any("reports no cache writes" in told for told in bill.unknown)
    assert any("the cache of gpt-5 is not known" in told for told in bill.unknown)
    (size,) = bill.compactions
    assert (size.tokens_before, size.tokens_after) == (62_010, 20_000)


def test_pi_reports_its_costs_and_the_kinds_are_at_list_prices() -> None:
    bill = audited(
        {"type": "session", "id": "p", "timestamp": time_of(0)},
        pi_answer(0, read=0, write=40_000, cost=0.4),
        pi_answer(60, read=40_000, write=1_000, cost=0.5),
        {"type": "compaction", "id": "c", "timestamp": time_of(70), "summary": "S.", "tokensBefore": 41_000},
        pi_answer(80, read=0, write=9_000, cost=0.6),
        agent="pi",
    )

    assert bill.total.cost_usd == 0.4 + 0.5 + 0.6
    assert bill.is_priced
    assert abs(bill.costs.cache_write_5m - 50_000 * 6.25 / 1e6) < 1e-9
    assert causes(bill) == [("", "compaction")]
    assert [(one.at, one.entry_id) for one in bill.rebuilds] == [(1_767_300_080.0, "p80")]


def test_a_changed_thinking_level_of_pi_is_told_if_it_was_set_before_the_prompt() -> None:
    def level(second: int, name: str) -> dict:
        return {"type": "thinking_level_change", "timestamp": time_of(second), "thinkingLevel": name}

    def prompt(second: int) -> dict:
        return {
            "type": "message",
            "timestamp": time_of(second),
            "message": {"role": "user", "content": "Go."},
        }

    bill = audited(
        {"type": "session", "id": "p", "timestamp": time_of(0), "thinkingLevel": "off"},
        prompt(0),
        pi_answer(1, read=0, write=40_000),
        level(2, "high"),
        level(3, "off"),
        prompt(4),
        level(5, "high"),
        pi_answer(6, read=0, write=41_000),
        prompt(7),
        pi_answer(8, read=0, write=42_000),
        agent="pi",
    )

    assert [one.seen for one in bill.rebuilds] == [
        ("after a prompt",),
        ("after a prompt", "thinking changed"),
    ]


def test_an_answer_of_pi_without_tokens_may_have_used_the_cache() -> None:
    stopped = pi_answer(200, read=0, write=0)
    stopped["message"]["usage"] = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}

    bill = audited(
        pi_answer(0, read=0, write=40_000), stopped, pi_answer(400, read=0, write=41_000), agent="pi"
    )

    assert [(one.cause, one.gap_s) for one in bill.rebuilds] == [("unknown", 200.0)]


def test_a_snapshot_of_gemini_cli_is_one_compaction_and_a_rewind_is_seen() -> None:
    snapshot = {"id": "s", "type": "user", "content": "<state_snapshot>S.</state_snapshot>"}
    bill = audited(
        {"sessionId": "g", "startTime": time_of(0)},
        gemini("a", 1, input=50_000, cached=20_000),
        {"$set": {"messages": [snapshot]}},
        gemini("b", 2, input=9_000, cached=2_000),
        {"$set": {"messages": [snapshot, gemini("b", 2, input=9_000, cached=2_000)]}},
        gemini("c", 3, input=30_000, cached=9_000),
        {"$rewindTo": "b"},
        gemini("d", 4, input=20_000, cached=100),
        agent="gemini-cli",
    )

    assert [one.boundary.line for one in bill.compactions] == [3]
    assert causes(bill) == [("", "compaction"), ("", "messages")]


def test_the_request_for_a_summary_of_opencode_is_billed_as_such() -> None:
    def message(name: str, second: int, *, read: int, write: int, **fields: object) -> dict:
        tokens = {"input": 3, "output": 9, "reasoning": 0, "cache": {"read": read, "write": write}}
        info = {
            "id": name,
            "role": "assistant",
            "providerID": "anthropic",
            "modelID": "claude-opus-4-5",
            "time": {"created": 1_767_300_000_000 + 1000 * second},
            "cost": 0,
            "tokens": tokens,
            **fields,
        }
        return {"info": info, "parts": []}

    document = {
        "info": {"id": "ses_1", "directory": "/home/someone/ledger"},
        "messages": [
            message("m1", 0, read=0, write=40_000),
            message("m2", 60, read=30_000, write=100, summary=True),
            message("m3", 70, read=5_000, write=4_000),
        ],
    }

    trail = read_trail(json.dumps(document).encode(), FileUsage(agent="opencode", session_id="s"))
    bill = bill_of(trail, PriceList())

    assert bill.tokens.summary == 3 + 9 + 30_000 + 100
    assert bill.total.requests == 3
    assert causes(bill) == [("", "compaction")]
    assert abs(bill.costs.total - (bill.total.cost_usd or 0)) < 1e-9


def test_aider_writes_no_time_of_a_request() -> None:
    line = "> Tokens: 20k sent, 15k cache hit, 604 received. Cost: $0.02 message, $0.17 session.\n"
    chat = "# aider chat started at 2024-08-20 09:{0}:00\n\n> Main model: claude-3-5-sonnet-20240620\n" + line
    data = (chat.format("00") + chat.format("30") + line.replace("15k", "2k")).encode()

    trail = read_trail(data, FileUsage(agent="aider", session_id="s"))

    assert [place.at for place in trail.places] == [None, None, None]
    assert [place.chain for place in trail.places] == ["chat 1", "chat 2", "chat 2"]
    assert causes(bill_of(trail, PriceList())) == [("chat 2", "unknown")]
    assert isinstance(replay(trail, PriceList()), NoReplay)
    assert not trail.shows_compactions


def test_a_price_that_is_known_in_part_is_marked() -> None:
    bill = audited(
        answer(1, write=90_000), answer(2, at=9, read=9_000, model="nobodys-model-9"), agent="claude-code"
    )

    assert {row.kind: row.cost for row in kind_rows(bill)} == {
        "input": "<$0.01+",
        "cache read": "$0.00+",
        "cache write 5 min": "$0.56+",
        "output": "<$0.01+",
        "total": "$0.56+",
    }
