"""After a compaction, messages that no request contains become bytes again, and nothing else changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TypeVar

import msgspec
from msgspec import Raw

from compactd.compaction.run import compact
from compactd.core.history.append import AppendRequest
from compactd.core.history.entries import Opened
from compactd.core.planning.request import CompactRequest
from compactd.formats.messages.neutral import read_messages
from compactd.protocol.messages import CompactionResult
from compactd.session.memory import (
    MIN_RELEASE_INTERVAL_S,
    PIECE,
    free_memory,
    release_free_memory,
    release_memory_soon,
)
from compactd.session.session import Session
from compactd.session.undo import undo
from compactd.storage.memory_journal import MemoryJournal
from tests.faults.simulation.loop import Loop
from tests.support.quiet_world import Quiet, done

REQUEST = CompactRequest(strategy="extract", keep_messages=4)
COUNT = 2 * PIECE + 3


T = TypeVar("T")


class Giving(Quiet):
    """Notes when memory was given back, by the loop's clock."""

    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self._loop = loop
        self.given_at: list[float] = []

    async def in_worker(self, work: Callable[[], T]) -> T:
        if isinstance(work, partial) and work.func is release_free_memory:
            self.given_at.append(self._loop.time())
        return await super().in_worker(work)


def session(world: Quiet | None = None) -> Session:
    first = Opened(v=1, id="s", at=0.0)
    journal = MemoryJournal()
    journal.append([msgspec.json.encode(first)])
    one = Session(world or Quiet(), "s", journal, (first,), persistent=False)
    said = [
        {"role": "user", "content": f"Look at item_{n} in list_{n % 7}; never drop it."} for n in range(COUNT)
    ]
    read = tuple(read_messages([Raw(msgspec.json.encode(message)) for message in said]))
    one.append(AppendRequest(read=read, tokens=tuple(one.count_message(message) for message, _ in read)))
    return one


async def compacted(of: Session, request: CompactRequest = REQUEST) -> CompactionResult:
    result = await compact(of, request)
    await free_memory(of)
    return msgspec.structs.replace(result, created_at=0.0, duration_ms=0)


def decoded(of: Session) -> int:
    return sum(item.is_decoded for item in of.state.originals.values())


def test_what_went_is_bytes_again_and_says_the_same() -> None:
    one = session()
    before = [item.message for item in one.state.path_items()]

    done(compacted(one))

    assert decoded(one) == 4
    assert [item.message for item in one.state.path_items()] == before


def test_what_the_view_shows_stays_as_it_is() -> None:
    one = session()

    done(compacted(one))

    view = [item for item in one.state.view().items if item.kind == "message"]
    assert len(view) == 4
    assert all(one.state.originals[item.entry_id] is item for item in view)


def test_a_second_compaction_gives_the_same_bytes_as_one_of_a_session_that_never_rested() -> None:
    rested, other = session(), session()
    done(compacted(rested))
    done(compact(other, REQUEST))
    smaller = CompactRequest(strategy="extract", keep_messages=2)

    assert done(compacted(rested, smaller)) == done(compacted(other, smaller))


def test_undo_shows_all_of_it_again() -> None:
    one = session()
    view = [item.message for item in one.state.view().items]
    done(compacted(one))

    undo(one)

    assert [item.message for item in one.state.view().items] == view


def test_a_session_that_is_closed_is_left_alone() -> None:
    one = session()
    one.is_closed = True

    done(free_memory(one))

    assert decoded(one) == COUNT


def test_memory_is_given_back_at_once_and_then_once_for_all_that_come_too_early() -> None:
    loop = Loop(Random(1), lambda _: None)
    world = Giving(loop)
    sessions = [session(world) for _ in range(4)]

    async def one_behind_the_other() -> None:
        for one in sessions:
            release_memory_soon(one)
            await asyncio.sleep(MIN_RELEASE_INTERVAL_S / 10)
        await asyncio.sleep(3 * MIN_RELEASE_INTERVAL_S)

    loop.run_until_complete(one_behind_the_other())
    loop.close()

    assert sorted(set(world.given_at)) == [0.0, MIN_RELEASE_INTERVAL_S]
