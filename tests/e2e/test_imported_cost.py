"""`session/cost` of an imported transcript is the sum of `compactd usage` of the same file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.command_line import recordings, run

CLAUDE_CODE = [
    path for path in recordings() if path.suffix == ".jsonl" and b'"requestId"' in path.read_bytes()
]


def named(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def bill_and_usage(daemon: Daemon, path: Path, home: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    session = daemon.call("session/import", path=str(path), format="claude_code")["session_id"]
    usage = run(home, "usage", path, "--json").json
    return daemon.call("session/cost", session_id=session), usage["total"]


@pytest.mark.parametrize("path", CLAUDE_CODE, ids=named)
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
    # A sub-agent.
    record(4, "assistant", "Sub.", message=reported("m2", HAIKU, 500, 0, 9_000), isSidechain=True),
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
    haiku = 12 + (500 + 120) * 5 + (9_000 + 20_100 + 90 + 20_200) * 1.25 + 20_100 * 0.1
    assert bill["billed"] == pytest.approx((opus + haiku + 1_000 + 300 * 5) / 1e6)
    assert bill["billed"] == pytest.approx(usage["cost_usd"])
    assert bill["tokens"]["summary"] == 1_300
    # The sub-agent has a cache of its own. The last answer came 21 minutes after the one before.
    assert [(one["cause"], one["tokens"]) for one in bill["rebuilds"]] == [
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
    assert [one["cause"] for one in updated["rebuilds"]] == ["model", "expired"]
