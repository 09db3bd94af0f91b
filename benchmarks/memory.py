"""Memory of an open session relative to its journal's size: after growing, reading ahead, and compacting.

The baseline is a daemon that has done all of it once in a small session, so that modules, encodings and
numpy do not count. Resident memory is measured, so memory that the allocator keeps also counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import sleep

from benchmarks.compacting import check, rest
from benchmarks.figures import Row, Target
from benchmarks.peers import COMPACTD, Peer
from benchmarks.sessions import append_until, start

TOKENS = 2_000_000
SMALL_TOKENS = 6_000
MODEL = "openai/gpt-4o"
RESTED_S = 6.0
"""Seconds to wait after a compaction until its memory was given back."""


def memory(env: Mapping[str, str], home: Path) -> list[Row]:
    """Three ratios to the bytes of the session's file."""
    with Peer(COMPACTD, env) as peer:
        start(peer, "small", model=MODEL)
        append_until(peer, "small", SMALL_TOKENS)
        rest(peer)
        _compact(peer, "small", keep=1_000)
        ground = _resident(peer)
        start(peer, "long", model=MODEL)
        append_until(peer, "long", TOKENS)
        appended = _resident(peer)
        rest(peer)
        learnt = _resident(peer)
        _compact(peer, "long", keep=20_000)
        rested = _resident(peer)
        stored = sum(file.stat().st_size for file in home.glob("sessions/long*.jsonl"))
        peer.call("session/delete", {"session_id": "long"})
        peer.end()
    return [
        Row(
            what=f"memory of a session of {TOKENS / 1e6:.1f}M tokens, {what}",
            value=(held - ground) / stored,
            unit="× its journal",
            beside={"journal MB": stored / 1e6, "process MB": held / 1e6, "before MB": ground / 1e6},
            target=Target(most=3),
        )
        for what, held in (
            ("appended", appended),
            ("read ahead", learnt),
            ("behind a compaction", rested),
        )
    ]


def _compact(peer: Peer, session_id: str, keep: int) -> None:
    asked = {"session_id": session_id, "strategy": "extract", "keep_recent": keep}
    check(peer.call("session/compact", asked))
    rest(peer)
    sleep(RESTED_S)
    peer.events.clear()


def _resident(peer: Peer) -> int:
    """Bytes; 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{peer.process.pid}/status").read_text("utf-8").splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
