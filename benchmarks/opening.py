"""Opening of a long stored session, compared with msgspec's decoding of the same journal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import msgspec

from benchmarks.figures import Row, Target, median
from benchmarks.peers import COMPACTD, HERE, Peer
from benchmarks.sessions import append_until, start

SESSION = "stored"
RUNS = 9
STARTS = 5


def store_long(env: Mapping[str, str], tokens: int) -> int:
    """Stores the session that is opened; its tokens."""
    with Peer(COMPACTD, env) as peer:
        start(peer, SESSION)
        used = append_until(peer, SESSION, tokens)
        peer.call("session/close", {"session_id": SESSION})
        peer.end()
    return used


def openings(env: Mapping[str, str], tokens: int) -> list[Row]:
    """Measure openings inside one process, and as `session/start` of a daemon that has only answered a
    ping."""
    done = subprocess.run(
        [sys.executable, "-P", str(HERE / "opened_inside.py"), SESSION, str(RUNS)],
        env=dict(env),
        capture_output=True,
        check=True,
    )
    steps = msgspec.json.decode(done.stdout, type=list[dict[str, float]])
    ms = {name: 1000 * median([run[name] for run in steps]) for name in steps[0]}
    fresh, again = [], []
    for _ in range(STARTS):
        with Peer(COMPACTD, env) as peer:
            peer.ping()
            fresh.append(1000 * peer.timed("session/start", {"session_id": SESSION}))
            peer.call("session/close", {"session_id": SESSION})
            again.append(1000 * peer.timed("session/start", {"session_id": SESSION}))
            peer.call("session/close", {"session_id": SESSION})
            peer.end()
    size = f"{tokens / 1e6:.1f}M tokens"
    decode = {"msgspec": ms["decode"]}
    parts = {name: ms[name] for name in ("read", "entries", "session")}
    return [
        Row(
            what=f"open {size}: journal → session, in process",
            value=ms["opening"],
            unit="ms",
            beside={**decode, **parts},
            to="msgspec",
            target=Target(most_ratio=3),
        ),
        Row(
            what=f"open {size}: session/start, the daemon's first",
            value=median(fresh),
            unit="ms",
            beside={**decode, "its second": median(again)},
            to="msgspec",
            target=Target(most_ratio=3),
        ),
    ]
