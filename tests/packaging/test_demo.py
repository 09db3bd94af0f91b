"""The demo command for newcomers, and the session that it plays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from compactd.models.tokenizers.counters import counter_for

ROOT = Path(__file__).resolve().parents[2]
SESSION = ROOT / "examples" / "session.jsonl"


def test_the_demo_shows_the_whole_of_the_main_job() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    for seen in (
        "✓ Compacted ",
        "## Goal",
        "## Constraints & Preferences",
        "### Done",
        "<modified-files>",
        "not in the context; session/expand returns it",
        "as before: True",
        "as after:  True",
        "context as it was: True",
        "entries): True",
        "compact PATH/TO/SESSION.jsonl",
    ):
        assert seen in done.stdout


def test_the_session_that_ships_is_a_real_piece_of_work_and_names_no_machine() -> None:
    text = SESSION.read_text("utf-8")
    messages = [json.loads(line) for line in text.splitlines()]

    assert len(messages) >= 150
    assert counter_for("tokenizer", "o200k_base").count(text) >= 60_000
    for trace in ("/root", "/home/", "/tmp/", "/Users/", "site-packages", os.uname().nodename):
        assert trace not in text
    results = [
        b for m in messages for b in m["content"] if isinstance(b, dict) and b["type"] == "tool_result"
    ]
    assert any("failed" in b["content"] and b.get("is_error") for b in results)
    assert any("passed" in b["content"] for b in results)
