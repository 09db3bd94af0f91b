"""The opening of a long session from the database, next to its opening from a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.figures import Row, Target, median
from benchmarks.opening import SESSION, store_long
from benchmarks.peers import COMPACTD, Peer, environment
from tests.support.postgres import Server

TOKENS = 1_100_000
RUNS = 9


def openings(server: Server, folder: Path) -> list[Row]:
    """Return the rows of this part."""
    database = server.new_database()
    files = environment(folder, folder / "home")
    stored = {**files, "COMPACTD_HOME": str(folder / "other"), "COMPACTD_STORE": server.url(database)}
    envs = {"database": stored, "file": files}
    for env in envs.values():
        store_long(env, TOKENS)
    times: dict[str, list[float]] = {name: [] for name in envs}
    for run in range(RUNS + 1):  # in turns; the first one warms up
        for name, env in envs.items():
            took = _opening_ms(env)
            times[name] += [took] if run else []
    ms = {name: median(values) for name, values in times.items()}
    return [
        Row(
            what=f"open {TOKENS / 1e6:.1f}M tokens from the database",
            value=ms["database"],
            unit="ms",
            beside={"file": ms["file"]},
            to="file",
            target=Target(most_ratio=3),
        )
    ]


def _opening_ms(env: Mapping[str, str]) -> float:
    with Peer(COMPACTD, env) as peer:
        peer.call("session/start", {"session_id": "other"})  # loads the modules and connects
        took = 1_000 * peer.timed("session/start", {"session_id": SESSION})
        peer.end()
    return took
