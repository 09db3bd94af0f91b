"""The memory of a node with many idle sessions, and what it asks the database meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.figures import Row, Target
from benchmarks.peers import COMPACTD, Peer, environment
from tests.support.postgres import Server

SESSIONS = 10_000
AT_ONCE = 64
IDLE_S = 20.0
SETTLED_S = 10.0
"""Seconds until the server has counted its transactions and the node has ended what it does later."""


def many(server: Server, folder: Path) -> list[Row]:
    """Return the rows of this part."""
    database = server.new_database()
    env = {**environment(folder, folder / "home"), "COMPACTD_STORE": server.url(database)}
    with Peer(COMPACTD, env) as peer:
        peer.call("session/start", {"session_id": "first"})
        empty = _memory_mb(peer)
        _do(peer, "session/start", {})
        _do(peer, "session/append", {"messages": [{"role": "user", "content": "What does the file say?"}]})
        time.sleep(SETTLED_S)
        full, busy_s = _memory_mb(peer), _cpu_s(peer)
        statements = _statements(server, database)
        time.sleep(IDLE_S)
        busy_s, statements = _cpu_s(peer) - busy_s, _statements(server, database) - statements
    return [
        Row(
            what=f"memory of a node with {SESSIONS:,} sessions open",
            value=full,
            unit="MB",
            beside={"with one": empty},
            target=Target(most=300),
        ),
        Row(what="its transactions while nothing happens", value=statements / IDLE_S, unit="/s"),
        Row(what="its processor time while nothing happens", value=100 * busy_s / IDLE_S, unit="%"),
    ]


def _do(peer: Peer, method: str, params: dict[str, object]) -> None:
    """Send a request to each session."""
    asked, answered = 0, 0
    while answered < SESSIONS:
        while asked < SESSIONS and asked - answered < AT_ONCE:
            peer.ask(method, {"session_id": f"s{asked}", **params})
            asked += 1
        if peer.receive().method is None:
            answered += 1


def _memory_mb(peer: Peer) -> float:
    status = Path(f"/proc/{peer.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _cpu_s(peer: Peer) -> float:
    fields = Path(f"/proc/{peer.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _statements(server: Server, database: str) -> float:
    """Return how many transactions the database has had."""
    rows = server.sql(f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{database}'")
    return float(str(rows[0][0]))
