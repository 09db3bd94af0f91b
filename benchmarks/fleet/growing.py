"""The room that a conversation takes in the database: compactd, and frameworks' own stores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Row, Target
from benchmarks.fleet import growing_peers
from benchmarks.peers import COMPACTD, Peer, environment
from tests.frameworks.environment import python
from tests.support.postgres import Server

PINNED = (
    "langgraph-checkpoint-postgres==3.2.0",
    "psycopg==3.3.9",
    "psycopg-binary==3.3.9",
    "psycopg-pool==3.3.3",
    "sqlalchemy==2.1.9",
    "greenlet",
)
CACHE = Path.home() / ".cache" / "compactd-tests" / "fleet-peers-1"
TURNS = (100, 1_000)


def growth(server: Server, folder: Path) -> list[Row]:
    """Return the rows of this part."""
    sizes: dict[str, list[float]] = {}
    for turns in TURNS:
        database = server.new_database()
        env = {**environment(folder, folder / f"home{turns}"), "COMPACTD_STORE": server.url(database)}
        with Peer(COMPACTD, env) as peer:
            peer.call("session/start", {"session_id": "s", "context_window": 10_000_000})
            for question, answer in growing_peers.talk(turns):
                messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
                peer.call("session/append", {"session_id": "s", "messages": messages})
            peer.call("session/close", {"session_id": "s"})
            peer.end()
        sizes.setdefault("compactd", []).append(_kilobytes(server, database))
        for name in growing_peers.PEERS:
            sizes.setdefault(name, []).append(_peer(server, name, turns))
    said = [sum(len(each) for turn in growing_peers.talk(turns) for each in turn) / 1024 for turns in TURNS]
    rows = []
    for at, turns in enumerate(TURNS):
        beside = {name: each[at] for name, each in sizes.items() if name != "compactd"}
        rows.append(
            Row(
                what=f"room of {turns:,} turns",
                value=sizes["compactd"][at],
                unit="KB",
                beside={"what was said": said[at], **beside},
                to="what was said",
            )
        )
    ratios = {name: each[1] / each[0] for name, each in sizes.items()}
    rows.append(
        Row(
            what=f"{TURNS[1]:,} turns to {TURNS[0]}",
            value=ratios.pop("compactd"),
            unit="×",
            beside=ratios,
            target=Target(most=1.2 * TURNS[1] / TURNS[0]),
        )
    )
    return rows


def _peer(server: Server, name: str, turns: int) -> float:
    database = f"peer{turns}"
    server.sql(f"CREATE DATABASE {database}")
    program = python()
    assert program is not None, "sh tests/frameworks/setup.sh"
    if not CACHE.is_dir():
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(CACHE), *PINNED],
            check=True,
        )
    url = server.url(database, "postgres")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(CACHE), str(Path.cwd())))}
    given = json.dumps({"name": name, "url": url, "turns": turns})
    subprocess.run([str(program), "-m", "benchmarks.fleet.growing_peers", given], env=env, check=True)
    size = _kilobytes(server, database)
    server.drop(database)
    return size


def _kilobytes(server: Server, database: str) -> float:
    """Return the room of all tables and indexes, without what VACUUM gives back."""
    server.sql("VACUUM FULL", database)
    rows = server.sql(
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c JOIN pg_namespace AS n"
        " ON n.oid = c.relnamespace WHERE c.relkind = 'r'"
        " AND n.nspname NOT IN ('pg_catalog', 'information_schema')",
        database,
    )
    return float(str(rows[0][0])) / 1024
