"""Five daemons on one database while things fail, in small; and that its check finds what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys

import msgspec
import pytest
from msgspec import Raw

from tests.faults.fleet.audit import AUDIT, stale_writes
from tests.faults.fleet.said import Message, Talk
from tests.support.postgres import Server, database, server

BEFORE = "was acknowledged before"
__all__ = ["database", "server"]


def history(*entries: tuple[str, str]) -> Raw:
    """Return a history of messages, (entry id, text) each."""
    shown = [
        {"entry_id": entry_id, "kind": "message", "message": {"role": "user", "content": text}}
        for entry_id, text in entries
    ]
    return Raw(msgspec.json.encode({"entries": shown}))


@pytest.fixture
def talk() -> Talk:
    """A talk of two messages: the first was acknowledged before the second was sent."""
    talk = Talk("s")
    talk.messages = [
        Message("one", sent_at=1.0, acknowledged_at=2.0, entry_id="e1"),
        Message("two", sent_at=3.0, acknowledged_at=4.0, entry_id="e2"),
        Message("perhaps", sent_at=3.0),
    ]
    return talk


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ([("e1", "one"), ("e2", "two")], []),
        ([("e1", "one"), ("e2", "two"), ("e3", "perhaps")], []),
        ([("e1", "one")], ["s: lost: two is None, not e2"]),
        ([("e1", "one"), ("e2", "two"), ("e3", "perhaps"), ("e4", "perhaps")], ["s: doubled: perhaps"]),
        ([("e1", "one"), ("e2", "two"), ("e3", "three")], ["s: never sent: three"]),
        (
            [("e2", "two"), ("e1", "one")],
            ["s: order: one was acknowledged before two was sent, and comes after it"],
        ),
        ([("e1", "one"), ("e3", "two")], ["s: lost: two is e3, not e2"]),
    ],
)
def test_the_check_finds_what_is_wrong(talk: Talk, shown: list[tuple[str, str]], found: list[str]) -> None:
    assert talk.wrong([history(*shown)]) == found


def test_the_check_finds_nodes_that_do_not_agree(talk: Talk) -> None:
    whole = history(("e1", "one"), ("e2", "two"))
    assert talk.wrong([whole, history(("e1", "one"))]) == ["s: nodes show different histories"]


def test_the_check_finds_compactions_that_nobody_was_told(talk: Talk) -> None:
    talk.compactions = 1
    whole = history(("e1", "one"), ("e2", "two"))
    assert talk.wrong([whole]) == ["s: 0 compactions, 1 were acknowledged"]


@pytest.mark.system
def test_the_audit_finds_a_write_without_the_lease(server: Server, database: str) -> None:
    import psycopg

    for statement in AUDIT:
        server.sql(statement, database)

    def write(node: str, seq: int, token: str | None) -> None:
        url = f"{server.url(database, 'postgres')}&application_name={node}"
        with psycopg.connect(url, autocommit=True) as connection:
            if token is not None:
                connection.execute("UPDATE compactd.sessions SET token = %s", (token,))
            connection.execute("INSERT INTO compactd.records VALUES ('t', 's', %s, 'x', NULL)", (seq,))

    def found() -> list[str]:
        return list(stale_writes(lambda asked, *given: rows(asked, given), "s"))

    def rows(asked: str, given: tuple[object, ...]) -> list[tuple[object, ...]]:
        with psycopg.connect(server.url(database, "postgres")) as connection:
            return connection.execute(asked.encode(), given).fetchall()

    server.sql("INSERT INTO compactd.sessions (tenant, session_id) VALUES ('t', 's')", database)
    write("one", 0, "a")
    write("one", 1, None)
    write("two", 2, "b")
    assert found() == []
    write("one", 3, None)
    assert found() == ["s: records 3 to 3 by one, with the lease of two"]


@pytest.mark.system
@pytest.mark.timeout(240)
def test_nothing_is_lost_while_nodes_and_the_database_fail() -> None:
    command = [sys.executable, "-m", "tests.faults.fleet", "--seed", "7", "--appends", "1500"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["appends"] >= 1_500
    assert counts["faults"]
