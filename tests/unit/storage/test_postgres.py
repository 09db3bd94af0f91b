"""The store in PostgreSQL, with a real server: what is acknowledged is stored, and only for its tenant."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from compactd.protocol.errors import (
    FormatNotSupported,
    SessionCorrupt,
    SessionLocked,
    SessionNotFound,
    StorageFailed,
)
from compactd.session.search_all import search_everywhere
from compactd.storage.choose import STORE, make_store
from compactd.storage.folder import FolderStore
from compactd.storage.journal_records import as_appended, encode_journal
from compactd.storage.postgres import leases
from compactd.storage.postgres.keys import notice_of
from compactd.storage.postgres.migrate import check, migrate
from compactd.storage.postgres.notices import Listener
from compactd.storage.postgres.pool import MAX_CONNECTIONS
from compactd.storage.postgres.schema import MIGRATIONS, TABLES, Migration
from compactd.storage.postgres.store import PostgresStore
from compactd.storage.protocols import RecordsLost
from tests.support.client import Daemon
from tests.support.command_line import COMPACTD, TIMEOUT_S, environment
from tests.support.postgres import OWNER, PASSWORD, Relay, Server

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

CHILD = Path(__file__).parent / "children" / "postgres_writer.py"
Make = Callable[..., PostgresStore]
APPEND = "UPDATE compactd.sessions SET head = head +"
"""A piece of the statement that appends."""


def first(session_id: str) -> bytes:
    return b'{"type":"session","v":1,"id":"%s"}' % session_id.encode()


def record(number: int) -> bytes:
    return b'{"type":"note","number":%d}' % number


def message(text: str, client_id: str | None = None) -> bytes:
    named = "" if client_id is None else f'"client_id":"{client_id}",'
    head = f'{{"type":"message","id":"e1","at":1763750001.0,"tokens":[1,"chars4"],{named}'
    return (head + f'"message":{{"role":"user","content":"{text}"}}}}').encode()


async def records_of(store: PostgresStore, session_id: str = "s1") -> list[bytes]:
    return [as_appended(one) for one in store.read(session_id)[1]]


async def test_what_is_acknowledged_is_committed_and_is_the_journal_of_a_file(
    make: Make, server: Server, database: str, tmp_path: Path
) -> None:
    store = make()
    journal = store.create("s1", first("s1"), "disk")
    await journal.durable(journal.last)
    for number in range(3):
        await journal.durable(journal.append([record(number)]))
        rows = server.sql("SELECT convert_from(record, 'UTF8') FROM compactd.records ORDER BY seq", database)
        lines = encode_journal([first("s1"), *map(record, range(number + 1))])
        assert [row[0] for row in rows] == [line.decode() for line in lines]
    assert journal.size_bytes == len(store.journal_bytes("s1"))
    await journal.durable(journal.append([record(3), record(4), b'{"type":"note",\n"n":1}']))
    await journal.close()
    folder = FolderStore(tmp_path)
    journal = folder.create("s1", first("s1"), "os")
    await journal.durable(journal.last)
    for records in (
        [record(0)],
        [record(1)],
        [record(2)],
        [record(3), record(4), b'{"type":"note",\n"n":1}'],
    ):
        await journal.durable(journal.append(records))
    await journal.close()
    assert Path(folder.file_of("s1") or "").read_bytes() == store.journal_bytes("s1")
    await folder.close()


async def test_records_that_were_stored_but_told_as_lost_are_taken_back(make: Make, relay: Relay) -> None:
    store = make(patience_s=0.5, relay=relay)
    journal = store.create("s1", first("s1"), "os")
    await journal.durable(journal.append([record(1)]))
    follower, late = store.read("s1")[0], store.read("s1")[0]
    relay.cut(APPEND, is_stored=True, refuse=True)

    with pytest.raises(RecordsLost) as told:
        await journal.durable(journal.append([record(2), record(3)]))
    assert relay.cuts == 1
    relay.accept()
    assert (told.value.lost_from, told.value.is_broken) == (2, False)
    assert len(follower.poll().records) == len(late.poll().records) == 2

    assert journal.resume() == 2
    await journal.durable(journal.append([record(4)]))

    news = follower.poll()
    assert (news.first_seq, [as_appended(one) for one in news.records]) == (
        0,
        [first("s1"), record(1), record(4)],
    )
    assert journal.size_bytes == len(store.journal_bytes("s1"))
    await journal.durable(journal.append([record(5)]))
    news = late.poll()  # as many records as it has seen, but not the same ones
    assert (news.first_seq, [as_appended(one) for one in news.records]) == (
        0,
        [first("s1"), record(1), record(4), record(5)],
    )
    await journal.close()
    assert await records_of(store) == [first("s1"), record(1), record(4), record(5)]


async def test_a_message_with_the_id_of_another_is_refused_and_the_journal_goes_on(make: Make) -> None:
    store = make()
    journal = store.create("s1", first("s1"), "os")
    await journal.durable(journal.append([message("a", "m1")]))

    with pytest.raises(RecordsLost, match="same id") as told:
        await journal.durable(journal.append([message("b", "m1"), record(1)]))

    assert (told.value.lost_from, told.value.is_broken) == (2, False)
    assert journal.resume() == 2
    await journal.durable(journal.append([message("b", "m2")]))
    await journal.close()
    assert await records_of(store) == [first("s1"), message("a", "m1"), message("b", "m2")]


async def test_two_stores_never_write_one_session_at_once(make: Make) -> None:
    here, there = make(), make()
    journal = here.create("s1", first("s1"), "os")
    await journal.durable(journal.last)

    for refused in (
        lambda: there.open("s1", durability="os"),
        lambda: there.create("s1", first("s1"), "os"),
    ):
        with pytest.raises(SessionLocked) as told:
            refused()
        assert told.value.data["pid"] == os.getpid()
        assert told.value.data["host"]
    with pytest.raises(SessionLocked):
        await there.delete("s1")
    follower, _ = there.read("s1")
    assert follower.is_owned()

    await journal.close()
    assert not follower.is_owned()
    with pytest.raises(FileExistsError):
        there.create("s1", first("s1"), "os")
    journal, _ = there.open("s1", durability="os")
    await journal.close()


async def test_a_lease_is_renewed_while_a_session_is_idle(make: Make) -> None:
    here, there = make(), make()
    journals = [here.create(name, first(name), "os") for name in ("s1", "s2")]
    for journal in journals:
        await journal.durable(journal.last)
    asked = "SELECT lease_until, lease_until > clock_timestamp() + %s FROM compactd.nodes"
    least = timedelta(seconds=leases.TTL_S - 1)

    def lease() -> tuple[object, object]:
        """The end of the node's lease, and whether it is nearly as far away as it can be."""
        with here.pool.connection() as connection:
            ((end, is_new),) = connection.execute(asked, (least,)).fetchall()
        return end, is_new

    begun, until = lease(), time.monotonic() + 12
    while lease()[0] == begun[0] or not lease()[1]:
        assert time.monotonic() < until
        await asyncio.sleep(0.05)

    with pytest.raises(SessionLocked):
        there.open("s2", durability="os")
    for journal in journals:
        await journal.close()


async def test_a_node_that_was_frozen_longer_than_its_lease_writes_nothing(
    make: Make, server: Server, database: str
) -> None:
    child = subprocess.Popen(
        [sys.executable, str(CHILD), server.url(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "stored\n"
        child.send_signal(signal.SIGSTOP)
        store = make()
        with pytest.raises(SessionLocked):
            store.open("s1", durability="os")
        await asyncio.sleep(leases.TTL_S + 0.5)

        journal, records = store.open("s1", durability="os")
        await journal.durable(journal.append([record(7)]))
        child.send_signal(signal.SIGCONT)
        child.stdin.write("append\n")
        child.stdin.flush()

        told = child.stdout.readline()
        assert told.startswith("RecordsLost is_broken=True lost_from=2 "), told
        assert "another node has taken the session over" in told
        await journal.durable(journal.append([record(8)]))
        await journal.close()
        assert len(records) == 2
        assert (await records_of(store))[2:] == [record(7), record(8)]
    finally:
        child.kill()
        child.communicate()


async def test_a_session_that_was_taken_is_noticed_although_nothing_is_written(
    make: Make, server: Server, database: str
) -> None:
    end_leases = "UPDATE compactd.nodes SET lease_until = clock_timestamp() - interval '1 second'"
    store, other = make(), make()
    journal = store.create("s1", first("s1"), "disk")
    await journal.durable(journal.last)
    taken = asyncio.Event()
    journal.listen(taken.set)

    # Its lease has ended, but nobody has taken the session.
    server.sql(end_leases, database)
    await asyncio.sleep(leases.RENEW_S + 1)
    await journal.durable(journal.append([record(1)]))
    assert not taken.is_set()

    new = None
    while new is None:
        server.sql(end_leases, database)
        with contextlib.suppress(SessionLocked):  # it was renewed just now
            new, _ = other.open("s1", durability="disk")
    await asyncio.wait_for(taken.wait(), 3 * leases.RENEW_S)
    assert journal.is_broken
    with pytest.raises(RecordsLost, match="another node has taken the session over"):
        journal.append([record(2)])
    await new.close()
    await journal.close()


async def test_a_connection_that_is_killed_in_mid_append_loses_and_doubles_nothing(
    make: Make, server: Server, database: str
) -> None:
    store = make()
    journal = store.create("s1", first("s1"), "os")
    await journal.durable(journal.last)
    stop = threading.Event()
    kills = 0

    def kill() -> None:
        nonlocal kills
        asked = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'daemon'"
            f" AND datname = '{database}'"
        )
        while not stop.wait(0.05):
            kills += len(server.sql(asked))

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for number in range(400):
            await journal.durable(journal.append([record(number), record(-number)]))
            if number % 10 == 0:
                await asyncio.sleep(0.02)
    finally:
        stop.set()
        killer.join()
    await journal.close()

    assert kills > 5
    want = [one for number in range(400) for one in (record(number), record(-number))]
    assert await records_of(store) == [first("s1"), *want]


@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_batch_whose_reply_is_lost_is_looked_for_before_it_is_sent_again(
    make: Make, relay: Relay, is_stored: bool
) -> None:
    store = make(relay=relay)
    journal = store.create("s1", first("s1"), "os")
    await journal.durable(journal.last)
    relay.cut(APPEND, is_stored=is_stored)

    await journal.durable(journal.append([record(1), record(2)]))
    await journal.durable(journal.append([record(3)]))

    assert relay.cuts == 1
    assert journal.size_bytes == len(store.journal_bytes("s1"))
    await journal.close()
    assert await records_of(store) == [first("s1"), record(1), record(2), record(3)]


async def test_a_server_that_is_away_is_told_and_comes_back(make: Make, server: Server) -> None:
    store = make(patience_s=0.5)
    journal = store.create("s1", first("s1"), "disk")
    await journal.durable(journal.append([record(1)]))
    follower, _ = store.read("s1")
    server.stop("immediate")
    try:
        with pytest.raises(RecordsLost, match="cannot be reached") as told:
            await journal.durable(journal.append([record(2)]))
        assert (told.value.lost_from, told.value.is_broken, told.value.code) == (2, False, 1005)
        with pytest.raises(RecordsLost):
            journal.append([record(3)])
        with pytest.raises(StorageFailed, match="cannot be reached"):
            store.list()
        assert follower.poll().records == ()
        with pytest.raises(OSError, match="cannot be reached"):
            follower.is_owned()
    finally:
        server.start()

    assert journal.resume() == 2
    await journal.durable(journal.append([record(4)]))
    await journal.close()
    assert await records_of(store) == [first("s1"), record(1), record(4)]
    assert [as_appended(one) for one in follower.poll().records][-1] == record(4)


async def test_a_restart_of_the_server_within_the_patience_is_not_noticed(make: Make, server: Server) -> None:
    store = make(patience_s=20.0)
    journal = store.create("s1", first("s1"), "disk")
    await journal.durable(journal.last)
    server.stop("immediate")
    waiting = asyncio.ensure_future(journal.durable(journal.append([record(1)])))
    await asyncio.sleep(0.3)
    await asyncio.to_thread(server.start)

    await waiting

    await journal.close()
    assert await records_of(store) == [first("s1"), record(1)]


@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        ("default_transaction_read_only = on", "read-only"),
        ("statement_timeout = '200ms'", "statement_timeout"),
    ],
)
async def test_what_the_database_refuses_is_told_and_the_journal_goes_on(
    make: Make, server: Server, database: str, setting: str, advice: str
) -> None:
    import psycopg

    store = make(patience_s=0.5)
    journal = store.create("s1", first("s1"), "disk")
    await journal.durable(journal.last)
    server.sql(f"ALTER ROLE daemon IN DATABASE {database} SET {setting}")
    server.disconnect(database)
    assert len(store.list()) == 1  # on a new connection, with the new setting
    with psycopg.connect(server.url(database, "postgres")) as other:
        if "timeout" in setting:
            other.execute("SELECT 1 FROM compactd.sessions FOR UPDATE")  # the append waits for this row
        with pytest.raises(RecordsLost, match=advice) as told:
            await journal.durable(journal.append([record(1)]))
    assert (told.value.lost_from, told.value.is_broken) == (1, False)

    server.sql(f"ALTER ROLE daemon IN DATABASE {database} RESET ALL")
    server.disconnect(database)
    assert journal.resume() == 1
    await journal.durable(journal.append([record(2)]))
    await journal.close()
    assert await records_of(store) == [first("s1"), record(2)]


@pytest.mark.parametrize(
    ("given", "used"), [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")]
)
async def test_a_database_that_acknowledges_before_it_writes_is_told_not_to(
    make: Make, server: Server, given: str, used: str
) -> None:
    server.sql(f"ALTER ROLE daemon SET synchronous_commit = {given}")
    try:
        with make().pool.connection() as connection:
            assert connection.execute("SHOW synchronous_commit").fetchone() == (used,)
    finally:
        server.sql("ALTER ROLE daemon RESET synchronous_commit")


async def test_too_many_connections_are_told(make: Make, server: Server) -> None:
    server.sql("ALTER ROLE daemon CONNECTION LIMIT 0")
    try:
        with pytest.raises(StorageFailed, match="too many connections") as told:
            make().list()
    finally:
        server.sql("ALTER ROLE daemon CONNECTION LIMIT -1")
    assert told.value.data["reason"] == "53300"

    store = make()
    journal = store.create("s1", first("s1"), "os")
    await journal.durable(journal.last)
    with contextlib.ExitStack() as busy:
        for _ in range(MAX_CONNECTIONS):
            busy.enter_context(store.pool.connection())
        with pytest.raises(RecordsLost, match="in use") as lost:
            await journal.durable(journal.append([record(1)]))
    assert not lost.value.is_broken
    assert journal.resume() == 1
    await journal.durable(journal.append([record(2)]))
    await journal.close()
    assert await records_of(store) == [first("s1"), record(2)]


@pytest.mark.parametrize(
    ("state", "times", "tries", "advice"),
    [
        pytest.param("40001", 3, 4, "", id="serialization failure"),
        pytest.param("40P01", 3, 4, "", id="deadlock detected"),
        pytest.param("40001", 100, 6, "Send the request again", id="serialization failure again and again"),
        pytest.param("53100", 1, 1, "disk is full", id="disk full"),
    ],
)
async def test_what_can_be_tried_again_is_tried_again(
    make: Make, server: Server, database: str, state: str, times: int, tries: int, advice: str
) -> None:
    store = make()
    journal = store.create("s1", first("s1"), "os")
    await journal.durable(journal.last)
    server.sql(
        f"""
        CREATE SEQUENCE compactd.tries;  -- a rollback does not undo its steps
        CREATE FUNCTION compactd.refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN
            IF nextval('compactd.tries') <= {times} THEN
                RAISE EXCEPTION 'refused' USING ERRCODE = '{state}';
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON compactd.records
            FOR EACH STATEMENT EXECUTE FUNCTION compactd.refuse()
        """,
        database,
    )

    if advice:
        with pytest.raises(RecordsLost, match=advice) as told:
            await journal.durable(journal.append([record(1)]))
        assert not told.value.is_broken
        assert server.sql("SELECT last_value FROM compactd.tries", database) == [(tries,)]
        server.sql("DROP TRIGGER refuse ON compactd.records", database)
        assert journal.resume() == 1
    await journal.durable(journal.append([record(2)]))
    assert server.sql("SELECT last_value FROM compactd.tries", database) == [(tries,)]
    await journal.close()
    assert await records_of(store) == [first("s1"), record(2)]


async def test_the_event_loop_never_waits_for_the_database(make: Make, server: Server, database: str) -> None:
    import psycopg

    store = make()
    journal = store.create("s1", first("s1"), "disk")
    await journal.durable(journal.last)
    with psycopg.connect(server.url(database, "postgres")) as other:
        other.execute("SELECT 1 FROM compactd.sessions FOR UPDATE")
        started = time.monotonic()
        waiting = asyncio.ensure_future(journal.durable(journal.append([record(1)])))
        for _ in range(20):
            await asyncio.sleep(0.01)
            journal.append([record(2)])
        assert time.monotonic() - started < 2
        assert not waiting.done()
    await waiting
    await journal.close()


async def test_a_tenant_sees_and_changes_only_its_own_sessions(
    make: Make, server: Server, database: str
) -> None:
    here, there = make("a"), make("b'; DROP TABLE compactd.records; --")
    journal = here.create("s1", first("s1"), "os")
    await journal.close()

    assert there.list() == []
    assert not there.exists("s1")
    with pytest.raises(SessionNotFound):
        there.open("s1", durability="os")
    with pytest.raises(SessionNotFound):
        await there.delete("s1")
    other = there.create("s1", first("s1"), "os")
    await other.durable(other.append([record(9)]))
    await other.close()
    # Also without a condition on the tenant: the database itself hides the rows.
    with there.pool.connection() as connection:
        for table in ("sessions", "records"):
            asked = f"SELECT DISTINCT tenant FROM compactd.{table}"
            assert connection.execute(asked.encode()).fetchall() == [(there.pool.tenant,)]
        assert connection.execute("UPDATE compactd.records SET record = 'x' WHERE tenant = 'a'").rowcount == 0
        for statement in (
            "INSERT INTO compactd.records VALUES ('a', 's1', 9, 'x', NULL)",
            "UPDATE compactd.sessions SET tenant = 'a'",
        ):
            with pytest.raises(Exception, match="row-level security"):
                connection.execute(statement.encode())
    # The tables' owner sees nothing either, and a connection without a tenant sees nothing.
    import psycopg

    with psycopg.connect(server.url(database, OWNER)) as owner:
        assert owner.execute("SELECT * FROM compactd.records").fetchall() == []
    assert await records_of(here) == [first("s1")]


def test_row_level_security_is_forced_and_the_role_owns_nothing(server: Server, database: str) -> None:
    assert check(server.url(database)).problems == ()
    assert check(server.url(database)).version == len(MIGRATIONS)
    assert len(check(server.url(database, OWNER)).problems) == 1
    for table in TABLES:
        server.sql(f"ALTER TABLE compactd.{table} NO FORCE ROW LEVEL SECURITY", database)
        assert len(check(server.url(database)).problems) == 1
        server.sql(f"ALTER TABLE compactd.{table} FORCE ROW LEVEL SECURITY", database)


async def test_the_password_is_never_shown(
    server: Server, database: str, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[BaseException] = []
    bad = (
        f"postgresql://daemon:{PASSWORD}@127.0.0.1:1/nowhere",
        f"postgresql://daemon:{PASSWORD}@/{database}?host={server.folder}&nosuch={PASSWORD}",
        f"postgresql://daemon:{PASSWORD}@[::1",
        f"postgresql://daemon:{PASSWORD}%zz@host/x",
        f"postgresql://nobody:{PASSWORD}@/{database}?host={server.folder}",
        f"postgresql://daemon:{PASSWORD}@/nosuch?host={server.folder}",
        f"mysql://daemon:{PASSWORD}@host/x",
        f"daemon:{PASSWORD}",
    )
    for url in bad:
        with pytest.raises(StorageFailed) as refused:
            make_store({"COMPACTD_STORE": url}, Path("/nonexistent")).list()
        told.append(refused.value)
        with pytest.raises(StorageFailed) as refused:
            migrate(url)
        told.append(refused.value)
    store = make()
    journal = store.create("s1", first("s1"), "os")
    await journal.close()

    shown = caplog.text + "".join(repr(one) + str(one) + str(vars(one)) for one in told)
    shown += "".join("".join(traceback.format_exception(one)) for one in told)
    assert PASSWORD not in shown
    assert PASSWORD.encode() not in store.journal_bytes("s1")


def test_a_schema_of_the_future_and_one_of_the_past_are_refused(server: Server, database: str) -> None:
    newer = len(MIGRATIONS) + 1
    server.sql(f"INSERT INTO compactd.version(version) VALUES ({newer})", database)
    with pytest.raises(FormatNotSupported, match="newer version") as told:
        PostgresStore(server.url(database)).list()
    assert told.value.data == {"format": newer, "supported": [newer - 1]}
    with pytest.raises(FormatNotSupported):
        migrate(server.url(database, OWNER))
    server.sql("DELETE FROM compactd.version", database)
    with pytest.raises(StorageFailed, match="store migrate"):
        PostgresStore(server.url(database)).list()
    server.sql("DROP SCHEMA compactd CASCADE", database)
    with pytest.raises(StorageFailed, match="store migrate"):
        PostgresStore(server.url(database)).list()


async def test_a_commit_is_not_acknowledged_while_the_wait_for_its_standby_is_cancelled(
    make: Make, server: Server
) -> None:
    store = make()
    journal = store.create("s1", first("s1"), "disk")
    await journal.durable(journal.last)
    _wait_for_standby(server, "nosuch")
    try:
        written = asyncio.ensure_future(journal.durable(journal.append([record(1)])))
        for _ in range(3):
            await asyncio.to_thread(_cancel_wait, server)
        assert not written.done()
        assert len(await records_of(store)) == 2, "it is committed"
    finally:
        _wait_for_standby(server, "")
    await written
    await journal.durable(journal.append([record(2)]))
    await journal.close()
    assert await records_of(store) == [first("s1"), record(1), record(2)]


async def test_a_commit_whose_standby_is_gone_is_reported_and_taken_back(make: Make, server: Server) -> None:
    store = make(patience_s=0.0)
    journal = store.create("s1", first("s1"), "disk")
    await journal.durable(journal.last)
    _wait_for_standby(server, "nosuch")
    try:
        written = asyncio.ensure_future(journal.durable(journal.append([record(1)])))
        await asyncio.to_thread(_cancel_wait, server)
        with pytest.raises(RecordsLost) as told:
            await written
    finally:
        _wait_for_standby(server, "")
    assert "Check the standby" in str(told.value)
    assert journal.resume() == 1
    await journal.durable(journal.append([record(2)]))
    await journal.close()
    assert await records_of(store) == [first("s1"), record(2)]


def _wait_for_standby(server: Server, name: str) -> None:
    server.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
    server.sql("SELECT pg_reload_conf()")
    until = time.monotonic() + 10
    while server.sql("SHOW synchronous_standby_names") != [(name,)]:
        assert time.monotonic() < until


def _cancel_wait(server: Server) -> None:
    """Cancel the wait of a commit for the standby."""
    until = time.monotonic() + 10
    cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    while not server.sql(f"{cancel} AND query LIKE '%UPDATE compactd.sessions%'"):
        assert time.monotonic() < until


@pytest.mark.parametrize("has_nodes", [False, True])
async def test_a_database_of_version_1_can_be_upgraded(server: Server, has_nodes: bool) -> None:
    name = f"v{os.getpid()}{has_nodes:d}"
    server.sql(f"CREATE DATABASE {name} OWNER owner")
    assert migrate(server.url(name, OWNER), migrations=MIGRATIONS[:1]) == 1
    if has_nodes:  # a version 1 that was never released
        migrate(server.url(name, OWNER))
        server.sql("DELETE FROM compactd.version WHERE version > 1", name)
    server.sql(
        """
        GRANT USAGE ON SCHEMA compactd TO daemon;
        GRANT USAGE ON SEQUENCE compactd.changes TO daemon;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA compactd TO daemon;
        INSERT INTO compactd.sessions (tenant, session_id, head, bytes, token, lease_until)
        VALUES ('default', 's1', 0, 0, 'lost', now())
        """,
        name,
    )
    store = PostgresStore(server.url(name))
    with pytest.raises(StorageFailed, match="version 1"):
        store.list()

    assert migrate(server.url(name, OWNER)) == len(MIGRATIONS) - 1

    assert check(server.url(name)).problems == ()
    journal = store.create("s1", first("s1"), "os")
    await journal.durable(journal.last)
    await journal.close()
    assert [each.session_id for each in store.list()] == ["s1"]
    await store.close()


def test_two_nodes_migrate_one_after_the_other_and_an_index_is_made_online(server: Server) -> None:
    name = f"m{os.getpid()}"
    server.sql(f"CREATE DATABASE {name} OWNER owner")
    online = Migration(indexes=(("records_again", "ON compactd.records (seq)"),))
    steps: list[int] = []

    def run() -> None:
        steps.append(migrate(server.url(name, OWNER), "daemon", (*MIGRATIONS, online)))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(steps) == [0, 0, len(MIGRATIONS) + 1]
    asked = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'compactd.records_again'::regclass"
    assert server.sql(asked, name) == [(True,)]
    server.drop(name)


async def test_a_redacted_record_is_gone_from_each_row_and_a_follower_sees_it(
    make: Make, server: Server, database: str
) -> None:
    store = make()
    journal = store.create("s1", first("s1"), "disk")
    await journal.durable(journal.append([message("the canary sings"), record(2)]))
    follower, _ = store.read("s1")
    assert search_everywhere(store.index, "canary", 5).hits
    await store.save_info("s1", b"about the canary", size_bytes=journal.size_bytes or 0)
    assert store.load_info("s1") == b"about the canary"

    await journal.replace({1: message("gone")})
    await journal.durable(journal.append([record(3)]))

    assert journal.size_bytes == len(store.journal_bytes("s1"))
    assert store.load_info("s1") is None
    for table in TABLES:
        asked = f"SELECT count(*) FROM compactd.{table} AS t WHERE t::text LIKE '%canary%'"
        asked += f" OR t::text LIKE '%{b'canary'.hex()}%'"
        assert server.sql(asked, database) == [(0,)]
    news = follower.poll()
    assert (news.first_seq, [as_appended(one) for one in news.records]) == (
        0,
        [first("s1"), message("gone"), record(2), record(3)],
    )
    assert not search_everywhere(store.index, "canary", 5).hits
    await journal.close()

    await store.delete("s1")
    for table in TABLES[1:]:  # the node still lives
        assert server.sql(f"SELECT count(*) FROM compactd.{table}", database) == [(0,)]
    with pytest.raises(SessionNotFound):
        follower.poll()


async def test_each_commit_is_announced_and_a_gap_is_told(make: Make, server: Server, database: str) -> None:
    here, there = make(), make()
    told: list[str | None] = []
    listener = Listener(there.pool, told.append)

    async def comes(what: str | None) -> None:
        until = time.monotonic() + 10
        while what not in told:
            assert time.monotonic() < until
            await asyncio.sleep(0.02)
        told.clear()

    await comes(None)
    journal = here.create("s1", first("s1"), "os")
    await journal.durable(journal.last)
    await comes(notice_of("default", "s1"))
    await journal.replace({0: first("s1")})
    await comes(notice_of("default", "s1"))
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'daemon'")
    await comes(None)
    await journal.durable(journal.append([record(1)]))
    await comes(notice_of("default", "s1"))
    await journal.close()
    await here.delete("s1")
    await comes(notice_of("default", "s1"))
    listener.close()


async def test_any_node_answers_from_the_log_and_a_dump_brings_it_back(
    make: Make, server: Server, database: str
) -> None:
    here, there = make(), make()
    journal = here.create("s1", first("s1"), "disk")
    await journal.durable(journal.append([record(number) for number in range(50)]))
    follower, records = there.read("s1")
    assert b"".join(bytes(one) + b"\n" for one in records) == here.journal_bytes("s1")
    await journal.durable(journal.append([record(50)]))
    assert [as_appended(one) for one in follower.poll().records] == [record(50)]
    await journal.close()
    whole = here.journal_bytes("s1")

    copy = f"{database}_copy"
    server.sql(f"CREATE DATABASE {copy} OWNER owner")
    server.copy(database, copy)
    again = PostgresStore(server.url(copy))
    assert again.journal_bytes("s1") == whole
    journal, _ = again.open("s1", durability="os")
    await journal.durable(journal.append([record(51)]))
    await journal.close()
    await again.close()
    server.drop(copy)


@pytest.mark.parametrize("session_id", ["a\0b", "a\\0b", "x" * 3000, "../ä", "'; --", "\\"])
async def test_any_id_is_stored(make: Make, session_id: str) -> None:
    import json

    store = make()
    journal = store.create(
        session_id, b'{"type":"session","v":1,"id":%s}' % json.dumps(session_id).encode(), "os"
    )
    await journal.close()
    assert [one.session_id for one in store.list()] == [session_id]
    assert store.exists(session_id)
    await store.delete(session_id)


async def test_what_was_never_begun_leaves_nothing(make: Make, server: Server, database: str) -> None:
    import psycopg

    store = make(patience_s=0.2)
    server.sql(f"ALTER ROLE daemon IN DATABASE {database} SET statement_timeout = '200ms'")
    journal = store.create("s1", first("s1"), "disk")
    with psycopg.connect(server.url(database, "postgres")) as other:
        other.execute("LOCK TABLE compactd.records")
        with pytest.raises(RecordsLost) as told:
            await journal.durable(journal.last)
        assert told.value.lost_from == 0
    assert not store.exists("s1")
    await journal.close()
    assert server.sql("SELECT count(*) FROM compactd.sessions", database) == [(0,)]
    journal = store.create("s1", first("s1"), "disk")
    await journal.close()
    assert store.exists("s1")


async def test_sessions_move_both_ways_byte_for_byte(make: Make, tmp_path: Path) -> None:
    from compactd.storage.postgres.move import to_database, to_file

    store, folder = make(), FolderStore(tmp_path / "here")
    journal = folder.create("s1", first("s1"), "os")
    await journal.durable(journal.append([message("a", "m1"), record(1), b'{"type":"note",\n"n":1}']))
    await journal.durable(journal.append([record(2)]))
    with pytest.raises(SessionLocked):
        await to_database("s1", folder, store)
    await journal.close()
    path = Path(folder.file_of("s1") or "")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    whole = path.read_bytes()

    assert await to_database("s1", folder, store) == "copied"
    assert await to_database("s1", folder, store) == "same"
    assert store.journal_bytes("s1") == whole == path.read_bytes()
    assert store.list()[0].updated_at == 1_700_000_000
    journal, records = store.open("s1", durability="disk")
    assert [as_appended(one) for one in records][3] == b'{"type":"note",\n"n":1}'
    await journal.durable(journal.append([record(3), record(4)]))
    with pytest.raises(SessionLocked):
        await to_file("s1", store, tmp_path / "there")
    await journal.close()
    assert await to_database("s1", folder, store) == "differs"
    assert await to_file("s1", store, tmp_path / "here") == "differs"
    assert path.read_bytes() == whole

    assert await to_file("s1", store, tmp_path / "there") == "copied"
    assert await to_file("s1", store, tmp_path / "there") == "same"
    there = FolderStore(tmp_path / "there")
    assert Path(there.file_of("s1") or "").read_bytes() == store.journal_bytes("s1")
    journal, records = there.open("s1", durability="disk")
    assert [as_appended(one) for one in records][-1] == record(4)
    await journal.close()
    for one in (folder, there):
        await one.close()


def test_the_command_sets_up_checks_and_moves(server: Server, tmp_path: Path) -> None:
    name = f"c{os.getpid()}"
    server.sql(f"CREATE DATABASE {name} OWNER owner")
    environ = {**os.environ, "COMPACTD_HOME": str(tmp_path), "COMPACTD_STORE": server.url(name)}

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "compactd", "store", *arguments]
        done = subprocess.run(command, env=environ, capture_output=True, text=True)
        assert PASSWORD not in done.stdout + done.stderr
        return done.returncode, done.stdout + done.stderr

    async def fill() -> None:
        folder = FolderStore(tmp_path)
        await folder.create("s1", first("s1"), "os").close()
        await folder.close()

    assert run("check")[0] == 1
    assert run("migrate", "--role", "daemon")[0] == 1, "the role of daemons may not create the schema"
    assert run("migrate", "--url", server.url(name, OWNER), "--role", "daemon")[0] == 0
    assert run("check")[0] == 0
    asyncio.run(fill())
    assert run("move", "--to", "postgresql") == (0, "s1  copied\n1 copied, 0 already there\n")
    assert run("move", "--to", "postgresql") == (3, "0 copied, 1 already there\n")
    assert run("move", "--to", "files") == (3, "0 copied, 1 already there\n")
    assert run() == (0, "sessions are in PostgreSQL\n")
    server.drop(name)


def test_a_daemon_keeps_its_sessions_in_the_database(server: Server, database: str, tmp_path: Path) -> None:
    environ = {"COMPACTD_STORE": server.url(database)}
    said = [{"role": "user", "content": "the canary"}]
    with Daemon(tmp_path / "one", env=environ) as one, Daemon(tmp_path / "two", env=environ) as two:
        assert one.call("session/start", session_id="s1", working_dir="/")["resumed"] is False
        one.call("session/append", session_id="s1", messages=said)
        assert two.call("session/start", session_id="s1")["resumed"] is True
        listed = two.call("session/list")["sessions"]
        assert [session["session_id"] for session in listed] == ["s1"]
        assert "canary" in str(two.call("session/context", session_id="s1"))
        assert two.call("session/search", query="canary")["hits"]
        one.call("session/append", session_id="s1", messages=[{"role": "user", "content": "sings"}])
        until = time.monotonic() + 5
        while "sings" not in str(two.call("session/context", session_id="s1")):
            assert time.monotonic() < until
        assert (one.stop(), two.stop()) == (0, 0)
    with Daemon(tmp_path / "three", env=environ) as three:
        assert three.call("session/start", session_id="s1")["resumed"] is True
        three.call("session/append", session_id="s1", messages=[{"role": "user", "content": "again"}])
        three.call("session/close", session_id="s1")
        three.call("session/delete", session_id="s1")
    assert not any((tmp_path / name / "sessions").exists() for name in ("one", "two", "three"))
    with Daemon(tmp_path / "four", env={"COMPACTD_STORE": "mysql://u:hunter2@h/d"}) as four:
        refused = four.refusal("session/start", session_id="s1")
        assert "COMPACTD_STORE" in str(refused)
        assert "hunter2" not in str(refused)


async def test_a_session_that_cannot_be_opened_is_not_kept_locked(
    make: Make, server: Server, database: str
) -> None:
    here, there = make(), make()
    journal = here.create("s1", first("s1"), "os")
    await journal.durable(journal.append([record(1), record(2)]))
    await journal.close()
    server.sql("UPDATE compactd.records SET record = 'torn' WHERE seq = 1", database)

    for store in (here, there):
        with pytest.raises(SessionCorrupt):
            store.open("s1", durability="os")

    assert here.list()[0].is_locked is False
    with pytest.raises(SessionCorrupt):
        here.read("s1")
    assert here.salvage("s1") == [first("s1")]
    await here.delete("s1")


@pytest.mark.parametrize("removal", ["redaction", "deletion"])
def test_what_was_removed_is_in_no_file_of_the_database_after_a_vacuum(
    server: Server, database: str, tmp_path: Path, removal: str
) -> None:
    canary = "canary-7f3d-öäü"
    env = {STORE: server.url(database)}
    with Daemon(tmp_path / "a" / "home", env=env) as one, Daemon(tmp_path / "b" / "home", env=env) as two:
        for node in (one, two):
            node.call("session/start", session_id="s")
        # Through the node that does not write, so that it is also in the calls between nodes.
        message = {"role": "user", "content": f"The key is {canary}."}
        entries = two.call("session/append", session_id="s", messages=[message])["entry_ids"]
        two.call("session/append", session_id="s", messages=[{"role": "assistant", "content": "Noted."}])
        assert one.call("session/search", query="canary")["hits"]
        assert where(tmp_path, env, canary)[0] == 1
        if removal == "redaction":
            one.call("session/redact", session_id="s", entry_ids=entries)
        else:
            two.call("session/close", session_id="s")
            one.call("session/close", session_id="s")
            one.call("session/delete", session_id="s")
    assert canary.encode() in tables(server)

    server.sql("VACUUM FULL", database)
    server.sql("CHECKPOINT")

    assert canary.encode() not in tables(server)
    code, said = where(tmp_path, env, canary)
    assert code == 0
    assert "not found" in said
    assert f"{1 if removal == 'redaction' else 0} session" in said
    assert "write-ahead log" in said


def where(folder: Path, env: dict[str, str], text: str) -> tuple[int, str]:
    """Return the exit code of `compactd doctor --where`, and what it prints."""
    done = subprocess.run(
        [*COMPACTD, "doctor", "--where"],
        input=text.encode(),
        capture_output=True,
        env={**environment(folder), **env},
        timeout=TIMEOUT_S,
        check=False,
    )
    assert not done.stderr, done.stderr.decode()
    return done.returncode, done.stdout.decode()


def tables(server: Server) -> bytes:
    """Return the bytes of all files with rows of the databases."""
    server.sql("CHECKPOINT")
    files = sorted((server.folder / "data" / "base").rglob("*"))
    return b"".join(path.read_bytes() for path in files if path.is_file())
