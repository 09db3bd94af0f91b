"""Five daemons on one database while things fail, in small; and that its check finds what is wrong."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from contextlib import AsyncExitStack, closing

import msgspec
import pytest
from msgspec import Raw

from compactd.storage.journal_records import as_appended
from compactd.storage.postgres.store import PostgresStore
from compactd.storage.protocols import RecordsLost
from tests.faults.fleet.audit import AUDIT, stale_writes
from tests.faults.fleet.database import Database
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
    found = talk.wrong([whole, history(("e1", "one"))])
    assert found == ["s: nodes show different histories: 2 entries, and 1"]


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
@pytest.mark.timeout(120)
async def test_a_follower_takes_back_what_a_failover_has_lost() -> None:
    """A commit whose wait for the standby has ended is visible, although no standby has it and the client was
    told nothing.
    """
    first, one, two = b'{"type":"session","v":1,"id":"s1"}', b'{"type":"n","n":1}', b'{"type":"n","n":2}'
    async with AsyncExitStack() as stack:
        database = stack.enter_context(closing(await asyncio.to_thread(Database)))
        writer, reader = (PostgresStore(database.url(), patience_s=0.0) for _ in "12")
        stack.push_async_callback(writer.close)
        stack.push_async_callback(reader.close)
        journal = await asyncio.to_thread(writer.create, "s1", first, "disk")
        await journal.durable(journal.last)
        follower, _ = await asyncio.to_thread(reader.read, "s1")
        await asyncio.to_thread(database.standby.stop, "immediate")
        written = asyncio.ensure_future(journal.durable(journal.append([one])))
        await asyncio.to_thread(_end_wait_for_standby, database)
        with pytest.raises(RecordsLost):
            await written
        news = await asyncio.to_thread(follower.poll)
        assert [as_appended(record) for record in news.records] == [one]

        await asyncio.to_thread(database.primary.stop, "immediate")
        await asyncio.to_thread(database.standby.start)
        await asyncio.to_thread(database.standby.promote)
        database.primary, database.standby = database.standby, database.primary
        await asyncio.to_thread(database.standby.follow, database.primary)
        journal.resume()
        await journal.durable(journal.append([two]))
        await journal.close()
        await asyncio.to_thread(follower.poll)  # on a connection that is gone
        news = await asyncio.to_thread(follower.poll)
        assert (news.first_seq, [as_appended(each) for each in news.records]) == (0, [first, two])


def _end_wait_for_standby(database: Database) -> None:
    """End the connection of a commit that waits for the standby."""
    until = time.monotonic() + 10
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    while not database.sql(f"{end} AND query LIKE %s", "%UPDATE compactd.sessions%"):
        assert time.monotonic() < until


@pytest.mark.system
@pytest.mark.timeout(240)
def test_nothing_is_lost_while_nodes_and_the_database_fail() -> None:
    command = [sys.executable, "-m", "tests.faults.fleet", "--seed", "7", "--appends", "1500"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["appends"] >= 1_500
    assert counts["faults"]
