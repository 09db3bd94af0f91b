"""Draws docs/first-day.svg: the first commands of a new user, in a terminal.

    python tools/terminal_picture.py [--check]

It runs the real program in a temporary home with the recorded session of examples/ as files of two agents. It
needs no network and does not read the user's data. `--check` writes nothing and exits with 1 if the program
now prints other words.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from html import unescape
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
SESSION = ROOT / "examples" / "session.jsonl"
PICTURE = ROOT / "docs" / "first-day.svg"
COLUMNS = 92
COMMANDS = (
    "compactd",
    "compactd inspect --model sonnet",
    "compactd compact --target 6k --output smaller.jsonl",
    "compactd import --all",
    "compactd search casefold --limit 2",
)
MAX_LINES = 18
"""Longer output is cut after this many lines."""
AGES_S = {"claude-code": 300.0, "codex": 7_500.0}
"""How many seconds ago each agent wrote its session last."""


def lay_out(home: Path) -> Path:
    """Put the session where two agents keep their files. Return the folder in which the agents worked."""
    work = home / "parser"
    work.mkdir()
    places = {
        "claude-code": f".claude/projects/{re.sub('[^A-Za-z0-9]', '-', str(work))}/8d1e0a52.jsonl",
        "codex": ".codex/sessions/2026/11/02/rollout-2026-11-02T03-04-05-a.jsonl",
    }
    for agent, place in places.items():
        target = home / place
        target.parent.mkdir(parents=True)
        run(home, work, f"compactd convert {SESSION} {target} --to {agent}")
        written = time.time() - AGES_S[agent]
        os.utime(target, (written, written))
    return work


def run(home: Path, work: Path, line: str) -> str:
    """Run a command line of compactd. Return what it prints, with colours."""
    env = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(home),
        "COMPACTD_HOME": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "COLUMNS": str(COLUMNS),
        "FORCE_COLOR": "1",
        "TERM": "xterm-256color",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "server"), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(line)],
        cwd=work,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{line}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout.replace(str(home), "~")


def drawn() -> str:
    """Return the picture, as SVG."""
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="256"
    )
    with tempfile.TemporaryDirectory() as name:
        home = Path(name).resolve()
        work = lay_out(home)
        for line in COMMANDS:
            console.print(Text.assemble(("$ ", "green"), (line, "bold")))
            lines = run(home, work, line).rstrip("\n").split("\n")
            shown = lines if len(lines) <= MAX_LINES else [*lines[: MAX_LINES - 1], "…"]
            console.print(Text.from_ansi("\n".join(shown)))
            console.print()
    return console.export_svg(title="compactd", unique_id="first-day", font_aspect_ratio=0.61)


def words(svg: str) -> str:
    """Return the text of a picture. Times and paths may differ."""
    text = unescape(" ".join(re.findall(r">([^<]+)</text>", svg))).replace("\xa0", " ")
    return re.sub(r"\d+(?:\.\d+)? m?s\b|\s+", " ", text)


def main(arguments: list[str]) -> int:
    """Write or check the picture. Return the exit code."""
    picture = drawn()
    if arguments == ["--check"]:
        if not PICTURE.is_file() or words(PICTURE.read_text("utf-8")) != words(picture):
            print("docs/first-day.svg is out of date; run: python tools/terminal_picture.py", file=sys.stderr)
            return 1
        return 0
    PICTURE.write_text(picture, "utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}, {len(picture):,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
