"""Real agents go on with the files that `compactd compact --output` and `--resumable` write for them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.editors.agents import PATIENCE_S, Json, environment
from tests.editors.codex.driven import Codex
from tests.editors.codex.driven import Model as CodexModel
from tests.editors.gemini.driven import Gemini
from tests.editors.gemini.driven import Model as GeminiModel
from tests.editors.opencode.driven import program, settle
from tests.editors.pi.driven import Pi
from tests.support import session_files
from tests.support.loopback import Answer, Loopback

pytestmark = [pytest.mark.editor, pytest.mark.agent]

EARLY = "Never touch bank.toml."
LATE = "Now check page 14."


def compacted(home: Path, work: Path, format: str, *options: object) -> Json:
    """Compact a session of Claude Code in `work` to a file of another agent. Return what `--json` says."""
    records = [session_files.asked(EARLY)]
    for number in range(1, 15):
        call = session_files.used(f"t{number}", "Read", file_path=f"/pages/{number}.md")
        records += [
            session_files.asked(f"Now check page {number}. {session_files.filler(60)}"),
            session_files.answered(2 * number, call),
            session_files.got(f"t{number}", f"Page {number}: {session_files.filler(60)}"),
            session_files.answered(2 * number + 1, session_files.text(f"Page {number} is right.")),
        ]
    source = session_files.claude_code(home / "source.jsonl", records)
    source.write_text(source.read_text().replace("/home/someone/ledger", str(work)))
    done = subprocess.run(
        ["compactd", "compact", str(source), "--target", "2k", "--to", format, "--json", *map(str, options)],
        cwd=work,
        env=environment(home, {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    written: Json = json.loads(done.stdout)["written"]
    return written


def check(said: str) -> None:
    """Check that a request contains the summary, the newest turn and the new prompt, in this order."""
    places = [said.find(text) for text in (EARLY, LATE, "Page 14 is right.", "Go on.")]
    assert -1 not in places, (places, said)
    assert places == sorted(places)


def test_codex_resumes_it(tmp_path: Path) -> None:
    model = CodexModel()
    with model.server:
        codex = Codex(tmp_path / "home", model, trusts=False)
        (codex.folder / "sessions").mkdir()
        written = compacted(codex.home, codex.work, "codex", "--resumable")

        codex.go_on(written["session_id"], "Go on.")

    assert written["resume"] == [f"codex resume {written['session_id']}"]
    check(json.dumps(model.turns[-1].body["input"]))


def test_gemini_cli_resumes_it(tmp_path: Path) -> None:
    model = GeminiModel()
    with model.server:
        gemini = Gemini(tmp_path / "home", model)
        gemini.compress_no_more()
        (gemini.home / ".gemini" / "tmp").mkdir()
        written = compacted(gemini.home, gemini.work, "gemini-cli", "--resumable")

        gemini.go_on(written["session_id"], "Go on.")

    assert written["resume"] == [f"gemini --resume {written['session_id']}"]
    check(json.dumps(model.turns[-1].body["contents"]))


def test_pi_opens_it_from_any_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    target = tmp_path / "small.jsonl"
    (home / "work").mkdir(parents=True)
    written = compacted(home, home / "work", "pi", "--output", target)
    (home / "work").rmdir()

    with (
        Loopback(reply=lambda _: Answer(text="Noted.")) as server,
        Pi(home, server, args=("--session", str(target))) as pi,
    ):
        pi.command("set_model", provider="mock", modelId="mock-1")
        pi.ask("Go on.")
        said = json.dumps([seen.body for seen in server.requests if seen.body])

    assert written["resume"] == [f"pi --session {target}"]
    check(said)


def test_opencode_imports_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    target = tmp_path / "small.json"
    with Loopback(reply=lambda _: Answer(text="Noted.")) as server:
        env = settle(home, server)
        written = compacted(home, home / "work", "opencode", "--output", target)
        done = subprocess.run(
            [program(), "import", str(target)], cwd=home / "work", env=env, capture_output=True, text=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        asked = subprocess.run(
            [program(), "run", "--session", written["session_id"], "--model", "mock/mock-1", "Go on."],
            cwd=home / "work", env=env, capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        assert asked.returncode == 0, asked.stdout + asked.stderr
        said = json.dumps(
            [seen.body["messages"] for seen in server.requests if "Go on." in json.dumps(seen.body)][-1]
        )

    assert written["resume"] == [f"opencode import {target}", f"opencode --session {written['session_id']}"]
    check(said)
