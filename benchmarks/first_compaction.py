"""The first compaction after an installation: how long reading numpy from disk blocks the event loop.

numpy is copied to a folder of the run and dropped from the page cache. No other program keeps these copies in
memory.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from time import perf_counter, sleep

import msgspec

from benchmarks.compacting import PAUSE_S, Stall, check, rest
from benchmarks.figures import Row, Target, median
from benchmarks.peers import BARE, HERE, Peer, result_of
from benchmarks.sessions import append_until, start

TOKENS = 60_000
RUNS = 5
COMPACT: dict[str, object] = {"session_id": "long", "strategy": "extract", "keep_recent": 4_000}


def first_compactions(env: Mapping[str, str], folder: Path) -> list[Row]:
    """Measure the first compaction with numpy's files not in memory, then with them in memory."""
    own = _copied(folder / "site")
    env = {**env, "PYTHONPATH": os.pathsep.join(filter(None, (str(own), env.get("PYTHONPATH"))))}
    _felt(env, folder)  # bytecode is written
    rows: list[Row] = []
    for what in ("cold", "warm"):
        runs = []
        for _ in range(RUNS):
            if what == "cold":
                _forget(own)
            runs.append(_felt(env, folder))
        longest, took, pings, bare = sorted(runs)[RUNS // 2]
        rows.append(
            Row(
                what=f"first compaction, numpy's files {what}: longest stall of the loop, median of {RUNS}",
                value=longest,
                unit="ms",
                beside={
                    "best run": min(runs)[0],
                    "worst run": max(runs)[0],
                    "slowest ping": max(pings),
                    "ping p50": median(pings),
                    "bare loop's slowest ping": max(bare),
                    "compaction ms": took,
                },
                target=Target(most=10),
            )
        )
    return rows


def _copied(site: Path) -> Path:
    """A folder with a numpy of its own."""
    found = PathFinder.find_spec("numpy")
    if found is None or found.origin is None:
        raise SystemExit("numpy is not installed")
    package = Path(found.origin).parent
    for source in (package, package.parent / "numpy.libs"):
        if source.is_dir():
            shutil.copytree(source, site / source.name, ignore=shutil.ignore_patterns("tests"))
    for file in _files(site):
        with file.open("rb") as opened:
            os.fsync(opened.fileno())  # what is not yet written cannot be forgotten
    return site


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())


def _forget(site: Path) -> None:
    """Has the system drop these files from memory, where it takes that hint (Linux does)."""
    advise = getattr(os, "posix_fadvise", None)
    if advise is None:
        return
    for file in _files(site):
        with file.open("rb") as opened:
            advise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _felt(env: Mapping[str, str], folder: Path) -> tuple[float, float, list[float], list[float]]:
    """Return milliseconds: the event loop's longest stall, the compaction, pings meanwhile, and pings of a
    bare loop."""
    file = folder / "first.json"
    command = (sys.executable, "-P", str(HERE / "watched_daemon.py"), str(file))
    pings: list[float] = []
    bares: list[float] = []
    with Peer(command, env) as peer, Peer(BARE, env) as bare:
        start(peer, "long", model="openai/gpt-4o")
        append_until(peer, "long", TOKENS)
        rest(peer)
        peer.events.clear()
        bare.ping()
        began = perf_counter()
        asked = peer.ask("session/compact", COMPACT)
        while not any(message.id == asked for message in peer.events):
            pings.append(1000 * peer.ping())
            bares.append(1000 * bare.ping())
            sleep(PAUSE_S)
        ended = perf_counter()
        check(result_of(next(message for message in peer.events if message.id == asked)))
        peer.call("session/delete", {"session_id": "long"})
        peer.end()
    stalls = msgspec.json.decode(file.read_bytes(), type=list[Stall])
    own = max((stall.own_ms for stall in stalls if began <= stall.at <= ended), default=0.0)
    return own, 1000 * (ended - began), pings, bares
