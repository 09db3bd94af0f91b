"""A shared daemon next to one of its client's own: the start, the round trip, and 200 clients at once."""

from __future__ import annotations

import json
import random
import select
import shutil
import socket
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter, sleep

from benchmarks.figures import Row, Target, median, percentile
from benchmarks.peers import COMPACTD, PATIENCE_S, Peer, PeerFailed

ATTACH = (*COMPACTD[:-1], "attach")
STARTS = 15
ROUNDS = 15
PINGS_A_ROUND = 150
CLIENTS = 200
TURNS = 20
"""How often each of the clients asks for the state."""
SECONDS = 5
MESSAGES = 200
"""Messages of the session that they share."""


def shared_daemons(env: Mapping[str, str]) -> list[Row]:
    """Return the rows of this part."""
    with _listening(env) as options:
        return [*_starts(env, options), *_round_trips(env, options), *_many(env, Path(options[1]))]


@contextmanager
def _listening(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """A daemon that listens; the options for `attach`."""
    # A socket's path is short.
    folder = Path(tempfile.mkdtemp(prefix="c"))
    options = ("--socket", str(folder / "s"))
    with Peer((*COMPACTD, "--listen", *options), env):
        for _ in range(1_000):
            if Path(options[1]).exists():
                break
            sleep(0.01)
        yield options
    shutil.rmtree(folder, ignore_errors=True)


def _starts(env: Mapping[str, str], options: tuple[str, str]) -> list[Row]:
    times: dict[str, list[float]] = {"serve": [], "attach": [], "first": []}
    for run in range(STARTS + 1):
        with tempfile.TemporaryDirectory(prefix="c") as folder:
            fresh = {**env, "XDG_RUNTIME_DIR": folder, "COMPACTD_IDLE_EXIT": "0"}
            for name, command in (
                ("serve", COMPACTD),
                ("attach", (*ATTACH, *options)),
                ("first", ATTACH),
            ):
                with Peer(command, fresh, lines=True) as peer:
                    peer.call("daemon/ping")
                    took = perf_counter() - peer.spawned_at
                    if run:
                        times[name].append(1_000 * took)
                    if name == "first":
                        peer.process.stdin.close()  # type: ignore[union-attr]
                        peer.process.wait()
            while any(Path(folder).glob("*/*.sock")):
                sleep(0.01)
    ms = {name: median(values) for name, values in times.items()}
    return [
        Row(
            what="first answer of `attach`, the daemon runs",
            value=ms["attach"],
            unit="ms",
            beside={"serve": ms["serve"]},
            to="serve",
            target=Target(most=ms["serve"] + 20),
        ),
        Row(
            what="first answer of `attach`, which starts it",
            value=ms["first"],
            unit="ms",
            beside={"serve": ms["serve"]},
            to="serve",
            target=Target(most=ms["serve"] + 20),
        ),
    ]


def _round_trips(env: Mapping[str, str], options: tuple[str, str]) -> list[Row]:
    times: dict[str, list[float]] = {"serve": [], "attach": []}
    with Peer(COMPACTD, env) as alone, Peer((*ATTACH, *options), env) as attached:
        for number in range(ROUNDS + 1):
            for name, peer in (("serve", alone), ("attach", attached)):
                took = [1e6 * peer.ping() for _ in range(PINGS_A_ROUND)]
                if number:
                    times[name] += took
    middle = {name: median(values) for name, values in times.items()}
    return [
        Row(
            what="round trip of ping over `attach`, p50",
            value=middle["attach"],
            unit="µs",
            beside={"serve": middle["serve"]},
            to="serve",
            target=Target(most=middle["serve"] + 150),
        )
    ]


def _many(env: Mapping[str, str], path: Path) -> list[Row]:
    """Many clients of one session: each asks as soon as all have been answered."""
    with ExitStack() as stack:
        links = [stack.enter_context(_connected(path)) for _ in range(CLIENTS)]
        for link in links:
            _ask(link, "session/start", {"session_id": "shared"})
        messages = [{"role": "user", "content": f"{at} What does it say?"} for at in range(MESSAGES)]
        _ask(links[0], "session/append", {"session_id": "shared", "messages": messages})
        spread = _spread(links)
        together = [took for _ in range(TURNS) for took in _turn(links)]
    return [
        Row(
            what=f"`agent/state` with {CLIENTS} clients, each asks once a second, p99",
            value=1_000 * percentile(spread, 99),
            unit="ms",
            target=Target(most=15),
        ),
        Row(
            what=f"`agent/state`, all {CLIENTS} clients ask at the same moment, p99",
            value=1_000 * percentile(together, 99),
            unit="ms",
            beside={"per client": 1_000 * max(together) / CLIENTS},
        ),
    ]


@contextmanager
def _connected(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(PATIENCE_S)
        link.connect(str(path))
        yield link


def _send(link: socket.socket, method: str, params: object) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    link.sendall(json.dumps(body).encode() + b"\n")


def _ask(link: socket.socket, method: str, params: object) -> None:
    _send(link, method, params)
    data = b""
    while b'"id":1,' not in data or not data.endswith(b"\n"):
        piece = link.recv(1 << 16)
        if not piece:
            raise PeerFailed("the daemon ended")
        data += piece


def _spread(links: list[socket.socket]) -> list[float]:
    """Return the seconds of requests that the clients send at random moments, each once a second."""
    moments = random.Random(7)
    due = [(moments.uniform(0, SECONDS), link) for link in links for _ in range(SECONDS)]
    due.sort(key=lambda one: one[0])
    poll, open_links, times = select.poll(), {link.fileno(): link for link in links}, []
    for fd in open_links:
        poll.register(fd, select.POLLIN)
    asked: dict[int, deque[float]] = {fd: deque() for fd in open_links}
    data = dict.fromkeys(open_links, b"")
    began, waiting = perf_counter(), 0
    while due or waiting:
        while due and due[0][0] <= perf_counter() - began:
            at, link = due.pop(0)
            asked[link.fileno()].append(began + at)
            _send(link, "agent/state", {"session_id": "shared"})
            waiting += 1
        pause_s = max(0.0, due[0][0] - (perf_counter() - began)) if due else PATIENCE_S
        for fd, _ in poll.poll(1_000 * pause_s):
            *bodies, data[fd] = (data[fd] + open_links[fd].recv(1 << 16)).split(b"\n")
            for body in bodies:
                if b'"id":1,' not in body:
                    continue  # an event
                times.append(perf_counter() - asked[fd].popleft())
                waiting -= 1
    return times


def _turn(links: list[socket.socket]) -> list[float]:
    """Return the seconds of one request of each client, all sent at once."""
    poll, waiting, times = select.poll(), {link.fileno(): link for link in links}, []
    for fd in waiting:
        poll.register(fd, select.POLLIN)
    began = perf_counter()
    for link in links:
        _send(link, "agent/state", {"session_id": "shared"})
    data = dict.fromkeys(waiting, b"")
    while waiting:
        for fd, _ in poll.poll(1_000 * PATIENCE_S):
            data[fd] += waiting[fd].recv(1 << 16)
            if b'"id":1,' in data[fd] and data[fd].endswith(b"\n"):
                times.append(perf_counter() - began)
                poll.unregister(fd)
                del waiting[fd]
    return times
