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


def test_the_demo_shows_the_whole_of_the_main_job_on_one_page(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines[:-2])) <= 80
    for seen in (
        "tokens ",
        "$0.",
        "Never change the wire format",
        "Line too long (121 > 110)",
        "compact FILE",
    ):
        assert seen in done.stdout
    assert (done.stdout.count(": yes"), done.stdout.count(": NO")) == (2 + 1 + 1, 0)
    full = (tmp_path / lines[-1].rpartition(": ")[2]).read_text("utf-8")
    for part in (
        "## Goal",
        "## Constraints & Preferences",
        "### Done",
        "<modified-files>",
        "So keep casefold.",
    ):
        assert part in full
    decisions = full.partition("Key Decisions")[2].partition("\n#")[0]
    assert "str.lower()" not in decisions  # the user had it reversed


def test_the_demo_needs_no_more_than_the_program_itself() -> None:
    told = subprocess.run(
        ["make", "--dry-run", "--always-make", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert "pip install" in told
    for word in ("[dev]", "npm", "setup.sh", "conformance"):
        assert word not in told


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
