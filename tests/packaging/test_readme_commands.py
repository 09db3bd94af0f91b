"""The commands of the README, as they are written, with the built wheel in an empty environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.packaging.test_package import ROOT, Installed, built
from tests.support.agent_transcripts import Session, past

README = ROOT / "README.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
NEEDS_A_MODEL = re.compile(r"\bchat\b.*--model\b")
PLACE_OF_A_FILE = re.compile(r"(?<=\s)(?:~/\S*SESSION\.jsonl|FILE|SESSION\.jsonl)(?=\s|$)")
PROGRAM = re.compile(r"(?:(?<=^)|(?<=\| ))(?:\.venv/bin/)?compactd\b")
ENDLESS = re.compile(r"compactd (?:watch|chat)\b")
"""Commands that end with Ctrl-C."""


def commands(text: str) -> list[str]:
    """The lines of the fenced `sh` blocks that run compactd, without comments."""
    lines = [line.partition("  #")[0].strip() for block in BLOCK.findall(text) for line in block.splitlines()]
    return [PROGRAM.sub("compactd", line) for line in lines if PROGRAM.search(line)]


def home_of_an_agent_user(home: Path) -> Path:
    """Puts a session of three agents where these keep them. Returns the project folder."""
    project = home / "project"
    project.mkdir(parents=True)
    name = re.sub(r"[^A-Za-z0-9]", "-", str(project))
    places = {
        "claude-code": home / ".claude" / "projects" / name / "5c5cb639-aaaa.jsonl",
        "codex": home
        / ".codex"
        / "sessions"
        / "2026"
        / "11"
        / "20"
        / "rollout-2026-11-20T10-00-00-5c5c.jsonl",
        "gemini-cli": home / ".gemini" / "tmp" / "p" / "chats" / "session-2026-11-20T10-00-5c5c.jsonl",
    }
    for agent, place in places.items():
        session = Session(agent, home)
        place.parent.mkdir(parents=True)
        session.cwd = str(project)
        session.say(*past(60))
        session.path.rename(place)
    return project


def test_only_lines_that_run_compactd_are_commands() -> None:
    lines = ("make demo  # compactd", ".venv/bin/compactd models  # all", "echo 1 | compactd count -")
    text = "\n".join(("```sh", *lines, "```", "compactd x", ""))

    assert commands(text) == ["compactd models", "echo 1 | compactd count -"]


def test_the_repository_has_one_address() -> None:
    address = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Repository"]
    pages = [README, *(ROOT / "docs").rglob("*.md"), *(ROOT / "editors").glob("*/README.md")]

    for page in pages:
        for found in re.findall(r"git\+https://[^\s'\"`#@)]+", page.read_text("utf-8")):
            assert found == f"git+{address}", page


@pytest.mark.system
@pytest.mark.timeout(600)
def test_each_command_of_the_readme_works_in_an_empty_environment(tmp_path: Path) -> None:
    here = Installed(Path(sys.executable), built(tmp_path / "dist", ROOT), tmp_path)
    project = home_of_an_agent_user(tmp_path)
    session = next((tmp_path / ".claude").rglob("*.jsonl"))
    env = {"HOME": str(tmp_path), "PATH": f"{here.bin}:{os.environ['PATH']}", "TERM": "dumb"}
    wanted = [line for line in commands(README.read_text("utf-8")) if not NEEDS_A_MODEL.search(line)]

    assert len(wanted) >= 3
    for line in wanted:
        shutil.copy(session, project / "session.jsonl")
        command = PLACE_OF_A_FILE.sub(str(project / "session.jsonl"), line)
        if ENDLESS.search(command):
            command = f"timeout --signal=INT 5 {command}"
        done = subprocess.run(
            ["sh", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=env,
            cwd=project,
            timeout=120,
            check=False,
        )
        assert "Traceback" not in done.stderr, line
        assert done.returncode in ((0, 124, 130) if ENDLESS.search(command) else (0,)), (line, done.stderr)
