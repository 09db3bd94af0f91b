"""How much time integrations/pi adds to pi: a recorded session of 200,000 tokens goes through the extension
in Node, with a real daemon."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "integrations" / "pi"
TOKENS = 200_000
CHARS = 4
"""Characters per token."""
KEEP = 20
"""Messages that stay."""
RECORDING = "pi-before-compaction"
RUNS = 3


class Measured(Struct, frozen=True):
    """The times of one run."""

    messages: int
    held_ms: float
    """The longest that a handler kept pi waiting for a message."""
    processor_ms: float
    """CPU time of pi's process per message."""
    compaction_ms: float
    """Wall time from pi's event to compactd's answer."""
    daemon_ms: float
    """CPU time of the daemon meanwhile."""
    summary: int
    """Characters."""


def packages(environ: Mapping[str, str]) -> Path | None:
    """Return the folder where `tests/editors/pi/setup.sh` installed pi; None if it was not run."""
    lock = ROOT / "tests" / "editors" / "pi" / "package-lock.json"
    cache = Path(environ.get("COMPACTD_TEST_CACHE") or Path.home() / ".cache" / "compactd-tests")
    found = cache / f"pi-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}" / "node_modules"
    return found if found.is_dir() else None


def entries(recording: Path) -> list[object]:
    """Return the messages of a recording, as many as `TOKENS` need."""
    found: list[object] = []
    left = TOKENS * CHARS
    for line in recording.read_bytes().splitlines():
        record = json.loads(line)
        if record["type"] == "message":
            message = record["message"]
            found.append(message)
            left -= len(json.dumps(message.get("content"), ensure_ascii=False))
        if left <= 0:
            break
    return found


def measured(data: Path, environ: Mapping[str, str]) -> list[Measured]:
    """Each run from nothing; none where pi is not here. Raises `CalledProcessError`."""
    modules = packages(environ)
    if modules is None:
        return []
    beside = Path(sys.executable).with_name("node")
    node = str(beside) if beside.exists() else "node"
    runs: list[Measured] = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            shutil.copytree(EXTENSION, home / "pi")
            (home / "node_modules").symlink_to(modules)
            (home / "entries.json").write_text(json.dumps(entries(data / "sessions" / f"{RECORDING}.jsonl")))
            daemon = home / "daemon"
            daemon.write_text(f'#!/bin/sh\necho $$ >{home}/pid\nexec compactd "$@"\n')
            daemon.chmod(0o755)
            script = Path(__file__).with_suffix(".mjs")
            done = subprocess.run(
                [node, script, home / "pi" / "index.ts", home / "entries.json", str(KEEP), home / "pid"],
                cwd=home,
                env={
                    **environ,
                    "COMPACTD_COMMAND": str(daemon),
                    "COMPACTD_HOME": str(home / "data"),
                    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environ.get('PATH', '')}",
                },
                stdout=subprocess.PIPE,
                check=True,
            )
            runs.append(msgspec.json.decode(done.stdout, type=Measured))
    return runs
