"""`compactd usage` over a gigabyte of transcripts: without a cache, with it, and after one session has grown.

The transcripts are copies of the recorded sessions of Claude Code, each with ids of its own, so that every
copy counts. They have just been written, so the system still has them in memory.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

from benchmarks.figures import Row, Target, median
from benchmarks.importing import recordings

BYTES = 1_000_000_000
RUNS = 5
_ID = re.compile(rb'"(msg|req)_[A-Za-z0-9]{4}')
_COMMAND = (sys.executable, "-m", "compactd", "usage", "--by", "month", "--json")


def usages(env: Mapping[str, str], folder: Path) -> list[Row]:
    """Return the rows of the table; empty if there are no recordings. Takes about half a minute."""
    sources = [
        data
        for file in recordings()
        if file.suffix == ".jsonl" and b'"requestId"' in (data := file.read_bytes())
    ]
    if not sources:
        return []
    home = folder / "home"
    newest = write_copies(sources, home / ".claude" / "projects")
    chosen = {**env, "HOME": str(home)}
    chosen.pop("CLAUDE_CONFIG_DIR", None)
    cache = Path(env["COMPACTD_HOME"]) / "cache" / "usage.msgpack"
    _timed(chosen)
    cold, warm, grown = [], [], []
    for _ in range(RUNS):
        cache.unlink()
        cold.append(_timed(chosen))
        warm.append(_timed(chosen))
        with newest.open("ab") as file:
            file.write(newest.read_bytes()[-100_000:].partition(b"\n")[2])
        grown.append(_timed(chosen))
    what = "usage over 1 GB of transcripts"
    return [
        _row(f"{what}: the first time", cold, most_s=4),
        _row(f"{what}: again", warm, most_s=0.5),
        _row(f"{what}: after one has grown", grown, most_s=0.5),
    ]


def _row(what: str, runs: list[tuple[float, float]], *, most_s: float) -> Row:
    seconds, core = median([run[0] for run in runs]), median([run[1] for run in runs])
    return Row(what=what, value=seconds, unit="s", beside={"of a core": core}, target=Target(most=most_s))


def write_copies(sources: list[bytes], projects: Path) -> Path:
    """Write copies of `sources` until they have `BYTES` bytes, each with other ids. Return the last file."""
    written, copy = 0, 0
    path = projects
    while written < BYTES:
        for number, source in enumerate(sources):
            mark = b"%04x" % copy
            data = _ID.sub(lambda found, mark=mark: b'"' + found[1] + b"_" + mark, source)
            path = projects / f"-project-{copy % 20}" / f"{copy:08x}-0000-4000-8000-{number:012x}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            written += len(data)
        copy += 1
    return path


def _timed(env: Mapping[str, str]) -> tuple[float, float]:
    """Run the command once. Return (seconds, CPU seconds)."""
    before, begun = _children_s(), perf_counter()
    subprocess.run(_COMMAND, env=dict(env), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return perf_counter() - begun, _children_s() - before


def _children_s() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
