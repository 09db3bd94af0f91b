"""Every command and Python example in the README, the start, how-to and agent pages runs as written, in a
home with the sessions of several agents."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support import session_files
from tests.support.command_line import environment, run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "session.jsonl"
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "start").glob("*.md")),
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
    *(ROOT / "docs" / f"{name}.md" for name in ("claude-code", "codex", "gemini-cli", "mcp")),
]
NOT_RUN = ("pipx ", "uv ", "pip ", "make ", "codex ", "claude ")
"""How the lines begin that install compactd or need a checkout, which other tests run, or another program."""
NEEDS_MODEL = re.compile(r"compactd chat .*--model |compactd chat --session ID")


def blocks_in(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


def commands_in(page: Path) -> list[str]:
    lines = (line for block in blocks_in(page, "sh") for line in block.splitlines())
    return [
        line
        for line in lines
        if line.strip() and not line.startswith(NOT_RUN) and not NEEDS_MODEL.search(line)
    ]


def test_the_pages_have_commands() -> None:
    assert sum(len(commands_in(page)) for page in PAGES) > 40


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example session as the files of three agents."""
    folder = tmp_path_factory.mktemp("sessions")
    for agent in ("claude-code", "codex", "pi"):
        done = run(folder, "convert", EXAMPLE, folder / f"{agent}.jsonl", "--to", agent)
        assert done.code == 0, done.err
    return folder


def lay_out(home: Path, sessions: Path) -> Path:
    """Put the sessions where the agents keep them, and return the folder in which the work was done."""
    work = home / "work"
    work.mkdir()
    places = {
        "claude-code": f".claude/projects/{re.sub('[^A-Za-z0-9]', '-', str(work))}/0d1e.jsonl",
        "codex": ".codex/sessions/2026/11/02/rollout-2026-11-02T03-04-05-a.jsonl",
        "pi": ".pi/agent/sessions/--elsewhere--/a.jsonl",
    }
    for agent, place in places.items():
        (home / place).parent.mkdir(parents=True)
        shutil.copy(sessions / f"{agent}.jsonl", home / place)
    other = home / ".claude/projects/-elsewhere/0e2f.jsonl"
    other.parent.mkdir(parents=True)
    answer = session_files.answered(1, session_files.text("Done."), usage=session_files.reported(9_000))
    records = [session_files.asked("Go."), {**answer, "timestamp": datetime.now(UTC).isoformat()}]
    session_files.claude_code(other, records)
    os.utime(other, (1, 1))
    shutil.copy(sessions / "claude-code.jsonl", work / "session.jsonl")
    shutil.copy(ROOT / "README.md", work)
    (work / "Makefile").write_text("test:\n\t@echo 3 passed\n")
    (home / "bin").mkdir()
    command = home / "bin" / "compactd"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m compactd "$@"\n')
    command.chmod(0o755)
    return work


@pytest.mark.parametrize("page", [page for page in PAGES if commands_in(page)], ids=lambda page: page.stem)
def test_every_command_of_a_page_runs_as_written(page: Path, tmp_path: Path, sessions: Path) -> None:
    work = lay_out(tmp_path, sessions)
    env = environment(tmp_path)
    env["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    failed = []
    for line in commands_in(page):
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode or "Traceback" in done.stderr:
            failed.append((line, done.returncode, done.stderr[-500:]))

    assert failed == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks_in(page, "python")], ids=lambda page: page.stem
)
def test_every_python_example_of_a_page_runs_as_written(page: Path, tmp_path: Path) -> None:
    for block in blocks_in(page, "python"):
        done = subprocess.run(
            [sys.executable, "-c", block],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

        assert (done.returncode, done.stderr) == (0, ""), block
