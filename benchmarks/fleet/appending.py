"""The time of an append at the node that writes and at another one, and how many a node does in a second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter

import psycopg

from benchmarks.figures import Row, Target, median
from benchmarks.peers import COMPACTD, Peer, environment
from tests.support.postgres import Server

APPENDS = 400
ROUNDS = 5
SESSIONS = 8
AT_ONCE = 64
"""Requests at once, of all sessions, in the comparison of rates."""
TOGETHER = (1, 2, 4)
"""Messages in each append."""
SECONDS = 5.0
TEXT = "What does the file say? " * 12
"""A message of 288 characters."""
SESSION = "talk"
COMMIT_MS = 2
"""A commit takes 0.1 ms if the disk confirms at once, and milliseconds if it is elsewhere or has to be
replicated.
"""


def appends(server: Server, folder: Path) -> list[Row]:
    """Return the rows of this part."""
    database = server.new_database()
    envs = [_env(folder / name, server.url(database)) for name in ("one", "two")]
    server.sql("CREATE TABLE plain (id bigserial PRIMARY KEY, record bytea)", database)
    server.sql("GRANT ALL ON plain TO daemon; GRANT ALL ON SEQUENCE plain_id_seq TO daemon", database)
    with Peer(COMPACTD, envs[0]) as writer, Peer(COMPACTD, envs[1]) as other:
        for peer in (writer, other):
            peer.call("session/start", {"session_id": SESSION})
        with psycopg.connect(server.url(database), autocommit=True) as connection:
            ways: Mapping[str, Callable[[], object]] = {
                "writer": lambda: _append(writer),
                "other": lambda: _append(other),
                "INSERT": lambda: _insert(connection),
            }
            times: dict[str, list[float]] = {name: [] for name in ways}
            for run in range(ROUNDS + 1):  # in turns; the first one warms up
                for name, do in ways.items():
                    took = [_ms(do) for _ in range(APPENDS // ROUNDS)]
                    times[name] += took if run else []
        rates: dict[int, list[float]] = {count: [] for count in TOGETHER}
        plain = []
        for _ in range(2):
            for count, found in rates.items():
                found.append(count * _rate(writer, count))
            plain.append(_plain_rate(server.url(database)))
        _delay_commits(server, COMMIT_MS)
        slow, slow_plain = _rate(writer, 1), _plain_rate(server.url(database))
    ms = {name: median(values) for name, values in times.items()}
    beside = {"INSERT": ms["INSERT"]}
    return [
        Row(
            what="append at the node that writes, p50",
            value=ms["writer"],
            unit="ms",
            beside=beside,
            to="INSERT",
            target=Target(most=3),
        ),
        Row(what="append at another node, p50", value=ms["other"], unit="ms", beside=beside, to="INSERT"),
        *(
            Row(
                what=f"messages a second, {count} in each append, {AT_ONCE} appends at once",
                value=max(found),
                unit="/s",
                beside={"INSERT, one connection": max(plain)},
                to="INSERT, one connection",
            )
            for count, found in rates.items()
        ),
        Row(
            what=f"messages a second, 1 in each append, {AT_ONCE} appends at once, commits of {COMMIT_MS} ms",
            value=slow,
            unit="/s",
            beside={"INSERT, one connection": slow_plain},
            to="INSERT, one connection",
        ),
    ]


def _delay_commits(server: Server, ms: int) -> None:
    """Have each commit take so much longer."""
    server.sql(f"ALTER SYSTEM SET commit_delay = {1_000 * ms}")
    server.sql("ALTER SYSTEM SET commit_siblings = 0")
    server.sql("SELECT pg_reload_conf()")


def _env(folder: Path, url: str) -> dict[str, str]:
    folder.mkdir()
    return {**environment(folder, folder / "home"), "COMPACTD_STORE": url}


def _messages(session: str, count: int = 1) -> dict[str, object]:
    return {"session_id": session, "messages": [{"role": "user", "content": TEXT}] * count}


def _append(peer: Peer) -> None:
    peer.call("session/append", _messages(SESSION))


def _insert(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute("INSERT INTO plain (record) VALUES (%s)", (TEXT.encode(),))


def _ms(do: Callable[[], object]) -> float:
    began = perf_counter()
    do()
    return 1_000 * (perf_counter() - began)


def _rate(peer: Peer, count: int) -> float:
    """Return the answers a second to appends, of which so many are always under way."""
    names = [f"s{number}" for number in range(SESSIONS)]
    for name in names:
        peer.call("session/start", {"session_id": name})
    asked, answered = 0, 0
    began = perf_counter()
    while perf_counter() - began < SECONDS or answered < asked:
        while asked - answered < AT_ONCE and perf_counter() - began < SECONDS:
            peer.ask("session/append", _messages(names[asked % SESSIONS], count))
            asked += 1
        if peer.receive().method is None:
            answered += 1
    return answered / (perf_counter() - began)


def _plain_rate(url: str) -> float:
    """Return the inserts a second of a plain loop."""
    count = 0
    with psycopg.connect(url, autocommit=True) as connection:
        began = perf_counter()
        while perf_counter() - began < SECONDS:
            _insert(connection)
            count += 1
        return count / (perf_counter() - began)
