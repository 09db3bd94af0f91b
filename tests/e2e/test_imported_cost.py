"""`session/cost` of an imported transcript is the sum of `compactd usage` of the same file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.command_line import recordings, run

REPORTING = [
    path
    for path in recordings()
    if (path.suffix == ".jsonl" and b'"requestId"' in path.read_bytes())
    or path.name.startswith(("pi-", "cline-"))
]
"""Recordings of agents that write usage reports: Claude Code, pi and Cline."""


def named(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def bill_and_usage(daemon: Daemon, path: Path, home: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    session = daemon.call("session/import", path=str(path))["session_id"]
    usage = run(home, "usage", path, "--json").json
    return daemon.call("session/cost", session_id=session), usage["total"]


@pytest.mark.parametrize("path", REPORTING, ids=named)
def test_both_have_the_same_sum_to_the_cent(daemon: Daemon, path: Path, tmp_path: Path) -> None:
    bill, usage = bill_and_usage(daemon, path, tmp_path)

    assert bill["billed"] == pytest.approx(usage["cost_usd"], abs=1e-6)
    assert bill["requests"] == usage["requests"]
    tokens = bill["tokens"]
    assert (tokens["input"], tokens["cache_read"], tokens["output"]) == (
        *(usage["input_tokens"], usage["cache_read_tokens"], usage["output_tokens"]),
    )
    assert tokens["cache_write_5m"] + tokens["cache_write_1h"] == usage["cache_write_tokens"]


def record(number: int, kind: str, text: str, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": [{"type": "text", "text": text}], **more.pop("message", {})}
    at = f"2026-11-20T10:{number:02d}:00.000Z"
    return {"type": kind, "uuid": f"u{number}", "sessionId": "s", "timestamp": at, "message": message, **more}


def reported(id: str, model: str, output: int, read: int, written: int, **usage: Any) -> dict[str, Any]:
    counts = {
        "input_tokens": 3,
        "output_tokens": output,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }
    return {"id": id, "model": model, "usage": {**counts, **usage}}


OPUS, HAIKU = "claude-opus-4-6", "claude-haiku-4-5"
SMALL = [
    record(1, "user", "Do it."),
    # Two records of one answer: the first was written before the answer was complete.
    record(2, "assistant", "I look.", message=reported("m1", OPUS, 1, 0, 20_000), requestId="r1"),
    record(3, "assistant", "Found.", message=reported("m1", OPUS, 900, 0, 20_000), requestId="r1"),
    # A sub-agent, which does not read what its first request wrote.
    record(4, "assistant", "Sub.", message=reported("m2", HAIKU, 500, 0, 9_000), isSidechain=True),
    record(
        5,
        "assistant",
        "Sub.",
        message=reported("m6", HAIKU, 0, 0, 9_000),
        isSidechain=True,
        parentUuid="u4",
    ),
    record(5, "user", "Go on."),
    # Another model, and a compaction by the provider.
    record(
        6,
        "assistant",
        "Done.",
        message=reported(
            "m3",
            HAIKU,
            40,
            0,
            20_100,
            iterations=[{"type": "compaction", "input_tokens": 1_000, "output_tokens": 300}],
        ),
    ),
    record(7, "user", "And?"),
    record(8, "assistant", "Yes.", message=reported("m4", HAIKU, 40, 20_100, 90)),
    record(29, "assistant", "Later.", message=reported("m5", HAIKU, 40, 0, 20_200)),
]


def test_sub_agents_models_and_the_providers_compactions_are_in_both(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "small.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in SMALL))
    bill, usage = bill_and_usage(daemon, path, tmp_path)

    # Opus: 5 in, 25 out, 6.25 write; Haiku: 1, 5, 1.25 and 0.1 read; per million tokens.
    opus = 3 * 5 + 900 * 25 + 20_000 * 6.25
    haiku = 15 + (500 + 120) * 5 + (9_000 + 9_000 + 20_100 + 90 + 20_200) * 1.25 + 20_100 * 0.1
    assert bill["billed"] == pytest.approx((opus + haiku + 1_000 + 300 * 5) / 1e6)
    assert bill["billed"] == pytest.approx(usage["cost_usd"])
    assert bill["tokens"]["summary"] == 1_300
    # The sub-agent has a cache of its own. The last answer came 21 minutes after the one before.
    assert [(one["cause"], one["tokens"]) for one in bill["rebuilds"]] == [
        ("unknown", 9_000),
        ("model", 20_000),
        ("expired", 20_190),
    ]
    assert bill["unknown"] == []


def test_an_update_of_a_session_that_went_on_brings_the_new_requests(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "small.jsonl"

    def imported(records: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        path.write_text("".join(json.dumps(one) + "\n" for one in records))
        named = daemon.call("session/import", path=str(path), format="claude_code", **more)["session_id"]
        return daemon.call("session/cost", session_id=named)

    imported(SMALL[:3], session_id="grows")
    # Something of its own, so that the session is not simply imported again.
    daemon.call("session/append", session_id="grows", messages=[{"role": "user", "content": "And here?"}])
    updated, fresh = imported(SMALL, session_id="grows"), imported(SMALL)

    assert updated["billed"] == pytest.approx(fresh["billed"])
    assert updated["tokens"] == fresh["tokens"]
    assert sorted(one["cause"] for one in updated["rebuilds"]) == ["expired", "model", "unknown"]


def pi_answer(number: int, text: str, model: str, counts: tuple[int, int, int, int], **more: Any) -> Any:
    usage = dict(zip(("input", "output", "cacheRead", "cacheWrite"), counts, strict=True))
    cost = {"cost": {"total": more.pop("cost", 0)}}
    message = {
        "role": "assistant",
        "provider": "anthropic",
        "model": model,
        "stopReason": "stop",
        "content": [{"type": "text", "text": text}] if text else [],
        "usage": {**usage, **cost},
        **more,
    }
    at = f"2026-11-20T10:{number:02d}:00.000Z"
    return {"type": "message", "id": f"u{number}", "timestamp": at, "message": message}


PI = [
    {"type": "session", "id": "s", "timestamp": "2026-11-20T10:00:00.000Z", "cwd": "/w"},
    {"type": "message", "id": "u1", "message": {"role": "user", "content": "Do it."}},
    pi_answer(2, "I look.", OPUS, (3, 100, 0, 20_000)),
    # Aborted answers: with text, and before the first word.
    pi_answer(3, "I wa", OPUS, (3, 10, 20_000, 50), stopReason="aborted"),
    pi_answer(4, "", OPUS, (3, 0, 20_000, 90), stopReason="error"),
    {"type": "compaction", "id": "c5", "timestamp": "2026-11-20T10:05:00.000Z", "summary": "All of it."},
    {"type": "message", "id": "u6", "message": {"role": "user", "content": "Go on."}},
    pi_answer(7, "Done.", OPUS, (3, 40, 0, 9_000)),
    pi_answer(8, "And.", "no-such-model", (7_000, 40, 0, 0), cost=0.25),
]


def test_aborted_answers_are_billed_and_never_the_size_of_the_context(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "pi.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in PI[:5]))
    bill, usage = bill_and_usage(daemon, path, tmp_path)

    assert bill["billed"] == pytest.approx(usage["cost_usd"])
    assert bill["requests"] == usage["requests"] == 3
    named = daemon.call("session/import", path=str(path))["session_id"]
    used = daemon.call("agent/state", session_id=named)["token_usage"]["current_context_tokens"]
    assert 20_100 <= used < 20_150  # the finished answer's report, and what came after it


def test_a_reported_cost_counts_where_no_price_is_known(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "pi.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in PI))
    bill, usage = bill_and_usage(daemon, path, tmp_path)

    assert bill["billed"] == pytest.approx(usage["cost_usd"])
    # The compaction is the cause of the request after it, not of the aborted ones before it.
    assert [(one["cause"], one["tokens"]) for one in bill["rebuilds"]][:1] == [("compaction", 9_003)]
    assert bill["by_kind"]["input"] == pytest.approx(12 * 5 / 1e6)
    assert bill["unknown"][0].startswith("$0.25 of it is what the imported file reports")


def test_tokens_without_a_price_name_the_model_that_used_them(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "pi.jsonl"
    lines = [*PI[:3], pi_answer(8, "And.", "no-such-model", (7_000, 40, 0, 0)), PI[7]]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    bill, _ = bill_and_usage(daemon, path, tmp_path)

    assert bill["billed"] is None
    assert bill["unknown"][0].startswith("7,040 tokens of anthropic/no-such-model have no price")


def test_an_update_brings_aborted_answers_once(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "pi.jsonl"

    def imported(lines: list[Any], **more: Any) -> dict[str, Any]:
        path.write_text("".join(json.dumps(one) + "\n" for one in lines))
        named = daemon.call("session/import", path=str(path), **more)["session_id"]
        return daemon.call("session/cost", session_id=named)

    imported(PI[:4], session_id="aborted")
    daemon.call("session/append", session_id="aborted", messages=[{"role": "user", "content": "And here?"}])
    updated, fresh = imported(PI, session_id="aborted"), imported(PI)

    assert (updated["billed"], updated["requests"]) == (pytest.approx(fresh["billed"]), fresh["requests"])


def test_an_opencode_session_has_its_reasoning_and_its_cost(daemon: Daemon, tmp_path: Path) -> None:
    def told(id: str, **info: Any) -> dict[str, Any]:
        about = {"id": id, "sessionID": "s", "role": "assistant", "time": {"created": 1_760_000_000_000}}
        return {"info": {**about, **info}, "parts": [{"type": "text", "text": f"Text of {id}."}]}

    tokens = {"input": 10, "output": 20, "reasoning": 300, "cache": {"read": 0, "write": 4_000}}
    known = {"providerID": "anthropic", "modelID": OPUS, "tokens": tokens, "cost": 0}
    unknown = {"providerID": "here", "modelID": "no-such-model", "tokens": tokens, "cost": 0.5}
    messages = [told("m0", role="user"), told("m1", **known), told("m2", **unknown)]
    failed = told("m3", **known, error={"name": "MessageAbortedError"})
    path = tmp_path / "opencode.json"
    path.write_text(json.dumps({"info": {"id": "s"}, "messages": [*messages, failed]}))
    bill, usage = bill_and_usage(daemon, path, tmp_path)

    assert bill["billed"] == pytest.approx(usage["cost_usd"])
    assert bill["billed"] == pytest.approx(0.5 + 2 * (10 * 5 + 320 * 25 + 4_000 * 6.25) / 1e6)
    assert bill["requests"] == usage["requests"] == 3
