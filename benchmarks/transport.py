"""The transport's speed: start, round trips, floods, and the memory and time of an idle daemon."""

from __future__ import annotations

import os
import resource
import select
import subprocess
from collections.abc import Mapping, Sequence
from time import perf_counter

from benchmarks.figures import Row, Target, median, percentile
from benchmarks.peers import BARE, COMPACTD, PING, PYGLS, Peer, PeerFailed

STARTS = 11
ROUNDS = 15
PINGS_A_ROUND = 150
PIPELINED = 10_000
PIPELINED_RUNS = {"compactd": 5, "bare": 5, "pygls": 1}

INITIALIZE: dict[str, object] = {
    "processId": os.getpid(),
    "clientInfo": {"name": "benchmarks", "version": "1"},
    "rootUri": None,
    "capabilities": {
        "general": {"positionEncodings": ["utf-16"]},
        "window": {"workDoneProgress": True},
        "workspace": {"configuration": True, "executeCommand": {"dynamicRegistration": True}},
    },
    "trace": "off",
}


def warm(env: Mapping[str, str]) -> None:
    """Starts each peer once, so that its bytecode is there."""
    for command in (COMPACTD, BARE, PYGLS):
        with Peer(command, env) as peer:
            peer.ping()


def starts(env: Mapping[str, str]) -> list[Row]:
    """First answer from spawn, as a script and as an LSP client; the first round is not counted."""
    times: dict[str, list[float]] = {}
    cores: dict[str, list[float]] = {}
    for run in range(STARTS + 1):
        for name, command, lines, method in (
            ("compactd", COMPACTD, True, "daemon/ping"),
            ("bare", BARE, False, "daemon/ping"),
            ("compactd lsp", COMPACTD, False, "initialize"),
            ("bare lsp", BARE, False, "initialize"),
            ("pygls", PYGLS, False, "daemon/ping"),
            ("pygls lsp", PYGLS, False, "initialize"),
        ):
            if run % 3 != 1 and name.startswith("pygls"):
                continue  # half a second each: a third of the runs tells enough
            before = _spent_s()
            with Peer(command, env, lines=lines) as peer:
                peer.call(method, INITIALIZE if method == "initialize" else None)
                took = perf_counter() - peer.spawned_at
            if run:
                times.setdefault(name, []).append(1000 * took)
                cores.setdefault(name, []).append(1000 * (_spent_s() - before))
    ms = {name: median(values) for name, values in times.items()}
    spent = {f"{name}'s core": median(cores[name]) for name in ("compactd", "bare")}
    return [
        Row(
            what="first answer from spawn: script, daemon/ping",
            value=ms["compactd"],
            unit="ms",
            beside={"bare": ms["bare"], "pygls": ms["pygls"], **spent},
            to="bare",
            target=Target(most=90, most_ratio=1.3),
        ),
        Row(
            what="first answer from spawn: LSP, initialize",
            value=ms["compactd lsp"],
            unit="ms",
            beside={"bare": ms["bare lsp"], "pygls": ms["pygls lsp"]},
            to="bare",
            target=Target(most=150),
        ),
    ]


def _spent_s() -> float:
    """Return the CPU seconds of ended child processes: a busy machine changes them least."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def round_trips(env: Mapping[str, str]) -> list[Row]:
    """Ping and its answer, one at a time, and 10,000 at once; then the memory of each."""
    with Peer(COMPACTD, env) as ours, Peer(BARE, env) as bare, Peer(PYGLS, env) as pygls:
        peers = {"compactd": ours, "bare": bare, "pygls": pygls}
        for peer in peers.values():
            peer.ping()
        idle = {name: memory_mb(peer) for name, peer in peers.items()}
        times: dict[str, list[float]] = {name: [] for name in peers}
        for number in range(ROUNDS + 1):
            for name, peer in peers.items():
                took = [1e6 * peer.ping() for _ in range(PINGS_A_ROUND)]
                if number:
                    times[name] += took
        rates = _pipelined(peers)
    return [
        *(_percentile_row(times, percent) for percent in (50, 99)),
        Row(
            what="10,000 pings pipelined",
            value=rates["compactd"],
            unit="/s",
            beside={"bare": rates["bare"], "pygls": rates["pygls"]},
            to="bare",
        ),
        Row(
            what="memory while idle",
            value=idle["compactd"],
            unit="MB",
            beside={"bare": idle["bare"], "pygls": idle["pygls"]},
            to="bare",
            target=Target(most=30),
        ),
    ]


def _percentile_row(times: Mapping[str, Sequence[float]], percent: int) -> Row:
    values = {name: percentile(one, percent) for name, one in times.items()}
    return Row(
        what=f"round trip of ping, p{percent}",
        value=values["compactd"],
        unit="µs",
        beside={"bare": values["bare"], "pygls": values["pygls"]},
        to="bare",
        target=Target(most_ratio=1.5) if percent == 50 else Target(),
    )


def _pipelined(peers: Mapping[str, Peer]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in peers}
    for run in range(max(PIPELINED_RUNS.values())):
        for name, peer in peers.items():
            if run < PIPELINED_RUNS[name]:
                times[name].append(flood(peer, PIPELINED))
    return {name: PIPELINED / median(values) for name, values in times.items()}


def flood(peer: Peer, count: int) -> float:
    """Return the seconds for `count` pings that are sent as fast as the peer reads, until the last answer."""
    view = memoryview(b"".join(peer.framed(PING % number) for number in range(1, count + 1)))
    os.set_blocking(peer.to_peer, False)
    answered, tail = 0, b""
    began = perf_counter()
    while answered < count:
        ready, free, _ = select.select([peer.from_peer], [peer.to_peer] if view else [], [], 60.0)
        if not ready and not free:
            raise PeerFailed("no answer")
        if ready:
            data = tail + os.read(peer.from_peer, 1 << 20)
            if data == tail:
                raise PeerFailed("the peer ended")
            answered += data.count(b"\r\n\r\n")
            tail = data[-3:] if not data.endswith(b"\r\n\r\n") else b""
        if free:
            view = view[os.write(peer.to_peer, view[: 1 << 16]) :]
    took = perf_counter() - began
    os.set_blocking(peer.to_peer, True)
    return took


def memory_mb(peer: Peer) -> float:
    """Resident memory. A page that several processes share counts in each."""
    told = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(peer.process.pid)], capture_output=True, text=True, check=True
    )
    return int(told.stdout) * 1024 / 1e6
