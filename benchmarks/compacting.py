"""Compaction of a million tokens without a model: its time, and how long it blocks the event loop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter, sleep

import msgspec
from msgspec import Struct

from benchmarks.conversation import kilobytes
from benchmarks.figures import Row, Target, median
from benchmarks.opening import SESSION
from benchmarks.peers import BARE, COMPACTD, HERE, Peer, PeerFailed, result_of
from benchmarks.sessions import append_until, start

TOKENS = 1_000_000
KEEP = 20_000
MODELS = ("openai/gpt-4o", "anthropic/claude-sonnet-4-5")
RUNS = 2

PAUSE_S = 0.002
"""Seconds between two requests during a compaction."""

REST_S = 0.5
REST_SHARE = 0.15
"""A peer that has a core for less than this share of that time rests: a watched one is never quite still."""
REST_TIMES = 60

COMPACT: dict[str, object] = {"session_id": "long", "strategy": "extract", "keep_recent": KEEP}

Times = dict[str, list[float]]


class Stall(Struct, frozen=True):
    """A time in which the event loop did not run."""

    at: float
    stall_ms: float
    waited_ms: float
    kind: str
    where: list[str]

    @property
    def own_ms(self) -> float:
        """The stall's time without the time in which its thread waited for a core."""
        return max(0.0, self.stall_ms - self.waited_ms)


class _Result(Struct):
    compacted: bool
    reason: str | None = None


def compactions(env: Mapping[str, str], folder: Path) -> tuple[list[Row], list[str]]:
    """Measure compactions with an exact and an estimating counter, then from a file. Return the rows and
    where the event loop was blocked."""
    rows: list[Row] = []
    notes: list[str] = []
    for model in MODELS:
        name = model.rpartition("/")[2]
        took = min(_alone(env, model) for _ in range(RUNS))
        times, stalls = _felt(env, model, folder)
        took_watched = times.pop("compaction")[0]
        rows.append(
            Row(
                what=f"compact {TOKENS / 1e6:.1f}M tokens by extract, {name}, faster of {RUNS}",
                value=took[0],
                unit="s",
                beside={"its core": took[1], "with questions meanwhile": took_watched},
                target=Target(most=1.2),
            )
        )
        rows += [
            _felt_row(what, values, times["the bare loop's ping"])
            for what, values in times.items()
            if "bare" not in what
        ]
        rows.append(
            Row(
                what="  meanwhile: longest stall of the loop",
                value=max((stall.own_ms for stall in stalls), default=0.0),
                unit="ms",
                beside={"with waits for a core": max((stall.stall_ms for stall in stalls), default=0.0)},
                target=Target(most=10),
            )
        )
        notes += _worst(name, stalls)
    cold = _cold(env)
    rows.append(
        Row(
            what="compact 1.1M tokens by extract, opened from its file",
            value=cold[0],
            unit="s",
            beside={"its core": cold[1]},
            target=Target(most=4),
        )
    )
    return rows, notes


def _felt_row(what: str, values: list[float], machine: list[float]) -> Row:
    return Row(
        what=f"  meanwhile: {what}, slowest of {len(values)}",
        value=max(values),
        unit="ms",
        beside={"p50": median(values), "bare loop's slowest ping": max(machine)},
        target=Target(most=20),
    )


def _worst(name: str, stalls: Sequence[Stall], most: int = 4) -> list[str]:
    """Return a line for each of the longest stalls, at most one per place in the code."""
    told: dict[str, str] = {}
    for stall in sorted(stalls, key=lambda stall: -stall.own_ms):
        if stall.where and stall.where[0].endswith("_collected"):
            continue  # the watcher's own callback after a garbage collection, which has its own entry
        where = " < ".join(stall.where[:5]) or "?"
        kind = stall.kind or "unseen"
        told.setdefault(f"{kind} {where}", f"stall {stall.own_ms:.1f} ms ({name}, {kind}): {where}")
    return list(told.values())[:most]


def _alone(env: Mapping[str, str], model: str) -> tuple[float, float]:
    """Return wall and CPU seconds of a compaction of messages that were appended earlier in the same
    process."""
    with Peer(COMPACTD, env) as peer:
        _begin(peer, model)
        took = _compact(peer, "long")
        peer.call("session/delete", {"session_id": "long"})
        peer.end()
    return took


def _cold(env: Mapping[str, str]) -> tuple[float, float]:
    """Return wall and CPU seconds of a compaction of a session that was just opened."""
    with Peer(COMPACTD, env) as peer:
        start(peer, SESSION)
        return _compact(peer, SESSION)


def _compact(peer: Peer, session_id: str) -> tuple[float, float]:
    core, began = peer.core_s(), perf_counter()
    check(peer.call("session/compact", {**COMPACT, "session_id": session_id}))
    return perf_counter() - began, peer.core_s() - core


def _felt(env: Mapping[str, str], model: str, folder: Path) -> tuple[Times, list[Stall]]:
    """Return the milliseconds of requests during a compaction, and the stalls of the event loop meanwhile."""
    file = folder / "stalls.json"
    command = (sys.executable, "-P", str(HERE / "watched_daemon.py"), str(file))
    texts = kilobytes()
    times: Times = {}
    with Peer(command, env) as peer, Peer(BARE, env) as bare:
        _begin(peer, model)
        start(peer, "other", model=model)
        bare.ping()
        peer.call("agent/state", {"session_id": "long"})
        peer.events.clear()
        questions: tuple[tuple[str, Callable[[], float]], ...] = (
            ("its own agent/state", lambda: peer.timed("agent/state", {"session_id": "long"})),
            ("ping", peer.ping),
            ("append to another session", lambda: peer.timed("session/append", _append(next(texts)))),
            ("the bare loop's ping", bare.ping),
        )
        began = perf_counter()
        asked = peer.ask("session/compact", COMPACT)
        while not any(message.id == asked for message in peer.events):
            for what, take in questions:
                times.setdefault(what, []).append(1000 * take())
                sleep(PAUSE_S)
        ended = perf_counter()
        check(result_of(next(message for message in peer.events if message.id == asked)))
        times["compaction"] = [ended - began]
        for name in ("long", "other"):
            peer.call("session/delete", {"session_id": name})
        peer.end()
    stalls = msgspec.json.decode(file.read_bytes(), type=list[Stall])
    return times, [stall for stall in stalls if began <= stall.at <= ended + 0.05]


def _begin(peer: Peer, model: str) -> None:
    start(peer, "long", model=model)
    append_until(peer, "long", TOKENS)
    rest(peer)


def rest(peer: Peer) -> None:
    """Waits until the peer has little to do: an agent does not append a million tokens in a second."""
    for _ in range(REST_TIMES):
        before = peer.core_s()
        sleep(REST_S)
        if peer.core_s() - before < REST_SHARE * REST_S:
            return


def _append(text: str) -> dict[str, object]:
    return {"session_id": "other", "messages": [{"role": "user", "content": text}]}


def check(result: msgspec.Raw) -> None:
    """Raise `PeerFailed` if the answer says that nothing was compacted."""
    done = msgspec.json.decode(result, type=_Result)
    if not done.compacted:
        raise PeerFailed(f"nothing was compacted: {done.reason}")
