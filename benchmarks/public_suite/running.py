"""Runs the suite in its own environment, and compacts for it with a compactd daemon."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.against.places import Place
from benchmarks.public_suite.results import Forms

ROOT = Path(__file__).resolve().parents[2]
SUITE = "compaction-conformance-kit"

PLACE = Place(name="suite", python=(f"{SUITE}==0.8.0",), size_mb=20)
"""The suite's environment (the newest version on PyPI, 2026-11-27)."""

PATIENCE_S = 1_800.0
"""Seconds for the whole run."""

Compact = Callable[[Sequence[tuple[str, str]], int, int], str]
"""Takes turns (role, text), the number of the round, and the budget in characters; returns the context."""


class RunFailed(Exception):
    """The suite ended before it sent its results."""


class _Asked(Struct, frozen=True, tag="compact", tag_field="type"):
    turns: tuple[tuple[str, str], ...]
    round: int
    budget_chars: int


class _Done(Struct, frozen=True, tag="done", tag_field="type"):
    forms: Forms


_decode = msgspec.json.Decoder(_Asked | _Done).decode


def run(python: str, compact: Compact, *folders: Path) -> Forms:
    """Run the suite's benchmark with the interpreter `python` on both forms of its sessions.

    `compact` stands for compactd. Python also looks for modules in `folders`. Raise `RunFailed` if the suite
    fails or takes longer than `PATIENCE_S`.
    """
    path = os.pathsep.join(map(str, (ROOT, *folders)))
    process = subprocess.Popen(
        [python, "-m", "benchmarks.public_suite.inside"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    watch = threading.Timer(PATIENCE_S, process.kill)
    watch.start()
    try:
        return _serve(process, compact)
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


def _serve(process: subprocess.Popen[bytes], compact: Compact) -> Forms:
    if process.stdin is None or process.stdout is None:
        raise RunFailed("the suite's process has no pipes")
    for line in process.stdout:
        message = _decode(line)
        if isinstance(message, _Done):
            return message.forms
        text = compact(message.turns, message.round, message.budget_chars)
        process.stdin.write(msgspec.json.encode({"text": text}) + b"\n")
        process.stdin.flush()
    raise RunFailed("the suite ended without results; its last lines are above")
