"""`session/cost`: the bill by the usage reports, why the cache was built again, and what is not known."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.loopback import Answer, Fail, Loopback
from tests.support.own_loop import MODELS, environment
from tests.support.talk import CHARS4, assistant, turns, user

SONNET = "anthropic/claude-sonnet-4-5"
"""Its prices per million tokens (the registry, 2026-11-22): 3 in, 15 out, 0.3 read, 3.75 and 6 write."""
FREE = "agnes/agnes-2.5-flash"
UNKNOWN = "nobody/no-such-model"


def start(daemon: Daemon, model: str | None = SONNET, **more: Any) -> str:
    return str(daemon.call("session/start", model=model, compaction=CHARS4, **more)["session_id"])


def answered(daemon: Daemon, session: str, *, tokens: int = 20, **usage: Any) -> dict[str, Any]:
    """A turn whose answer has this usage report."""
    messages = [user(20), assistant(tokens)]
    return daemon.call("session/append", session_id=session, messages=messages, usage=usage)


def wrote(daemon: Daemon, session: str, read: int, written: int, output: int = 20) -> dict[str, Any]:
    return answered(
        daemon,
        session,
        input_tokens=0,
        output_tokens=output,
        cache_read_input_tokens=read,
        cache_creation_input_tokens=written,
    )


def cost(daemon: Daemon, session: str) -> dict[str, Any]:
    return daemon.call("session/cost", session_id=session)


def causes(daemon: Daemon, session: str) -> list[tuple[str, int]]:
    return [(one["cause"], one["tokens"]) for one in cost(daemon, session)["rebuilds"]]


def test_the_bill_has_the_price_of_each_kind_of_token(daemon: Daemon) -> None:
    session = start(daemon)
    answered(daemon, session, input_tokens=100_000, output_tokens=1_000)
    ended = answered(
        daemon,
        session,
        input_tokens=0,
        output_tokens=2_000,
        cache_read_input_tokens=50_000,
        cache_creation_input_tokens=30_000,
        cache_creation={"ephemeral_5m_input_tokens": 20_000, "ephemeral_1h_input_tokens": 10_000},
    )

    bill = cost(daemon, session)
    assert bill["by_kind"] == {
        "input": 0.3,
        "cache_read": 0.015,
        "cache_write_5m": 0.075,
        "cache_write_1h": 0.06,
        "output": 0.045,
        "summary": 0.0,
    }
    assert bill["tokens"] == {
        "input": 100_000,
        "cache_read": 50_000,
        "cache_write_5m": 20_000,
        "cache_write_1h": 10_000,
        "output": 3_000,
        "summary": 0,
    }
    assert (bill["currency"], bill["billed"], bill["requests"], bill["unknown"]) == ("USD", 0.495, 2, [])
    assert ended["token_usage"]["cost"] == {"billed": 0.495, "last": 0.18}


def test_a_session_without_requests_cost_nothing_and_one_without_reports_is_not_known(daemon: Daemon) -> None:
    new, silent = start(daemon), start(daemon)
    daemon.call("session/append", session_id=silent, messages=turns(1, 20))

    assert (cost(daemon, new)["billed"], cost(daemon, new)["unknown"]) == (0.0, [])
    assert cost(daemon, silent)["billed"] is None
    assert cost(daemon, silent)["unknown"] == ["No answer has a usage report, so nothing of it is known."]


def test_a_model_without_a_price_is_named_and_nothing_is_invented(daemon: Daemon) -> None:
    session = start(daemon)
    answered(daemon, session, input_tokens=100_000, output_tokens=0)
    daemon.call("model/set", session_id=session, model=UNKNOWN)
    answered(daemon, session, input_tokens=700, output_tokens=30)

    bill = cost(daemon, session)
    assert (bill["billed"], bill["by_kind"]["input"], bill["by_kind"]["cache_read"]) == (None, None, 0.0)
    assert bill["next"] == {"now": None, "compacted": None}
    assert bill["unknown"] == [f"730 tokens of {UNKNOWN} have no price: compactd's registry lists none."]


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (
            UNKNOWN,
            f"What the next request costs is not known: compactd's registry lists no price of {UNKNOWN}.",
        ),
        (None, "What the next request costs is not known, because no model is named."),
    ],
)
def test_before_the_first_report_it_says_why_nothing_is_predicted(
    daemon: Daemon, model: str | None, why: str
) -> None:
    bill = cost(daemon, start(daemon, model))

    assert (bill["next"]["now"], bill["unknown"]) == (None, [why])


def test_a_session_without_a_model_and_a_model_that_costs_nothing(daemon: Daemon) -> None:
    unnamed, free = start(daemon, None), start(daemon, FREE)
    for session in (unnamed, free):
        answered(daemon, session, input_tokens=700, output_tokens=30)

    assert cost(daemon, unnamed)["billed"] is None
    assert cost(daemon, unnamed)["unknown"] == ["730 tokens have no price, because no model is named."]
    assert (cost(daemon, free)["billed"], cost(daemon, free)["next"]["now"]) == (0.0, 0.0)
    assert cost(daemon, free)["unknown"] == []


def test_a_report_that_contradicts_itself_is_bounded(daemon: Daemon) -> None:
    session = start(daemon)
    answered(
        daemon,
        session,
        input_tokens=10,
        output_tokens=None,
        cache_creation_input_tokens=1_000,
        cache_creation={"ephemeral_1h_input_tokens": 999_999},
        output_tokens_details={"reasoning_tokens": 7},
    )

    bill = cost(daemon, session)
    assert bill["tokens"]["cache_write_1h"] == 1_000
    assert bill["billed"] == 0.00603
    assert (
        daemon.refusal(
            "session/append", session_id=session, messages=[assistant(5)], usage={"input_tokens": -1}
        ).code
        == -32602
    )


@pytest.mark.parametrize("what", ["compaction", "undo", "model", "system", "tools", "nothing"])
def test_a_rebuild_has_its_cause_and_its_price(daemon: Daemon, what: str) -> None:
    session = start(daemon)
    daemon.call("session/append", session_id=session, messages=turns(10, 500))
    wrote(daemon, session, 0, 40_000)
    wrote(daemon, session, 40_000, 2_000)
    if what in ("compaction", "undo"):
        daemon.call("session/compact", session_id=session, keep_messages=2)
    if what == "undo":
        daemon.call("turn/begin", session_id=session)
        wrote(daemon, session, 0, 9_000)
        daemon.call("session/undo", session_id=session)
    if what == "model":
        daemon.call("model/set", session_id=session, model="anthropic/claude-opus-4-5")
    if what == "system":
        daemon.call("session/configure", session_id=session, system_prompt="Another prompt.")
    if what == "tools":
        daemon.call("session/configure", session_id=session, tools=[{"name": "run", "input_schema": {}}])
    daemon.call("turn/begin", session_id=session)
    wrote(daemon, session, 1_000, 30_000)

    rate = {"model": 6.25 - 0.5}.get(what, 3.75 - 0.3)
    wanted = {"undo": ("messages", 8_000), "nothing": ("unknown", 30_000)}.get(what, (what, 30_000))
    last = cost(daemon, session)["rebuilds"][-1]
    assert (last["cause"], last["tokens"]) == wanted
    assert last["cost"] == pytest.approx(wanted[1] * rate / 1e6)
    assert last["entry_id"].startswith("e")


def test_a_prune_and_a_growing_conversation(daemon: Daemon) -> None:
    session = start(daemon)
    wrote(daemon, session, 0, 20_000)
    wrote(daemon, session, 20_000, 500)
    assert causes(daemon, session) == []

    results = [
        {"role": "tool", "content": [{"type": "tool_result", "call_id": f"c{n}", "content": "word " * 4_000}]}
        for n in range(8)
    ]
    daemon.call("session/configure", session_id=session, compaction={"prune_protect": 0, "prune_minimum": 0})
    calls = [assistant(10, f"c{n}") for n in range(8)]
    pairs = [message for pair in zip(calls, results, strict=True) for message in pair]
    daemon.call("session/append", session_id=session, messages=[user(5), *pairs, *turns(3, 20)])
    assert daemon.call("session/prune", session_id=session)["pruned"]
    daemon.call("turn/begin", session_id=session)
    wrote(daemon, session, 5_000, 30_000)

    assert causes(daemon, session) == [("prune", 15_500)]


def test_the_journal_gives_the_same_bill_again(spawn: Spawn) -> None:
    first = spawn()
    session = start(first)
    first.call("session/append", session_id=session, messages=turns(10, 500))
    for read, written in ((0, 8_000), (8_000, 900), (1_000, 8_500)):
        first.call("turn/begin", session_id=session)
        wrote(first, session, read, written)
    before = cost(first, session)
    assert before["predicted"] is not None
    first.call("session/close", session_id=session)
    first.stop()

    again = spawn()
    again.call("session/start", session_id=session)
    assert cost(again, session) == before


def test_a_journal_of_an_older_version_has_the_same_bill_without_predictions(daemon: Daemon) -> None:
    session = start(daemon)
    for read, written in ((0, 8_000), (8_000, 900), (1_000, 8_500)):
        wrote(daemon, session, read, written)
    text = daemon.call("session/export", session_id=session, format="compactd")["content"]
    new = re.compile(r',"(predicted|cause|cache_write_1h_tokens)":("\w+"|[\d.]+)|,"crc":"\w+"')
    old = [new.sub("", line) for line in text.splitlines()]
    assert "predicted" in text
    assert "cause" in text
    text = "".join(f'{line[:-1]},"crc":"{zlib.crc32(line[:-1].encode()):08x}"}}\n' for line in old)
    imported = daemon.call("session/import", content=text)

    bill, was = cost(daemon, imported["session_id"]), cost(daemon, session)
    assert bill["predicted"] is None
    assert {**bill, "predicted": was["predicted"], "next": was["next"]} == was


def test_the_next_request_is_cheaper_after_a_compaction(daemon: Daemon) -> None:
    session = start(daemon, context_window=100_000)
    daemon.call("session/append", session_id=session, messages=turns(80, 500))
    wrote(daemon, session, 0, 80_000, output=500)

    both = cost(daemon, session)["next"]
    # Read from the cache: 80,000; written: the answer and the estimate of the last message; answer: 500.
    assert both["now"] == pytest.approx(80_000 * 0.3e-6 + 500 * 3.75e-6 + 500 * 15e-6, rel=0.02)
    assert both["compacted"] is not None
    daemon.call("session/configure", session_id=session, compaction={"keep_messages": 500})
    assert cost(daemon, session)["next"]["compacted"] is None


def test_the_next_request_after_a_compaction_has_the_size_that_a_dry_run_says(daemon: Daemon) -> None:
    # A compaction when the window is full would keep all of these messages. One that is asked for does not.
    session = start(daemon)
    daemon.call("session/append", session_id=session, messages=turns(80, 250))
    wrote(daemon, session, 0, 40_000, output=500)

    planned = daemon.call("session/compact", session_id=session, plan_only=True)
    both = cost(daemon, session)["next"]

    assert planned["compacted"]
    assert planned["tokens_after"] < 0.8 * planned["tokens_before"]
    # All of it is written again, and the answer has 500 tokens.
    assert both["compacted"] == pytest.approx(planned["tokens_after"] * 3.75e-6 + 500 * 15e-6, rel=0.02)


def test_marks_that_the_provider_ignores_are_remarked_on(daemon: Daemon) -> None:
    session = start(daemon)
    for size in (20_000, 20_100, 20_200):
        answered(daemon, session, input_tokens=size, output_tokens=20)

    bill = cost(daemon, session)
    assert "they were not marked for it, or the provider ignores the marks" in bill["unknown"][0]
    assert bill["billed"] == pytest.approx(60_300 * 3e-6 + 60 * 15e-6)
    # The next request is expected to be billed in full, too.
    assert bill["next"]["now"] == pytest.approx(20_220 * 3e-6 + 20 * 15e-6, rel=0.01)
    wrote(daemon, session, 0, 20_000)
    assert cost(daemon, session)["unknown"] == []


def test_a_transcript_without_times_says_so(daemon: Daemon) -> None:
    lines = [
        {
            "type": kind,
            "uuid": f"u{n}",
            "sessionId": "s",
            "message": {"role": kind, "content": [{"type": "text", "text": f"Words {n}."}], **more},
        }
        for n, kind, more in (
            (1, "user", {}),
            (2, "assistant", answer(1, 0, 9_000)),
            (3, "user", {}),
            (4, "assistant", answer(2, 0, 9_100)),
        )
    ]
    text = "\n".join(map(json.dumps, lines)) + "\n"
    session = daemon.call("session/import", content=text, format="claude_code")["session_id"]

    bill = cost(daemon, session)
    assert [(one["cause"], one["tokens"]) for one in bill["rebuilds"]] == [("unknown", 9_000)]
    assert bill["unknown"] == [
        "All requests have no time, so nothing says whether the provider's cache expired between them."
    ]


def answer(number: int, read: int, written: int) -> dict[str, Any]:
    usage = {
        "input_tokens": 3,
        "output_tokens": 7,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }
    return {"id": f"msg_{number}", "model": "claude-opus-4-6", "usage": usage}


def test_what_a_summary_took_is_part_of_the_bill_whether_it_was_used_or_not(spawn: Spawn) -> None:
    with Loopback(then=Answer(text="No summary.", input_tokens=10_000, output_tokens=100)) as server:
        daemon = spawn(env=environment("anthropic", server.base_url))
        session = start(daemon, context_window=100_000)
        daemon.call("session/append", session_id=session, messages=[*turns(20, 500), user(20)])
        daemon.call(
            "session/compact", session_id=session, strategy="auto", model=MODELS["anthropic"], keep_messages=2
        )
        requests = len(server.requests)

    assert requests
    bill = cost(daemon, session)
    assert bill["tokens"]["summary"] == requests * 10_100
    assert bill["by_kind"]["summary"] == pytest.approx(requests * 0.0315)


def test_what_a_summary_took_that_failed_is_part_of_the_bill(spawn: Spawn) -> None:
    script = [Answer(text="No summary.", input_tokens=10_000, output_tokens=100)]
    with Loopback(script, then=Fail(400)) as server:
        daemon = spawn(env=environment("anthropic", server.base_url))
        session = start(daemon, context_window=100_000)
        daemon.call("session/append", session_id=session, messages=[*turns(20, 500), user(20)])
        daemon.call(
            "session/compact", session_id=session, strategy="auto", model=MODELS["anthropic"], keep_messages=2
        )

    assert cost(daemon, session)["tokens"]["summary"] == 10_100


def test_the_journal_says_which_part_of_a_request_changed_first(daemon: Daemon) -> None:
    session = start(daemon, system_prompt="Be brief.")
    for prompt in ("Be brief.", "Be brief.", "Be long."):
        daemon.call("session/configure", session_id=session, system_prompt=prompt)
        daemon.call("session/append", session_id=session, messages=[user(20)])
        daemon.call("session/context", session_id=session, format="anthropic")
        usage = {"input_tokens": 0, "output_tokens": 5, "cache_creation_input_tokens": 20_000}
        daemon.call("turn/end", session_id=session, messages=[assistant(5)], usage=usage)

    text = daemon.call("session/export", session_id=session, format="compactd")["content"]
    reports = [one for one in map(json.loads, text.splitlines()) if one["type"] == "usage"]
    assert [one.get("first_change") for one in reports] == [None, None, "system"]
    assert [one.get("cause") for one in reports] == [None, "unknown", "system"]
