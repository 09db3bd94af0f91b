"""All commands give the same numbers for a recorded session: its total, its window, and parts that add up."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.command_line import recordings, run

FACTS = re.compile(r'<script type="application/json" id="facts">(.*?)</script>', re.DOTALL)
PARTS = (
    "system",
    "tools",
    "mcp_tools",
    "memory_files",
    "summary",
    "user",
    "text",
    "reasoning",
    "calls",
    "results",
    "not_in_file",
)


@pytest.mark.timeout(1800)  # a recording may be large, and the machine busy
@pytest.mark.parametrize("file", recordings(), ids=lambda file: "-".join(file.parts[-3:]))
def test_every_command_gives_the_same_totals_and_parts_that_add_up(file, tmp_path) -> None:
    page = tmp_path / "page.html"

    inspect, watch, compact, diff, usage = (
        # One after the other: some recordings are large, and machines are busy.
        run(tmp_path, *command, "--json", timeout_s=600)
        for command in (
            ("inspect", file, "--html", page),
            ("watch", file, "--once"),
            ("compact", file, "--dry-run"),
            ("diff", file),
            ("usage", file),
        )
    )

    if inspect.code:
        # The file contains no session: the same fault has the same code in each command.
        assert (inspect.code, watch.code, compact.code, diff.code) == (1, 1, 1, 1)
        return
    seen, watched, tried, change = inspect.json, watch.json, compact.json, diff.json
    drawn = json.loads(FACTS.search(page.read_text())[1])
    used = seen["used"]["tokens"]
    totals = {
        "inspect: a compaction now": seen["compaction"]["tokens_before"],
        "the page": drawn["used"],
        "watch": watched["used"],
        "compact": tried["tokens_before"],
        "compact: context": tried["context"]["tokens"],
        "diff": change["before"]["tokens"],
    }
    assert totals == dict.fromkeys(totals, used)
    windows = (drawn["window"], watched["window"], tried["context"]["window"])
    assert windows == (seen["window"]["tokens"],) * 3
    confidences = (watched["window_confidence"], tried["context"]["window_confidence"])
    assert confidences == (seen["window"]["confidence"],) * 2

    assert tuple(seen["parts"]) == PARTS
    assert tried["context"]["parts"] == seen["parts"]
    assert sum(seen["parts"].values()) == used
    assert sum(part["tokens"] for part in drawn["parts"]) == used
    assert all(0 <= tokens <= used for tokens in seen["parts"].values())
    if change["compacted"]:
        messages = sum(one["tokens_before"] for one in change["fates"].values())
        assert messages + change["system_and_tools"] == used
    kinds = {"summary": "summary", "tool result": "results", "tool call": "calls", "thinking": "reasoning"}
    for entry in seen["largest"]:
        part = kinds.get(entry["kind"], entry["kind"])
        assert entry["tokens"] <= seen["parts"].get(part, used) + 1
    for result in (seen["compaction"], tried):
        assert result["tokens_before"] - result["tokens_saved"] == result["tokens_after"]
    assert ("steps" in (watched["forecast"] or {})) == ("steps" in (seen["compacts"]["forecast"] or {}))
    assert watched["forecast"] == seen["compacts"]["forecast"]
    if usage.code == 0:
        spent = usage.json["total"]
        cost = (seen["cost"]["dollars"], seen["cost"]["reports"], seen["cost"]["cached_share"])
        assert cost == pytest.approx((spent["cost_usd"], spent["requests"], spent["cached_share"]))
