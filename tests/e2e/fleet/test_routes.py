"""Each request that goes to another daemon is answered or fails, whatever becomes of that daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import pytest
from msgspec import Raw

from compactd.daemon.fleet.mailbox import Mailbox
from compactd.daemon.fleet.messages import Answered
from compactd.daemon.fleet.route import LOOK_S, PendingRequest, Route
from compactd.protocol.errors import StorageFailed
from compactd.protocol.messages import encode
from compactd.storage.postgres.store import PostgresStore
from compactd.storage.protocols import Call
from tests.support.postgres import Server, database, server

__all__ = ["database", "server"]

T = TypeVar("T")

SESSION = "s1"
FIRST = b'{"type":"session","v":1,"id":"s1"}'
CLOSED = Answered(is_closed=True)
DONE = Answered(result=Raw(b"1"))


class Threads:
    async def in_worker(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)


class Writer:
    """A daemon that does with the calls of others what a test says."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store

    async def read(self, count: int) -> dict[bytes, Call]:
        """Wait for so many new calls. Return them by their bodies."""
        found: dict[bytes, Call] = {}
        async with asyncio.timeout(10):
            while len(found) < count:
                calls, _ = await asyncio.to_thread(self.store.calls.take, ())
                found |= {call.body: call for call in calls}
        return found

    async def answer(self, call: Call, answered: Answered) -> None:
        await asyncio.to_thread(self.store.calls.send, (), [(call, encode(answered))])


@asynccontextmanager
async def nodes(url: str, count: int) -> AsyncIterator[list[PostgresStore]]:
    async with AsyncExitStack() as stack:
        stores = [PostgresStore(url) for _ in range(count)]
        for store in stores:
            stack.push_async_callback(store.close)
        yield stores


class Asker:
    """A daemon whose clients have requests to a session that another one writes."""

    def __init__(self, store: PostgresStore, *, opens_here: bool = False) -> None:
        self._opens_here = opens_here
        self._mailbox = Mailbox(Threads(), store.calls, lambda call: None, lambda node: None)
        self._route: Route | None = None

    async def ask(self, body: bytes, *, is_repeatable: bool = False) -> Answered | None:
        if self._route is None:
            self._route = Route(self._mailbox, SESSION, self._open_here, self._forget)
        request = PendingRequest(body, is_repeatable=is_repeatable, on_sent=lambda call_id: None)
        return await self._route.send(request)

    async def _open_here(self) -> bool:
        return self._opens_here

    def _forget(self) -> None:
        self._route = None


@pytest.mark.system
async def test_a_request_at_a_daemon_that_writes_no_longer_fails_or_is_sent_again(
    server: Server, database: str
) -> None:
    async with nodes(server.url(database), 3) as (one, two, asker):
        journal = await asyncio.to_thread(one.create, SESSION, FIRST, "disk")
        await journal.durable(journal.last)
        ask = Asker(asker).ask
        asked = ask(b"first"), ask(b"second"), ask(b"third", is_repeatable=True)
        first, second, third = map(asyncio.ensure_future, asked)
        calls = await Writer(one).read(3)
        await journal.close()
        again, _ = await asyncio.to_thread(two.open, SESSION, durability="disk")

        await Writer(one).answer(calls[b"second"], CLOSED)  # and it dies before it answers the others
        calls = await Writer(two).read(2)
        assert sorted(calls) == [b"second", b"third"]
        for call in calls.values():
            await Writer(two).answer(call, DONE)

        async with asyncio.timeout(10):
            assert (await second, await third) == (DONE, DONE)
            with pytest.raises(StorageFailed, match="perhaps after it carried the request out"):
                await first
        await again.close()


@pytest.mark.system
async def test_what_another_daemon_has_read_is_not_carried_out_here_again(
    server: Server, database: str
) -> None:
    async with nodes(server.url(database), 2) as (one, asker):
        journal = await asyncio.to_thread(one.create, SESSION, FIRST, "disk")
        await journal.durable(journal.last)
        ask = Asker(asker, opens_here=True).ask
        first, second = map(asyncio.ensure_future, (ask(b"first"), ask(b"second")))
        calls = await Writer(one).read(2)
        await journal.close()
        await Writer(one).answer(calls[b"second"], CLOSED)

        async with asyncio.timeout(10):
            assert await second is None
            with pytest.raises(StorageFailed):
                await first


@pytest.mark.system
async def test_a_call_that_was_lost_is_sent_again_while_others_are_answered(
    server: Server, database: str
) -> None:
    async with nodes(server.url(database), 2) as (one, asker):
        journal = await asyncio.to_thread(one.create, SESSION, FIRST, "disk")
        await journal.durable(journal.last)
        ask, writer = Asker(asker).ask, Writer(one)
        lost = asyncio.ensure_future(ask(b"lost", is_repeatable=True))
        await writer.read(1)
        server.sql("DELETE FROM compactd.calls", database)  # as a crash of the server does

        for n in range(50):
            other = asyncio.ensure_future(ask(b"%d" % n))
            calls = await writer.read(1)
            if b"lost" in calls:
                break
            await writer.answer(calls[b"%d" % n], DONE)
            await other
            await asyncio.sleep(LOOK_S / 5)
        await writer.answer(calls[b"lost"], DONE)

        async with asyncio.timeout(10):
            assert await lost == DONE
        other.cancel()
        await journal.close()
