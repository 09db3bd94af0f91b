"""Measures the servers: time to the first answer, round trips, large messages, and the cost of idling."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

import msgspec
from msgspec import Struct

from benchmarks.against.contenders import DRIVERS, Kind
from benchmarks.against.places import PLACES, is_there, python_of
from benchmarks.against.results import START, Figure, Result, Row
from benchmarks.conversation import kilobytes
from benchmarks.figures import median, percentile
from benchmarks.peers import BARE, COMPACTD, HERE, Peer, PeerFailed
from benchmarks.transport import INITIALIZE, flood, memory_mb

ROUND_TRIP = Row(
    key="round_trip",
    what="round trip of a small request",
    unit="µs",
    about="One request at a time; the median.",
)
SLOWEST = Row(
    key="round_trip_p99",
    what="round trip of a small request, p99",
    unit="µs",
    about="One request at a time; 99 % of them take less time than this.",
)
PIPELINED = Row(
    key="pipelined",
    what="pipelined requests",
    unit="/s",
    better="more",
    about="The client sends requests as fast as the server reads them.",
)
LARGE = Row(
    key="large",
    what="one message of 55 MB, until its answer",
    unit="ms",
    about="A request with an unknown method, and with a conversation of that size as its parameters: the "
    "time to read it, to check it (compactd checks UTF-8 and the depth of nesting) and to refuse it.",
)
IDLE = Row(key="idle", what="memory of a server that has answered a ping", unit="MB")

LARGE_BYTES = 55_000_000
BY_AN_EDITOR = "compactd, LSP initialize"
SIDE = Path(DRIVERS) / "echo.c"
CC_S = 60.0


class Server(Struct, frozen=True, kw_only=True):
    """One server that is measured."""

    name: str
    command: tuple[str, ...]
    kind: Kind = "peer"
    lines: bool = False
    how: str = ""


class Sizes(Struct, frozen=True, kw_only=True):
    """How often each thing is measured."""

    starts: int
    rounds: int
    pings: int
    """A round."""
    pipelined: int
    floods: int
    large: int
    """0: the first is the figure."""


def servers(folder: Path) -> tuple[list[Server], dict[str, str]]:
    """(those that are there, name → why it is not)."""
    found = [
        Server(name="compactd", command=COMPACTD, kind="ours"),
        Server(
            name="bare asyncio",
            command=BARE,
            kind="floor",
            how="asyncio, two threads and msgspec: answers {} to every request, checks nothing",
        ),
    ]
    absent: dict[str, str] = {}
    small = next(place for place in PLACES if place.name == "small")
    if is_there(small):
        stock = (str(python_of(small)), str(HERE / "stock_pygls.py"))
        found.append(Server(name="pygls", command=stock, how="the server from its tutorial"))
    else:
        absent["pygls"] = "not installed"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        absent["C echo"] = "no C compiler on this machine"
        return found, absent
    echo = str(folder / "echo")
    try:
        subprocess.run(
            [compiler, "-O2", "-o", echo, str(SIDE)], capture_output=True, check=True, timeout=CC_S
        )
        found.append(
            Server(
                name="C echo",
                command=(echo,),
                kind="floor",
                how="finds the id of each request, parses no JSON",
            )
        )
    except (OSError, subprocess.SubprocessError) as error:
        absent["C echo"] = f"not compiled: {error}"
    return found, absent


def race(env: Mapping[str, str], folder: Path, sizes: Sizes, say: Callable[[str], None]) -> list[Result]:
    """All rows of the servers, in turns."""
    taking, absent = servers(folder)
    say(f"  servers: {', '.join(server.name for server in taking)}")
    started = _starts(taking, env, sizes)
    with ExitStack() as stack:
        peers = {one.name: stack.enter_context(_peer(one, env)) for one in taking}
        for peer in peers.values():
            peer.ping()
        idle = {name: memory_mb(peer) for name, peer in peers.items()}
        trips = _round_trips(peers, sizes)
        rates = _rates(peers, sizes)
        large, failed = _large(peers, sizes)
    decode = _msgspec_alone(sizes)
    floor = Figure(
        who="msgspec",
        kind="floor",
        value=decode,
        runs=sizes.large,
        how="only decodes the message and encodes it again",
    )

    def result(
        row: Row, values: Mapping[str, float], runs: int, *more: Figure, why: Mapping[str, str]
    ) -> Result:
        figures = [_figure(one, values[one.name], runs) for one in taking if one.name in values]
        return Result(row=row, tokens=None, workload="", figures=(*figures, *more), cannot=why)

    pings = sizes.rounds * sizes.pings
    return [
        result(
            START,
            started,
            sizes.starts,
            Figure(who=BY_AN_EDITOR, kind="ours", value=started[BY_AN_EDITOR], runs=sizes.starts),
            why=absent,
        ),
        result(ROUND_TRIP, {name: percentile(all_, 50) for name, all_ in trips.items()}, pings, why=absent),
        result(SLOWEST, {name: percentile(all_, 99) for name, all_ in trips.items()}, pings, why=absent),
        result(PIPELINED, rates, sizes.floods, why=absent),
        result(LARGE, large, sizes.large, floor, why={**absent, **failed}),
        result(IDLE, idle, 1, why=absent),
    ]


def _figure(server: Server, value: float, runs: int) -> Figure:
    return Figure(who=server.name, kind=server.kind, value=value, runs=runs, how=server.how)


def _peer(server: Server, env: Mapping[str, str]) -> Peer:
    return Peer(server.command, env, lines=server.lines)


def _starts(taking: Sequence[Server], env: Mapping[str, str], sizes: Sizes) -> dict[str, float]:
    """ms until the first ping is answered; compactd also as an editor starts it."""
    times: dict[str, list[float]] = {}
    for run in range(sizes.starts + 1):
        for server in taking:
            with _peer(server, env) as peer:
                peer.ping()
                took = perf_counter() - peer.spawned_at
            if run:
                times.setdefault(server.name, []).append(1000 * took)
            if server.kind != "ours":
                continue
            with _peer(server, env) as peer:
                peer.call("initialize", INITIALIZE)
                took = perf_counter() - peer.spawned_at
            if run:
                times.setdefault(BY_AN_EDITOR, []).append(1000 * took)
    return {name: median(all_) for name, all_ in times.items()}


def _round_trips(peers: Mapping[str, Peer], sizes: Sizes) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in peers}
    for run in range(sizes.rounds + 1):
        for name, peer in peers.items():
            took = [1e6 * peer.ping() for _ in range(sizes.pings)]
            if run:
                times[name] += took
    return times


def _rates(peers: Mapping[str, Peer], sizes: Sizes) -> dict[str, float]:
    times: dict[str, list[float]] = {}
    for run in range(sizes.floods + 1):
        for name, peer in peers.items():
            count = sizes.pipelined // 10 if name == "pygls" else sizes.pipelined
            took = flood(peer, count)
            if run:
                times.setdefault(name, []).append(count / took)
    return {name: median(all_) for name, all_ in times.items()}


def _large(peers: Mapping[str, Peer], sizes: Sizes) -> tuple[dict[str, float], dict[str, str]]:
    """(ms of each, why of those that failed). The first of each is not counted."""
    body = _large_body()
    times: dict[str, list[float]] = {}
    failed: dict[str, str] = {}
    for run in range(sizes.large + 1):
        for name, peer in peers.items():
            if name in failed:
                continue
            began = perf_counter()
            try:
                peer.send(peer.framed(body))
                peer.receive()
            except (PeerFailed, OSError) as why:
                failed[name] = str(why)[:200]
                continue
            if run or not sizes.large:
                times.setdefault(name, []).append(1000 * (perf_counter() - began))
    return {name: median(all_) for name, all_ in times.items()}, failed


def _large_body() -> bytes:
    texts = kilobytes()
    messages = [{"role": "user", "content": next(texts)} for _ in range(LARGE_BYTES // 1_090)]
    request = {"jsonrpc": "2.0", "id": 999_999_999, "method": "peer/none", "params": {"messages": messages}}
    return msgspec.json.encode(request)


def _msgspec_alone(sizes: Sizes) -> float:
    """ms to decode that message and encode it again, in this process."""
    body, times = _large_body(), []
    for _ in range(sizes.large + 1):
        began = perf_counter()
        msgspec.json.encode(msgspec.json.decode(body))
        times.append(1000 * (perf_counter() - began))
    return median(times[1:] or times)
