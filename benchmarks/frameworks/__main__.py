"""Agents of frameworks in one conversation with one provider: each framework's own ways, and compactd's
adapters.

Runs in the environment of tests/frameworks (`sh tests/frameworks/setup.sh` installs it, and
`sh tests/frameworks/openclaw/setup.sh` OpenClaw). docs/frameworks.md
shows the figures and says what they mean."""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.frameworks import document
from benchmarks.frameworks.figures import Measured, Outcome, Timing
from tests.frameworks.environment import ROOT, python, variables
from tests.frameworks.hermes import environment as hermes

PACKAGES = ("langchain", "deepagents", "openai-agents", "pydantic-ai-slim", "google-adk", "litellm")
HERMES = ("hermes-agent",)
NODE = {"node": ("@openai/agents", "ai"), "openclaw": ("openclaw",)}
"""Folders of tests -> packages of npm that they pin."""
VERSIONS = (
    "import importlib.metadata, json, sys; "
    "print(json.dumps({name: importlib.metadata.version(name) for name in sys.argv[1:]}))"
)


def npm_versions() -> dict[str, str]:
    """Return the versions of the frameworks for Node."""
    found = {}
    for folder, names in NODE.items():
        given = json.loads((ROOT / "tests" / "frameworks" / folder / "package.json").read_text("utf-8"))
        found |= {name: given["dependencies"][name] for name in names}
    return found


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    given = argparse.ArgumentParser(
        prog="python -m benchmarks.frameworks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    given.add_argument("--only", default="", metavar="REGEX", help="agents whose names match")
    given.add_argument("--overhead", action="store_true", help="measure times at 200k tokens instead")
    given.add_argument("--write", action="store_true", help="write the figures into docs/")
    given.add_argument("--check", action="store_true", help="only compare the page with docs/frameworks.json")
    return given


def run(program: Path, *arguments: str) -> str:
    """Run a program of the environment, with a data folder of its own. Return what it prints."""
    with tempfile.TemporaryDirectory(prefix="compactd-frameworks-") as home:
        own = {"COMPACTD_HOME": f"{home}/data", "XDG_CONFIG_HOME": f"{home}/config"}
        command = [str(program), *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env={**variables(), **own}, stdout=subprocess.PIPE, check=True
        )
    return done.stdout.decode()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    options = parser().parse_args(arguments)
    if options.check:
        wrong = document.stale()
        for name in wrong:
            print(f"{name} does not agree with frameworks.json: python -m benchmarks.frameworks --write")
        return 1 if wrong else 0
    programs = (python(), hermes.python())
    if None in programs:
        print("the frameworks are not installed: sh tests/frameworks/setup.sh", file=sys.stderr)
        return 2
    module = f"benchmarks.frameworks.{'overhead' if options.overhead else 'measure'}"
    found = Measured(date=datetime.datetime.now(datetime.UTC).date().isoformat(), versions=npm_versions())
    lines: list[str] = []
    for program, packages in zip(programs, (PACKAGES, HERMES), strict=True):
        assert program is not None
        found.versions |= json.loads(run(program, "-c", VERSIONS, *packages))
        lines += run(program, "-m", module, options.only).splitlines()
    if options.overhead:
        found.timings = [msgspec.json.decode(line, type=Timing) for line in lines]
    else:
        found.outcomes = [msgspec.json.decode(line, type=Outcome) for line in lines]
    if not lines:
        print("no such agent", file=sys.stderr)
        return 2
    if options.write:
        print(f"wrote {', '.join(map(str, document.write(document.merged(document.read(), found))))}")
    else:
        print(document.blocks(found)["times" if options.overhead else "talk"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
