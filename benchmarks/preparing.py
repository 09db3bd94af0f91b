"""How long a turn waits for the compaction that it needs: made at that moment, and prepared ahead of time.

Recorded sessions are appended turn by turn, as an agent does, and `turn/begin` is timed. Between two turns
the daemon is idle, as while a model answers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import msgspec
from msgspec import Struct

from benchmarks.figures import Row, Target, median, percentile
from benchmarks.importing import recordings
from benchmarks.peers import COMPACTD, Peer, PeerFailed

WINDOW = 50_000
TURNS, TURNS_WITHOUT = 50, 15
"""How many turns that need a compaction are timed, and how many with `prepare: off`."""

MODEL = "anthropic/claude-sonnet-4-5"
MIN_BYTES, MAX_BYTES = 200_000, 3_000_000
"""The size of the recordings that are appended."""

NEAR = 0.88
"""The share of the threshold from which on the benchmark waits until the daemon is idle after each turn."""

WAIT_S, IDLE_WAITS = 0.1, 3
"""The daemon counts as idle if it had no core for so many times this many seconds. A model takes longer to
answer."""

MISSING = "prepare: no recordings, COMPACTD_TEST_DATA names none, and none are beside the checkout"

MAX_WAITS = 200
MAX_MS = 10.0
SYNCED_BYTES = 8_192


class _Decision(Struct):
    used: int
    threshold: int | None = None


class _Appended(Struct):
    decision: _Decision


class _Compaction(Struct):
    compacted: bool
    prepared: bool = False


class _Begun(Struct):
    compaction: _Compaction | None = None


class _Context(Struct):
    messages: list[dict[str, Any]]


class Waits(Struct, frozen=True, kw_only=True):
    """The milliseconds of each `turn/begin` that compacted."""

    prepared: list[float]
    made_then: list[float]
    plain: list[float]
    """Those of the turns that needed no compaction."""
    syncs: list[float]
    """Those of one fsync in the same folder, directly after each turn that compacted."""


def preparations(env: Mapping[str, str], folder: Path) -> list[Row]:
    """Return the rows of the table; empty if there are no recordings. Takes some minutes."""
    files = [file for file in recordings() if MIN_BYTES <= file.stat().st_size <= MAX_BYTES]
    if not files:
        return []
    before, now = (
        waits_of(env, files, folder, "off", TURNS_WITHOUT),
        waits_of(env, files, folder, "auto", TURNS),
    )
    return [
        Row(
            what=f"turn that needs a compaction, window {WINDOW:,}, prepared, p95 of {len(now.prepared)}",
            value=percentile(now.prepared, 95),
            unit="ms",
            beside={
                "p50": median(now.prepared),
                "slowest": max(now.prepared),
                "one fsync, p50": median(now.syncs),
                "one fsync, p95": percentile(now.syncs, 95),
                "prepare off, p50": median(before.made_then),
                "prepare off, p95": percentile(before.made_then, 95),
            },
            target=Target(most=MAX_MS),
        ),
        Row(
            what="  of these turns, not prepared in time",
            value=100 * len(now.made_then) / TURNS,
            unit="%",
        ),
        Row(
            what=f"  other turns, p95 of {len(now.plain)}",
            value=percentile(now.plain, 95),
            unit="ms",
            beside={"prepare off": percentile(before.plain, 95)},
        ),
    ]


def waits_of(env: Mapping[str, str], files: Sequence[Path], folder: Path, prepare: str, turns: int) -> Waits:
    """Return how long the turns of one session wait, until `turns` of them have compacted."""
    waits = Waits(prepared=[], made_then=[], plain=[], syncs=[])
    with Peer(COMPACTD, env) as peer:
        said = cycle(_turns(peer, files))
        session_id = f"prepare-{prepare}"
        settings = {"context_window": WINDOW, "prepare": prepare}
        peer.call(
            "session/start",
            {"session_id": session_id, "model": MODEL, "durability": "disk", "compaction": settings},
        )
        while len(waits.prepared) + len(waits.made_then) < turns:
            answer = peer.call("session/append", {"session_id": session_id, "messages": next(said)})
            decision = msgspec.json.decode(answer, type=_Appended).decision
            if decision.used >= NEAR * (decision.threshold or 0):
                wait_idle(peer)
            began = perf_counter()
            answer = peer.call("turn/begin", {"session_id": session_id})
            took = 1000 * (perf_counter() - began)
            done = msgspec.json.decode(answer, type=_Begun).compaction
            if done is None:
                waits.plain.append(took)
            elif done.compacted:
                (waits.prepared if done.prepared else waits.made_then).append(took)
                waits.syncs.append(_sync(folder))
            peer.events.clear()
        peer.call("session/delete", {"session_id": session_id})
        peer.end()
    return waits


def wait_idle(peer: Peer) -> None:
    """Wait until the daemon has nothing to do."""
    idle = 0
    for _ in range(MAX_WAITS):
        before = peer.core_s()
        sleep(WAIT_S)
        idle = idle + 1 if peer.core_s() == before else 0
        if idle == IDLE_WAITS:
            return
    raise PeerFailed("the daemon does not rest")


def _turns(peer: Peer, files: Sequence[Path]) -> list[list[dict[str, Any]]]:
    """Return the messages of the recordings in the pieces that an agent appends: an answer, and what follows
    it until the next one."""
    turns: list[list[dict[str, Any]]] = [[]]
    for at, file in enumerate(files):
        name = f"recorded-{at}"
        peer.call("session/import", {"path": str(file), "session_id": name})
        answer = peer.call("session/context", {"session_id": name})
        for message in msgspec.json.decode(answer, type=_Context).messages:
            # Another window's reports: they would say that each request has much that no message explains.
            message.pop("usage", None)
            if message["role"] == "assistant":
                turns.append([])
            turns[-1].append(message)
        peer.call("session/delete", {"session_id": name})
        peer.events.clear()
    return [turn for turn in turns if turn]


def _sync(folder: Path) -> float:
    """Return the milliseconds of syncing a few kilobytes that were appended to a file in `folder`."""
    with (folder / "synced").open("ab", buffering=0) as file:
        file.write(bytes(SYNCED_BYTES))
        began = perf_counter()
        os.fsync(file.fileno())
        return 1000 * (perf_counter() - began)
