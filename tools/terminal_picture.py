"""Draws docs/first-day.svg: the first commands of a new user, in a terminal.

    python tools/terminal_picture.py [--check]

It runs the real program in a temporary home with the recorded session of examples/ as files of two agents. It
needs no network and does not read the user's data. `--check` writes nothing and exits with 1 if the program
now prints other words.
"""

from __future__ import annotations

import io
import json
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
SESSIONS = {
    "claude-code": ROOT / "examples" / "session.jsonl",
    "codex": ROOT / "examples" / "handover" / "migration.jsonl",
}
PICTURE = ROOT / "docs" / "first-day.svg"
COLUMNS = 104
COMMANDS = (
    ("compactd", 14, 0),
    ("compactd inspect", 14, 0),
    ("compactd compact --target 6k --resumable", 8, 3),
    ("compactd import --all", 6, 0),
    ("compactd search casefold --limit 1", 6, 0),
)
"""Each command line, and how many lines of its output are shown: of the beginning, and of the end."""
AGES_S = {"claude-code": 300.0, "codex": 7_500.0}
"""How many seconds ago each agent wrote its session last."""
MODEL = "claude-sonnet-4-5-20250929"
"""The example names no model. With this one, the picture shows a known window."""


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
        run(home, work, f"compactd convert {SESSIONS[agent]} {target} --to {agent}")
        records = target.read_text("utf-8").splitlines()
        target.write_text("".join(with_facts(one, work) for one in records), "utf-8")
        written = time.time() - AGES_S[agent]
        os.utime(target, (written, written))
    return work


def with_facts(line: str, work: Path) -> str:
    """Return a record with what the example lacks in a file of Claude Code: the folder, and the model."""
    record = json.loads(line)
    if "cwd" in record:
        record["cwd"] = str(work)
    if record.get("type") == "assistant" and isinstance(record.get("message"), dict):
        record["message"]["model"] = MODEL
    return json.dumps(record, ensure_ascii=False) + "\n"


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
    mangled = re.sub("[^A-Za-z0-9]", "-", str(home))
    return done.stdout.replace(mangled, "-home-ana").replace(str(home), "~")


def drawn() -> str:
    """Return the picture, as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="256")
    with tempfile.TemporaryDirectory() as name:
        home = Path(name).resolve()
        work = lay_out(home)
        for line, first, last in COMMANDS:
            console.print(Text.assemble(("$ ", "green"), (line, "bold")))
            lines = run(home, work, line).rstrip("\n").split("\n")
            is_short = len(lines) <= first + last
            shown = lines if is_short else [*lines[:first], "…", *(lines[-last:] if last else ())]
            console.print(Text.from_ansi("\n".join(shown)))
            console.print()
    svg = console.export_svg(title="compactd", unique_id="first-day", font_aspect_ratio=0.61)
    # Without the web font, which a viewer would fetch: a system font replaces it.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def words(svg: str) -> str:
    """Return the text of a picture. Times and ids may differ."""
    text = unescape(" ".join(re.findall(r">([^<]+)</text>", svg))).replace("\xa0", " ")
    return re.sub(r"\d+(?:\.\d+)? m?s\b|\b[0-9a-f]{8}[0-9a-f-]{8,}|\s+", " ", text)


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
